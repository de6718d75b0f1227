package card

import (
	"cmp"
	"encoding/json"
	"strings"

	"nodest/card/foreign"
	"nodest/internal/fault"
)

// foreignMessage is a message in a log of another program.
type foreignMessage struct {
	user bool
	name string // "" = as the caller names the side
	text string
	date json.RawMessage // in a form that DateOf reads; may be missing
}

// first are the elements of a list of messages that are read: one more than there may be.
func (im *importer) first(list []json.RawMessage) []json.RawMessage {
	return list[:min(len(list), im.limits.Messages+1)]
}

// foreignChat recognises the log of another program and returns its reader; nil
// for anything else.
func foreignChat(o *object) func(*importer, fields) []foreignMessage {
	messages := o.list("messages")
	switch {
	case o.has("data_visible"), o.has("visible") && o.has("internal"):
		return readOobabooga
	case o.has("histories"):
		return readCAI
	case o.has("savedsettings"):
		return readKobold
	case o.text("type", "") == "risuChat":
		return readRisu
	case len(messages) > 0 && fieldsOf(messages[0]).has("msg"):
		return readAgnai
	}
	return nil
}

// importForeignChat reads a log that is one JSON document. The header that it
// gets is that of a current SillyTavern log.
func (im *importer) importForeignChat(data []byte, names ChatNames) (*Chat, error) {
	doc, err := im.document(data, fault.InvalidImport)
	if err != nil {
		return nil, err
	}
	o, err := parseObject(doc)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidImport, "a chat log must be JSON Lines or one JSON object")
	}
	read := foreignChat(o)
	if read == nil {
		return nil, fault.New(fault.InvalidImport, "unknown chat log format")
	}
	messages := read(im, o.fields)
	if len(messages) > im.limits.Messages {
		return nil, fault.New(fault.TooLarge, "the chat log has more than %d messages", im.limits.Messages)
	}
	chat := &Chat{}
	chat.setHeader(encode(json.RawMessage(`{"chat_metadata":{},"user_name":"unused","character_name":"unused"}`)))
	if settings := fieldsOf(o.get("savedsettings")); settings != nil { // Kobold Lite names both sides
		names.User = settings.textOr("chatname", names.User)
		opponents, _, _ := strings.Cut(settings.text("chatopponent", ""), "||$||")
		names.Character = cmp.Or(opponents, names.Character)
		chat.UserName, chat.CharacterName = names.User, names.Character
	}
	if o.has("histories") { // CAI Tools names the character beside them
		chat.CharacterName = foreign.Name(foreign.Doc(o.fields))
	}
	for _, m := range messages {
		chat.Messages = append(chat.Messages, parseMessage(m.line(names)))
	}
	return chat, nil
}

// line writes the message as a line of a SillyTavern log.
func (m foreignMessage) line(names ChatNames) json.RawMessage {
	side := names.Character
	if m.user {
		side = names.User
	}
	o := newObject()
	o.put("name", cmp.Or(m.name, side))
	o.put("is_user", m.user)
	putDate(o, DateOf(m.date))
	o.put("mes", m.text)
	o.put("extra", map[string]any{})
	return o.encode()
}

// readOobabooga reads pairs of user and character; empty cells are no messages.
func readOobabooga(im *importer, f fields) []foreignMessage {
	var all []foreignMessage
	for _, pair := range im.first(append(f.list("data_visible"), f.list("visible")...)) {
		for i, cell := range listOf(pair) {
			if text, _ := textOf(cell); text != "" && i < 2 {
				all = append(all, foreignMessage{user: i == 0, text: text})
			}
		}
	}
	return all
}

// readAgnai reads messages; those with a userId are the user's.
func readAgnai(im *importer, f fields) []foreignMessage {
	var all []foreignMessage
	for _, element := range im.first(f.list("messages")) {
		if m := fieldsOf(element); m != nil {
			all = append(all, foreignMessage{user: !absent(m["userId"]), text: m.text("msg", ""), date: m["createdAt"]})
		}
	}
	return all
}

// readCAI reads the first history of a CAI Tools file.
func readCAI(im *importer, f fields) []foreignMessage {
	histories := f.list("histories")
	if histories == nil {
		histories = fieldsOf(f["histories"]).list("histories")
	}
	if len(histories) == 0 {
		return nil
	}
	if len(histories) > 1 {
		im.warn("histories", "first_only", "the file has %d histories; only the first was read", len(histories))
	}
	var all []foreignMessage
	for _, element := range im.first(fieldsOf(histories[0]).list("msgs")) {
		m := fieldsOf(element)
		if text := m.text("text", ""); text != "" {
			all = append(all, foreignMessage{user: fieldsOf(m["src"]).flag("is_human", false), text: text, date: m["created"]})
		}
	}
	return all
}

// Marks that Kobold Lite puts before the text of either side.
const (
	koboldInput  = "{{[INPUT]}}"
	koboldOutput = "{{[OUTPUT]}}"
)

// readKobold reads the opening text and the actions; a text with the mark of the
// input is the user's.
func readKobold(im *importer, f fields) []foreignMessage {
	texts := textsOf(im.first(f.list("actions")))
	if prompt := f.text("prompt", ""); prompt != "" {
		texts = append([]string{prompt}, texts...)
	}
	unmark := strings.NewReplacer(koboldInput, "", koboldOutput, "")
	var all []foreignMessage
	for _, text := range texts {
		all = append(all, foreignMessage{user: strings.Contains(text, koboldInput), text: strings.TrimSpace(unmark.Replace(text))})
	}
	return all
}

func readRisu(im *importer, f fields) []foreignMessage {
	var all []foreignMessage
	for _, element := range im.first(fieldsOf(f["data"]).list("message")) {
		if m := fieldsOf(element); m != nil {
			all = append(all, foreignMessage{
				user: m.text("role", "") == "user", name: m.text("name", ""), text: m.text("data", ""), date: m["time"],
			})
		}
	}
	return all
}
