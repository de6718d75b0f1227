package framework

import (
	"nodest/card"
	"nodest/fault"
)

// Compact is the stored form of p. Texts of the chat that were sent as they are
// stand in it by the ids of their messages only.
func (p *Prompt) Compact() []byte { return nil }

// Expand reads the stored form. texts returns the text behind each id, in the
// order of ids; it is called at most once, with the ids that Message.ID gave.
func Expand(stored []byte, texts func(ids []string) ([]string, error)) (*Prompt, error) {
	return nil, fault.New(fault.Internal, "framework: not built yet")
}

// HashesOf reads Input.Previous from a stored form without expanding it; nil
// when it cannot be read.
func HashesOf(stored []byte) []uint64 { return nil }

// Change is one difference between two prompts.
type Change struct {
	Op     string `json:"op"` // added, removed, changed or moved
	Source Source `json:"source"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Before *Entry `json:"before,omitempty"`
	After  *Entry `json:"after,omitempty"`
	Old    string `json:"old,omitempty"` // texts of a changed entry
	New    string `json:"new,omitempty"`
}

// Difference is what differs between two prompts, in the order of the second.
type Difference struct {
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`   // entries alike in both
	Tokens  int      `json:"tokens"` // of b less those of a
	Prefix  int      `json:"prefix"` // messages that begin both
}

// Diff compares two prompts entry by entry.
func Diff(a, b *Prompt) *Difference { return &Difference{} }

// Finding is one remark of the card doctor.
type Finding struct {
	Path   string `json:"path"` // of the field, e.g. "worldBook.entries.3.key[0]"
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Documents are what Lint looks at; nil ones are left out. Paths begin with the
// name of the document unless it is the only one.
type Documents struct {
	Dialect   card.Dialect
	Card      *card.RoleCard
	Book      *card.WorldBook
	Preset    *card.Preset
	Note      *Note
	Scripts   []card.RegexScript
	Budget    int    // tokens that one entry should stay below; 0 = 1,024
	Tokenizer string // empty = the estimate
}

// Lint examines documents for what will not work as their author meant it.
func Lint(d Documents) []Finding { return nil }
