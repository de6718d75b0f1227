package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/llm"
)

// Unpack returns the prompt of which Pack made body, as it was sent in a conversation.
//
// Errors: NotFound if a text that it refers to is no longer stored.
func Unpack(tx chat.Tx, conversationID string, body []byte) (*framework.Prompt, error) {
	r, err := read(tx, conversationID, body)
	if err != nil {
		return nil, err
	}
	p, at := &r.Prompt, 0
	for _, m := range r.Stored {
		for _, l := range r.lines[m.From:][:m.Run] {
			_, e := l.Said()
			e.Message, e.Tokens = at, framework.MessageTokens(p.Tokenizer, l.Text)
			p.Entries, at = append(p.Entries, e), at+1
		}
		if m.Run > 0 {
			continue
		}
		for _, e := range m.Entries {
			e.Message = at
			p.Entries = append(p.Entries, e)
		}
		at++
	}
	p.Hashes = framework.HashesOf(p.Messages)
	return p, nil
}

// Messages returns the messages of a prompt, at less cost than Unpack.
func Messages(tx chat.Tx, conversationID string, body []byte) ([]llm.Message, error) {
	r, err := read(tx, conversationID, body)
	if err != nil {
		return nil, err
	}
	return r.Prompt.Messages, nil
}

// reader is a document with its messages as they were sent, and the texts that it refers to.
type reader struct {
	document
	lines    []framework.Message
	recalled map[string]string // by revision
}

var errDiffers = errors.New("record: a stored prompt differs from what was sent")

func read(tx chat.Tx, conversationID string, body []byte) (*reader, error) {
	r := &reader{recalled: map[string]string{}}
	if err := json.Unmarshal(body, &r.document); err != nil {
		return nil, fmt.Errorf("record: decode a prompt: %w", err)
	}
	err := r.readTexts(tx, conversationID)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(err, fault.NotFound, "a text of this prompt is no longer stored")
	}
	if err != nil {
		return nil, err
	}
	for i := range r.Stored {
		m := &r.Stored[i]
		if m.From < 0 || m.Run < 0 || m.From > len(r.lines) || m.Run > len(r.lines)-m.From {
			return nil, errDiffers
		}
		for _, l := range r.lines[m.From:][:m.Run] {
			said, _ := l.Said()
			r.Prompt.Messages = append(r.Prompt.Messages, said)
		}
		if m.Run > 0 {
			continue
		}
		text, err := r.textOf(m)
		if err != nil {
			return nil, err
		}
		r.Prompt.Messages = append(r.Prompt.Messages, llm.Message{Role: m.Role, Name: m.Name, Text: text})
	}
	if hashOf(r.Prompt.Messages) != r.Hash {
		return nil, errDiffers
	}
	return r, nil
}

func (r *reader) readTexts(tx chat.Tx, conversationID string) error {
	for i := range r.Chat {
		lines, err := r.Chat[i].read(tx, conversationID)
		if err != nil {
			return err
		}
		r.lines = append(r.lines, lines...)
	}
	for _, m := range r.Stored {
		for _, c := range m.Cuts {
			if _, known := r.recalled[c.RevisionID]; known || c.RevisionID == "" {
				continue
			}
			revision, err := tx.Revision(c.RevisionID)
			if err != nil {
				return err
			}
			r.recalled[c.RevisionID] = revision.Text
		}
	}
	return nil
}

// textOf is the text of a message with what was cut out of it.
func (r *reader) textOf(m *message) (string, error) {
	var text strings.Builder
	at := 0
	for _, c := range m.Cuts {
		piece := r.recalled[c.RevisionID]
		switch {
		case c.At < at || c.At > len(m.Text):
			return "", errDiffers
		case c.RevisionID == "" && c.Line >= 0 && c.Line < len(r.lines):
			piece = r.lines[c.Line].Text
		case c.RevisionID == "" || c.From < 0 || c.Size < 0 || c.From > len(piece) || c.Size > len(piece)-c.From:
			return "", errDiffers
		default:
			piece = piece[c.From:][:c.Size]
		}
		text.WriteString(m.Text[at:c.At])
		text.WriteString(piece)
		at = c.At
	}
	text.WriteString(m.Text[at:])
	return text.String(), nil
}
