package framework

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nodest/llm"
)

// Stored is a Prompt as it is kept. Texts of the chat that were sent word
// for word are there by id only, and their entries by tokens only; pieces of a Kept within other
// texts are there by its id and their place in it.
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
	Prefix   storedPrefix    `json:"prefix"`
	Messages []storedMessage `json:"m"`
	Hash     []byte          `json:"h,omitempty"` // of all texts that are there by id only, 4 bytes
}

// storedPrefix is what the rest of a Prefix follows from.
type storedPrefix struct {
	GenerationID string `json:"g,omitempty"`
	Messages     int    `json:"m,omitempty"`
	Broken       bool   `json:"b,omitempty"` // the request before had more messages
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
	Hash    []byte      `json:"h,omitempty"` // of a message without ID, 4 bytes
}

// storedCut is a piece of a Kept that was cut out of the text of a message.
type storedCut struct {
	At    int    `json:"a,omitempty"` // bytes of what is left between the cut before and this one
	Entry int    `json:"e,omitempty"` // how far its entry is behind that of the cut before
	ID    string `json:"i,omitempty"` // of the Kept, if it is not that of the entry
	From  int    `json:"f,omitempty"` // where the piece begins in the Kept, in bytes
	Len   int    `json:"l,omitempty"` // of the piece, in bytes; 0 = it is all of the Kept
}

// own is the hash of the message by itself.
func (m *storedMessage) own() uint32 {
	if m.ID != "" {
		return hashOf(llm.Message{Role: m.Role, Name: m.Name}, m.ID)
	}
	return binary.LittleEndian.Uint32(m.Hash)
}

// minCut is how long a text is that is worth a cut, in bytes.
const minCut = 32

const storedVersion = 3

