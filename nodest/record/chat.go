package record

import (
	"nodest/chat"
	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/summary"
)

// Chat is the part of a chat that a prompt was made from.
type Chat struct {
	parts []Part
	lines []framework.Message // messages of the parts, in order
}

// Part is a run of messages of a branch, or a summary in the place of some.
type Part struct {
	LastID  string `json:"lastId,omitempty"`  // the last message of the run
	Count   int    `json:"count,omitempty"`   // how many messages of its branch end there, the deleted ones not counted
	Version int64  `json:"version,omitempty"` // the conversation's, or the one from which the summary has this text

	SummaryID string `json:"summaryId,omitempty"`
}

// Add adds messages that follow each other on a branch, as they are at a version of the conversation, and
// returns those that are in prompts, with their lines. Version 0 is for messages that are not stored: a stored
// prompt has their texts.
func (c *Chat) Add(version int64, messages ...*chat.Message) (shown []*chat.Message, lines []framework.Message) {
	shown, lines = linesOf(messages)
	if version != 0 && len(messages) > 0 {
		c.parts = append(c.parts, Part{LastID: messages[len(messages)-1].ID, Count: len(messages), Version: version})
		c.lines = append(c.lines, lines...)
	}
	return shown, lines
}

// AddSummary adds a summary, and returns its line. One that is not stored has no part.
func (c *Chat) AddSummary(s *summary.Summary) framework.Message {
	line := s.Message()
	if s.Since > 0 {
		c.parts, c.lines = append(c.parts, Part{SummaryID: s.ID, Version: s.Since}), append(c.lines, line)
	}
	return line
}

func linesOf(messages []*chat.Message) (shown []*chat.Message, lines []framework.Message) {
	shown = chat.InPrompt(messages)
	lines = make([]framework.Message, len(shown))
	for i, m := range shown {
		lines[i] = lineOf(m)
	}
	return shown, lines
}

// lineOf is a message as prompts have it before scripts and macros: replies are without tagged blocks, of
// which imported and edited texts may have some, and without marks, whose numbers mean nothing there.
func lineOf(m *chat.Message) framework.Message {
	s := m.Chosen()
	l := framework.Message{ID: s.RevisionID, Role: m.Role, Name: m.Name, Text: s.Text, At: m.CreatedAt, Greeting: m.Greeting}
	switch m.Role {
	case chat.RoleSystem, chat.RoleNarrator: // from a file, which must not command the model
		l.Role = chat.RoleUser
	case chat.RoleAssistant:
		l.Text = cite.StripMarks(framework.StripBlocks(s.Text))
	}
	if l.Text != s.Text {
		l.ID = ""
	}
	return l
}

func (p *Part) read(tx chat.Tx, conversationID string) ([]framework.Message, error) {
	if p.SummaryID != "" {
		text, err := tx.SummaryText(p.SummaryID, p.Version)
		return []framework.Message{(&summary.Summary{Text: text}).Message()}, err
	}
	var messages []*chat.Message // the last ones first, by page
	for before := ""; len(messages) < p.Count; before = messages[0].ID {
		page, _, err := tx.PathAt(conversationID, p.Version, p.LastID, before, p.Count-len(messages))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return nil, fault.New(fault.NotFound, "messages of the branch are gone")
		}
		messages = append(page, messages...)
	}
	_, lines := linesOf(messages)
	return lines, nil
}
