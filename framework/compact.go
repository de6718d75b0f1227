package framework

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/google/uuid"

	"nodest/llm"
)

// stored is a Prompt as it is kept: JSON, deflated. Texts of the chat that were
// sent word for word are there by id only, and their entries by tokens only.
type stored struct {
	Version   int    `json:"v"`
	Tokenizer string `json:"tokenizer"`
	Estimate  bool   `json:"estimate,omitempty"`
	Tokens    int    `json:"tokens"`
	Budget    int    `json:"budget,omitempty"`
	Base      int    `json:"base"`
	Prefix    Prefix `json:"prefix"`

	// One letter per message: t = its text is in Texts, u = its id is in UUIDs,
	// i = its id is in IDs. In capitals: it has one entry, which says nothing but
	// that the message was said, and whose tokens are in Said.
	Kinds    string   `json:"kinds"`
	Roles    string   `json:"roles"` // one letter per message
	Speakers []string `json:"speakers,omitempty"`
	Speaker  []int    `json:"speaker,omitempty"` // per message: index in Speakers; nil = nobody is named
	Texts    []string `json:"texts"`
	UUIDs    []byte   `json:"uuids,omitempty"` // 16 bytes each
	IDs      []string `json:"ids,omitempty"`
	Said     []int    `json:"said,omitempty"`
	Hashes   []byte   `json:"hashes"` // 8 bytes per message

	Entries  []Entry   `json:"entries"`
	Dropped  []Dropped `json:"dropped,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

const storedVersion = 1

// roleLetters maps roles to letters; others are stored as user.
var roleLetters = map[llm.Role]byte{llm.User: 'u', llm.Assistant: 'a', llm.System: 's'}

// Compact is the stored form of p. Texts of the chat that were sent word for word
// stand in it by the ids of their messages only.
func (p *Prompt) Compact() []byte {
	s := stored{
		Version: storedVersion, Tokenizer: p.Tokenizer, Estimate: p.Estimate, Tokens: p.Tokens, Budget: p.Budget,
		Base: p.Base, Prefix: p.Prefix, Texts: []string{}, Entries: []Entry{}, Dropped: p.Dropped, Warnings: p.Warnings,
	}
	kinds := make([]byte, len(p.Messages))
	roles := make([]byte, len(p.Messages))
	entries := p.Entries
	for i, m := range p.Messages {
		own := 0
		for own < len(entries) && entries[own].Message == i {
			own++
		}
		kinds[i] = s.addText(m.Text, p.ids[i])
		if own == 1 && entries[0] == saidEntry(i, m, p.ids[i], entries[0].Tokens) {
			kinds[i] -= 'a' - 'A'
			s.Said = append(s.Said, entries[0].Tokens)
		} else {
			s.Entries = append(s.Entries, entries[:own]...)
		}
		entries = entries[own:]
		roles[i] = roleLetters[m.Role]
		s.addSpeaker(i, len(p.Messages), m.Name)
		s.Hashes = binary.LittleEndian.AppendUint64(s.Hashes, p.Hashes[i])
	}
	s.Kinds, s.Roles = string(kinds), string(roles)
	return s.encode()
}

// saidEntry is the entry of a message of the chat that says nothing else.
func saidEntry(index int, m llm.Message, id string, tokens int) Entry {
	return Entry{Source: SourceHistory, ID: id, Name: m.Name, Why: whyChat, Role: m.Role, Tokens: tokens, Message: index}
}

func (s *stored) addText(text, id string) (kind byte) {
	if id == "" {
		s.Texts = append(s.Texts, text)
		return 't'
	}
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		s.UUIDs = append(s.UUIDs, u[:]...)
		return 'u'
	}
	s.IDs = append(s.IDs, id)
	return 'i'
}

func (s *stored) addSpeaker(index, messages int, name string) {
	if name == "" && s.Speaker == nil {
		return
	}
	if s.Speaker == nil {
		s.Speakers = []string{""}
		s.Speaker = make([]int, messages)
	}
	at := slices.Index(s.Speakers, name)
	if at < 0 {
		at = len(s.Speakers)
		s.Speakers = append(s.Speakers, name)
	}
	s.Speaker[index] = at
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
	n := len(s.Kinds)
	switch {
	case s.Version != storedVersion:
		return nil, fmt.Errorf("read a stored prompt: unknown version %d", s.Version)
	case len(s.Roles) != n, len(s.Hashes) != 8*n, s.Speaker != nil && len(s.Speaker) != n, len(s.UUIDs)%16 != 0:
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
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var said []string
	if len(ids) > 0 {
		if said, err = texts(ids); err != nil {
			return nil, fmt.Errorf("read the texts of a stored prompt: %w", err)
		}
		if len(said) != len(ids) {
			return nil, fmt.Errorf("read the texts of a stored prompt: got %d of %d", len(said), len(ids))
		}
	}
	p := &Prompt{
		Tokenizer: s.Tokenizer, Estimate: s.Estimate, Tokens: s.Tokens, Budget: s.Budget, Base: s.Base, Prefix: s.Prefix,
		Dropped: s.Dropped, Warnings: s.Warnings,
	}
	if err := s.fill(p, ids, said); err != nil {
		return nil, err
	}
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

// ids returns the ids of the messages that are there by id, in order.
func (s *stored) ids() ([]string, error) {
	var ids []string
	uuids, others := s.UUIDs, s.IDs
	for _, k := range []byte(s.Kinds) {
		switch {
		case k|32 == 'u' && len(uuids) > 0:
			ids = append(ids, uuid.UUID(uuids[:16]).String())
			uuids = uuids[16:]
		case k|32 == 'i' && len(others) > 0:
			ids = append(ids, others[0])
			others = others[1:]
		case k|32 != 't':
			return nil, errors.New("read a stored prompt: an id is missing")
		}
	}
	return ids, nil
}

// fill adds messages and entries to p.
func (s *stored) fill(p *Prompt, ids, said []string) error {
	entries, own, tokens := s.Entries, s.Texts, s.Said
	for i, k := range []byte(s.Kinds) {
		m := llm.Message{Role: llm.User}
		for role, letter := range roleLetters {
			if s.Roles[i] == letter {
				m.Role = role
			}
		}
		if s.Speaker != nil && s.Speaker[i] >= 0 && s.Speaker[i] < len(s.Speakers) {
			m.Name = s.Speakers[s.Speaker[i]]
		}
		id := ""
		if k|32 == 't' {
			if len(own) == 0 {
				return errors.New("read a stored prompt: a text is missing")
			}
			m.Text, own = own[0], own[1:]
		} else {
			id, m.Text = ids[0], said[0]
			ids, said = ids[1:], said[1:]
		}
		if k < 'a' {
			if len(tokens) == 0 {
				return errors.New("read a stored prompt: an entry is missing")
			}
			p.Entries = append(p.Entries, saidEntry(i, m, id, tokens[0]))
			tokens = tokens[1:]
		}
		for len(entries) > 0 && entries[0].Message == i {
			p.Entries = append(p.Entries, entries[0])
			entries = entries[1:]
		}
		p.addMessage(m, id)
	}
	return nil
}
