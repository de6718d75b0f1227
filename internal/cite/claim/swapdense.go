package claim

import "slices"

// Bounds of a gap between the exchanged parts and what stands between them, in symbols.
const (
	maxSwapGap  = 4
	maxInnerGap = 15
	maxApart    = 24
)

// swapsDense is swaps for scripts without spaces.
func swapsDense(claim, source *Text) bool {
	ours, theirs := claim.row(), source.row()
	if !claim.Dense || !source.Dense || len(ours) > maxSymbols || len(theirs) > 2*maxSymbols ||
		passive.MatchString(claim.plain) != passive.MatchString(source.plain) {
		return false
	}
	runs := runsOf(ours, theirs)
	for i := range runs {
		for k := i + 2; k < min(len(runs), i+5); k++ {
			if changePlaces(claim, source, runs[i:k+1]) {
				return true
			}
		}
	}
	return false
}

// changePlaces reports whether the first and the last of some runs stand on each other's place in a source,
// at the same end or beginning of a clause, or beside the same character.
func changePlaces(claim, source *Text, runs []run) bool {
	ours, theirs := claim.row(), source.row()
	last := len(runs) - 1
	x, verb, y := runs[0], runs[last-1], runs[last]
	a, b := x.in(ours), y.in(ours)
	if isFiller(a) || isFiller(b) || slices.Equal(a, b) || hasNumber(a) != hasNumber(b) || y.from-x.to > maxApart {
		return false
	}
	rows := make([][]symbol, len(runs))
	for i, r := range runs {
		rows[i] = r.in(ours)
	}
	same, _ := followEach(theirs, rows)
	if same >= 0 {
		return false
	}
	rows[0], rows[last] = b, a
	from, to := followEach(theirs, rows)
	if from < 0 && !isFiller(verb.in(ours)) && verb.to == y.from { // the other words between them may stand elsewhere
		from, to = followEach(theirs, [][]symbol{b, verb.in(ours), a})
	}
	return from >= 0 && (at(ours, x.from-1) == at(theirs, from-1) || at(ours, y.to) == at(theirs, to))
}

// hasNumber reports whether one of some symbols is a number.
func hasNumber(row []symbol) bool { return slices.ContainsFunc(row, isNumberSymbol) }

// followEach returns where rows follow each other in a text, with few symbols between them; -1 if
// they do not.
func followEach(text []symbol, rows [][]symbol) (from, to int) {
	for from = indexOf(text, rows[0], 0); from >= 0; from = indexOf(text, rows[0], from+1) {
		if to = allFollow(text, from+len(rows[0]), rows[1:]); to >= 0 {
			return from, to
		}
	}
	return -1, -1
}

// allFollow returns the end of rows that follow a place in a text; -1 if they do not.
func allFollow(text []symbol, at int, rows [][]symbol) int {
	for k, row := range rows {
		most := maxSwapGap
		if k > 0 && k < len(rows)-1 {
			most = maxInnerGap
		}
		found := indexOf(text[:min(len(text), at+most+len(row))], row, at)
		if found < 0 {
			return -1
		}
		at = found + len(row)
	}
	return at
}
