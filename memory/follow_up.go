package memory

import (
	"maps"
	"slices"

	"nodest/index"
	"nodest/memory/lang"
)

// A line that answers a question may be outdated by a later one that shares none of the
// question's words: "My favourite drink is root beer", and later "I've gone off root beer, it's
// ginger ale these days". Both are returned.

const (
	followedShare = 0.7 // of the evidence of the best line that others must have
	followedLines = 4   // how many of the best lines are looked at
	followingRows = 24  // in how many rows a word is at most that ties two lines together
	followingTie  = 0.3 // share of the older line's words, by weight, that the later one must have
	followingRare = 4   // in how many rows a word is that ties them by itself
	followingMost = 3   // lines that are added
)

// followUp adds lines that say that something in one of the best lines has changed, or that
// share a rare word with it.
func (r *ranking) followUp(v index.View) {
	r.tied, r.instead = map[int]int{}, map[int]int{}
	if !r.q.gated() || !r.mine || r.read.Past || len(r.proven) == 0 {
		return
	}
	left := followingMost
	for _, old := range r.bestProven() {
		ties, total := r.tiesOf(v, old.row)
		for _, row := range slices.Sorted(maps.Keys(ties)) {
			if row == old.row || left == 0 {
				continue
			}
			if e := entryAt(v, row); e.tellsOfUser() && follows(e, r.entries[old.row]) && ties[row].holds(e, total) && !e.onlyAsks() {
				r.addFollowing(e, row, old)
				left--
			}
		}
	}
}

// tie is what two rows have in common besides the words of the question.
type tie struct {
	weight float32
	rare   bool // a word that hardly any other row has
}

// holds reports whether a tie to a row with this total weight of words is strong enough.
func (t tie) holds(later *entry, total float32) bool {
	return t.rare || t.weight >= followingTie*total && later.saysChanged()
}

func (r *ranking) tiesOf(v index.View, row int) (ties map[int]tie, total float32) {
	ties = map[int]tie{}
	words := v.Words(row)
	slices.Sort(words)
	for _, w := range slices.Compact(words) {
		if !lang.TellsSomething(w) || lang.ProofOf(w) < lang.ProvesLittle || r.read.Own(w) {
			continue
		}
		rows, rarity := v.Having(w, followingRows)
		total += rarity
		for _, other := range rows {
			t := ties[other]
			ties[other] = tie{t.weight + rarity, t.rare || len(rows) <= followingRare && lang.ProofOf(w) == 1}
		}
	}
	return ties, total
}

// bestProven returns the best of the user's lines and facts that pass the gate, best first.
func (r *ranking) bestProven() []ranked {
	top, most := &topmost{size: followedLines}, float32(0)
	for i := range r.proven {
		most = max(most, r.match.Evidence[i])
	}
	for at, i := range r.rows {
		if !r.proven[i] || r.match.Evidence[i] < followedShare*most || !r.entries[i].tellsOfUser() || r.skips(r.entries[i]) {
			continue
		}
		if s := (ranked{i, r.adjusted(r.fits[at], r.entries[i])}); top.takes(s) {
			top.add(s)
		}
	}
	return top.sorted()
}

// addFollowing ties a row to another one and, if its own fit is worse, gives it the fit of that
// one.
func (r *ranking) addFollowing(e *entry, row int, place ranked) {
	r.proven[row], r.tied[row] = true, place.row
	fit := r.fits[slices.Index(r.rows, place.row)]
	at := slices.Index(r.rows, row)
	if at < 0 {
		at = len(r.rows)
		r.rows, r.fits, r.entries[row] = append(r.rows, row), append(r.fits, 0), e
	}
	if r.fits[at] < fit {
		r.fits[at], r.instead[row] = fit, place.row
	}
}

// tellsOfUser reports whether a unit may be about the user. In what happened in the circle "I" is
// whoever wrote it.
func (e *entry) tellsOfUser() bool {
	return e.Layer == Fact && e.Origin != ByCircle || e.Speaker == lang.RoleUser
}
