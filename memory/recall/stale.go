package recall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/memory/lang"
)

// Where something has changed, the current value replaces the old one: a fact replaces the
// lines of its older versions, and of several lines about one thing the last one wins. A
// question about the past gets all.

// replaceStale replaces lines from which ended facts were taken by current facts, or by nothing.
func (r *ranking) replaceStale() error {
	if len(r.columns.proven.set) == 0 || r.branch == nil || r.read.Past {
		return nil
	}
	restingOn, err := r.factsOn(r.found)
	if err != nil || len(restingOn) == 0 {
		return err
	}
	var facts []*Unit
	for _, u := range r.facts {
		facts = append(facts, &u.Unit)
	}
	over, err := r.branch.Over(r.ctx, facts)
	if err != nil || len(over) == 0 {
		return err
	}
	if err := r.readCurrent(over); err != nil {
		return err
	}
	r.replace(restingOn, over)
	return nil
}

// factsOn returns the facts that were taken from candidates, by the candidate.
func (r *ranking) factsOn(found []candidate) (map[string][]*unit, error) {
	var marks []string
	for _, c := range found {
		if c.Layer == Exchange {
			marks = append(marks, markSource+c.entry.ID)
		}
	}
	marked, err := r.v.Marked(r.ctx, marks)
	if err != nil || len(marked) == 0 {
		return nil, err
	}
	var rows []int
	for _, of := range marked {
		rows = append(rows, of...)
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	if err := r.readRows(rows); err != nil {
		return nil, err
	}
	on := map[string][]*unit{}
	for _, row := range rows {
		u := r.got[row]
		if u == nil {
			continue
		}
		r.facts = append(r.facts, u)
		for _, source := range u.Sources {
			for _, id := range source {
				if _, ok := marked[markSource+id]; ok && !slices.Contains(on[id], u) {
					on[id] = append(on[id], u)
				}
			}
		}
	}
	return on, nil
}

// readCurrent adds the facts that count instead of others to r.facts.
func (r *ranking) readCurrent(over map[string]string) error {
	var ids []string
	for _, now := range over {
		known := slices.ContainsFunc(r.facts, func(u *unit) bool { return u.entry.ID == now })
		if now != "" && !known && !slices.Contains(ids, now) {
			ids = append(ids, now)
		}
	}
	slices.Sort(ids)
	found, err := r.v.ByID(r.ctx, ids, r.near.Model)
	for _, f := range found {
		if e := entryOf(f); e != nil {
			r.facts = append(r.facts, &unit{entry: e, Found: f})
		}
	}
	return err
}

// replace does replaceStale, given the ended facts.
func (r *ranking) replace(restingOn map[string][]*unit, over map[string]string) {
	kept, there := make([]candidate, 0, len(r.found)), map[string]bool{}
	for _, c := range r.found {
		there[c.entry.ID] = true
	}
	for _, c := range r.found {
		stale := false
		for _, f := range restingOn[c.entry.ID] {
			now, ok := over[f.entry.ID]
			at := slices.IndexFunc(r.facts, func(u *unit) bool { return u.entry.ID == now })
			// A text that is a source of both states the change itself, unless the user made
			// it.
			if !ok || at >= 0 && !r.facts[at].ByHand && r.facts[at].from(c.entry.ID) {
				continue
			}
			stale = true
			if at >= 0 && !there[now] && !r.skips(r.facts[at].entry) {
				there[now] = true
				kept = append(kept, candidate{unit: r.facts[at], score: c.score, row: c.row, why: c.why})
			}
		}
		if !stale {
			kept = append(kept, c)
		}
	}
	r.found = kept
}

// current leaves out lines and facts about the user that a later one replaces: one that states
// the same property, or one about what is asked that says it has changed. A line that only
// pretends to state a property is left out if another one states it. What the user wrote stays.
func (r *ranking) current(found []candidate) []candidate {
	if r.read.Past || len(found) < 2 {
		return found
	}
	all := r.tell(found)
	answered := slices.ContainsFunc(all, func(t telling) bool { return t.gives&r.read.Properties != 0 })
	kept := found[:0:0]
	for i := range found {
		overtaken := answered && found[i].pretends(r.read.Properties)
		for j := range found {
			overtaken = overtaken || i != j && !found[i].ByHand && follows(found[j].entry, found[i].entry) &&
				(all[i].gives&all[j].gives != 0 || r.endedBy(&found[i], &found[j]))
		}
		if !overtaken {
			kept = append(kept, found[i])
		}
	}
	return kept
}

// endedBy reports whether a later line, which says that something has changed, is about the matter of a line: of
// what is asked it has as much, and they share more than one word.
func (r *ranking) endedBy(c, later *candidate) bool {
	if !r.sameMatter(c.tells.asked, later.tells.asked) || !later.saysChanged() {
		return false
	}
	_, tied := r.tiedTo(later.unit, c.unit)
	return tied > 1
}

type telling struct {
	gives lang.Properties
	asked asked
}

// asked says of each term of the question whether a unit has it and it tells what the question is
// about; nil = not looked for.
type asked []bool

func (a asked) has(term int) bool { return term < len(a) && a[term] }

// shares reports whether two have a term in common.
func (a asked) shares(b asked) bool {
	for i := range a {
		if a[i] && b.has(i) {
			return true
		}
	}
	return false
}

func (r *ranking) tell(found []candidate) []telling {
	all := make([]telling, len(found))
	for i := range found {
		c := &found[i]
		if c.tells == nil {
			c.tells = new(telling)
			if c.tellsOfUser() {
				*c.tells = telling{c.gives(r.q.Names), r.askedIn(c.unit)}
			}
		}
		all[i] = *c.tells
	}
	return all
}

// latestFirst puts a line before older ones if the question is about the user or how something is, and the line has
// all that they have of the question, or has some of it and says that it has changed; of others, evaluations count more. A
// statement of a property that is asked for comes before all lines that are none.
func (r *ranking) latestFirst(found []candidate) []candidate {
	if r.read.Past || len(found) < 2 {
		return found
	}
	all := r.tell(found)
	several := make([]asked, len(all))
	for i := range all {
		several[i] = r.severalLetters(all[i].asked)
	}
	places := make([]int, 0, len(found)) // in found
	for j := range found {
		at := slices.IndexFunc(places, func(i int) bool {
			c, old := &found[j], &found[i]
			if before, decided := r.answersBefore(c, old, &all[j], &all[i]); decided {
				return before
			}
			newer := r.mine || r.read.Present && c.voted >= old.voted
			return newer && follows(c.entry, old.entry) && r.overtakes(c, old, several[j], several[i])
		})
		if at < 0 {
			at = len(places)
		}
		places = slices.Insert(places, at, j)
	}
	ordered := make([]candidate, len(found))
	for at, i := range places {
		ordered[at] = found[i]
	}
	return ordered
}

// answersBefore reports whether a unit is before another one because it answers the question and that one does not,
// or because it follows up on something more closely; decided is whether that tells.
func (r *ranking) answersBefore(c, other *candidate, told, otherTold *telling) (before, decided bool) {
	gives, gave := r.answersIt(c, told), r.answersIt(other, otherTold)
	if gives != gave && (gives || otherTold.gives&r.read.Properties != 0 || !r.goesOn(c.unit, other.unit)) {
		return gives, true
	}
	if !r.follow.has(c.row) || !r.follow.has(other.row) || r.follow.closely[c.row] == r.follow.closely[other.row] {
		return false, false
	}
	return r.follow.closely[c.row], true
}

// answersIt reports whether a unit gives a property that is asked for, makes the statement, or follows up on one that does.
func (r *ranking) answersIt(c *candidate, t *telling) bool {
	if t.gives&r.read.Properties != 0 || r.stated[c.row] {
		return true
	}
	row, tied := r.follow.tied[c.row]
	return tied && (r.stated[row] || r.told[row])
}

// overtakes reports whether a later line, with this of the question, replaces an older one.
func (r *ranking) overtakes(c, old *candidate, of, ofOld asked) bool {
	if row, tied := r.follow.tied[c.row]; tied && (row == old.row || r.stated[row] && r.stated[old.row]) {
		return true
	}
	if c.saysChanged() && r.shareMatter(old, c) && r.littleBesides(c.unit, old.unit) {
		return true
	}
	all, tied := r.tiedTo(c.unit, old.unit)
	return !c.traits.Asks && (5*tied >= all || all-tied <= mostNew) && (r.sameMatter(ofOld, of) || r.coversAll(ofOld, of) || c.traits.Fits(r.read.Sought) && r.coversHalf(ofOld, of))
}

// mostNew is how many telling words a line has, at most, besides those of an older line that it replaces: one
// that has more to tell is about something else.
const mostNew = 4

// severalLetters leaves out single characters, which are also parts of other words.
func (r *ranking) severalLetters(of asked) asked {
	of = slices.Clone(of)
	for i, t := range r.read.Terms {
		if of.has(i) && utf8.RuneCountInString(t.Text) == 1 {
			of[i] = false
		}
	}
	return of
}

// shareMatter reports whether two units share a word of the question, or a telling one.
func (r *ranking) shareMatter(x, y *candidate) bool {
	a, b := x.tells, y.tells
	if a.asked == nil || b.asked == nil {
		return false
	}
	if a.asked.shares(b.asked) {
		return true
	}
	words := y.words()
	return slices.ContainsFunc(x.words(), func(w string) bool {
		return slices.Contains(words, w) && r.read.TellsSomething(w) && r.read.Proof(w) >= lang.ProvesLittle
	})
}

func (e *entry) saysChanged() bool {
	return knownOnce(&e.changes, func() bool { return lang.SaysChanged(e.Text) })
}

// follows reports whether a was said or known after b.
func follows(a, b *entry) bool {
	return a.At.After(b.At) || a.At.Equal(b.At) && a.Conversation == b.Conversation && a.Order > b.Order
}

// askedIn returns the terms of a row that tell what the question is about.
func (r *ranking) askedIn(u *unit) asked {
	of := make(asked, len(r.read.Terms))
	r.number(u)
	for i, t := range r.read.Terms {
		if !lang.Tells(t) {
			continue
		}
		n, known := r.numbers[t.Text]
		if known {
			_, known = slices.BinarySearch(u.distinct, n)
		}
		if isCharacter(t) {
			known = slices.ContainsFunc(u.words(), func(w string) bool { return strings.Contains(w, t.Text) })
		}
		of[i] = known
	}
	return of
}

// sameMatter reports whether one row has most of what is asked, and a later one has that too.
func (r *ranking) sameMatter(row, later asked) bool {
	common, missing, all := r.shared(row, later)
	return common > 0 && common > all/2 && missing <= common/3
}

// coversAll reports whether a later row has all, and not nothing, that a row has of the question.
func (r *ranking) coversAll(row, later asked) bool {
	common, missing, all := r.shared(row, later)
	return missing == 0 && common > all/3
}

// coversHalf reports whether a later row has half of what a row has of the question.
func (r *ranking) coversHalf(row, later asked) bool {
	common, missing, all := r.shared(row, later)
	return missing <= common && common > all/3
}

// shared weighs what both rows have of what is asked, and what the later one lacks; all is what
// is asked. It is 0 if they have nothing in common.
func (r *ranking) shared(row, later asked) (common, missing, all float32) {
	if !row.shares(later) {
		return 0, 0, 0
	}
	for i, t := range r.read.Terms {
		switch {
		case row.has(i) && !later.has(i):
			missing += t.Evidence
		case row.has(i):
			common += t.Evidence
		}
		if !t.Extra {
			all += t.Evidence
		}
	}
	return common, missing, all
}

func byHandFirst(found []candidate) []candidate {
	byHand := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !c.ByHand })
	return append(byHand, slices.DeleteFunc(found, func(c candidate) bool { return c.ByHand })...)
}
