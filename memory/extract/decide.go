package extract

import (
	"context"
	"slices"
	"strings"

	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// decision is what a model wants to happen.
type decision struct {
	Event     memory.Event
	Candidate int    // index of the candidate that it comes from; -1 = not known
	Target    string // ID of the known memory; "" = none, or one that was not listed
	Text      string // as the model wrote it
}

// A model is shown the nearest five known memories of each candidate.
const (
	nearestKnown = 5
	mostKnown    = nearestKnown * maxCandidates
)

// decide asks the model how candidates relate to known, the memories nearest to them. It
// returns no decisions if there is nothing to ask, no model, or no usable answer: then the
// rules decide. The only error is that of ctx, after which nothing may be stored.
func (x *run) decide(ctx context.Context, candidates []candidate, known []memory.Memory) ([]decision, error) {
	known = known[:min(len(known), mostKnown)]
	var asked []candidate
	var open []int // their places in candidates
	for i, c := range candidates {
		hash := lang.ContentHash(c.Text)
		if !slices.ContainsFunc(known, func(m memory.Memory) bool { return lang.ContentHash(m.Text) == hash }) {
			asked, open = append(asked, c), append(open, i)
		}
	}
	if len(open) == 0 || len(known) == 0 || x.method == memory.ByRule {
		return nil, ctx.Err()
	}
	var decisions []decision
	err := x.ask(ctx, decisionsPrompt(asked, known), func(reply string) error {
		o, err := llm.ReadObject(reply, "memory")
		if err == nil {
			decisions = readDecisions(o, asked, known)
		}
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		x.note("decisions", err)
		return nil, nil
	}
	for i := range decisions {
		if d := &decisions[i]; d.Candidate >= 0 {
			d.Candidate = open[d.Candidate]
		}
	}
	return decisions, nil
}

// readDecisions reads the entries of an answer one by one, without those with an unknown event.
func readDecisions(answer llm.Object, asked []candidate, known []memory.Memory) []decision {
	var out []decision
	entries := answer.List("memory")
	for _, doc := range entries[:min(len(entries), mostKnown+maxCandidates)] {
		o := llm.ObjectOf(string(doc), "event")
		if o == nil {
			continue
		}
		d := decision{Event: memory.Event(strings.ToUpper(o.Text("event"))), Candidate: -1, Text: lang.Tidy(o.Text("text"))}
		switch d.Event {
		case memory.EventAdd, memory.EventUpdate, memory.EventDelete, memory.EventNone:
		default:
			continue
		}
		if id := o.Integers("id"); len(id) == 1 && id[0] >= 0 && id[0] < int64(len(known)) && d.Event != memory.EventAdd {
			d.Target = known[id[0]].ID
		}
		if n := o.Integers("new"); len(n) == 1 && n[0] >= 0 && n[0] < int64(len(asked)) {
			d.Candidate = int(n[0])
		} else {
			d.Candidate = nearestCandidate(d.Text, asked)
		}
		out = append(out, d)
	}
	return out
}

// nearestCandidate finds the candidate that a text of the model stands for; -1 = none.
func nearestCandidate(text string, candidates []candidate) int {
	hash, best, at := lang.ContentHash(text), lang.EnoughSaid, -1
	s, pieces := lang.SaidIn(text), lang.PiecesOf(text)
	for i, c := range candidates {
		if lang.ContentHash(c.Text) == hash {
			return i
		}
		there, _ := s.Share(lang.PiecesOf(c.Text))
		back, _ := lang.SaidIn(c.Text).Share(pieces)
		if both := min(there, back); both > best {
			best, at = both, i
		}
	}
	return at
}

// similarity compares two texts by the cosine of their hashed n-gram vectors; 1 = the same.
type similarity func(a, b string) float64

// How near texts must be for the rules.
const (
	sameText    = 0.92
	nearbyTexts = 0.75
	farTexts    = 0.3 // a text farther than this is about something else, and is not looked at closely
)

// byRule decides on a candidate without a model: NONE for what is known, UPDATE for the same
// thing with another number, name, value or negation, else ADD. A different value takes
// precedence: two long statements that differ in one digit are nearly the same text.
func byRule(c *candidate, known []*memory.Memory, similar similarity) (memory.Event, *memory.Memory) {
	var update *memory.Memory
	best := 0.0
	for _, m := range known {
		switch event, near := compare(c, m, similar); {
		case event == memory.EventNone:
			return event, m
		case event == memory.EventUpdate && (near > best || update == nil):
			best, update = near, m
		}
	}
	if update != nil {
		return memory.EventUpdate, update
	}
	return memory.EventAdd, nil
}

// compare is byRule for one memory, and how near it is.
func compare(c *candidate, m *memory.Memory, similar similarity) (memory.Event, float64) {
	near := similar(c.Text, m.Text)
	same := c.Subject == m.Subject && c.Kind == m.Kind
	switch {
	case m.Kind != lang.KindEvent && lang.Ends(c.Text, m.Text):
		return memory.EventUpdate, 1
	case lang.SlotsOf(c.Text).Over(), near < farTexts: // it is about something else
		return memory.EventAdd, near
	case !lang.Differ(c.Text, m.Text):
		if near >= sameText && lang.HoldsWords(m.Text, c.Text) {
			return memory.EventNone, near
		}
		return memory.EventAdd, near
	case same && (near >= nearbyTexts || lang.Opposite(c.Text, m.Text)):
		return memory.EventUpdate, near
	}
	return memory.EventAdd, near
}
