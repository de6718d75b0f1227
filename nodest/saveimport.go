package nodest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/fault"
)

// ImportSave makes a save point of a file that ExportSave or the NodeST app
// wrote. Its messages become a branch of their own in the conversation; what is
// shown stays as it is until the save point is restored. Of a ChatSave that says
// messages and nodestChatHistory, the one with more in it is read; one without
// any is that of an empty conversation. Members that are not ours are kept for the
// export, up to keptExtra.
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
		s := &Save{
			ID: newID(), ConversationID: conv.ID, CharacterID: conv.CharacterID, Version: conv.Version + 1,
			Description: shortened(in.text("description"), maxDescription),
			PreviewText: shortened(in.text("previewText"), maxPreviewText),
		}
		if picture := in.text("thumbnail"); len(picture) <= maxThumbnail {
			s.Thumbnail = picture
		}
		now := tx.Now()
		s.ImportedAt = &now
		s.CreatedAt = cmp.Or(millisIn(millisOf(in.members["timestamp"]), now), now)
		extra := &importedExtra{Messages: map[string]map[string]json.RawMessage{}}
		if err := in.insertMessages(tx, conv, s, extra); err != nil {
			return nil, err
		}
		if s.Pins, err = in.pins(tx, conv); err != nil {
			return nil, err
		}
		if extra.State, err = in.state(tx, s.Pins); err != nil {
			return nil, err
		}
		extra.Members = in.rest
		extra.trim()
		s.Extra = jsonOf(extra)
		conv.Version++
		if err := tx.UpdateConversation(conv); err != nil {
			return nil, err
		}
		return s, insertSave(tx, c, s)
	})
}

// saveImport is a file that was read, but not compared with anything stored.
type saveImport struct {
	members  map[string]json.RawMessage // all of the file's
	rest     map[string]json.RawMessage // those that are not ours
	messages []importMessage
}

// importMessage is a message of a file.
type importMessage struct {
	text   string
	user   bool
	millis int64
	kept   *keptMessage // nil in a file of the app
	entry  *chatEntry   // of nodestChatHistory; nil = it is one of messages
	rest   map[string]json.RawMessage
}

// notImported refuses a file because of one member.
func notImported(member, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	e := fault.New(fault.InvalidImport, "%s: %s", member, detail)
	e.Fields = []fault.Field{{Field: member, Code: "document", Detail: detail}}
	return e
}

// asImport is an error about a member of a file, as one of the file.
func asImport(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Invalid && e.Code != fault.NotFound {
		return err
	}
	refused := fault.Wrap(err, fault.InvalidImport, "%s", e.Message)
	refused.Fields = e.Fields
	return refused
}

func readSaveFile(data []byte) (*saveImport, error) {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	in := &saveImport{}
	if err := json.Unmarshal(data, &in.members); err != nil || in.members == nil {
		return nil, fault.New(fault.InvalidImport, "the file is not a save point: it must be one JSON object")
	}
	if err := in.checkFormat(); err != nil {
		return nil, err
	}
	if isNull(in.members["messages"]) && isNull(in.members["nodestChatHistory"]) {
		return nil, notImported("messages", "required: messages or nodestChatHistory")
	}
	if err := in.readMessages(); err != nil {
		return nil, err
	}
	for _, name := range []string{"description", "previewText", "thumbnail", "characterId", "personaId"} {
		var text string
		if raw := in.members[name]; !isNull(raw) && json.Unmarshal(raw, &text) != nil {
			return nil, notImported(name, "must be a string")
		}
	}
	in.rest = without(in.members, saveMembers)
	return in, nil
}

// saveMembers are the members of a file that an export writes anew.
var saveMembers = []string{
	"format", "formatVersion", "id", "conversationId", "characterId", "characterName", "timestamp", "createdAt", "description",
	"previewText", "messageCount", "automatic", "thumbnail", "importedAt", "headId", "version", "messageIds", "messages",
	"nodestChatHistory", "personaId", "authorNote", "settings", "pins",
}

// messageMembers are those of a message. Of metadata only aiIndex is ours.
var messageMembers = []string{"id", "text", "sender", "timestamp", "status", "nodest"}

func without(members map[string]json.RawMessage, names []string) map[string]json.RawMessage {
	rest := map[string]json.RawMessage{}
	for name, value := range members {
		if !slices.Contains(names, name) {
			rest[name] = value
		}
	}
	return rest
}

// IsSave reports whether a file is a save point, ours or one of the app, whatever it
// holds.
func IsSave(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &members) != nil {
		return false
	}
	var format string
	_ = json.Unmarshal(members["format"], &format) // of another type it stays empty
	_, app := members["nodestChatHistory"]
	return format == saveFormat || app
}

