// Package lineage finds where the branch of a message was left.
//
// A conversation's versions go 1, 2, 3, …, and a rewind makes a version that goes
// on from an older one. The lineage of a version is what one meets walking back
// from it: to the version before it, and from one that a rewind made to the one
// that it went back to.
package lineage

import "sort"

// Rewind says that a version of a conversation went back to an older one.
type Rewind struct {
	At int64 `json:"at"` // the version that it made
	To int64 `json:"to"` // the version whose state that shows; To < At
}

// LeftAt looks for the version that born's lineage came to. left is false where
// born is in the lineage of the version now; else last is the newest version that
// has born in its lineage: there it was left by a rewind.
//
// rewinds are those of the conversation, oldest first.
func LeftAt(born, now int64, rewinds []Rewind) (last int64, left bool) {
	// Between two rewinds all versions follow each other. run i begins with the
	// version that rewinds[i-1] made; run 0 with the first of all.
	ends := make([]int64, 0, len(rewinds)+1)
	for _, r := range rewinds {
		ends = append(ends, r.At-1)
	}
	ends = append(ends, now)
	runOf := func(version int64) int {
		return sort.Search(len(ends), func(i int) bool { return ends[i] >= version })
	}
	home := runOf(born)
	if home == len(ends) {
		return now, false // newer than now: nothing that anybody could have left
	}
	has := make([]bool, len(ends)) // born is in the lineage of the run's end
	has[home] = true
	last = ends[home]
	for i := home + 1; i < len(ends); i++ {
		to := rewinds[i-1].To
		from := runOf(to)
		has[i] = has[from] && (from != home || to >= born)
		if has[i] {
			last = ends[i]
		}
	}
	return last, last != now
}
