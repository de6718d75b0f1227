package framework

import (
	"slices"
	"strings"
)

// Change is one difference between two prompts.
type Change struct {
	Op     string `json:"op"` // added, removed, changed or moved
	Source Source `json:"source"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Before *Entry `json:"before,omitempty"`
	After  *Entry `json:"after,omitempty"`
	Old    string `json:"old,omitempty"` // text of the message that a changed, added or removed entry begins
	New    string `json:"new,omitempty"`
}

// The ways in which an entry can differ. A moved entry has another place among the
// others and is otherwise the same.
const (
	opAdded   = "added"
	opRemoved = "removed"
	opChanged = "changed"
	opMoved   = "moved"
)

// Difference is what differs between two prompts: changes in the order of the
// second, then what was removed in the order of the first.
type Difference struct {
	Changes []Change `json:"changes"`
	Same    int      `json:"same"`   // entries alike in both
	Tokens  int      `json:"tokens"` // tokens of the second less those of the first
	Prefix  int      `json:"prefix"` // messages that begin both
}

// Diff compares two prompts entry by entry. An entry is the same thing in both
// when source and id are, or for one without an id source, name and text.
func Diff(a, b *Prompt) *Difference {
	d := &Difference{Changes: []Change{}, Tokens: b.Tokens - a.Tokens}
	for d.Prefix < len(a.Hashes) && d.Prefix < len(b.Hashes) && a.Hashes[d.Prefix] == b.Hashes[d.Prefix] {
		d.Prefix++
	}
	before := identities(a)
	at := make(map[identity]int, len(before))
	for i, k := range before {
		at[k] = i
	}
	after := identities(b)
	pairs := make([]int, len(after)) // index in a; -1 = not there
	for i, k := range after {
		pairs[i] = -1
		if j, ok := at[k]; ok {
			pairs[i] = j
			delete(at, k)
		}
	}
	inOrder := longestRising(pairs)
	for i, j := range pairs {
		switch {
		case j < 0:
			d.add(opAdded, nil, &b.Entries[i], "", b.textOf(i))
		case changed(a, j, b, i):
			d.add(opChanged, &a.Entries[j], &b.Entries[i], a.textOf(j), b.textOf(i))
		case !inOrder[i]:
			d.add(opMoved, &a.Entries[j], &b.Entries[i], "", "")
		default:
			d.Same++
		}
	}
	for j, k := range before {
		if i, ok := at[k]; ok && i == j {
			d.add(opRemoved, &a.Entries[j], nil, a.textOf(j), "")
		}
	}
	return d
}

func (d *Difference) add(op string, before, after *Entry, old, now string) {
	e := after
	if e == nil {
		e = before
	}
	d.Changes = append(d.Changes, Change{Op: op, Source: e.Source, ID: e.ID, Name: e.Name, Before: before, After: after, Old: old, New: now})
}

// identity tells what an entry is, whatever its text and place.
type identity struct {
	source Source
	id     string
	name   string
	text   uint64
	nth    int // number among entries alike
}

func identities(p *Prompt) []identity {
	seen := map[identity]int{}
	out := make([]identity, len(p.Entries))
	for i := range p.Entries {
		e := &p.Entries[i]
		k := identity{source: e.Source, id: e.ID}
		if e.ID == "" && (e.Source == SourceHistory || e.Source == SourceSummary) {
			k.name, k.text = e.Name, hashText(p.textOf(i))
		}
		n := seen[k]
		seen[k]++
		k.nth = n
		out[i] = k
	}
	return out
}

// textOf is the text that an entry begins, which is that of the message unless it
// was merged; "" for what follows another entry in the same text.
func (p *Prompt) textOf(entry int) string {
	e := &p.Entries[entry]
	text := p.Messages[e.Message].Text
	if entry > 0 && p.Entries[entry-1].Message == e.Message && p.Entries[entry-1].At == e.At {
		return ""
	}
	for _, next := range p.Entries[entry+1:] {
		if next.Message != e.Message {
			break
		}
		if next.At > e.At {
			text = strings.TrimSuffix(runesTo(text, next.At), "\n\n")
			break
		}
	}
	return text[len(runesTo(text, e.At)):]
}

func runesTo(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// changed reports whether what an entry says, or as whom, is not the same. The
// depth is a place, not a text: a message that moves up the chat has not changed.
func changed(a *Prompt, i int, b *Prompt, j int) bool {
	x, y := &a.Entries[i], &b.Entries[j]
	return x.Role != y.Role || x.Tokens != y.Tokens || a.textOf(i) != b.textOf(j)
}

// longestRising marks the members of a longest rising subsequence; negative
// values do not take part.
func longestRising(values []int) []bool {
	var tails []int // tails[n] is the index of the smallest end of a subsequence of n+1
	previous := make([]int, len(values))
	for i, v := range values {
		if v < 0 {
			continue
		}
		n, _ := slices.BinarySearchFunc(tails, v, func(t, v int) int { return values[t] - v })
		previous[i] = -1
		if n > 0 {
			previous[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	marked := make([]bool, len(values))
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = previous[i] {
			marked[i] = true
		}
	}
	return marked
}
