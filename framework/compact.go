package framework

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodest/llm"
)

// Stored is a Prompt as it is kept. Texts of the chat that were sent word
// for word are there by id only, also within other texts, and their entries by tokens only.
// Parts are runs of messages that the next prompts of the conversation have too, byte for
// byte, and the rest of a text that a message of the chat is within: each needs to be kept,
// and compressed, once.
type Stored struct {
	Body  []byte   // JSON
	Parts [][]byte // JSON, in the order in which Body refers to them
}

// stored is the content of Stored.Body.
type stored struct {
	Version int `json:"v"`
	Prompt
	Messages []storedMessage `json:"m"`
}

// storedMessage is a message with its text, or with the id of its text. Without a role it
// stands for the messages of the next part.
type storedMessage struct {
	Role    llm.Role    `json:"r,omitempty"`
	Name    string      `json:"n,omitempty"`
	Text    string      `json:"t,omitempty"` // without what is cut out
	Cuts    []storedCut `json:"c,omitempty"`
	Apart   bool        `json:"p,omitempty"` // Text is the next part
	ID      string      `json:"i,omitempty"`
	Said    *int        `json:"s,omitempty"` // tokens of its only entry, which says nothing but that it was said
	Entries []Entry     `json:"e,omitempty"` // without the index of the message
	Hash    []byte      `json:"h,omitempty"` // of the message, 4 bytes
}

// storedCut is a text of the chat that was cut out of the text of a message.
type storedCut struct {
	At    int `json:"a,omitempty"` // bytes of what is left before it
	Entry int `json:"e,omitempty"` // index of its entry within the message
}

// minCut is how long a text is that is worth a cut, in bytes.
const minCut = 32

const storedVersion = 2

// Compact returns the stored form of p. It has only the ids of messages of the chat
// whose texts were sent word for word.
func (p *Prompt) Compact() Stored {
	s := stored{Version: storedVersion, Prompt: *p}
	s.Entries = []Entry{}
	messages := p.storedMessages()
	var out Stored
	for from := 0; from < len(messages); {
		to, shared := endOfRun(messages, from)
		var part []byte
		if shared {
			part = encode(messages[from:to])
		}
		if len(part) >= minPart {
			out.Parts = append(out.Parts, part)
			s.Messages = append(s.Messages, storedMessage{})
		} else {
			for _, m := range messages[from:to] {
				if len(m.Text) >= minPart && m.isSaid() {
					out.Parts = append(out.Parts, encode(m.Text))
					m.Text, m.Apart = "", true
				}
				s.Messages = append(s.Messages, m)
			}
		}
		from = to
	}
	out.Body = encode(&s)
	return out
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("framework: encode a prompt: %v", err)) // numbers and strings into memory: cannot fail
	}
	return b.Bytes()
}

func (p *Prompt) storedMessages() []storedMessage {
	entries, list := p.Entries, make([]storedMessage, len(p.Messages))
	for i, m := range p.Messages {
		own := 0
		for own < len(entries) && entries[own].Message == i {
			own++
		}
		out := &list[i]
		*out = storedMessage{Role: m.Role, Name: m.Name, ID: p.ids[i], Hash: binary.LittleEndian.AppendUint32(nil, hashOf(m))}
		if out.ID == "" {
			out.Text, out.Cuts = p.cutOut(m.Text, entries[:own])
		}
		if own == 1 && entries[0] == saidEntry(i, m, out.ID, entries[0].Tokens) {
			out.Said = &entries[0].Tokens
		} else {
			out.Entries = slices.Clone(entries[:own])
			for k := range out.Entries {
				out.Entries[k].Message = 0
			}
		}
		entries = entries[own:]
	}
	return list
}

// cutOut cuts the texts of the chat that entries name out of the text of their message.
func (p *Prompt) cutOut(text string, entries []Entry) (left string, cuts []storedCut) {
	for i := range entries {
		said := p.said[entries[i].ID]
		if len(said) < minCut {
			continue
		}
		if before, after, ok := strings.Cut(text, said); ok {
			left += before
			cuts, text = append(cuts, storedCut{At: len(left), Entry: i}), after
		}
	}
	return left + text, cuts
}

// How messages are cut into parts.
const (
	minPart   = 256 // bytes; a smaller one is not worth a row
	partEvery = 8   // messages of the chat have a part on average
)

// endOfRun returns where the run of messages that begins at from ends, and whether later
// prompts are likely to have all of it. Runs of the chat end where the hash of a message
// says so: the same messages are cut at the same places, wherever in a prompt they are.
func endOfRun(messages []storedMessage, from int) (to int, shared bool) {
	first := &messages[from]
	for to = from + 1; ; to++ {
		last := &messages[to-1]
		if first.ID != "" && !last.isOfTurn() && last.Hash[0]%partEvery == 0 {
			return to, true
		}
		if to == len(messages) || last.isOfTurn() || messages[to].isOfTurn() || (messages[to].ID != "") != (first.ID != "") {
			return to, first.ID == "" && !first.isOfTurn()
		}
	}
}

// isOfTurn reports whether only this prompt is likely to have it: the user's new message, or
// one of the chat that was merged with what stands beside it now.
func (m *storedMessage) isOfTurn() bool {
	return m.isSaid() || slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.Source == SourceUser })
}

// isSaid reports whether it is one of the chat that was merged with what stands beside it,
// and not the new one.
func (m *storedMessage) isSaid() bool {
	has := func(s Source) bool {
		return slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.Source == s })
	}
	return m.ID == "" && has(SourceHistory) && !has(SourceUser)
}