func (in *saveImport) checkFormat() error {
	format, version := in.members["format"], in.members["formatVersion"]
	if isNull(format) { // a file of the app
		return nil
	}
	var name string
	if json.Unmarshal(format, &name) != nil || name != saveFormat {
		return notImported("format", "must be %q", saveFormat)
	}
	var n int
	if json.Unmarshal(version, &n) != nil || n < 1 {
		return notImported("formatVersion", "must be a whole number, 1 or more")
	}
	if n > saveFormatVersion {
		e := fault.New(fault.NewerVersion, "the save point has format version %d; this server reads up to %d", n, saveFormatVersion)
		e.Fields = []fault.Field{{Field: "formatVersion", Code: "range", Detail: "is newer than this server supports"}}
		return e
	}
	return nil
}

// readMessages takes what was said out of messages or nodestChatHistory.
func (in *saveImport) readMessages() error {
	if raw := in.members["messages"]; !isNull(raw) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return notImported("messages", "must be an array")
		}
		if n := len(list); n > maxImportedMessages {
			return fault.New(fault.TooLarge, "messages: %d messages, limit %d", n, maxImportedMessages)
		}
		for i, raw := range list {
			m, err := readSavedMessage(fmt.Sprintf("messages[%d]", i), raw)
			if err != nil {
				return err
			}
			if m != nil {
				in.messages = append(in.messages, *m)
			}
		}
	}
	raw := in.members["nodestChatHistory"]
	if isNull(raw) {
		return nil
	}
	entries, err := readChatHistory("nodestChatHistory", raw)
	if err != nil {
		return asImport(err)
	}
	ours := !isNull(in.members["format"])
	if ours && len(in.messages) > 0 || len(entries) <= len(in.messages) {
		return nil
	}
	in.messages = nil
	for i := range entries {
		in.messages = append(in.messages, importMessage{entry: &entries[i]})
	}
	return nil
}

// readSavedMessage reads one of messages; nil for one that says nothing.
func readSavedMessage(path string, raw json.RawMessage) (*importMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return nil, notImported(path, "must be an object")
	}
	m := &importMessage{rest: without(members, messageMembers)}
	m.trimMetadata()
	if text := members["text"]; !isNull(text) && json.Unmarshal(text, &m.text) != nil {
		return nil, notImported(path+".text", "must be a string")
	}
	m.millis = millisOf(members["timestamp"])
	if kept := members["nodest"]; !isNull(kept) {
		if err := decodeKnown(path+".nodest", kept, &m.kept); err != nil {
			return nil, asImport(err)
		}
		return m, m.checkKept(path+".nodest", isNull(members["text"]))
	}
	var sender string
	if json.Unmarshal(members["sender"], &sender) != nil || sender != "user" && sender != "bot" {
		return nil, notImported(path+".sender", "must be user or bot")
	}
	m.user = sender == "user"
	if strings.TrimSpace(m.text) == "" {
		return nil, nil
	}
	return m, nil
}

// trimMetadata takes out of metadata what an export writes anew, and a metadata
// that is no object.
func (m *importMessage) trimMetadata() {
	var metadata map[string]json.RawMessage
	_ = json.Unmarshal(m.rest["metadata"], &metadata) // nothing is read of another type
	delete(m.rest, "metadata")
	if delete(metadata, "aiIndex"); len(metadata) > 0 {
		m.rest["metadata"] = jsonOf(metadata)
	}
}

// checkKept checks what stands beside the app's members. Without a text the chosen
// swipe's is meant, and the other way round.
func (m *importMessage) checkKept(path string, noText bool) error {
	k := m.kept
	switch k.Role {
	case RoleUser, RoleAssistant, RoleSystem, RoleNarrator:
	default:
		return notImported(path+".role", "unknown")
	}
	none := k.SwipeIndex == -1 || len(k.Swipes) == 0 && k.SwipeIndex == 0
	if none && m.text != "" {
		k.Swipes, k.SwipeIndex, none = append(k.Swipes, keptSwipe{Text: m.text}), len(k.Swipes), false
	}
	if !none && (k.SwipeIndex < 0 || k.SwipeIndex >= len(k.Swipes)) {
		return notImported(path+".swipeIndex", "no such swipe")
	}
	if noText && !none {
		m.text = k.Swipes[k.SwipeIndex].Text
	}
	return nil
}

// millisOf is a time in milliseconds; 0 for anything else.
func millisOf(raw json.RawMessage) int64 {
	var at float64
	if isNull(raw) || json.Unmarshal(raw, &at) != nil {
		return 0
	}
	return int64(min(max(at, 0), 1<<52))
}

// text is a member that is a string; "" without it.
func (in *saveImport) text(member string) string {
	var text string
	if raw := in.members[member]; !isNull(raw) {
		_ = json.Unmarshal(raw, &text) // checked when the file was read
	}
	return clean(text)
}

