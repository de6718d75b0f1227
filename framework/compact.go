package framework

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"nodest/llm"
)

// stored is a Prompt as it is kept: JSON, deflated. Texts of the chat that were
// sent word for word are there by id only, and their entries by tokens only.
type stored struct {
	Version int `json:"v"`
	Prompt
	Messages []storedMessage `json:"m"`
	Hashes   []byte          `json:"hashes"` // 8 bytes per message
}

// storedMessage is a message with its text, or with the id of its text.
type storedMessage struct {
	Role llm.Role `json:"r"`
	Name string   `json:"n,omitempty"`
	Text string   `json:"t,omitempty"`
	ID   string   `json:"i,omitempty"`
	Said *int     `json:"s,omitempty"` // tokens of its only entry, which says nothing but that it was said
}

const storedVersion = 1

// Compact returns the stored form of p. It has only the ids of messages of the chat
// whose texts were sent word for word.
func (p *Prompt) Compact() []byte {
	s := stored{Version: storedVersion, Prompt: *p, Messages: make([]storedMessage, len(p.Messages))}
	entries := p.Entries
	s.Entries = []Entry{}
	for i, m := range p.Messages {
		own := 0
		for own < len(entries) && entries[own].Message == i {
			own++
		}
		out := storedMessage{Role: m.Role, Name: m.Name, ID: p.ids[i]}
		if out.ID == "" {
			out.Text = m.Text
		}
		if own == 1 && entries[0] == saidEntry(i, m, out.ID, entries[0].Tokens) {
			out.Said = &entries[0].Tokens
		} else {
			s.Entries = append(s.Entries, entries[:own]...)
		}
		entries = entries[own:]
		s.Messages[i] = out
		s.Hashes = binary.LittleEndian.AppendUint64(s.Hashes, p.Hashes[i])
	}
	return s.encode()
}

// saidEntry is the entry of a message of the chat that says nothing else.
func saidEntry(index int, m llm.Message, id string, tokens int) Entry {
	return Entry{Source: SourceHistory, ID: id, Name: m.Name, Why: whyChat, Role: m.Role, Tokens: tokens, Message: index}
}

// A compressor has tables of several 100 KB, which are used again.
var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for an unknown level only
	return w
}}

func (s *stored) encode() []byte {
	var b bytes.Buffer
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	err := json.NewEncoder(w).Encode(s)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("framework: encode a prompt: %v", err)) // numbers and strings into memory: cannot fail
	}
	return b.Bytes()
}

// maxStored bounds what a stored form may grow to when it is read, in bytes.
const maxStored = 128 << 20

func decodeStored(data []byte) (*stored, error) {
	r := flate.NewReader(bytes.NewReader(data))
	var s stored
	if err := json.NewDecoder(io.LimitReader(r, maxStored)).Decode(&s); err != nil {
		return nil, fmt.Errorf("read a stored prompt: %w", err)
	}
	switch {
	case s.Version != storedVersion:
		return nil, fmt.Errorf("read a stored prompt: unknown version %d", s.Version)
	case len(s.Hashes) != 8*len(s.Messages):
		return nil, errors.New("read a stored prompt: inconsistent parts")
	}
	return &s, nil
}

// HashesOf reads Input.Previous from a stored form without expanding it; nil
// when it cannot be read.
func HashesOf(data []byte) []uint64 {
	s, err := decodeStored(data)
	if err != nil {
		return nil
	}
	return s.hashes()
}

func (s *stored) hashes() []uint64 {
	out := make([]uint64, len(s.Hashes)/8)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(s.Hashes[8*i:])
	}
	return out
}

// Expand reads the stored form. texts returns the text behind each id, in the
// order of ids; it is called at most once, with the ids that Message.ID gave. A
// text that is gone for good is empty: a warning tells of it. Any other that is
// not what was sent is an error.
func Expand(data []byte, texts func(ids []string) ([]string, error)) (*Prompt, error) {
	s, err := decodeStored(data)
	if err != nil {
		return nil, err
	}
	var ids, said []string
	for _, m := range s.Messages {
		if m.ID != "" {
			ids = append(ids, m.ID)
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
	p := s.expand(said)
	if err := p.verify(s.hashes()); err != nil {
		return nil, err
	}
	return p, nil
}

// verify compares the messages with the hashes of what was sent, and takes those
// over: they hold also for what can no longer be read.
func (p *Prompt) verify(hashes []uint64) error {
	gone := 0
	for i, m := range p.Messages {
		before := uint64(0)
		if i > 0 {
			before = hashes[i-1]
		}
		switch {
		case chain(before, m) == hashes[i]:
		case m.Text == "" && p.ids[i] != "":
			gone++
		default:
			return fmt.Errorf("message %d of a stored prompt differs from what was sent", i)
		}
	}
	p.Hashes = hashes
	if gone > 0 {
		p.Warnings = append(p.Warnings, Warning{Code: "text_gone", Detail: fmt.Sprintf("%d texts of this prompt are no longer stored", gone)})
	}
	return nil
}

// expand completes messages and entries; said has the texts that are there by id.
func (s *stored) expand(said []string) *Prompt {
	p, entries := &s.Prompt, s.Entries
	p.Entries = nil
	for i, in := range s.Messages {
		m := llm.Message{Role: in.Role, Name: in.Name, Text: in.Text}
		if in.ID != "" {
			m.Text, said = said[0], said[1:]
		}
		if in.Said != nil {
			p.Entries = append(p.Entries, saidEntry(i, m, in.ID, *in.Said))
		}
		for len(entries) > 0 && entries[0].Message == i {
			p.Entries = append(p.Entries, entries[0])
			entries = entries[1:]
		}
		p.addMessage(m, in.ID)
	}
	return p
}
