package recall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/memory/lang"
)

// A question may need two lines: "When is the birthday of the man I owe money?" is answered by "I owe Jelle money" and
// "Jelle's birthday is in June". The second one is found by a name in the first.

const (
	hopFirst = 6    // how many rows are looked at that may be the first of two
	hopRows  = 60   // rows with a word of the first one that are read, at most
	hopShare = 0.75 // share of what is asked that both have together
)

// hop lets pairs of rows pass that have nearly all of the question together and share a rare word that it has not.
func (r *ranking) hop() error {
	r.hopped = map[int]bool{}
	if !r.mine || !r.read.Asks || len(r.read.Days) > 0 || r.tells > plainTold {
		return nil
	}
	top := &topmost{size: hopFirst}
	for _, at := range r.columns.rows {
		s := ranked{int(at.row), r.columns.match.Scores[at.row].Evidence}
		if s.score >= lang.LeastAsked && r.mayTell(s.row) && top.takes(s) {
			top.add(s)
		}
	}
	first := numbers(top.sorted())
	if err := r.readRows(first); err != nil {
		return err
	}
	for _, row := range first {
		u := r.got[row]
		if u == nil || u.onlyAsks() {
			continue
		}
		if r.introduces(row, u) {
			r.columns.proven.put(row, 1)
		}
		if err := r.hopFrom(row, u); err != nil {
			return err
		}
	}
	return nil
}

// introduces reports whether a row says who or what the thing is that is asked about.
func (r *ranking) introduces(row int, u *unit) bool {
	return r.heads[row] && r.columns.match.Scores[row].Evidence >= leastOwn*r.columns.match.Asked && len(lang.NamesStated(u.Text)) > 0
}

// mayTell reports whether a row may be returned and be about the user.
func (r *ranking) mayTell(row int) bool {
	l := r.line(row)
	return l.tellsOfUser() && !r.q.Only.bars(l, row, r.v)
}

// hopFrom lets the rows pass that answer the question together with a first one, and that one.
func (r *ranking) hopFrom(row int, u *unit) error {
	rows, err := r.besides(row, u)
	if err != nil {
		return err
	}
	has := r.evidenceIn(u)
	for _, n := range rows {
		b := r.got[n]
		if b == nil || b.onlyAsks() || !r.goesOn(b, u) {
			continue
		}
		sum, added, all := r.together(has, r.evidenceIn(b))
		if added >= lang.LeastAsked && sum >= hopShare*all {
			r.columns.proven.put(row, 1)
			r.columns.proven.put(n, 1)
			r.hopped[n] = true
		}
	}
	return nil
}

// besides reads rows with a rare word of a row that the question does not have.
func (r *ranking) besides(row int, u *unit) (rows []int, err error) {
	words := slices.DeleteFunc(slices.Clone(u.words()), func(w string) bool { return !r.mayTie(w) || r.read.Own(w) })
	having, err := r.v.Having(r.ctx, words, followingRows)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		for _, n := range having[w].Rows {
			if len(rows) < hopRows && n != row && r.mayTell(n) && !slices.Contains(rows, n) {
				rows = append(rows, n)
			}
		}
	}
	return rows, r.readRows(rows)
}

// evidenceIn tells of each term of the question whether a unit has it.
func (r *ranking) evidenceIn(u *unit) []bool {
	has := make([]bool, len(r.read.Terms))
	for i, t := range r.read.Terms {
		has[i] = slices.Contains(u.words(), t.Text) || isCharacter(t) && slices.ContainsFunc(u.words(), func(w string) bool { return strings.Contains(w, t.Text) })
	}
	return has
}

// together weighs what two rows have of the question, what the second one adds, and the question.
func (r *ranking) together(first, second []bool) (sum, added, all float32) {
	for i, t := range r.read.Terms {
		if t.Extra {
			continue
		}
		all += t.Evidence
		switch {
		case first[i]:
			sum += t.Evidence
		case second[i]:
			sum, added = sum+t.Evidence, added+t.Evidence
		}
	}
	return sum, added, all
}

// isCharacter reports whether a term is a single character of a script without spaces.
func isCharacter(t index.Term) bool {
	return t.Text[0] >= utf8.RuneSelf && utf8.RuneCountInString(t.Text) == 1
}
