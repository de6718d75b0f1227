package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// ImportSave makes a save point of a file that ExportSave or the NodeST app
// wrote. Its messages become a branch of the conversation; the shown branch stays until
// the save point is restored. In a file of ours, the
// app's messages decide which messages there are and which text they show; the archive
// adds the rest. Of a file of the app with messages and
// nodestChatHistory the longer list is read; both may be empty. Unknown members are kept
// for the export, up to keptExtra.
//
// The save point keeps the document versions of the file if it belongs to the
// conversation's character and they still exist; else it uses the newest.
//
// Errors: NotFound; InvalidImport with the member; NewerVersion; TooLarge for more
// than 10,000 messages. Nothing has changed then.
func (svc *Service) ImportSave(ctx context.Context, c *op.Call, conversationID string, data []byte) (*chat.Save, error) {
	if known, err := svc.Answered(ctx, c); known || err != nil {
		return replayed[chat.Save](ctx, svc, c, err)
	}
	in, err := readSaveFile(data)
	if err != nil {
		return nil, err
	}
	if err := svc.store.View(ctx, c.UserID, func(tx chat.Tx) error { return in.makeMessages(tx, conversationID) }); err != nil {
		return nil, err
	}
	p := Branch(conversationID, in.made)
	return Import(ctx, svc, c, p, func() (*chat.Save, error) {
		return op.Once(ctx, svc.store, c, func(tx chat.Tx) (*chat.Save, error) {
			conv, err := tx.LockConversation(conversationID)
			if err != nil {
				return nil, err
			}
			if err := p.Finish(tx); err != nil {
				return nil, err
			}
			if in.exact != nil {
				if err := in.exact.insertPlays(tx, conv.ID); err != nil {
					return nil, err
				}
			}
			s, err := in.save(tx, conv)
			if err != nil {
				return nil, err
			}
			conv.Version++
			if err := tx.UpdateConversation(conv); err != nil {
				return nil, err
			}
			return s, chat.InsertSave(tx, c, s)
		})
	})
}

// ConversationID is the conversation that the file of a save point names; "" = none.
func ConversationID(data []byte) string {
	var of struct {
		ConversationID string `json:"conversationId"`
	}
	_ = json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &of) // a value of another type names none
	return of.ConversationID
}

// savedFile is the file of a save point that was read.
type savedFile struct {
	description, previewText, thumbnail string

	millis  int64     // timestamp
	exact   *contents // nil in a file of the app
	entries []*savedEntry
	made    []*chat.Message // messages of the entries
	rest    members         // that are not ours
	left    int             // bytes of keptExtra that are left
}

// savedEntry is a message of the file.
type savedEntry struct {
	Entry
	exact *chat.Message // the message in the archive; nil = none
	rest  members
}

// Members of a file, and of its messages, that an export writes anew.
var (
	saveMembers = []string{
		"format", "formatVersion", "id", "conversationId", "characterId", "characterName", "timestamp", "createdAt", "description",
		"previewText", "messageCount", "automatic", "thumbnail", "importedAt", "headId", "version", "messageIds", "messages",
		"nodestChatHistory", "nodest", "nextCursor",
	}
	messageMembers = []string{"id", "text", "sender", "role", "name", "timestamp", "status", "metadata"}
)

func readSaveFile(data []byte) (*savedFile, error) {
	var all members
	if err := readFile(data, saveFormat, true, saveLimits, &all); err != nil {
		return nil, err
	}
	in := &savedFile{millis: millisOf(all["timestamp"]), rest: members{}, left: keptExtra}
	var messages []json.RawMessage
	for _, m := range []struct {
		name string
		into any
	}{
		{"description", &in.description}, {"previewText", &in.previewText}, {"thumbnail", &in.thumbnail},
		{"messages", &messages}, {"nodest", &in.exact},
	} {
		if raw := all[m.name]; raw != nil {
			if err := decodeError(m.name, json.Unmarshal(raw, m.into)); err != nil {
				return nil, err
			}
		}
	}
	history := all["nodestChatHistory"]
	if messages == nil && op.IsNull(history) {
		return nil, damaged("messages", "required: messages or nodestChatHistory")
	}
	in.keep(in.rest, all, saveMembers)
	if len(messages) > maxSaved || in.exact != nil && len(in.exact.Messages) > maxSaved {
		return nil, fault.New(fault.TooLarge, "the save point has more than %d messages", maxSaved).With("limit", maxSaved)
	}
	ids := map[string]*chat.Message{}
	if in.exact != nil {
		var err error
		if ids, err = in.exact.check("nodest"); err != nil {
			return nil, err
		}
	}
	for i, raw := range messages {
		if err := in.message(fmt.Sprintf("messages[%d]", i), raw, ids); err != nil {
			return nil, err
		}
	}
	return in, in.readHistory(history)
}

// message reads a message of the app and finds it in the archive. Without one there, an
// empty message is left out.
func (in *savedFile) message(path string, raw json.RawMessage, ids map[string]*chat.Message) error {
	var m members
	if err := decodeError(path, json.Unmarshal(raw, &m)); err != nil {
		return err
	}
	var text *string
	if raw := m["text"]; raw != nil {
		if err := decodeError(path+".text", json.Unmarshal(raw, &text)); err != nil {
			return err
		}
	}
	var id, sender string
	_ = json.Unmarshal(m["id"], &id) // an id of another type counts as absent
	_ = json.Unmarshal(m["sender"], &sender)
	entry := &savedEntry{exact: ids[id], rest: members{}}
	delete(ids, id)
	switch role := map[string]string{"user": "user", "bot": "model"}[sender]; {
	case entry.exact != nil:
		useShownText(entry.exact, text)
	case role == "":
		return damaged(path+".sender", "must be user or bot")
	case text == nil || strings.TrimSpace(*text) == "":
		return nil
	default:
		entry.Entry = Entry{Role: role, Parts: []chatPart{{*text}}, Timestamp: millisOf(m["timestamp"])}
	}
	var metadata members
	_ = json.Unmarshal(m["metadata"], &metadata)
	if delete(metadata, "aiIndex"); len(metadata) > 0 {
		in.keep(entry.rest, members{"metadata": m["metadata"]}, nil)
	}
	in.keep(entry.rest, m, messageMembers)
	in.entries = append(in.entries, entry)
	return nil
}

