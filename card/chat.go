package card

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"nodest/internal/fault"
)

// Chat is a chat log.
type Chat struct {
	Header        json.RawMessage // the first line as it came; nil for a log of ours
	Metadata      json.RawMessage // chat_metadata, an object; the truth over Header
	UserName      string
	CharacterName string
	Messages      []ChatMessage
	Warnings      []Warning
}

// ChatMessage is one message of a log.
type ChatMessage struct {
	Role      string // "user", "assistant", "system" (hidden from the prompt) or "narrator"
	Name      string
	Text      string // the text of the chosen swipe
	Reasoning string
	SentAt    time.Time   // zero if the log does not say
	Swipes    []ChatSwipe // at least one; Swipes[Swipe].Text == Text
	Swipe     int
	Hidden    bool            // is_system: not in prompts, whatever the role
	Raw       json.RawMessage // the line as it came, nil for a message of ours
}

// ChatSwipe is one version of a message.
type ChatSwipe struct {
	Text      string
	Reasoning string
	Model     string
	SentAt    time.Time
	Raw       json.RawMessage // its element of swipe_info, nil if there is none
}

// ChatNames are the names for logs that do not carry them.
type ChatNames struct{ User, Character string }

// ImportChat reads a chat log: SillyTavern JSONL, or JSON of oobabooga, Agnai,
// CAI Tools, Kobold Lite or Risu. Of several histories in a CAI Tools file the
// first is read; a warning says so.
//
// Errors: TooLarge over a limit, or for more than 1,000 swipes of one message; InvalidImport
// with the line.
func ImportChat(data []byte, names ChatNames, limits Limits) (*Chat, error) {
	var messages []ChatMessage
	chat, err := ReadChat(data, names, limits, func(m *ChatMessage) error {
		messages = append(messages, *m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	chat.Messages = messages
	return chat, nil
}

// ReadChat is ImportChat for a log that may be large: it gives each message to a function, in their order, and keeps none. The
// line of a message may be a part of data. An error of the function ends it.
func ReadChat(data []byte, names ChatNames, limits Limits, each func(*ChatMessage) error) (*Chat, error) {
	im := newImporter("", limits)
	if err := im.checkFile(data, fault.InvalidImport); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	names.User, names.Character = cmp.Or(names.User, "User"), cmp.Or(names.Character, "Assistant")
	noted := newChatNotes()
	take := func(m *ChatMessage) error {
		noted.add(m)
		return each(m)
	}
	var chat *Chat
	var err error
	if json.Valid(data) && !isChatLine(data) {
		chat, err = im.foreignChat(data, names, take)
	} else {
		chat, err = im.importLines(data, take)
	}
	if err != nil {
		return nil, err
	}
	chat.UserName, chat.CharacterName = cmp.Or(chat.UserName, names.User), cmp.Or(chat.CharacterName, names.Character)
	im.warnChat(chat, noted)
	chat.Warnings = im.warnings
	return chat, nil
}

// UnusedName is in the header of current logs, whose messages carry the names.
const UnusedName = "unused"

// isChatLine reports whether a document is a header or a message.
func isChatLine(doc json.RawMessage) bool {
	f := fieldsOf(doc)
	return f.has("chat_metadata") || f.has("mes") || f.has("user_name") && f.has("character_name")
}

func (im *importer) foreignChat(data []byte, names ChatNames, each func(*ChatMessage) error) (*Chat, error) {
	chat, err := im.importForeignChat(data, names)
	if err != nil {
		return nil, err
	}
	for i := range chat.Messages {
		if err := each(&chat.Messages[i]); err != nil {
			return nil, err
		}
	}
	chat.Messages = nil
	return chat, nil
}

func (im *importer) importLines(data []byte, each func(*ChatMessage) error) (*Chat, error) {
	chat := &Chat{}
	number, messages := 0, 0
	im.lists = map[string]int{"swipes": maxSwipes, "swipe_info": maxSwipes}
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		doc, err := im.document(line, fault.InvalidImport)
		if fault.Is(err, fault.TooLarge) {
			return nil, err
		}
		if err != nil || !isChatLine(doc) {
			return nil, fault.New(fault.InvalidImport, "line %d is not a chat message", number).With("line", number)
		}
		switch f := fieldsOf(doc); {
		case f.has("mes"):
			if bytes.Equal(doc, line) {
				doc = line // the file has it already
			}
			m, err := im.message(doc)
			if messages++; err == nil && messages <= im.limits.Messages {
				err = each(&m)
			}
			if err != nil {
				return nil, err
			}
		case chat.Header == nil:
			chat.setHeader(doc)
		default:
			return nil, fault.New(fault.InvalidImport, "line %d is a second header; a chat log has only one", number).With("line", number)
		}
		if messages > im.limits.Messages {
			return nil, fault.New(fault.TooLarge, "the chat log has more than %d messages", im.limits.Messages)
		}
	}
	if chat.Header == nil && messages == 0 {
		return nil, fault.New(fault.InvalidImport, "the chat log is empty")
	}
	return chat, nil
}

func (c *Chat) setHeader(doc json.RawMessage) {
	f := fieldsOf(doc)
	c.Header = doc
	c.Metadata = present(f["chat_metadata"])
	if name := f.text("user_name", ""); name != UnusedName {
		c.UserName = name
	}
	if name := f.text("character_name", ""); name != UnusedName {
		c.CharacterName = name
	}
}

// message is parseMessage for a line of a file that nobody trusts. It counts the swipes of
// the whole log.
func (im *importer) message(doc json.RawMessage) (ChatMessage, error) {
	m := parseMessage(doc)
	im.swipes += len(m.Swipes)
	return m, checkCount("swipes in the chat log", im.swipes, im.limits.Swipes)
}

// ChatLine is the message that a line says which ReadChat has given.
func ChatLine(line json.RawMessage) ChatMessage { return parseMessage(line) }

// parseMessage reads one line. Its text is the authority over the list of swipes.
func parseMessage(doc json.RawMessage) ChatMessage {
	f := fieldsOf(doc)
	extra := fieldsOf(f["extra"])
	m := ChatMessage{
		Role:      messageRole(f, extra),
		Name:      f.text("name", ""),
		Text:      f.text("mes", ""),
		Reasoning: extra.text("reasoning", ""),
		SentAt:    DateOf(f["send_date"]),
		Hidden:    f.flag("is_system", false),
		Raw:       doc,
	}
	info := f.list("swipe_info")
	for i, element := range f.list("swipes") {
		swipe := ChatSwipe{}
		swipe.Text, _ = textOf(element)
		if i < len(info) {
			swipe.readInfo(info[i])
		}
		m.Swipes = append(m.Swipes, swipe)
	}
	m.Swipe = f.int("swipe_id", 0)
	if len(m.Swipes) == 0 {
		m.Swipes, m.Swipe = []ChatSwipe{{SentAt: m.SentAt, Reasoning: m.Reasoning, Model: extra.text("model", "")}}, 0
	}
	if m.Swipe < 0 || m.Swipe >= len(m.Swipes) {
		m.Swipe = len(m.Swipes) - 1
	}
	m.Swipes[m.Swipe].Text = m.Text
	return m
}

func messageRole(f, extra fields) string {
	kind := extra.text("type", "")
	switch {
	case kind == "narrator":
		return "narrator"
	case f.flag("is_user", false):
		return "user"
	case f.flag("is_system", false) && kind != "":
		return "system" // notes and help of the program
	}
	return "assistant"
}

func (s *ChatSwipe) readInfo(info json.RawMessage) {
	f := fieldsOf(info)
	extra := fieldsOf(f["extra"])
	s.Raw = info
	s.SentAt = DateOf(f["send_date"])
	s.Reasoning = extra.text("reasoning", "")
	s.Model = extra.text("model", "")
}
