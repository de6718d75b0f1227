package search

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
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
	return s.order(ctx, head, passages)
}

// order sorts the best candidates by their texts and by the legs, and drops equal texts. What
// shares its text with a better one steps back.
func (s *searching) order(ctx context.Context, head []*candidate, passages []Passage) error {
	best := float32(0)
	for _, c := range head {
		best = max(best, c.words)
	}
	said, err := s.said(ctx, passages)
	if err != nil {
		return err
	}
	text := map[*candidate]string{}
	for i, c := range head {
		c.score = said[i]
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
	return nil
}

// said returns what each text says about the wording that it fits best.
func (s *searching) said(ctx context.Context, passages []Passage) ([]float64, error) {
	said := make([]float64, len(passages))
	return said, inParallel(ctx, len(passages), func(i int) {
		p := &passages[i]
		title, text, contents := index.DocumentTerms(p.Name+" "+p.Heading+" "+p.Context), index.DocumentTerms(p.Text), 0.0
		if looksLikeContents(p.Text) {
			contents = weightContents
		}
		for _, w := range s.words {
			near, titled := features(w, title, text)
			said[i] = max(said[i], weightNear*near+weightTitle*titled-contents)
		}
	})
}

// nearTerms is how many terms of a text are near each other: some sentences.
const nearTerms = 40

// features are what the terms of a chunk say about a question, from 0 to 1: the share of the
// question's terms, by rarity, that stand near each other, and of those in heading, context line or name.
func features(w *index.Question, title, text []string) (near, titled float64) {
	at := make(map[string]int, len(w.Terms))
	asked := 0.0
	for i, t := range w.Terms {
		at[t.Text] = i
		asked += w.Weight(i)
	}
	if asked == 0 {
		return 0, 0
	}
	seen := make([]bool, len(w.Terms))
	for _, t := range title {
		if i, ok := at[t]; ok && !seen[i] {
			seen[i] = true
			titled += w.Weight(i) / asked
		}
	}
	matches := make([]int, len(text)) // indexes of the question's terms; -1 = another word
	for k, t := range text {
		matches[k] = -1
		if i, ok := at[t]; ok {
			matches[k] = i
		}
	}
	return nearest(w, matches) / asked, titled
}

// nearest returns what different terms are worth that stand near each other, at most.
func nearest(w *index.Question, matches []int) (most float64) {
	counts, sum := make([]int, len(w.Terms)), 0.0
	for k, i := range matches {
		if i >= 0 {
			if counts[i]++; counts[i] == 1 {
				sum += w.Weight(i)
			}
		}
		if k >= nearTerms {
			if i := matches[k-nearTerms]; i >= 0 {
				if counts[i]--; counts[i] == 0 {
					sum -= w.Weight(i)
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
