package recall

import (
	"slices"
	"time"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// A line that repeats what has ended, such as the answer of a character who says again what the
// user had deleted or corrected, is not recalled for it. Its other sentences still are.

// Ended is a statement that counts no more.
type Ended struct {
	lang.Gist
	At     time.Time // the user says it anew in later lines
	Purged bool      // else something else counts instead; a line that says so stays
	Now    Source    // texts that the fact rests on which counts instead
}

// withoutEchoes cuts out of lines what has ended, and leaves out those of which nothing fits the
// question then.
func (r *ranking) withoutEchoes() error {
	if r.branch == nil || len(r.found) == 0 {
		return nil
	}
	told := map[string]*lang.Telling{}
	ended, err := r.branch.Ended(r.ctx, func() (keys []string) {
		for _, c := range r.found {
			if c.Layer == Exchange {
				keys = append(keys, r.tellingOf(told, c.unit).Keys()...)
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	})
	if err != nil || len(ended) == 0 {
		return err
	}
	kept := r.found[:0]
	for _, c := range r.found {
		if c.Layer != Exchange || r.cut(&c, r.tellingOf(told, c.unit), ended) {
			kept = append(kept, c)
		}
	}
	r.found = kept
	return nil
}

func (r *ranking) tellingOf(told map[string]*lang.Telling, u *unit) *lang.Telling {
	if told[u.entry.ID] == nil {
		told[u.entry.ID] = lang.Tell(lang.Line{Role: u.Speaker, Text: u.Text}, r.q.Names)
	}
	return told[u.entry.ID]
}

// cut removes from a line what has ended, and reports whether the rest fits the question.
func (r *ranking) cut(c *candidate, told *lang.Telling, ended []Ended) bool {
	var echoes []int
	for i := range ended {
		if e := &ended[i]; r.echoesOf(e, c) {
			echoes = append(echoes, e.In(told)...)
		}
	}
	if len(echoes) == 0 {
		return true
	}
	if c.left = told.Without(echoes); c.left == "" {
		return false
	}
	has := index.Terms(c.left)
	fits := false
	for _, t := range r.read.Terms {
		if !lang.Tells(t) || !slices.Contains(c.words(), t.Text) {
			continue
		}
		if !slices.Contains(has, t.Text) {
			return false
		}
		fits = true
	}
	return fits
}

// echoesOf reports whether a line may be an echo of something that has ended.
func (r *ranking) echoesOf(e *Ended, c *candidate) bool {
	if c.Speaker == lang.RoleUser && c.At.After(e.At) {
		return false
	}
	return e.Purged || !r.read.Past && r.q.gated() && !slices.Contains(e.Now, c.ID) && !c.saysChanged()
}
