package cite

import (
	"cmp"
	"context"
	"maps"
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
	v := newVerifier(clean, found, sources)
	v.threshold, v.lenient = cmp.Or(o.MinSupport, minSupport), true
	v.read()
	v.embed(ctx, emb)
	quotes := v.checkNamed()

	refs := collector{sources: sources, most: len(found) * marksPerClaim}
	marked := map[int][]int{} // by sentence: its marks so far
	var marks []placed
	for _, w := range found {
		s := v.sentenceAt(w.at)
		for _, n := range w.numbers {
			q, ok := quotes[citation{s, n}]
			if !ok || len(marked[s]) >= marksPerClaim {
				continue
			}
			if m := refs.add(v.chunks[s], q); m > 0 && !slices.Contains(marked[s], m) {
				marked[s] = append(marked[s], m)
				marks = append(marks, placed{w.at, m})
			}
		}
	}
	if len(marks) == 0 {
		o.Auto.Mode = BySentence
		return BuildReferences(ctx, emb, clean, sources, o.Auto)
	}
	return Cited{Answer: insert(clean, marks), References: refs.list}
}

// citation is a sentence and the number of the source that it cites.
type citation struct{ sentence, number int }

// maxClaims bounds how many marks of a reply are checked.
const maxClaims = 200

// checkNamed returns the quotes for the marks that hold. Where none of several marks of a sentence
// holds for all of it, they may hold for its parts.
func (v *verifier) checkNamed() map[citation]quote {
	quotes := map[citation]quote{}
	checked := 0
	for s := range v.judged {
		j := &v.judged[s]
		if checked += len(j.named); checked > maxClaims {
			break
		}
		held, against := false, map[int]bool{}
		for _, n := range j.named {
			one := j.whole
			v.support(&one, []int{n})
			maps.Copy(against, one.against)
			if one.quotes != nil {
				quotes[citation{s, n + 1}], held = one.quotes[0], true
			}
		}
		if held || len(j.named) < 2 || j.split == nil {
			continue
		}
		if j.parts = v.supportParts(j, j.named, against); j.supported() {
			for _, p := range j.parts {
				quotes[citation{s, p.quotes[0].source + 1}] = p.quotes[0]
			}
		}
	}
	return quotes
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
