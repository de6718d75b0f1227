package nodest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/fault"
)

// ImportSave makes a save point of a file that ExportSave or the NodeST app
// wrote. Its messages become a branch of their own in the conversation; what is
// shown stays as it is until the save point is restored. In a file of ours, the
// app's messages say which messages there are and what they show, and the archive
// what else is known of them. Of a file of the app that has messages and
// nodestChatHistory, the one with more in it is read; one without any is that of an
// empty conversation. Members that are not ours are kept for the export, up to
// keptExtra.
//
// The documents of a file are those of then if it is of the conversation's own
// character and they are still there; else the newest count.
//
// Errors: NotFound; InvalidImport with the member; NewerVersion; TooLarge for more
// than 10,000 messages. Nothing has changed then.
func (e *Engine) ImportSave(ctx context.Context, c *Call, conversationID string, data []byte) (*Save, error) {
	in, err := readSaveFile(data)
	if err != nil {
		return nil, err
	}
	return once(ctx, e, c, func(tx Tx) (*Save, error) {
		conv, err := tx.LockConversation(conversationID)
		if err != nil {
			return nil, err
		}
		s, err := in.insert(tx, conv)
		if err != nil {
			return nil, err
		}
		conv.Version++
		if err := tx.UpdateConversation(conv); err != nil {
			return nil, err
		}
		return s, insertSave(tx, c, s)
	})
}

// savedFile is the file of a save point that was read.
type savedFile struct {
	texts   map[string]string // members of saveTexts
	millis  int64             // timestamp
	app     []*savedEntry     // messages of the app's ChatSave; nil = it has none
	history []*savedEntry     // nodestChatHistory, likewise
	exact   *archive          // nil in a file of the app
	rest    members           // that are not ours
	left    int               // of keptExtra
}

// savedEntry is a message of the file.
type savedEntry struct {
	chatEntry
	text  *string  // nil = it says none
	exact *Message // what the archive knows of it; nil = nothing
	rest  members
}

// Members of a file, and of its messages, that an export writes anew.
var (
	saveTexts   = []string{"description", "previewText", "thumbnail"}
	saveMembers = []string{
		"format", "formatVersion", "id", "conversationId", "characterId", "characterName", "createdAt", "messageCount",
		"automatic", "importedAt", "headId", "version", "messageIds",
	}
	messageMembers = []string{"id", "text", "sender", "timestamp", "status", "metadata"}
)

func readSaveFile(data []byte) (*savedFile, error) {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if format, version, _ := sniff(data); format != "" {
		if err := checkFormat(saveFormat, format, version); err != nil {
			return nil, err
		}
	}
	in := &savedFile{texts: map[string]string{}, rest: members{}, left: keptExtra}
	r := newReader(data, maxImportedMessages)
	err := r.object("", func(name, path string) error { return in.read(r, name, path) })
	if err == nil {
		err = r.end()
	}
	if err == nil && in.app == nil && in.history == nil {
		err = damaged("messages", "required: messages or nodestChatHistory")
	}
	if err != nil {
		return nil, err
	}
	ids := map[string]*Message{}
	if in.exact != nil {
		if ids, err = in.exact.check("nodest"); err != nil {
			return nil, err
		}
	}
	return in, in.join(ids)
}

// read reads a member of the file.
func (in *savedFile) read(r *reader, name, path string) error {
	var raw json.RawMessage
	switch {
	case name == "messages":
		all, err := arrayOf[members](r, path, r.messages)
		if err != nil || all == nil {
			return err
		}
		in.app = make([]*savedEntry, len(all))
		for i, m := range all {
			if in.app[i], err = in.message(fmt.Sprintf("%s[%d]", path, i), m); err != nil {
				return err
			}
		}
		return nil
	case name == "nodest":
		a, err := r.archive(path)
		in.exact = a
		return err
	case slices.Contains(saveTexts, name):
		var text string
		err := r.value(path, &text)
		in.texts[name] = clean(text)
		return err
	case slices.Contains(saveMembers, name):
		return r.value(path, &nothing{})
	}
	if err := r.value(path, &raw); err != nil {
		return err
	}
	switch {
	case name == "timestamp":
		in.millis = millisOf(raw)
	case name != "nodestChatHistory":
		in.keep(in.rest, name, raw)
	case !isNull(raw):
		entries, err := readChatHistory(path, raw)
		if err != nil {
			return damagedBy("", err)
		}
		in.history = []*savedEntry{}
		for _, entry := range entries {
			in.history = append(in.history, &savedEntry{chatEntry: entry})
		}
	}
	return nil
}

// message reads a message of the app.
func (in *savedFile) message(path string, m members) (*savedEntry, error) {
	if m == nil {
		return nil, damaged(path, "must be an object")
	}
	entry := &savedEntry{rest: members{}}
	if text := m["text"]; text != nil && json.Unmarshal(text, &entry.text) != nil {
		return nil, damaged(path+".text", "must be a string")
	}
	var sender string
	_ = json.Unmarshal(m["sender"], &sender) // of another type it is none
	_ = json.Unmarshal(m["id"], &entry.ID)
	entry.Role = map[string]string{"user": "user", "bot": "model"}[sender]
	entry.Timestamp = millisOf(m["timestamp"])
	var metadata members
	_ = json.Unmarshal(m["metadata"], &metadata)
	if delete(metadata, "aiIndex"); len(metadata) > 0 {
		in.keep(entry.rest, "metadata", encoded(metadata))
	}
	for _, name := range sortedKeys(m) {
		if !slices.Contains(messageMembers, name) {
			in.keep(entry.rest, name, m[name])
		}
	}
	return entry, nil
}