// insertMessages stores what was said as a branch of conv and lets s end it.
func (in *saveImport) insertMessages(tx Tx, conv *Conversation, s *Save, extra *importedExtra) error {
	ch, err := tx.Character(conv.CharacterID)
	if err != nil {
		return err
	}
	user, err := calledIn(tx, ch, conv)
	if err != nil {
		return err
	}
	var last *Message
	for i, from := range in.messages {
		m := from.message(ch.Name, user, tx.Now())
		if from.kept == nil && i == 0 && m.Role == RoleAssistant {
			m.Greeting = true
		}
		m.ConversationID, m.ParentID = conv.ID, s.HeadID
		if err := tx.InsertMessage(m); err != nil {
			return err
		}
		if len(from.rest) > 0 {
			extra.Messages[m.ID] = from.rest
		}
		s.HeadID, last = m.ID, m
	}
	s.MessageCount = len(in.messages)
	if last != nil {
		s.PreviewText = cmp.Or(s.PreviewText, preview(last).Text)
	}
	return nil
}

// message is m as a new message of a conversation, said by one of these two.
func (m *importMessage) message(character, user string, now time.Time) *Message {
	if m.entry != nil {
		return messagesOfHistory([]chatEntry{*m.entry}, character, user, now)[0]
	}
	at := cmp.Or(millisIn(m.millis, now), now)
	if m.kept != nil {
		return m.kept.message(m.text, at, now)
	}
	said := &Message{ID: newID(), Role: RoleAssistant, Name: character, Rev: 1, Status: StatusComplete, CreatedAt: at}
	if m.user {
		said.Role, said.Name = RoleUser, user
	}
	said.Swipes = []Swipe{newSwipe(m.text, at)}
	return said
}

// state is what the file says about the conversation. A persona or a character
// that the user does not have is none.
func (in *saveImport) state(tx Tx, pins *Pins) (keptState, error) {
	k := keptState{Settings: json.RawMessage("{}")}
	if note := in.members["authorNote"]; !isNull(note) {
		if err := checkNote("authorNote", note); err != nil {
			return k, asImport(err)
		}
		k.AuthorNote = orNil(note)
	}
	if settings := in.members["settings"]; !isNull(settings) {
		var o TurnOptions
		err := decodeKnown("settings", settings, &o)
		if err == nil {
			err = o.Validate("settings")
		}
		if err != nil {
			return k, asImport(err)
		}
		if _, err := tx.Character(o.CharacterID); fault.Is(err, fault.NotFound) {
			o.CharacterID = ""
		} else if err != nil {
			return k, err
		}
		k.Settings = jsonOf(o)
	}
	id := in.text("personaId")
	if id == "" {
		return k, nil
	}
	_, err := tx.Resource(Persona, id)
	if fault.Is(err, fault.NotFound) {
		if pins == nil || !slices.Contains(pins.ids(), id) {
			id = ""
		}
		err = nil
	}
	k.PersonaID = id
	return k, err
}

// pins are those of the file as far as they name what the user has; nil where
// they are of another character.
func (in *saveImport) pins(tx Tx, conv *Conversation) (*Pins, error) {
	raw := in.members["pins"]
	if isNull(raw) || in.text("characterId") != conv.CharacterID {
		return nil, nil
	}
	var p Pins
	if err := decodeKnown("pins", raw, &p); err != nil {
		return nil, asImport(err)
	}
	if p.Settings != nil {
		if err := p.Settings.check(); err != nil {
			return nil, asImport(err)
		}
	}
	p.Over = nil
	_, err := tx.CharacterVersion(cmp.Or(p.CharacterID, conv.CharacterID), p.Character)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	resources := p.Resources
	p.Resources = nil
	for _, r := range resources {
		_, err := tx.ResourceVersion(r.Kind, r.ID, r.Version)
		switch {
		case err == nil:
			p.Resources = append(p.Resources, r)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	return &p, nil
}

// keptExtra bounds the members of a file that are not ours, in bytes: pictures
// that an app puts into its messages do not belong into a list of save points.
const keptExtra = 256 << 10

// trim leaves out members that are too large.
func (x *importedExtra) trim() {
	left := keptExtra
	keep := func(members map[string]json.RawMessage) {
		for _, name := range sortedKeys(members) {
			if n := len(name) + len(members[name]); n <= left {
				left -= n
			} else {
				delete(members, name)
			}
		}
	}
	keep(x.Members)
	for _, id := range sortedKeys(x.Messages) {
		if keep(x.Messages[id]); len(x.Messages[id]) == 0 {
			delete(x.Messages, id)
		}
	}
}
