package memory

import (
	"slices"
	"unicode/utf8"

	"nodest/index"
)

// once keeps the first n candidates of which no two say the same. Of two that do the
// newer one stays, in the place of the better. An exchange that a fact was taken from
// goes with the fact.
func (r *ranking) once(found []candidate, n int, same func(a, b *candidate) bool) []candidate {
	kept := make([]candidate, 0, min(n, len(found)))
	sourceOf := map[string]int{} // id of an exchange: index in kept
	for _, c := range found {
		if len(kept) == n {
			break
		}
		e := r.entries[c.row]
		if at, ok := sourceOf[e.ID]; ok {
			kept[at].sources = append(kept[at].sources, c.row)
			continue
		}
		if at := r.indexOf(kept, &c, same); at >= 0 {
			if old := r.entries[kept[at].row]; e.At.After(old.At) && e.Layer == old.Layer {
				c.score, c.sources = kept[at].score, kept[at].sources
				kept[at] = c
			}
			continue
		}
		kept = r.keep(kept, c, sourceOf)
	}
	return kept
}

// indexOf returns the first of kept that is the same as c, or -1.
func (r *ranking) indexOf(kept []candidate, c *candidate, same func(a, b *candidate) bool) int {
	for i := range kept {
		if same(&kept[i], c) {
			return i
		}
	}
	return -1
}

// keep adds c; a fact takes the place of the first of its sources that is there.
func (r *ranking) keep(kept []candidate, c candidate, sourceOf map[string]int) []candidate {
	e := r.entries[c.row]
	place := len(kept)
	for at := 0; at < len(kept); at++ {
		if k := kept[at].row; r.entries[k].Layer == Exchange && slices.Contains(e.Sources, r.entries[k].ID) {
			c.sources = append(c.sources, k)
			if place == len(kept) {
				place, c.score = at, kept[at].score
				kept[at] = c
				continue
			}
			kept = slices.Delete(kept, at, at+1)
			at--
		}
	}
	if place == len(kept) {
		kept = append(kept, c)
	} else {
		kept[place] = c
	}
	clear(sourceOf)
	for at, k := range kept {
		for _, id := range r.entries[k.row].Sources {
			sourceOf[id] = at
		}
	}
	return kept
}

// sameText reports whether two facts have one text.
func (r *ranking) sameText(a, b *candidate) bool {
	s, t := r.entries[a.row], r.entries[b.row]
	return s.Hash != "" && s.Hash == t.Hash && s.Layer == Fact && t.Layer == Fact
}

// alike reports whether two candidates say the same.
func (r *ranking) alike(a, b *candidate) bool {
	s, t := r.entries[a.row], r.entries[b.row]
	return s.Hash != "" && s.Hash == t.Hash || r.overlap(a, b) >= alikeTerms || r.cosine(a, b) >= alikeVectors
}

func (r *ranking) overlap(a, b *candidate) float64 {
	for _, c := range []*candidate{a, b} {
		if c.terms == nil {
			c.terms = r.v.Distinct(c.row)
		}
	}
	return index.Overlap(a.terms, b.terms)
}

// cosine is by the model's vectors, and 0 without.
func (r *ranking) cosine(a, b *candidate) (sum float64) {
	for _, c := range []*candidate{a, b} {
		if c.vector == nil && len(r.q.Vector.Values) > 0 {
			c.vector = r.v.Vector(r.ctx, c.row, r.q.Vector)
		}
	}
	if len(a.vector) != len(b.vector) {
		return 0
	}
	for i := range a.vector {
		sum += float64(a.vector[i]) * float64(b.vector[i])
	}
	return sum
}

// vary orders candidates by relevance and by how much each one adds to those before
// it (MMR), as many as may be shown.
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
	if len(r.q.Vector.Values) > 0 {
		if c := r.cosine(a, b); c != 0 {
			return c
		}
	}
	return r.overlap(a, b)
}

// withPinned puts the pinned facts first, as far as their share of the budget goes,
// and then what was found.
func (r *ranking) withPinned(found []candidate) []Hit {
	var pinned []candidate
	for i := range r.v.Slots() {
		d, ok := r.v.Data(i)
		if !ok || !d.(*entry).Pinned || r.q.Skip != nil && r.q.Skip(&d.(*entry).Unit) {
			continue
		}
		r.entries[i] = d.(*entry)
		pinned = append(pinned, candidate{row: i})
	}
	slices.SortStableFunc(pinned, func(a, b candidate) int { return r.entries[b.row].At.Compare(r.entries[a.row].At) })
	pinned = pinned[:min(len(pinned), max(1, int(pinnedShare*float64(r.q.Limit))))]
	hits := r.hits(pinned, int(pinnedShare*float64(r.q.Characters)))
	left, isThere := r.q.Characters, map[string]bool{}
	for _, h := range hits {
		left -= h.length()
		isThere[h.ID] = true
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return isThere[r.entries[c.row].ID] })
	return append(hits, r.hits(found[:min(len(found), r.q.Limit-len(hits))], left)...)
}

// hits makes candidates into hits as long as there is room for them, in code points.
// One that is too long is cut to its best sentences; one that is still too long is
// left out, and shorter ones behind it may come.
func (r *ranking) hits(found []candidate, room int) []Hit {
	total := r.most()
	hits := make([]Hit, 0, len(found))
	for _, c := range found {
		h := Hit{Unit: r.entries[c.row].Unit, Score: float64(c.score / total), Signals: map[string]float64{}}
		if room < h.length() {
			h.Cut = excerpt(h.Text, r.read.Terms, min(room, longText))
		}
		if room < h.length() {
			continue
		}
		room -= h.length()
		for s, w := range r.q.Weights {
			if x := w * r.of[s][c.row]; x != 0 {
				h.Signals[SignalNames[s]] = float64(x / total)
			}
		}
		for _, s := range c.sources {
			h.Sources = append(h.Sources, r.entries[s].Unit)
		}
		hits = append(hits, h)
	}
	return hits
}

// most is the score of a unit for which every signal is 1.
func (r *ranking) most() float32 {
	total := float32(0)
	for s, w := range r.q.Weights {
		if s != int(sigVector) || len(r.q.Vector.Values) > 0 {
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

// longText is what one unit may take of the budget, in code points, when not all of
// it fits.
const longText = 400
