package loretool

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/framework/worldinfo"
	"nodest/internal/index"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// book is the index of the entries of a chat's world books. It is immutable.
type book struct {
	index   *index.Index
	vectors []vector // by entry

	failed error     // says why vectors are missing; nil = nothing failed
	retry  time.Time // before it, no more vectors are asked for
}

// vector is that of an entry.
type vector struct {
	model   string
	packed  index.Packed // nil = there is none yet
	refused bool         // by the provider, for good: words find the entry
}

// retryAfter is the time after a failure before a provider is asked again.
const retryAfter = time.Minute

// newBook indexes entries. vectors are those that are known, by entry; nil = none.
func newBook(ctx context.Context, entries []worldinfo.VectorizedEntry, vectors []vector) (*book, error) {
	if vectors == nil {
		vectors = make([]vector, len(entries))
	}
	b := &book{index: index.New(), vectors: vectors}
	rows := make([]index.Row, len(entries))
	for n := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		rows[n] = index.Row{ID: fmt.Sprintf("%06d", n), Attr: uint64(n), Terms: index.Join(plain(entries[n].Text))}
		if v := vectors[n]; v.packed != nil {
			rows[n].Vectors = []index.Kept{{Model: v.model, Packed: v.packed}}
		}
	}
	return b, b.index.Apply(ctx, rows, nil)
}

// macros are replaced when a prompt is built; before that they say nothing.
var macros = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// plain is the text of an entry without macros, unless it has nothing else.
func plain(text string) string {
	if said := macros.ReplaceAllString(text, " "); strings.TrimSpace(said) != "" {
		return said
	}
	return text
}

// after is b after an attempt to make vectors.
func (b *book) after(vectors []vector, failed error, now time.Time) *book {
	next := &book{index: b.index, vectors: vectors, failed: failed}
	if failed != nil {
		next.retry = now.Add(retryAfter)
	}
	return next
}

// lacks reports whether vectors are missing that the provider is to be asked for.
func (b *book) lacks(now time.Time) bool {
	return !now.Before(b.retry) && slices.ContainsFunc(b.vectors[:min(len(b.vectors), mostEmbedded)], vector.missing)
}

func (v vector) missing() bool { return v.packed == nil && !v.refused }

// vectorised reports whether some entry has a vector.
func (b *book) vectorised() bool {
	return slices.ContainsFunc(b.vectors, func(v vector) bool { return v.packed != nil })
}

// vectorBytes is the size of a vector in memory besides its numbers.
const vectorBytes = 48

func (b *book) bytes() int {
	size := b.index.Bytes()
	for _, v := range b.vectors {
		size += vectorBytes + len(v.packed)
	}
	return size
}

// question is what a book is asked.
type question struct {
	texts []string // the newest first
	names lang.Names
	now   time.Time
	near  index.Vector // vector of all texts; without values, words decide
}

// mostByWords is how many of the entries that are found may have no vector, if vectors were compared.
const mostByWords = 2

// search returns the entries that fit, by number, at most mostFound: those without a vector to compare that
// words prove to be meant, and then those whose vectors are near, the nearest first.
func (b *book) search(ctx context.Context, q *question) (found []int, err error) {
	byVector := len(q.near.Values) > 0
	lacks := func(v vector) bool { return !byVector || v.packed == nil }
	most := mostFound
	if byVector {
		most = mostByWords
	}
	err = b.index.View(func(v index.View) error {
		if slices.ContainsFunc(b.vectors, lacks) {
			for _, text := range q.texts {
				proven, err := q.proven(ctx, v, text)
				if err != nil {
					return err
				}
				for _, n := range proven {
					if len(found) < most && lacks(b.vectors[n]) && !slices.Contains(found, n) {
						found = append(found, n)
					}
				}
			}
		}
		near, err := b.near(ctx, v, q)
		found = append(found, near...)
		return err
	})
	return found[:min(len(found), mostFound)], err
}

// near returns the entries whose vectors are near enough, the nearest first.
func (b *book) near(ctx context.Context, v index.View, q *question) (found []int, err error) {
	if len(q.near.Values) == 0 {
		return nil, nil
	}
	near, _, err := v.Near(ctx, q.near, mostFound, 0)
	for _, one := range near {
		if n, ok := v.Attr(one.Row); ok && one.Cosine >= leastCosine {
			found = append(found, int(n))
		}
	}
	return found, err
}

// mostAlone is what a single character of a script without spaces proves in a statement, at most.
const mostAlone = 0.5

// pairShare is the share of the evidence of a Chinese word that its pairs have; its single characters have the rest.
const pairShare = 0.7

// doubt takes from a message what means less in a chat than in a search: a few words are no question, and single
// characters of Chinese are in many texts by chance.
func doubt(read *lang.Question) {
	read.Keywords = false
	read.Terms = slices.DeleteFunc(read.Terms, func(t index.Term) bool { return t.Extra })
	for i := range read.Terms {
		switch t := &read.Terms[i]; {
		case t.Text[0] < utf8.RuneSelf:
		case read.Asks:
			t.Evidence = min(t.Evidence/pairShare, max(1, t.Evidence))
		case utf8.RuneCountInString(t.Text) == 1:
			t.Evidence = min(t.Evidence, mostAlone)
		}
	}
}

// One word proves that an entry is meant if it is worth more than an everyday one, and is about half of the question.
const (
	leastEvidence = 0.6
	leastShare    = 0.45
	several       = 1.3 // evidence of more than one word
)

func proves(read *lang.Question, evidence, asked float32) bool {
	return recall.Proves(read, evidence, asked) && (evidence >= several || evidence >= leastEvidence && evidence >= leastShare*asked)
}

// proven returns the entries that words prove to have to do with a text, by number, best first. The proof is
// that of memories: common words and small talk prove nothing.
func (q *question) proven(ctx context.Context, v index.View, text string) ([]int, error) {
	read := lang.ReadQuery(text, q.names, q.now)
	if read.Silent() {
		return nil, nil
	}
	doubt(&read)
	var m index.Match
	if err := v.Match(ctx, read.Terms, &m); err != nil {
		return nil, err
	}
	type hit struct {
		n     int
		score float32
	}
	var hits []hit
	m.Each(func(row int, s *index.Score) {
		if n, ok := v.Attr(row); ok && proves(&read, s.Evidence, m.Asked) {
			hits = append(hits, hit{int(n), s.Row})
		}
	})
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.n, b.n)) })
	numbers := make([]int, len(hits))
	for i, h := range hits {
		numbers[i] = h.n
	}
	return numbers, nil
}
