// Package record is the stored form of the prompt that was sent for a reply: JSON that refers to the chat,
// to summaries and to recalled messages where the prompt repeats them, and has the rest. It reads
// what it refers to, and stores nothing.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/framework"
	"nodest/llm"
)

// Recalled is a text of a chat, of which a prompt has pieces within other texts.
type Recalled struct {
	RevisionID string
	Text       string
	Pieces     []string // in the order in which the prompt has them
}

type document struct {
	framework.Prompt           // without its entries and messages
	Chat             []Part    `json:"chat"`
	Stored           []message `json:"messages"`
	Hash             uint64    `json:"hash"` // hash of all messages, as they were sent
}

// message is a message of a prompt, or a run of lines of the chat that were sent word for word, each as a
// message of its own.
type message struct {
	From int `json:"from,omitempty"` // the first line of a run
	Run  int `json:"run,omitempty"`  // how many; 0 = it is a message

	Role    llm.Role          `json:"role,omitempty"`
	Name    string            `json:"name,omitempty"`
	Text    string            `json:"text,omitempty"` // without what is cut out
	Cuts    []cut             `json:"cuts,omitempty"`
	Entries []framework.Entry `json:"entries,omitempty"` // Message is 0
}

// cut says what stood at a place of a text.
type cut struct {
	At         int    `json:"at"`                   // byte of what is left of the text
	Line       int    `json:"line,omitempty"`       // line of the chat, if there is no revision
	RevisionID string `json:"revisionId,omitempty"` // a piece of its text
	From       int    `json:"from,omitempty"`       // byte where the piece begins
	Size       int    `json:"size,omitempty"`       // length of the piece, in bytes
}

// minCut is the length in bytes from which on a text is cut out: a reference is about as long.
const minCut = 48

// Pack returns the stored form of a prompt that has texts of a chat and pieces of recalled texts.
func Pack(p *framework.Prompt, c *Chat, recalled []Recalled) ([]byte, error) {
	d := document{Prompt: *p, Chat: c.parts, Hash: hashOf(p.Messages)}
	d.Entries = []framework.Entry{}
	w := writer{lines: c.lines, recalled: recalled}
	entries := p.Entries
	for i, m := range p.Messages {
		n := 0
		for n < len(entries) && entries[n].Message == i {
			n++
		}
		w.add(m, entries[:n])
		entries = entries[n:]
	}
	d.Stored = w.out
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(&d); err != nil {
		return nil, fmt.Errorf("record: encode a prompt: %w", err)
	}
	return body.Bytes(), nil
}

func hashOf(messages []llm.Message) uint64 {
	if len(messages) == 0 {
		return 0
	}
	return framework.HashesOf(messages)[len(messages)-1]
}

// writer writes messages. Lines of the chat are in a prompt in their order.
type writer struct {
	lines    []framework.Message
	recalled []Recalled
	next     int // line that was not in the prompt yet
	out      []message
}

func (w *writer) add(m llm.Message, entries []framework.Entry) {
	if at := w.line(func(l *framework.Message) bool { return isSaid(l, m, entries) }); at >= 0 {
		if last := len(w.out) - 1; last >= 0 && w.out[last].Run > 0 && w.out[last].From+w.out[last].Run == at {
			w.out[last].Run++
		} else {
			w.out = append(w.out, message{From: at, Run: 1})
		}
		return
	}
	out := message{Role: m.Role, Name: m.Name, Entries: slices.Clone(entries)}
	rest := m.Text
	take := func(piece string, c cut) bool {
		at := strings.Index(rest, piece)
		if len(piece) < minCut || at < 0 {
			return false
		}
		out.Text += rest[:at]
		rest, c.At = rest[at+len(piece):], len(out.Text)
		out.Cuts = append(out.Cuts, c)
		return true
	}
	for i := range out.Entries {
		e := &out.Entries[i]
		e.Message = 0
		switch e.Source {
		case framework.SourceHistory, framework.SourceUser, framework.SourceSummary:
			if at := w.line(func(l *framework.Message) bool {
				return l.ID == e.ID && len(l.Text) >= minCut && strings.Contains(rest, l.Text)
			}); at >= 0 {
				take(w.lines[at].Text, cut{Line: at})
			}
		case framework.SourceMemory:
			w.takePieces(e.ID, take)
		}
	}
	out.Text += rest
	w.out = append(w.out, out)
}

// line finds a line that was not in the prompt yet, and passes it; -1 = there is none.
func (w *writer) line(fits func(*framework.Message) bool) int {
	for i := w.next; i < len(w.lines); i++ {
		if fits(&w.lines[i]) {
			w.next = i + 1
			return i
		}
	}
	return -1
}

// isSaid reports whether a message is a line word for word, and has no other entry than that.
func isSaid(l *framework.Message, m llm.Message, entries []framework.Entry) bool {
	if len(entries) != 1 || l.Text != m.Text {
		return false
	}
	said, e := l.Said()
	e.Tokens, e.Message = entries[0].Tokens, entries[0].Message
	return e == entries[0] && said.Role == m.Role && said.Name == m.Name
}

func (w *writer) takePieces(id string, take func(string, cut) bool) {
	for _, r := range w.recalled {
		if r.RevisionID != id {
			continue
		}
		for _, piece := range r.Pieces {
			if from := strings.Index(r.Text, piece); from >= 0 {
				take(piece, cut{RevisionID: id, From: from, Size: len(piece)})
			}
		}
	}
}
