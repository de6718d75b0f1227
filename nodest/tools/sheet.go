package tools

import (
	"iter"
	"slices"

	"nodest/internal/cite"
)

// Numbers are the sources that a turn has shown; the n-th is known to the model as [n]. The
// zero value has none.
type Numbers struct{ list []numbered }

type numbered struct {
	source cite.Source
	places Place
}

// Place says where the model is shown a source; one may be in several places.
type Place uint8

// The places of a source.
const (
	InBlock    Place = 1 << iota // in the block of documents
	InWeb                        // results of a search before the request
	InPassages                   // the same, of documents, for a model without tools
	InAnswer                     // in the answer of a tool
)

// Len is the number of the last source.
func (n *Numbers) Len() int { return len(n.list) }

// All returns the sources by their numbers, from 1, with their places.
func (n *Numbers) All() iter.Seq2[cite.Source, Place] {
	return func(yield func(cite.Source, Place) bool) {
		for _, s := range n.list {
			if !yield(s.source, s.places) {
				return
			}
		}
	}
}

// Add gives a source the next number, whether or not it has one.
func (n *Numbers) Add(source cite.Source, at Place) int {
	n.list = append(n.list, numbered{source, at})
	return len(n.list)
}

// of is the number of a source; what can be quoted of it is added.
func (n *Numbers) of(source cite.Source, at Place) int {
	for i := range n.list {
		if known := &n.list[i].source; known.Kind == source.Kind && known.URL == source.URL && known.FileID == source.FileID && known.ChunkID == source.ChunkID {
			known.Add(&source)
			n.list[i].places |= at
			return i + 1
		}
	}
	return n.Add(source, at)
}

// Sheet is what an answer is written on. It numbers the sources that the model is shown.
type Sheet struct {
	Room int // code points that the text may have

	numbers *Numbers
	at      Place
	refs    []int // that this text has
}

// Sheet returns an empty sheet for a text at a place.
func (n *Numbers) Sheet(room int, at Place) *Sheet { return &Sheet{Room: room, numbers: n, at: at} }

// draft is a sheet whose numbers count only once they are kept.
func (n *Numbers) draft(room int, at Place) *Sheet {
	return (&Numbers{slices.Clone(n.list)}).Sheet(room, at)
}

// Refs are the numbers of the sources that its text has.
func (s *Sheet) Refs() []int { return s.refs }

// Lookup is a search or the reading of documents, and the numbers of what was shown of it.
type Lookup struct {
	Query string // "" = documents were read
	Refs  []int
}

// Ref is the number of a source, by which the reply cites it. A source that the turn has
// shown already keeps its number. Sources are told apart by kind, URL, file and chunk.
func (s *Sheet) Ref(source cite.Source) int {
	n := s.numbers.of(source, s.at)
	s.refs = append(s.refs, n)
	return n
}
