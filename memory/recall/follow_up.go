package recall

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// A line that answers a question may be outdated by a later one that shares none of the
// question's words: "My favourite drink is root beer", and later "I've gone off root beer, it's
// ginger ale these days". Both are returned.

const (
	followedShare = 0.7 // share of the evidence of the best line that others must have
	followedLines = 4   // how many of the best lines are looked at
	followingRows = 24  // in how many rows a word is at most that ties two lines together
	followingTie  = 0.3 // share of the older line's words, by weight, that the later one must have
	followingRare = 4   // in how many rows a word is that ties them by itself
	followingMost = 3   // lines that are added
)

// following are the rows that follow up on another one, and that one.
type following struct {
	tied    map[int]int
	closely map[int]bool // those of them that have a word of the question, or begin with a word of the other one
	instead map[int]int  // those of them that have the signals of the other one
}

func (f *following) has(row int) bool {
	_, tied := f.tied[row]
	return tied
}

// followUp adds lines that say that one of the best lines changed; of questions about the user also those that share a
// rare word with it.
func (r *ranking) followUp() error {
	r.follow = following{map[int]int{}, map[int]bool{}, map[int]int{}}
	if !r.q.gated() || !r.mine && !r.read.Present || r.tells > plainTold || r.read.Past || len(r.columns.proven.set) == 0 {
		return nil
	}
	best, err := r.bestProven()
	if err != nil || len(best) == 0 {
		return err
	}
	having, err := r.v.Having(r.ctx, r.telling(best), followingRows)
	if err != nil {
		return err
	}
	left := followingMost
	for _, old := range best {
		rows, err := r.following(old, having)
		if err != nil {
			return err
		}
		for _, row := range rows[:min(left, len(rows))] {
			r.addFollowing(row, old)
			left--
		}
	}
	return nil
}

// tie is what two rows have in common.
type tie struct {
	weight float32 // sum over the words that the question does not have
	rare   bool    // a word that hardly any other row has, likewise
	asked  bool    // a word of the question
}

