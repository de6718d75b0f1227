package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/internal/op"
)

// dumped is a message without a history, unchanged since a version of its conversation.
func dumped(m *chat.Message, version int64) *chat.DumpedMessage {
	d := &chat.DumpedMessage{Message: m, Texts: make([]chat.DumpedText, len(m.Swipes))}
	for i, s := range m.Swipes {
		d.Texts[i] = chat.DumpedText{Swipe: s, StoredAt: s.CreatedAt}
	}
	d.States = []chat.DumpedState{{Version: version, Rev: m.Rev, Status: m.Status, Hidden: m.Hidden}}
	if s := m.Chosen(); s != nil {
		d.States[0].RevisionID = s.RevisionID
	}
	return d
}

// CharacterName is the character that a chat log or an archive names; "" = none.
func CharacterName(data []byte) string {
	if IsArchive(data) {
		var of struct {
			Character struct{ Name string } `json:"character"`
		}
		_ = json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &of) // the import says what is wrong with it
		return of.Character.Name
	}
	const nobody = "\x00" // no file names anybody so
	file, err := card.ImportChat(data, card.ChatNames{User: nobody, Character: nobody}, logLimits)
	if err != nil {
		return ""
	}
	for _, m := range file.Messages {
		if m.Role == chat.RoleAssistant && m.Name != nobody && m.Name != "" {
			return m.Name
		}
	}
	if file.CharacterName == nobody || file.CharacterName == card.UnusedName {
		return ""
	}
	return file.CharacterName
}