// saidEntry is the entry of a message of the chat that says nothing else.
func saidEntry(index int, m llm.Message, id string, tokens int) Entry {
	return Entry{Source: SourceHistory, ID: id, Name: m.Name, Why: whyChat, Role: m.Role, Tokens: tokens, Message: index}
}

// decode reads a stored form with its parts in their places.
func (data Stored) decode() (*stored, error) {
	var s stored
	if err := json.Unmarshal(data.Body, &s); err != nil {
		return nil, fmt.Errorf("read a stored prompt: %w", err)
	}
	if s.Version != storedVersion {
		return nil, fmt.Errorf("read a stored prompt: unknown version %d", s.Version)
	}
	messages, parts := []storedMessage{}, data.Parts
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role != "" && !m.Apart {
			messages = append(messages, *m)
			continue
		}
		if len(parts) == 0 {
			return nil, errors.New("read a stored prompt: a part is missing")
		}
		var run []storedMessage
		var into any = &run
		if m.Apart {
			m.Apart, into = false, &m.Text
		}
		if err := json.Unmarshal(parts[0], into); err != nil {
			return nil, fmt.Errorf("read a part of a stored prompt: %w", err)
		}
		if parts = parts[1:]; m.Role != "" {
			run = []storedMessage{*m}
		}
		messages = append(messages, run...)
	}
	if slices.ContainsFunc(messages, func(m storedMessage) bool { return !m.isConsistent() }) {
		return nil, errors.New("read a stored prompt: inconsistent parts")
	}
	s.Messages = messages
	return &s, nil
}

func (m *storedMessage) isConsistent() bool {
	at, entry := 0, -1
	for _, c := range m.Cuts {
		if c.At < at || c.At > len(m.Text) || c.Entry <= entry || c.Entry >= len(m.Entries) {
			return false
		}
		at, entry = c.At, c.Entry
	}
	return len(m.Hash) == 4 && !m.Apart && (m.ID == "" || len(m.Cuts) == 0)
}

// HashesOf reads Input.Previous from a stored form without expanding it; nil
// when it cannot be read.
func HashesOf(data Stored) []uint64 {
	s, err := data.decode()
	if err != nil {
		return nil
	}
	return s.hashes()
}

func (s *stored) hashes() []uint64 {
	out, before := make([]uint64, len(s.Messages)), uint64(0)
	for i, m := range s.Messages {
		before = chain(before, binary.LittleEndian.Uint32(m.Hash))
		out[i] = before
	}
	return out
}

// Expand reads the stored form. texts returns the text behind each id, in the
// order of ids; it is called at most once, with the ids that Message.ID gave. A
// text that is gone for good is empty: a warning tells of it. Any other that is
// not what was sent is an error.
func Expand(data Stored, texts func(ids []string) ([]string, error)) (*Prompt, error) {
	s, err := data.decode()
	if err != nil {
		return nil, err
	}
	var ids, said []string
	for _, m := range s.Messages {
		if m.ID != "" {
			ids = append(ids, m.ID)
		}
		for _, c := range m.Cuts {
			ids = append(ids, m.Entries[c.Entry].ID)
		}
	}
	if len(ids) > 0 {
		if said, err = texts(ids); err != nil {
			return nil, fmt.Errorf("read the texts of a stored prompt: %w", err)
		}
		if len(said) != len(ids) {
			return nil, fmt.Errorf("read the texts of a stored prompt: got %d of %d", len(said), len(ids))
		}
	}
	p, gone := s.expand(said)
	if err := p.verify(s.hashes(), gone); err != nil {
		return nil, err
	}
	return p, nil
}

// verify compares the messages with the hashes of what was sent, and takes those
// over: they hold also for what can no longer be read. gone says how many texts of each
// message there are no more.
func (p *Prompt) verify(hashes []uint64, gone []int) error {
	total := 0
	for i, m := range p.Messages {
		before := uint64(0)
		if i > 0 {
			before = hashes[i-1]
		}
		switch {
		case chain(before, hashOf(m)) == hashes[i]:
		case gone[i] > 0:
			total += gone[i]
		default:
			return fmt.Errorf("message %d of a stored prompt differs from what was sent", i)
		}
	}
	p.Hashes = hashes
	if total > 0 {
		p.Warnings = append(p.Warnings, Warning{Code: "text_gone", Detail: fmt.Sprintf("%d texts of this prompt are no longer stored", total)})
	}
	return nil
}

// expand completes messages and entries; said has the texts that are there by id. gone is
// how many of them each message has of which nothing is left.
func (s *stored) expand(said []string) (p *Prompt, gone []int) {
	p, gone = &s.Prompt, make([]int, len(s.Messages))
	p.Entries = nil
	next := func(message int) (text string) {
		if text, said = said[0], said[1:]; text == "" {
			gone[message]++
		}
		return text
	}
	for i, in := range s.Messages {
		m := llm.Message{Role: in.Role, Name: in.Name, Text: in.Text}
		if in.ID != "" {
			m.Text = next(i)
		}
		if len(in.Cuts) > 0 {
			m.Text = ""
			at := 0
			for _, c := range in.Cuts {
				text := next(i)
				p.contains(in.Entries[c.Entry].ID, text)
				m.Text, at = m.Text+in.Text[at:c.At]+text, c.At
			}
			m.Text += in.Text[at:]
		}
		if in.Said != nil {
			p.Entries = append(p.Entries, saidEntry(i, m, in.ID, *in.Said))
		}
		for _, e := range in.Entries {
			e.Message = i
			p.Entries = append(p.Entries, e)
		}
		p.addMessage(m, in.ID)
	}
	return p, gone
}
