package cite

import (
	"cmp"
	"context"
	"slices"

	"nodest/llm"
)

// MarkOptions is how CheckMarks works.
type MarkOptions struct {
	// MinSupport is the cosine from which a source supports a sentence; 0 = 0.55.
	MinSupport float64

	// Auto adds marks to a reply that has no supported one. The zero value adds none.
	Auto ReferenceOptions
}

// CheckMarks keeps the marks of a reply whose source supports the sentence they stand in, and
// renumbers them in the order of their first appearance. sources[n-1] is what the model knows
// as [n]. All ways to write marks become [^n]. Code and links stay as they are; definitions of
// footnotes at the end are removed.
func CheckMarks(ctx context.Context, emb llm.Embedder, reply string, sources []Source, o MarkOptions) Cited {
	clean, found := readMarks(reply, len(sources))
	in := linesOf(clean)
	all := sentencesOf(clean, in, protected(clean, in))
	spans := make([]Span, len(all))
	for i, s := range all {
		spans[i] = s.Span
	}
	chunks := locate(clean, spans)
	c := checker{sources: sources, sentences: chunks, quotes: map[claim]quote{}}
	for _, w := range found {
		if s := sentenceAt(in, all, w.at); s >= 0 {
			for _, n := range w.numbers {
				c.want(claim{s, n})
			}
		}
	}
	threshold := o.MinSupport
	if threshold == 0 {
		threshold = minSupport
	}
	c.check(ctx, emb, threshold)

	refs := collector{sources: sources, most: len(found) * marksPerClaim}
	marked := map[int][]int{} // by sentence: its marks so far
	var marks []placed
	for _, w := range found {
		s := sentenceAt(in, all, w.at)
		for _, n := range w.numbers {
			q, ok := c.quotes[claim{s, n}]
			if !ok || len(marked[s]) >= marksPerClaim {
				continue
			}
			if m := refs.add(chunks[s], q); m > 0 && !slices.Contains(marked[s], m) {
				marked[s] = append(marked[s], m)
				marks = append(marks, placed{w.at, m})
			}
		}
	}
	if len(marks) == 0 {
		o.Auto.Mode = BySentence
		return BuildReferences(ctx, emb, clean, sources, o.Auto)
	}
	return Cited{insert(clean, marks), refs.list}
}

// sentenceAt returns the sentence that a mark stands in or behind, or before at the start of a
// line; -1 if there is none on its line.
func sentenceAt(in []line, all []sentence, at int) int {
	byStart := func(l line, at int) int { return cmp.Compare(l.start, at+1) }
	i, _ := slices.BinarySearchFunc(in, at, byStart)
	l := in[i-1]
	next, _ := slices.BinarySearchFunc(all, at, func(s sentence, at int) int { return cmp.Compare(s.Span[0], at) })
	switch {
	case next > 0 && all[next-1].Span[0] >= l.start:
		return next - 1
	case next < len(all) && all[next].Span[0] <= l.end:
		return next
	}
	return -1
}
