package chat

import "slices"

// swipeBytes is how many bytes of texts a message is shown with beside its shown swipe.
const swipeBytes = 256 << 10

// near reports which swipes are shown with their texts when the one at a position is looked at:
// that one, and those next to it as far as they have swipeBytes together and were read.
func (m *Message) near(at int) []bool {
	return Near(at, len(m.Swipes), func(i int) int {
		if s := &m.Swipes[i]; !s.Omitted {
			return s.size()
		}
		return swipeBytes
	})
}

// Near reports which of n swipes, of the sizes in bytes, are shown with their texts around one of them.
func Near(at, n int, size func(i int) int) []bool {
	near := make([]bool, n)
	room := swipeBytes
	for before, after := at, at+1; before >= 0 || after < n; before, after = before-1, after+1 {
		for _, i := range []int{before, after} {
			if i < 0 || i >= n {
				continue
			}
			if room -= size(i); room < 0 && i != at {
				return near
			}
			near[i] = true
		}
	}
	return near
}

// nearTexts is m without the texts of swipes far from the shown one; nil of nil.
func (m *Message) nearTexts() *Message {
	if m == nil {
		return nil
	}
	short, near := *m, m.near(m.SwipeIndex)
	short.Swipes = slices.Clone(m.Swipes)
	for i, s := range m.Swipes {
		if !near[i] && i != m.SwipeIndex {
			short.Swipes[i] = Swipe{ID: s.ID, Rev: s.Rev, GenerationID: s.GenerationID, Deleted: s.Deleted, CreatedAt: s.CreatedAt, Omitted: true}
		}
	}
	return &short
}

// size is how many bytes a swipe is shown with, about.
func (s *Swipe) size() int {
	n := len(s.Text) + len(s.Reasoning) + len(s.Wish) + 256
	for _, b := range s.Blocks {
		n += len(b.Text) + 64
	}
	if s.Tools == nil {
		return n
	}
	for _, search := range s.Tools.Searches {
		n += len(search.Query) + 64
	}
	return n + 64*(len(s.Tools.Reads)+len(s.Tools.Calls))
}
