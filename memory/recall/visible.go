package recall

import (
	"slices"
	"strings"
	"sync"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// Visible is what the prompt shows already and need not be recalled; the zero value is nothing.
type Visible struct {
	texts []Shown
	read  func() *seen
}

// Shown is a text that the prompt shows.
type Shown struct {
	ID   string // the unit that it is; "" = none
	Text string // "" = its words are not compared
}

type seen struct {
	ids    map[string]bool
	hashes map[string]bool
	said   map[string][]int32 // texts by term
}

// mostTerms is the share of an item's terms that must be in one visible text.
const mostTerms = 0.95

// VisibleIn is the texts of the effective history; a summary among them counts by its words.
// They are analysed on first use.
func VisibleIn(texts []Shown) Visible {
	return Visible{texts, sync.OnceValue(func() *seen { return readSeen(texts) })}
}

func readSeen(texts []Shown) *seen {
	v := &seen{ids: map[string]bool{}, hashes: map[string]bool{}, said: map[string][]int32{}}
	for i, m := range texts {
		if m.ID != "" {
			v.ids[m.ID] = true
		}
		v.hashes[lang.ContentHash(m.Text)] = true
		said := slices.DeleteFunc(lang.Statements(m.Text), lang.QuestionBegins.MatchString) // a question does not say what it asks for
		for _, t := range index.Terms(strings.Join(said, "\n")) {
			if in := v.said[t]; len(in) == 0 || in[len(in)-1] != int32(i) {
				v.said[t] = append(in, int32(i))
			}
		}
	}
	return v
}

// Has reports whether a fact is visible: all texts of a source are, or one text has its words.
func (v Visible) Has(text string, sources []Source) bool {
	return v.shows(&Unit{Hash: lang.ContentHash(text), Claim: Claim{Sources: sources}}) || v.says(index.Terms(text))
}

// shows is Has without comparing words.
func (v Visible) shows(u *Unit) bool {
	if len(v.texts) == 0 {
		return false
	}
	read := v.read()
	return read.ids[u.ID] || u.Hash != "" && read.hashes[u.Hash] || slices.ContainsFunc(u.Sources, func(s Source) bool {
		return !slices.ContainsFunc(s, func(id string) bool { return !read.ids[id] })
	})
}

func (v Visible) says(terms []string) bool {
	if len(v.texts) == 0 || len(terms) < 2 {
		return false
	}
	counts, said := make([]int, len(v.texts)), v.read().said
	for _, t := range terms {
		for _, i := range said[t] {
			if counts[i]++; float64(counts[i]) >= mostTerms*float64(len(terms)) {
				return true
			}
		}
	}
	return false
}
