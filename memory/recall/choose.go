package recall

import (
	"math"
	"slices"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// choose makes hits of the best units that count.
func (r *ranking) choose() ([]Hit, error) {
	r.found = r.present(r.found)
	if r.q.gated() && !slices.ContainsFunc(r.found, func(c candidate) bool { return r.columns.proven.has(c.why) }) {
		r.found = nil // the units that pass the gate do not count, or stand in sight
	}
	if r.q.whole() {
		found := r.once(r.found, r.q.Limit, r.sameText)
		return r.hits(found, math.MaxInt), nil
	}
	found := r.once(r.found, varied, r.alike)
	if err := r.judge(found); err != nil {
		return nil, err
	}
	if r.q.gated() {
		found = r.current(found)
	}
	pool := slices.Clone(found)
	if found = r.vary(found); r.q.gated() {
		found = r.latestFirst(found)
	}
	found = byHandFirst(found)
	return r.explore(r.hits(found, r.q.Characters), found, pool), nil
}

// present leaves out rows that only repeat what the prompt shows.
func (r *ranking) present(found []candidate) []candidate {
	if len(r.q.Visible.texts) == 0 && !r.q.gated() {
		return found
	}
	return slices.DeleteFunc(found, func(c candidate) bool {
		return r.q.Visible.says(c.words()) || r.q.gated() && r.echoes(c.entry, c.words())
	})
}

// once keeps the first n candidates that say different things. Of two that say the same, the
// newer one takes the place of the better one. An exchange is replaced by the fact that was
// taken from it, unless a rule wrote that fact: then both stay.
func (r *ranking) once(found []candidate, n int, same func(a, b *candidate) bool) []candidate {
	kept := make([]candidate, 0, min(n, len(found)))
	sourceOf := map[string]int{} // id of an exchange: index in kept
	for i := range found {
		c := &found[i]
		if len(kept) == n {
			break
		}
		if at, ok := sourceOf[c.ID]; ok {
			kept[at].sources = append(kept[at].sources, c.entry)
			continue
		}
		at := 0
		for at < len(kept) && !same(&kept[at], c) {
			at++
		}
		if at < len(kept) {
			if old := &kept[at]; c.At.After(old.At) && c.Layer == old.Layer {
				c.score, c.why, c.sources = old.score, old.why, old.sources
				kept[at] = *c
			}
			continue
		}
		if r.q.gated() && r.read.Past { // the lines tell how it was
			kept = append(kept, *c)
			continue
		}
		kept = keep(kept, *c, sourceOf)
	}
	return kept
}

// keep adds c. A fact takes the place of the first of its sources.
func keep(kept []candidate, c candidate, sourceOf map[string]int) []candidate {
	place := len(kept)
	for at := 0; at < len(kept); at++ {
		k := &kept[at]
		if k.Layer != Exchange || !c.standsFor(k.ID) {
			continue
		}
		c.sources = append(c.sources, k.entry)
		if place == len(kept) {
			place, c.score, c.why = at, k.score, k.why
			kept[at] = c
			continue
		}
		kept = slices.Delete(kept, at, at+1)
		at--
	}
	if place == len(kept) {
		kept = append(kept, c)
	} else {
		kept[place] = c
	}
	clear(sourceOf)
	for at := range kept {
		if kept[at].ByRule {
			continue
		}
		for _, source := range kept[at].Sources {
			for _, id := range source {
				sourceOf[id] = at
			}
		}
	}
	return kept
}

func (r *ranking) sameText(a, b *candidate) bool {
	return a.Hash != "" && a.Hash == b.Hash && a.Layer == Fact && b.Layer == Fact
}

// alike reports whether two candidates say the same; a fact and its source never do here.
func (r *ranking) alike(a, b *candidate) bool {
	if a.from(b.ID) || b.from(a.ID) {
		return false // where a fact takes the place of its source that is done already
	}
	return a.Hash != "" && a.Hash == b.Hash || r.overlap(a, b, alikeTerms) >= alikeTerms || r.cosine(a, b) >= alikeVectors
}

// overlap is the share of the terms of two candidates that both have; 0 if it cannot reach least.
func (r *ranking) overlap(a, b *candidate, least float64) float64 {
	r.number(a.unit)
	r.number(b.unit)
	return index.Share(a.distinct, b.distinct, least)
}

// number fills u.distinct.
func (r *ranking) number(u *unit) {
	if u.distinct != nil {
		return
	}
	words := u.words()
	u.distinct = make([]int32, len(words))
	for i, w := range words {
		n, ok := r.numbers[w]
		if !ok {
			n = int32(len(r.numbers))
			r.numbers[w] = n
		}
		u.distinct[i] = n
	}
	slices.Sort(u.distinct)
	u.distinct = slices.Compact(u.distinct)
}

// cosine is 0 without vectors of the model.
func (r *ranking) cosine(a, b *candidate) float64 {
	cosine, _ := index.Cosine(&a.Found, &b.Found)
	return float64(cosine)
}

// vary orders candidates, up to the limit, by relevance and by how much each adds (MMR).
func (r *ranking) vary(found []candidate) []candidate {
	if len(found) == 0 {
		return nil
	}
	top := float64(found[0].score)
	likest := make([]float64, len(found))
	chosen := make([]candidate, 0, r.q.Limit)
	for len(found) > 0 && len(chosen) < r.q.Limit {
		best, value := 0, -1.0
		for i := range found {
			if worth := variety*float64(found[i].score)/top - (1-variety)*likest[i]; worth > value {
				best, value = i, worth
			}
		}
		c := found[best]
		chosen = append(chosen, c)
		found = slices.Delete(found, best, best+1)
		likest = slices.Delete(likest, best, best+1)
		for i := range found {
			likest[i] = max(likest[i], r.likeness(&c, &found[i]))
		}
	}
	return chosen
}

func (r *ranking) likeness(a, b *candidate) float64 {
	words := r.overlap(a, b, 0)
	if r.columns.standsOutFrom == 0 {
		return words
	}
	base := float64(r.cosineBase)
	return max(words, (r.cosine(a, b)-base)/(1-base))
}

// hits makes hits of candidates as long as they fit into room, in code points. A text that is
// too long is cut to its best sentences; if even one does not fit it is left out, and shorter
// ones may follow.
func (r *ranking) hits(found []candidate, room int) []Hit {
	hits := make([]Hit, 0, len(found))
	for i := range found {
		c := &found[i]
		h := Hit{Unit: c.entry.Unit, Score: float64((c.score + c.lifted) / r.most())}
		if h.Cut = c.left; room < h.length() {
			h.Cut = lang.Excerpt(h.Shown(), r.read.Terms, min(room, longText))
		}
		if room < h.length() {
			continue
		}
		room -= h.length()
		h.At = lang.LocalTime(h.At, r.q.Now.Location())
		r.explain(&h, c)
		for _, s := range c.sources {
			h.Sources = append(h.Sources, s.Unit)
		}
		hits = append(hits, h)
	}
	return hits
}

func (r *ranking) explain(h *Hit, c *candidate) {
	row, total, sum := c.why, r.most(), float32(0)
	h.Signals = map[string]float64{}
	at := related{int32(row), int32(r.v.Neighbour(row, -1)), int32(r.v.Length(row)), r.line(row)}
	for s, x := range r.signals(at) {
		if x *= weights[s]; s == int(sigKind) {
			x += r.raised[row]
		}
		if x == 0 {
			continue
		}
		sum += x
		h.Signals[SignalNames[s]] = float64(x / total)
		h.Parts.Add(SignalNames[s], float64(x/total))
	}
	fresh, important := r.adjust(r.line(row))
	h.Parts.Recency, h.Parts.Importance = float64(sum*fresh/total), float64(sum*important/total)
	for name, x := range map[string]float32{SignalFeedback: c.voted, SignalExploration: c.lifted} {
		if x != 0 {
			h.Signals[name] = float64(x / total)
			h.Parts.Add(name, h.Signals[name])
		}
	}
}

// most is the score of a unit whose signals are all 1.
func (r *ranking) most() float32 {
	total := float32(0)
	for s, w := range weights {
		if s != int(sigVector) || len(r.near.Model.Values) > 0 {
			total += w
		}
	}
	return total * float32(1+importanceWeight+r.recencyWeight())
}

// Shown returns the text of a hit as it goes into a prompt.
func (h *Hit) Shown() string {
	if h.Cut != "" {
		return h.Cut
	}
	return h.Text
}

func (h *Hit) length() int { return utf8.RuneCountInString(h.Shown()) }

// longText is the budget of one unit that does not fit whole, in code points.
const longText = 400
