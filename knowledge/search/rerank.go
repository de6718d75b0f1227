package search

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/index"
)

// rerank orders the best candidates by what their texts say.
func (s *searching) rerank(ctx context.Context) error {
	if s.q.Texts == nil || len(s.list) == 0 {
		return nil
	}
	head := s.list[:min(reranked, len(s.list))]
	refs := make([]Ref, len(head))
	for i, c := range head {
		refs[i] = c.Ref
	}
	passages, err := s.q.Texts(ctx, refs)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || len(passages) != len(refs) {
		s.result.Degraded = append(s.result.Degraded, "rerank")
		return nil //nolint:nilerr // the order by words and vectors stays, and the result says so
	}
	s.order(head, passages)
	return nil
}

// order sorts the best candidates by their texts and by the legs, and drops equal texts. What
// shares its text with a better one steps back.
func (s *searching) order(head []*candidate, passages []Passage) {
	best := float32(0)
	for _, c := range head {
		best = max(best, c.words)
	}
	text := map[*candidate]string{}
	for i, c := range head {
		said := 0.0 // by the wording that fits best
		for _, w := range s.words {
			f := w.features(&passages[i])
			said = max(said, weightNear*f.near+weightTitle*f.title-weightContents*f.contents)
		}
		c.score = said
		if best > 0 {
			c.score += weightWords * float64(c.words/best)
		}
		weights := weightNear + weightTitle + weightWords
		if s.byVec != nil {
			c.score += s.q.VectorWeight * reciprocal(c.vector)
			weights += s.q.VectorWeight
		}
		c.score, c.reranked = c.score/weights, true
		text[c] = passages[i].Text
	}
	slices.SortFunc(head, s.before)
	for i, c := range head {
		if slices.ContainsFunc(head[:i], func(better *candidate) bool { return s.shared(c, better) > 1.0/3 }) {
			c.repeats = true
		}
	}
	for _, c := range head {
		if c.repeats {
			c.score *= repeatShare
		}
	}
	slices.SortFunc(head, s.before)
	seen := map[string]bool{}
	s.list = slices.DeleteFunc(s.list, func(c *candidate) bool {
		t, ok := text[c]
		again := ok && seen[t]
		seen[t] = seen[t] || ok
		return again
	})
}

// features are what the text of a chunk says about a question, from 0 to 1.
type features struct {
	near     float64 // share of the question's terms, by rarity, that stand near each other
	title    float64 // share of its terms in heading, context line or name
	contents float64 // 1 = looks like a table of contents
}

// nearTerms is how many terms of a text are near each other: some sentences.
const nearTerms = 40

func (w *wording) features(p *Passage) (f features) {
	at := make(map[string]int, len(w.terms))
	asked := 0.0
	for i, t := range w.terms {
		at[t.text] = i
		asked += t.worth()
	}
	if asked == 0 {
		return f
	}
	titled := make([]bool, len(w.terms))
	for _, t := range index.DocumentTerms(p.Name + " " + p.Heading + " " + p.Context) {
		if i, ok := at[t]; ok && !titled[i] {
			titled[i] = true
			f.title += w.terms[i].worth() / asked
		}
	}
	terms := index.DocumentTerms(p.Text)
	matches := make([]int, len(terms)) // of the question's terms; -1 = another word
	for k, t := range terms {
		matches[k] = -1
		if i, ok := at[t]; ok {
			matches[k] = i
		}
	}
	f.near = w.near(matches) / asked
	if looksLikeContents(p.Text) {
		f.contents = 1
	}
	return f
}

// near returns what different terms are worth that stand near each other, at most.
func (w *wording) near(matches []int) (most float64) {
	counts, sum := make([]int, len(w.terms)), 0.0
	for k, i := range matches {
		if i >= 0 {
			if counts[i]++; counts[i] == 1 {
				sum += w.terms[i].worth()
			}
		}
		if k >= nearTerms {
			if i := matches[k-nearTerms]; i >= 0 {
				if counts[i]--; counts[i] == 0 {
					sum -= w.terms[i].worth()
				}
			}
		}
		most = max(most, sum)
	}
	return most
}

// looksLikeContents reports whether most lines end in a number or are led to it by dots.
func looksLikeContents(text string) bool {
	lines, leads := 0, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		lines++
		last, _ := utf8.DecodeLastRuneInString(line)
		if strings.Contains(line, " . . ") || strings.Contains(line, "....") || strings.Contains(line, "……") && unicode.IsDigit(last) {
			leads++
		}
	}
	return leads >= 3 && 2*leads >= lines
}