// keptExtra bounds the members of a file that are not ours, in bytes: pictures
// that an app puts into its messages do not belong into a list of save points.
const keptExtra = 256 << 10

// keep keeps raw for the export as long as there is room.
func (in *savedFile) keep(into members, name string, raw json.RawMessage) {
	if n := len(name) + len(raw); n <= in.left {
		in.left -= n
		into[name] = raw
	}
}

// millisOf is a time in milliseconds; 0 for anything else.
func millisOf(raw json.RawMessage) int64 {
	var at float64
	if isNull(raw) || json.Unmarshal(raw, &at) != nil {
		return 0
	}
	return int64(min(max(at, 0), 1<<52))
}

// millisIn is a time of a file; zero for none and for one that is still to come.
func millisIn(ms int64, now time.Time) time.Time {
	at := time.UnixMilli(ms).UTC()
	if ms <= 0 || at.After(now) {
		return time.Time{}
	}
	return at
}

// join leaves in app what was said: messages of the archive, by their ids there, and
// others that say something.
func (in *savedFile) join(ids map[string]*Message) error {
	said := in.app[:0]
	for i, entry := range in.app {
		entry.exact = ids[entry.ID]
		delete(ids, entry.ID)
		switch {
		case entry.exact != nil:
			retell(entry.exact, entry.text)
		case entry.Role == "":
			return damaged(fmt.Sprintf("messages[%d].sender", i), "must be user or bot")
		case entry.text == nil || strings.TrimSpace(*entry.text) == "":
			continue
		default:
			entry.Parts = []chatPart{{*entry.text}}
		}
		said = append(said, entry)
	}
	in.app = said
	if len(in.history) > len(said) && (in.exact == nil || len(said) == 0) {
		in.app = in.history
	}
	return nil
}

// retell makes m a new message. The text that the app shows counts, because somebody
// may have changed it.
func retell(m *Message, text *string) {
	m.ClientMsgID, m.Rev = "", 1
	for i := range m.Swipes {
		m.Swipes[i].Rev = 1
	}
	switch s := m.Chosen(); {
	case text == nil:
	case s != nil && s.Text != *text:
		s.Text, s.Deleted = clean(*text), false
	case s == nil && *text != "":
		m.Swipes = append(m.Swipes, newSwipe(*text, m.CreatedAt))
		m.SwipeIndex = len(m.Swipes) - 1
	}
}

// insert stores the messages as a branch of conv, and returns their save point,
// which is not stored yet.
func (in *savedFile) insert(tx Tx, conv *Conversation) (*Save, error) {
	ch, err := tx.Character(conv.CharacterID)
	if err != nil {
		return nil, err
	}
	user, err := calledIn(tx, ch, conv)
	if err != nil {
		return nil, err
	}
	now := tx.Now()
	s := &Save{
		ID: newID(), ConversationID: conv.ID, CharacterID: conv.CharacterID, Version: conv.Version + 1,
		Description: shortened(in.texts["description"], maxDescription), PreviewText: shortened(in.texts["previewText"], maxPreviewText),
		MessageCount: len(in.app), ImportedAt: &now, CreatedAt: cmp.Or(millisIn(in.millis, now), now),
	}
	if picture := in.texts["thumbnail"]; len(picture) <= maxThumbnail {
		s.Thumbnail = picture
	}
	x := &importedExtra{Members: in.rest, Messages: map[string]members{}}
	var last *Message
	for i, entry := range in.app {
		var m *Message
		if entry.exact != nil {
			m = entry.exact
		} else {
			m = messagesOfHistory([]chatEntry{entry.chatEntry}, ch.Name, user, now)[0]
			m.Greeting = m.Greeting || i == 0 && m.Role == RoleAssistant
		}
		m.ConversationID, m.ParentID = conv.ID, s.HeadID
		if err := tx.InsertMessage(m); err != nil {
			return nil, err
		}
		if len(entry.rest) > 0 {
			x.Messages[m.ID] = entry.rest
		}
		s.HeadID, last = m.ID, m
	}
	if last != nil {
		s.PreviewText = cmp.Or(s.PreviewText, preview(last).Text)
	}
	if x.State, err = in.state(tx, conv.CharacterID); err != nil {
		return nil, err
	}
	s.Pins, x.State.Pins = x.State.Pins, nil
	s.Extra = encoded(x)
	return s, nil
}

// state is what the file says about the conversation, as far as the user has it.
func (in *savedFile) state(tx Tx, characterID string) (Conversation, error) {
	if in.exact == nil {
		return Conversation{Settings: json.RawMessage("{}")}, nil
	}
	then := &in.exact.Conversation.Conversation
	state := Conversation{PersonaID: then.PersonaID, AuthorNote: then.AuthorNote, Settings: then.Settings, Pins: then.Pins}
	err := in.exact.owned(tx, characterID).fit(&state)
	if state.Pins != nil {
		state.Pins.Over = nil
	}
	return state, err
}