// Compact returns the stored form of p.
func (p *Prompt) Compact() Stored {
	s := stored{Version: storedVersion, Prompt: *p, Hash: p.hashOfChat()}
	s.Prefix = storedPrefix{p.Prefix.GenerationID, p.Prefix.Messages, p.Prefix.BrokenBy != nil}
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
		*out = storedMessage{Role: m.Role, Name: m.Name, ID: p.ids[i]}
		if out.ID == "" {
			out.Text, out.Cuts = p.cutOut(m.Text, entries[:own])
			out.Hash = binary.LittleEndian.AppendUint32(nil, hashOf(m, ""))
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

// hashOfChat is the hash of the texts that are stored by id only; nil without any.
func (p *Prompt) hashOfChat() []byte {
	if !slices.ContainsFunc(p.ids, func(id string) bool { return id != "" }) {
		return nil
	}
	h := uint64(0)
	for i, m := range p.Messages {
		if p.ids[i] != "" {
			h = hashOn(h, m.Text)
		}
	}
	return binary.LittleEndian.AppendUint32(nil, half(h))
}

// cutOut cuts what is kept of the texts that entries name out of the text of their message.
func (p *Prompt) cutOut(text string, entries []Entry) (left string, cuts []storedCut) {
	before := 0 // the entry of the last cut
	for i, e := range entries {
		kept := p.kept[cmp.Or(e.kept, e.ID)]
		for _, piece := range kept.Pieces {
			from := strings.Index(kept.Text, piece)
			at := strings.Index(text, piece)
			if len(piece) < minCut || from < 0 || at < 0 {
				continue
			}
			cut := storedCut{At: at, Entry: i - before, ID: e.kept}
			if piece != kept.Text {
				cut.From, cut.Len = from, len(piece)
			}
			cuts, before = append(cuts, cut), i
			left, text = left+text[:at], text[at+len(piece):]
		}
	}
	return left + text, cuts
}

// How messages are cut into parts.
const (
	minPart   = 320 // bytes; a smaller one is not worth a row
	partEvery = 8   // messages of the chat have a part on average
)

// endOfRun returns where the run of messages that begins at from ends, and whether later
// prompts are likely to have all of it. Runs of the chat end where the hash of a message
// says so: the same messages are cut at the same places, wherever in a prompt they are.
func endOfRun(messages []storedMessage, from int) (to int, shared bool) {
	first := &messages[from]
	for to = from + 1; ; to++ {
		last := &messages[to-1]
		if first.ID != "" && !last.isOfTurn() && last.own()%partEvery == 0 {
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
	at, entry := 0, 0
	for _, c := range m.Cuts {
		if c.At < 0 || c.Entry < 0 || c.From < 0 || c.Len < 0 {
			return false
		}
		if at, entry = at+c.At, entry+c.Entry; at > len(m.Text) || entry >= len(m.Entries) {
			return false
		}
	}
	return (m.ID == "") == (len(m.Hash) == 4) && !m.Apart && (m.ID == "" || len(m.Cuts) == 0)
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
	for i := range s.Messages {
		before = chain(before, s.Messages[i].own())
		out[i] = before
	}
	return out
}

// Expand reads the stored form. texts returns the text behind each id, in the
// order of ids; it is called at most once, with the ids of messages and of each Kept. A
// text that is gone for good is empty: a warning tells of it. Any other that is
// not what was sent is an error.
func Expand(data Stored, texts func(ids []string) ([]string, error)) (*Prompt, error) {
	s, err := data.decode()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	if ids := s.ids(); len(ids) > 0 {
		list, err := texts(ids)
		if err != nil {
			return nil, fmt.Errorf("read the texts of a stored prompt: %w", err)
		}
		if len(list) != len(ids) {
			return nil, fmt.Errorf("read the texts of a stored prompt: got %d of %d", len(list), len(ids))
		}
		for i, id := range ids {
			said[id] = list[i]
		}
	}
	p := s.expand(said)
	if err := s.verify(p, said); err != nil {
		return nil, err
	}
	return p, nil
}

// ids are those of all texts, each once.
func (s *stored) ids() (ids []string) {
	seen := map[string]bool{"": true}
	add := func(id string) {
		if !seen[id] {
			seen[id], ids = true, append(ids, id)
		}
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		add(m.ID)
		m.eachCut(func(_ int, id string, _ storedCut) { add(id) })
	}
	return ids
}

// eachCut calls f with each cut, the index of its entry and the id of what is kept.
func (m *storedMessage) eachCut(f func(entry int, id string, c storedCut)) {
	entry := 0
	for _, c := range m.Cuts {
		entry += c.Entry
		f(entry, cmp.Or(c.ID, m.Entries[entry].ID), c)
	}
}

// expand completes messages and entries; said has the texts that are there by id.
func (s *stored) expand(said map[string]string) *Prompt {
	p := &s.Prompt
	p.Entries = []Entry{}
	for i := range s.Messages {
		in := &s.Messages[i]
		m := llm.Message{Role: in.Role, Name: in.Name, Text: in.Text}
		if in.ID != "" {
			m.Text = said[in.ID]
		}
		for k := range in.Entries {
			in.Entries[k].Message = i
		}
		if len(in.Cuts) > 0 {
			m.Text = p.fillIn(in, said)
		}
		if in.Said != nil {
			p.Entries = append(p.Entries, saidEntry(i, m, in.ID, *in.Said))
		}
		p.Entries = append(p.Entries, in.Entries...)
		p.addMessage(m, in.ID)
	}
	p.Hashes = s.hashes() // they hold also for what is gone
	p.Prefix = Prefix{GenerationID: s.Prefix.GenerationID}
	p.setPrefix(min(max(0, s.Prefix.Messages), len(p.Hashes)), s.Prefix.Broken)
	return p
}

// fillIn is the text of a message with what was cut out of it.
func (p *Prompt) fillIn(m *storedMessage, said map[string]string) string {
	var text strings.Builder
	left := m.Text
	m.eachCut(func(entry int, id string, c storedCut) {
		piece := said[id]
		if c.Len > 0 {
			from := min(c.From, len(piece))
			piece = piece[from : from+min(c.Len, len(piece)-from)]
		}
		m.Entries[entry].kept = c.ID
		p.contains(Kept{ID: id, Text: said[id], Pieces: append(slices.Clip(p.kept[id].Pieces), piece)})
		text.WriteString(left[:c.At])
		text.WriteString(piece)
		left = left[c.At:]
	})
	return text.String() + left
}

// verify compares the messages with the hashes of what was sent. A warning tells of what can no
// longer be read.
func (s *stored) verify(p *Prompt, said map[string]string) error {
	gone, ofChat := 0, 0
	for i, m := range p.Messages {
		in := &s.Messages[i]
		n := in.gone(said)
		gone += n
		if in.ID != "" {
			ofChat += n
		} else if n == 0 && hashOf(m, "") != in.own() {
			return fmt.Errorf("message %d of a stored prompt differs from what was sent", i)
		}
	}
	if ofChat == 0 && !bytes.Equal(p.hashOfChat(), s.Hash) {
		return errors.New("the chat of a stored prompt differs from what was sent")
	}
	if gone > 0 {
		p.Warnings = append(p.Warnings, Warning{Code: "text_gone", Detail: fmt.Sprintf("%d texts of this prompt are no longer stored", gone)})
	}
	return nil
}

// gone is how many texts of the message there are no more.
func (m *storedMessage) gone(said map[string]string) (n int) {
	if m.ID != "" && said[m.ID] == "" {
		return 1
	}
	last := ""
	m.eachCut(func(_ int, id string, _ storedCut) {
		if id != last && said[id] == "" {
			n++
		}
		last = id
	})
	return n
}
