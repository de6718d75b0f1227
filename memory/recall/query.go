package recall

import (
	"context"
	"slices"
	"strings"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/memory/lang"
)

// Query is what is asked of a memory.
type Query struct {
	Text   string
	Names  lang.Names
	Now    time.Time // default: no unit is newer than others; its zone is that of days in Text and of the hits
	Before []string  // texts of the last turns, the newest turn first, of each the user's and then the reply
	Mode   Mode
	Only   Filter

	// Records returns what is known of units, by id: votes move their scores, and a share of a prompt's hits
	// are units that were never shown. Nil = nothing moves.
	Records func(ctx context.Context, units []string) (map[string]feedback.Record, error)

	Visible    Visible // in the prompt anyway
	Here       string  // the conversation that is being talked in; "" = none
	Limit      int     // hits; 0 = DefaultLimit
	Characters int     // code points of all texts together; 0 = DefaultCharacters

	read *lang.Question // Text as a question; nil = not read yet
}

const (
	DefaultLimit      = 10
	DefaultCharacters = 1500
)

// Mode says how closely a unit must fit.
type Mode int

const (
	Prompt  Mode = iota // for a turn: it passes the gate
	Search              // for a user who wants to see what fits: it passes the floor, by itself or with its neighbours
	Related             // it passes the floor by itself; neither variety nor budget
	Ranked              // everything has a rank; neither variety nor budget
)

// Filter narrows what may be found; the zero value leaves out nothing.
type Filter struct {
	Layers       []Layer // nil = both
	NoCircle     bool    // without what happened in the circle
	Public       bool    // only facts that may be told in the circle, of which one telling word of the text is enough
	Conversation string  // exchanges only of this one; "" = all
}

// Vectors are those of a query's text, as far as there are any.
type Vectors struct {
	Model    index.Vector // by the model
	Spelling index.Vector // by parts of words
}

// Branch says which units count where a question is asked.
type Branch interface {
	// Counts reports for each unit whether it may be returned. It is called only for the best units.
	Counts(ctx context.Context, units []*Unit) ([]bool, error)
	// Over returns the facts, by id, that have ended, and the id of what counts instead; "" = nothing.
	Over(ctx context.Context, facts []*Unit) (map[string]string, error)
	// Ended returns what lines may repeat although it counts no more: earlier values of the facts that
	// were asked about, and what the user purged that has one of these keys. It asks for keys if it needs them.
	Ended(ctx context.Context, keys func() []string) ([]Ended, error)
}

// Silent reports whether only a vector could find something for a prompt: the text has no words for it.
func (q *Query) Silent() bool { return q.gated() && q.reading().Silent() }

// gated reports whether only what passes the gate may be returned.
func (q *Query) gated() bool { return q.Mode == Prompt }

// whole reports whether all that is found is returned, without variety and budget.
func (q *Query) whole() bool { return q.Mode == Related || q.Mode == Ranked }

func (q *Query) reading() *lang.Question {
	if q.read == nil {
		read := lang.ReadQuery(q.Text, q.Names, q.Now)
		if q.gated() {
			read.Refer(q.Before[:min(len(q.Before), 2)], q.Names, q.Now)
			read.AddTurns(q.scene(), q.Names, q.Now)
			read.Terms = append(read.Terms, read.PropertyTerms()...)
			if read.Asked != nil {
				read.Terms = append(read.Terms, read.Asked.Terms()...)
			}
		}
		q.read = &read
	}
	return q.read
}

// scene returns what the user said in the last turns, the newest first.
func (q *Query) scene() (texts []string) {
	for i := 0; i < len(q.Before); i += 2 {
		texts = append(texts, q.Before[i])
	}
	return texts
}

// bars reports whether the filter leaves out row n, by what the index tells of it.
func (f *Filter) bars(l line, n int, v index.View) bool {
	layer := Exchange
	if l.is(lineFact) {
		layer = Fact
	}
	return f.barsKind(layer, l.is(lineCircle), l.is(linePublic)) ||
		f.Conversation != "" && layer == Exchange && !strings.HasPrefix(v.Group(n), groupOf(f.Conversation))
}

// barsUnit is bars by the unit itself, which may be newer than its row.
func (f *Filter) barsUnit(u *Unit) bool {
	return f.barsKind(u.Layer, u.Circle, u.Public) || f.Conversation != "" && u.Layer == Exchange && u.Conversation != f.Conversation
}

func (f *Filter) barsKind(layer Layer, circle, public bool) bool {
	return len(f.Layers) > 0 && !slices.Contains(f.Layers, layer) || f.NoCircle && circle || f.Public && !public
}