// readHistory uses nodestChatHistory if it has more messages.
func (in *savedFile) readHistory(raw json.RawMessage) error {
	if op.IsNull(raw) {
		return nil
	}
	entries, err := ReadHistory("nodestChatHistory", raw)
	if err != nil {
		return damagedBy("", err)
	}
	if in.exact != nil && len(in.entries) > 0 || len(entries) <= len(in.entries) {
		return nil
	}
	in.entries = make([]*savedEntry, len(entries))
	for i, entry := range entries {
		in.entries[i] = &savedEntry{Entry: entry}
	}
	return nil
}

// keptExtra bounds the unknown members that are kept, in bytes: pictures in messages of
// an app must not bloat a list of save points.
const keptExtra = 256 << 10

// keep copies members to rest for the export, without those in but, while there is room.
func (in *savedFile) keep(rest, all members, but []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := len(name) + len(all[name]); n <= in.left && !slices.Contains(but, name) {
			in.left -= n
			rest[name] = all[name]
		}
	}
}

// millisOf is a time in milliseconds; 0 for anything else.
func millisOf(raw json.RawMessage) int64 {
	var at float64
	if op.IsNull(raw) || json.Unmarshal(raw, &at) != nil {
		return 0
	}
	return int64(min(max(at, 0), 1<<52))
}

// useShownText makes m a new message with the text that the app shows, which may have
// been changed there.
func useShownText(m *chat.Message, text *string) {
	m.ClientMsgID, m.Rev = "", 1
	for i := range m.Swipes {
		m.Swipes[i].Rev = 1
	}
	switch s := m.Chosen(); {
	case text == nil:
	case s != nil && s.Text != *text:
		s.Text, s.Deleted = chat.CleanText(*text), false
	case s == nil && *text != "":
		m.Swipes = append(m.Swipes, chat.NewSwipe(*text, m.CreatedAt))
		m.SwipeIndex = len(m.Swipes) - 1
	}
}

func (in *savedFile) makeMessages(tx chat.Tx, conversationID string) error {
	conv, err := tx.Conversation(conversationID)
	if err != nil {
		return err
	}
	ch, err := tx.Characters.Character(conv.CharacterID)
	if err != nil {
		return err
	}
	user, err := chat.UserNameIn(tx, ch, conv)
	if err != nil {
		return err
	}
	in.made = make([]*chat.Message, len(in.entries))
	for i, entry := range in.entries {
		m := entry.exact
		if m == nil {
			m = Messages([]Entry{entry.Entry}, ch.Name, user, tx.Now())[0]
			m.Greeting = m.Greeting || i == 0 && m.Role == chat.RoleAssistant
		}
		in.made[i] = m
	}
	return nil
}

// save returns the save point of the messages in conv, which is not stored yet.
func (in *savedFile) save(tx chat.Tx, conv *chat.Conversation) (s *chat.Save, err error) {
	now := tx.Now()
	s = &chat.Save{
		ID: op.NewID(), ConversationID: conv.ID, CharacterID: conv.CharacterID, Version: conv.Version + 1,
		Description: op.Truncate(chat.CleanText(in.description), chat.MaxDescription), PreviewText: op.Truncate(chat.CleanText(in.previewText), chat.MaxPreviewText),
		MessageCount: len(in.entries), ImportedAt: &now, CreatedAt: now,
	}
	if at := time.UnixMilli(in.millis).UTC(); in.millis > 0 && at.Before(now) {
		s.CreatedAt = at
	}
	if picture := chat.CleanText(in.thumbnail); len(picture) <= chat.MaxThumbnail {
		s.Thumbnail = picture
	}
	x := &importedExtra{Members: in.rest, Messages: map[int64]members{}}
	for i, entry := range in.entries {
		if len(entry.rest) > 0 {
			x.Messages[in.made[i].Seq] = entry.rest
		}
	}
	if n := len(in.made); n > 0 {
		last := in.made[n-1]
		s.HeadID, s.PreviewText = last.ID, cmp.Or(s.PreviewText, last.Preview().Text)
	}
	if x.State, err = in.state(tx, conv.CharacterID); err != nil {
		return nil, err
	}
	s.Pins, x.State.Pins = x.State.Pins, nil
	s.Extra = encoded(x)
	return s, nil
}

// state is the conversation in the file, without what the user does not have.
func (in *savedFile) state(tx chat.Tx, characterID string) (chat.Conversation, error) {
	if in.exact == nil {
		return chat.Conversation{Settings: json.RawMessage("{}")}, nil
	}
	then := &in.exact.Conversation.Conversation
	state := chat.Conversation{PersonaID: then.PersonaID, AuthorNote: then.AuthorNote, Settings: then.Settings, Pins: then.Pins, PlayID: then.PlayID}
	err := in.exact.owned(tx, characterID).fit(&state)
	if state.Pins != nil {
		state.Pins.Over = nil
	}
	return state, err
}