func importedTitle(filename, ch string) string {
	base := path.Base(strings.ReplaceAll(filename, `\`, "/"))
	title := character.OneLine(strings.TrimSuffix(base, path.Ext(base)))
	if title == "" || title == "." || title == "/" {
		title = ch
	}
	return op.Truncate(title, chat.MaxTitle)
}

func importedMessage(in *card.ChatMessage, names card.ChatNames, at time.Time) *chat.Message {
	m := &chat.Message{
		ID: op.NewID(), Role: in.Role, Name: character.OneLine(in.Name), Hidden: in.Hidden, SwipeIndex: in.Swipe,
		Rev: 1, Status: chat.StatusComplete, Dates: chat.Dates{CreatedAt: at}, Extra: in.Raw,
	}
	switch in.Role {
	case chat.RoleUser:
		m.Name = cmp.Or(m.Name, names.User)
	case chat.RoleAssistant:
		m.Name = cmp.Or(m.Name, names.Character)
	}
	for i, s := range in.Swipes {
		at := s.SentAt
		if at.IsZero() {
			at = m.CreatedAt
		}
		swipe := chat.NewSwipe(s.Text, at)
		swipe.Reasoning, swipe.Model = chat.CleanText(s.Reasoning), character.OneLine(s.Model)
		if i == in.Swipe {
			swipe.Reasoning = cmp.Or(swipe.Reasoning, chat.CleanText(in.Reasoning))
		}
		m.Swipes = append(m.Swipes, swipe)
	}
	return m
}

// logNote are the members of chat_metadata that make an author's note.
type logNote struct {
	Prompt   string `json:"note_prompt"`
	Position *int   `json:"note_position"` // 1 = in the chat, at a depth
	Depth    *int   `json:"note_depth"`
	Role     int    `json:"note_role"`
	Interval *int   `json:"note_interval"` // messages of the user from one note to the next; 0 = it is never sent
	Scan     bool   `json:"note_allow_wi_scan"`
}

var logRoles = []string{"system", "user", "assistant"}

// noteFromLog makes the author's note of a log ours; nil without one. Notes
// before or after the card get depth 4, the default of SillyTavern.
func noteFromLog(metadata json.RawMessage) json.RawMessage {
	var n logNote
	if op.IsNull(metadata) || json.Unmarshal(metadata, &n) != nil || strings.TrimSpace(n.Prompt) == "" {
		return nil
	}
	depth, role := 4, "system"
	if n.Position != nil && *n.Position == 1 && n.Depth != nil {
		depth = max(0, min(*n.Depth, 10_000))
	}
	if n.Role > 0 && n.Role < len(logRoles) {
		role = logRoles[n.Role]
	}
	note := struct {
		Content  string `json:"content"`
		Role     string `json:"role"`
		Depth    int    `json:"injection_depth"`
		Position *int   `json:"position,omitempty"`
		Interval *int   `json:"interval,omitempty"`
		Scan     bool   `json:"allow_wi_scan,omitempty"`
	}{Content: n.Prompt, Role: role, Depth: depth, Scan: n.Scan}
	if n.Position != nil && (*n.Position == 0 || *n.Position == 2) {
		note.Position = n.Position
	}
	if n.Interval != nil && *n.Interval != 1 {
		note.Interval = new(max(0, min(*n.Interval, 10_000)))
	}
	return op.MustJSON(&note)
}

// lineOf is the line that a message came from; nil = it was not imported.
func lineOf(tx chat.Tx, m *chat.Message) (json.RawMessage, error) {
	if !m.Imported {
		return nil, nil
	}
	return tx.Line(m.ID)
}

// rawLine has the members of an imported line that an export must not add if they are
// absent.
type rawLine struct {
	Date json.RawMessage   `json:"send_date"`
	Info []json.RawMessage `json:"swipe_info"`
}

type rawInfo struct {
	Date  json.RawMessage `json:"send_date"`
	Extra struct {
		Reasoning json.RawMessage `json:"reasoning"`
	} `json:"extra"`
}

// exportedMessage is a message as a line of a log; false for one without text.
func exportedMessage(m *chat.Message) (card.ChatMessage, bool) {
	var raw rawLine
	_ = json.Unmarshal(m.Extra, &raw) // a message that was not imported has no line
	line := card.ChatMessage{Role: m.Role, Name: m.Name, SentAt: m.CreatedAt, Hidden: m.Hidden, Raw: m.Extra}
	if len(m.Extra) > 0 && card.DateOf(raw.Date).IsZero() {
		line.SentAt = time.Time{}
	}
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.Deleted {
			continue
		}
		swipe := card.ChatSwipe{Text: s.Text, Reasoning: s.Reasoning, Model: s.Model, SentAt: s.CreatedAt}
		if line.SentAt.IsZero() && s.CreatedAt.Equal(m.CreatedAt) { // as the line: it came without a date
			swipe.SentAt = time.Time{}
		}
		if i == m.SwipeIndex {
			line.Swipe, line.Text, line.Reasoning = len(line.Swipes), s.Text, s.Reasoning
		}
		if i < len(raw.Info) {
			var info rawInfo
			_ = json.Unmarshal(raw.Info[i], &info)
			swipe.Raw = raw.Info[i]
			if card.DateOf(info.Date).IsZero() {
				swipe.SentAt = time.Time{}
			}
			if i == m.SwipeIndex && info.Extra.Reasoning == nil { // it is in the line itself
				swipe.Reasoning = ""
			}
		}
		line.Swipes = append(line.Swipes, swipe)
	}
	return line, len(line.Swipes) > 0
}

// metadataWithNote sets the author's note in the metadata of a log. It changes nothing if
// the note is still that of the log.
func metadataWithNote(metadata, doc json.RawMessage) json.RawMessage {
	now, err := card.ParseAuthorNote(doc)
	was, wasErr := card.ParseAuthorNote(noteFromLog(metadata))
	none := &card.AuthorNote{Position: 1, Interval: 1}
	note := cmp.Or(now, none)
	if err != nil || wasErr != nil || *note == *cmp.Or(was, none) {
		return metadata
	}
	members := map[string]json.RawMessage{}
	if !op.IsNull(metadata) && json.Unmarshal(metadata, &members) != nil {
		return metadata
	}
	role := max(0, slices.Index(logRoles, strings.Replace(note.Role, "model", "assistant", 1)))
	members["note_prompt"], members["note_depth"] = op.MustJSON(note.Text), op.MustJSON(note.Depth)
	members["note_role"], members["note_position"] = op.MustJSON(role), op.MustJSON(note.Position)
	members["note_interval"] = op.MustJSON(note.Interval)
	if note.Scan || members["note_allow_wi_scan"] != nil {
		members["note_allow_wi_scan"] = op.MustJSON(note.Scan)
	}
	return op.MustJSON(members)
}
