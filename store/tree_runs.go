package store

import (
	"cmp"
	"slices"
	"sort"

	"nodest/chat"
)

// joined is how a segment stands among the others. Places are those in runTree, -1 = none.
type joined struct {
	above      int   // place of the nearest segment above that has messages
	nearest    int   // its own place, or above where it has no messages
	followers  int   // segments with messages whose above it is
	run        int   // place of its run
	before     int64 // messages of its run before it
	goneBefore int64 // deleted messages of its chain before it
}

// run is a run of a conversation.
type run struct {
	chat.Run
	up       int // place of the run that it follows, -1 = none
	firstSeq int64
	leafSeq  int64
	kept     bool
}

// runTree makes runs of segments: what is deleted is left out, and what does not branch
// any more without it is one run.
type runTree struct {
	segments []segment
	chains   map[int64][2]int // the segments of a chain, from one place to before another
	runs     []*run
}

// newRunTree takes segments by chain and depth. Each comes after the one that it follows,
// because a chain has a larger number than the one that it branches off from; so do runs.
func newRunTree(segments []segment) *runTree {
	t := &runTree{segments: segments, chains: map[int64][2]int{}}
	for i := range segments {
		t.hang(i)
	}
	for i := range segments {
		if segments[i].FirstID != nil {
			t.join(&segments[i])
		}
	}
	for _, r := range slices.Backward(t.runs) {
		if r.LeafID == "" { // nothing follows it
			r.LeafID = r.HeadID
		}
		if r.up < 0 {
			continue
		}
		if up := t.runs[r.up]; up.LeafID == "" || up.leafSeq < r.leafSeq {
			up.LeafID, up.leafSeq = r.LeafID, r.leafSeq
		}
	}
	return t
}

// hang finds what a segment hangs below.
func (t *runTree) hang(i int) {
	s := &t.segments[i]
	up, at := -1, [2]int{i, i + 1}
	if began, known := t.chains[s.Chain]; known {
		up, at[0] = i-1, began[0]
		s.goneBefore = t.segments[up].goneBefore + t.segments[up].Gone
	} else if s.UpChain != nil {
		up = t.find(*s.UpChain, s.UpDepth)
	}
	t.chains[s.Chain] = at
	s.above = -1
	if up >= 0 {
		s.above = t.segments[up].nearest
	}
	s.nearest = s.above
	if s.FirstID == nil {
		return
	}
	s.nearest = i
	if s.above >= 0 {
		t.segments[s.above].followers++
	}
}

// find is the place of the segment of a chain that has a depth.
func (t *runTree) find(chain, depth int64) int {
	at := t.chains[chain]
	return at[0] + sort.Search(at[1]-at[0]-1, func(i int) bool { return t.segments[at[0]+i].Depth >= depth })
}

// join adds a segment to the run above if it alone follows that, else it begins a run.
func (t *runTree) join(s *segment) {
	var above *segment
	if s.above >= 0 {
		above = &t.segments[s.above]
	}
	if above != nil && above.followers == 1 {
		s.run, s.before = above.run, above.before+above.count()
	} else {
		r := &run{Run: chat.Run{ID: *s.FirstID}, up: -1, firstSeq: s.FirstSeq}
		if above != nil {
			r.up, r.ParentID = above.run, *above.LastID
		}
		s.run = len(t.runs)
		t.runs = append(t.runs, r)
	}
	r := t.runs[s.run]
	r.HeadID, r.leafSeq = *s.LastID, s.LastSeq
	r.MessageCount += int(s.count())
}

// count is the number of messages of a segment.
func (s *segment) count() int64 { return s.Depth - s.After - s.Gone }

// place is where a mark is; run is -1 where it is nowhere.
func (t *runTree) place(m *mark) (run int, at chat.RunPlace) {
	if m.Chain == nil {
		return -1, at
	}
	if m.AtID != nil {
		s := &t.segments[t.find(*m.Chain, m.Depth)]
		return s.run, chat.RunPlace{
			RunID: t.runs[s.run].ID, MessageID: *m.AtID, Position: int(s.before + m.Depth - s.After - (m.Gone - s.goneBefore)),
		}
	}
	above := t.segments[t.chains[*m.Chain][0]].above
	if above < 0 {
		return -1, at
	}
	s := &t.segments[above]
	return s.run, chat.RunPlace{RunID: t.runs[s.run].ID, MessageID: *s.LastID, Position: int(s.before + s.count())}
}

// tree is what clients get: at most limit runs by the seq of their first messages. If
// there are more, those of the shown branch remain, from its end upwards, and of the others
// those with the newest leaves.
func (t *runTree) tree(marks []mark, limit int) *chat.Tree {
	tree := &chat.Tree{Runs: []*chat.Run{}, Saves: []chat.PlacedSave{}, Truncated: len(t.runs) > limit}
	for i := range marks {
		if in, at := t.place(&marks[i]); marks[i].ID == "" && in >= 0 {
			tree.Head = &at
			for ; in >= 0; in = t.runs[in].up {
				t.runs[in].Shown = true
			}
		}
	}
	chosen := slices.Clone(t.runs)
	if tree.Truncated {
		slices.SortFunc(chosen, byInterest)
		chosen = chosen[:limit]
	}
	slices.SortFunc(chosen, func(a, b *run) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	for _, r := range chosen {
		r.kept = true
		r.First, r.Last = &chat.Preview{ID: r.ID}, &chat.Preview{ID: r.HeadID}
		tree.Runs = append(tree.Runs, &r.Run)
	}
	for i := range marks {
		if in, at := t.place(&marks[i]); marks[i].ID != "" && in >= 0 && t.runs[in].kept {
			tree.Saves = append(tree.Saves, chat.PlacedSave{ID: marks[i].ID, RunPlace: at})
		}
	}
	return tree
}

// byInterest orders runs by how much a user misses them. Those above a run come before it,
// but for those of the shown branch.
func byInterest(a, b *run) int {
	switch {
	case a.Shown != b.Shown && a.Shown:
		return -1
	case a.Shown != b.Shown:
		return 1
	case a.Shown:
		return cmp.Compare(b.firstSeq, a.firstSeq)
	}
	return cmp.Or(cmp.Compare(b.leafSeq, a.leafSeq), cmp.Compare(a.firstSeq, b.firstSeq))
}
