package chat

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"nodest/chat/words"
	"nodest/internal/fault"
)

// A search walks ranges of messages, the newest first. The texts of a range are read unless its
// stored words rule it out. What is found in a range waits until no other range can have something
// newer: in several conversations their messages are not in the order of the ranges.

// searcher is one search.
type searcher struct {
	words   [][]byte
	parts   [][]byte // that words of a text with all words contain
	filter  TextFilter
	limit   int
	reach   int // messages to read
	folder  words.Folder
	found   []finding // newest first
	damaged []TextRange

	ranges []TextRange // newest first
	stored [][]byte    // words of ranges, up to the one that was asked for last
	buf    []byte
}

// place is where a message is in the order of a search: by seq in one conversation, else by id.
// The zero value is before the newest.
type place struct {
	seq int64
	id  string
}

// finding is a text that has all words.
type finding struct {
	place
	swipeID  string
	position int // -1 = it is the chosen one
}

// wordCost is what it costs to look at the words of a range, in messages that are read.
const wordCost = 8

// mostAhead is the words of how many ranges are read at once.
const mostAhead = 64

// walk looks at ranges until it has enough or has seen enough. It leaves what is found and returns
// where to go on; "" = it has seen all.
func (s *searcher) walk(tx Tx, from place) (string, error) {
	all, err := tx.TextRanges(s.filter)
	if err != nil {
		return "", err
	}
	s.ranges = slices.DeleteFunc(all, func(r TextRange) bool { return s.passed(place{r.First, r.OldestID}, from) })
	slices.SortFunc(s.ranges, func(a, b TextRange) int { return s.compare(newest(b), newest(a)) })
	at, seen, ready := 0, 0, 0
	for ; at < len(s.ranges); at++ {
		next := newest(s.ranges[at])
		// Ranges that were read before may have to be read again, so each call reads one more.
		if ready = s.newerThan(next); ready >= s.limit || seen >= s.reach && !s.passed(after(next), from) {
			break
		}
		may, err := s.mayHold(tx, at)
		if err != nil {
			return "", err
		}
		seen += wordCost
		if !may {
			continue
		}
		n, err := s.read(tx, s.ranges[at], from)
		if err != nil {
			return "", err
		}
		seen += n
	}
	if at == len(s.ranges) {
		ready = len(s.found)
	}
	more := ready > s.limit || at < len(s.ranges)
	s.found = s.found[:min(ready, s.limit)]
	switch {
	case !more:
		return "", nil
	case len(s.found) == s.limit:
		return s.found[s.limit-1].String(), nil
	}
	return after(newest(s.ranges[at])).String(), nil
}

func newest(r TextRange) place { return place{r.Last, r.NewestID} }

func (s *searcher) compare(a, b place) int {
	if s.filter.ConversationID != "" {
		return cmp.Compare(a.seq, b.seq)
	}
	return strings.Compare(a.id, b.id)
}

// passed reports whether p is not older than from.
func (s *searcher) passed(p, from place) bool { return from.id != "" && s.compare(p, from) >= 0 }

func (s *searcher) newerThan(p place) int {
	return sort.Search(len(s.found), func(i int) bool { return s.compare(s.found[i].place, p) <= 0 })
}

// mayHold reports whether range at may have all words. It reads the words of a growing number of
// ranges at once: most searches need few, or all.
func (s *searcher) mayHold(tx Tx, at int) (bool, error) {
	r := s.ranges[at]
	if !r.Indexed || len(s.parts) == 0 {
		return true, nil
	}
	if at >= len(s.stored) {
		ahead := s.ranges[at:min(len(s.ranges), at+min(at+1, mostAhead))]
		stored, err := tx.RangeWords(ahead...)
		if err != nil {
			return false, err
		}
		clear(s.stored)
		s.stored = append(append(s.stored, make([][]byte, at-len(s.stored))...), stored...)
	}
	may, err := words.MayHold(s.stored[at], s.parts, &s.buf)
	if errors.Is(err, words.ErrDamaged) {
		s.damaged = append(s.damaged, r)
	}
	return may, nil
}

// read finds texts of a range that are older than from. It returns how many messages it has read.
func (s *searcher) read(tx Tx, r TextRange, from place) (n int, err error) {
	best, last := map[string]finding{}, ""
	err = tx.RangeTexts(r, func(t *ShownText) {
		if t.MessageID != last {
			n, last = n+1, t.MessageID
		}
		at := finding{place{t.Seq, t.MessageID}, t.SwipeID, t.Position}
		if t.Chosen {
			at.position = -1
		}
		if have, ok := best[t.MessageID]; ok && have.position < at.position || s.passed(at.place, from) {
			return
		}
		if s.folder.Holds(t.Text, s.words) {
			best[t.MessageID] = at
		}
	})
	if err != nil || len(best) == 0 {
		return n, err
	}
	for _, f := range best {
		s.found = append(s.found, f)
	}
	slices.SortFunc(s.found, func(a, b finding) int { return s.compare(b.place, a.place) })
	return n, nil
}

func (s *searcher) hits(tx Tx) ([]*Hit, error) {
	ids := make([]string, len(s.found))
	for i, f := range s.found {
		ids[i] = f.id
	}
	messages, err := tx.MessagesByID(ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*Message, len(messages))
	for _, m := range messages {
		byID[m.ID] = m
	}
	hits := []*Hit{}
	for _, f := range s.found {
		if m := byID[f.id]; m != nil {
			if at := slices.IndexFunc(m.Swipes, func(c Swipe) bool { return c.ID == f.swipeID }); at >= 0 {
				hits = append(hits, s.hit(m, &m.Swipes[at]))
			}
		}
	}
	return hits, nil
}

// after is the place before which a message at p is too.
func after(p place) place { return place{p.seq + 1, p.id + "+"} }

// String is the cursor of a search that goes on with what is older than p.
func (p place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.seq, 10) + "/" + p.id))
}

func parseSearchCursor(cursor string) (p place, err error) {
	if cursor == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		if seq, id, ok := strings.Cut(string(b), "/"); ok && id != "" {
			if p.seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
				p.id = id
				return p, nil
			}
		}
	}
	return place{}, fault.InvalidField("cursor", "format", "not a cursor of this list; use the nextCursor of the previous page")
}