// telling returns the words of some rows that may tie others to them.
func (r *ranking) telling(best []ranked) (words []string) {
	for _, t := range best {
		for _, w := range r.got[t.row].words() {
			if r.mayTie(w) {
				words = append(words, w)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// mostTied is how many rows that may follow up on another one are read.
const mostTied = 100

// following returns the rows that follow up on another one.
func (r *ranking) following(old ranked, having map[string]index.Holding) (rows []int, err error) {
	ties, total := map[int]tie{}, float32(0)
	for _, w := range r.telling([]ranked{old}) {
		h, own := having[w], r.read.Own(w)
		if !own {
			total += h.Rarity
		}
		for _, row := range h.Rows {
			t := ties[row]
			if own {
				t.asked = true
			} else {
				t = tie{t.weight + h.Rarity, t.rare || len(h.Rows) <= followingRare && r.read.Proof(w) == 1, t.asked}
			}
			ties[row] = t
		}
	}
	for _, row := range slices.Sorted(maps.Keys(ties)) {
		if row != old.row && len(rows) < mostTied && r.mayFollow(row, old.row, ties[row], total) {
			rows = append(rows, row)
		}
	}
	if err := r.readRows(rows); err != nil {
		return nil, err
	}
	before := r.got[old.row].entry
	return slices.DeleteFunc(rows, func(row int) bool {
		u := r.got[row]
		return u == nil || !follows(u.entry, before) || u.onlyAsks() || !r.followsUp(u, r.got[old.row], row, ties[row], total)
	}), nil
}

// followsUp reports whether a line of a later time is about an older one: it says that something has changed, or has
// little else to tell; and it is about the user, or begins with what it shares.
func (r *ranking) followsUp(u, old *unit, row int, t tie, total float32) bool {
	all, tied := r.tiedTo(u, old)
	goesOn := r.goesOn(u, old)
	same := r.ofUser(r.line(row)) || goesOn
	r.follow.closely[row] = t.asked || goesOn
	if u.saysChanged() && r.littleBesides(u, old) && (same || t.asked || t.weight >= followingTie*total) {
		return true
	}
	return r.mine && t.rare && same && 5*tied >= all && (goesOn || tied > 1 || !lang.HasCJK(u.Text))
}

// littleBesides reports whether a line has little to tell but what it has in common with an older one, or begins with that.
func (r *ranking) littleBesides(u, old *unit) bool {
	all, tied := r.tiedTo(u, old)
	return all <= fewToTell || 5*tied >= all || r.goesOn(u, old)
}

// goesOn reports whether a clause of a line begins with a telling word of an older one: it says more of the same.
func (r *ranking) goesOn(u, old *unit) bool {
	for clause := range strings.FieldsFuncSeq(u.Text, func(c rune) bool { return strings.ContainsRune(",;:.!?，；：。！？", c) }) {
		for _, w := range index.Terms(clause) {
			if r.mayTie(w) && (w[0] < '0' || w[0] > '9') {
				if slices.Contains(old.words(), w) {
					return true
				}
				break
			}
		}
	}
	return false
}

// mayTie reports whether a word may tie lines together.
func (r *ranking) mayTie(w string) bool {
	return r.read.TellsSomething(w) && r.read.Proof(w) >= lang.ProvesLittle && !lang.MeansUser(w)
}

// tiedTo returns how many telling words a line has, and how many of them an older one has. Of the pairs of
// characters in a line every other one joins two words, which no other line has.
func (r *ranking) tiedTo(u, old *unit) (all, tied float32) {
	for _, w := range u.words() {
		if !r.mayTie(w) {
			continue
		}
		if w[0] >= utf8.RuneSelf {
			all += 0.5
		} else {
			all++
		}
		if slices.Contains(old.words(), w) {
			tied++
		}
	}
	return all, tied
}

// fewToTell is how many telling words a line has, at most, that is about nothing but what has changed.
const fewToTell = 2 * mostNew

// mayFollow reports, by their lines, whether a row may follow up on one with this weight of words.
func (r *ranking) mayFollow(row, old int, t tie, total float32) bool {
	l := r.line(row)
	return l.tellsOfUser() && l.compareTime(r.line(old)) >= 0 && (t.rare || t.asked || t.weight >= followingTie*total)
}

// bestProven returns the best of the user's lines and facts that pass the gate, best first.
func (r *ranking) bestProven() ([]ranked, error) {
	top, most := &topmost{size: 4 * followedLines}, float32(0)
	for _, i := range r.columns.proven.set {
		most = max(most, r.columns.match.Scores[i].Evidence)
	}
	for _, f := range r.columns.fits {
		l := r.line(f.row)
		if !r.columns.proven.has(f.row) || !(r.told[f.row] || r.stated[f.row]) && r.columns.match.Scores[f.row].Evidence < followedShare*most || !l.tellsOfUser() || r.q.Only.bars(l, f.row, r.v) {
			continue
		}
		if s := (ranked{f.row, r.adjusted(f.score, f.row)}); top.takes(s) {
			top.add(s)
		}
	}
	best := top.sorted()
	if err := r.readRows(numbers(best)); err != nil {
		return nil, err
	}
	best = slices.DeleteFunc(best, func(t ranked) bool { return r.got[t.row] == nil || r.skips(r.got[t.row].entry) })
	return best[:min(len(best), followedLines)], nil
}

// addFollowing ties a row to another one and gives it at least the fit of that one.
func (r *ranking) addFollowing(row int, place ranked) {
	r.columns.proven.put(row, 1)
	r.follow.tied[row] = place.row
	fit := r.columns.fits[slices.IndexFunc(r.columns.fits, func(f ranked) bool { return f.row == place.row })].score
	at := slices.IndexFunc(r.columns.fits, func(f ranked) bool { return f.row == row })
	if at < 0 {
		at = len(r.columns.fits)
		r.columns.fits = append(r.columns.fits, ranked{row, 0})
	}
	if r.columns.fits[at].score < fit {
		r.columns.fits[at].score, r.follow.instead[row] = fit, place.row
	}
}

// tellsOfUser reports whether a unit may be about the user; in the circle "I" is somebody else.
func (e *entry) tellsOfUser() bool {
	return e.Layer == Fact && !e.Circle || e.Speaker == lang.RoleUser
}
