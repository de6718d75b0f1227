package cite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
	"nodest/internal/index"
	"nodest/llm"
)

// PassageOptions is how Passages cuts and chooses. The zero value gives two passages of about
// 600 units.
type PassageOptions struct {
	Size  int // units; 0 = 600
	Count int // 0 = 2
}

// Passage is a part of a page that answers a question.
type Passage struct {
	Chunk
	Score float64 // 0 to 1
}

// maxEmbedded bounds how many windows of one page are embedded: those with the most words of
// the question.
const maxEmbedded = 96

// Passages returns the parts of a page that answer a question best, in the order of the page.
// They begin and end with paragraphs; neighbours are one passage. Meaning and words count half
// each, and numbers and names of the question twice. A page without anything of the question
// gives its start. Without vectors only words count.
func Passages(ctx context.Context, emb llm.Embedder, question, page string, o PassageOptions) []Passage {
	if o.Size <= 0 {
		o.Size = 600
	}
	if o.Count <= 0 {
		o.Count = 2
	}
	windows := windowsOf(page, o.Size)
	texts := make([]string, len(windows))
	for i, w := range windows {
		texts[i] = page[w[0]:w[1]]
	}
	scores := newTermCounts(texts).scores(question)
	addMeaning(ctx, emb, question, texts, scores)
	order := ranked(scores)
	order = order[:min(o.Count, len(order))]
	slices.Sort(order)
	var spans []Span
	var tops []float64
	for i, w := range order {
		if i > 0 && order[i-1] == w-1 {
			last := len(spans) - 1
			spans[last][1], tops[last] = windows[w][1], max(tops[last], scores[w])
			continue
		}
		spans, tops = append(spans, windows[w]), append(tops, scores[w])
	}
	out := make([]Passage, len(spans))
	for i, c := range locate(page, spans) {
		out[i] = Passage{c, tops[i]}
	}
	return out
}

// ranked returns the indexes of scores, highest first; of equal ones, the earlier first.
func ranked(scores []float64) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

// addMeaning makes scores of words the mean of these and of the cosines, which are spread from 0
// to 1 over the page. It changes nothing if there are no vectors.
func addMeaning(ctx context.Context, emb llm.Embedder, question string, texts []string, scores []float64) {
	chosen := ranked(scores)
	chosen = chosen[:min(maxEmbedded, len(chosen))]
	slices.Sort(chosen)
	some := make([]string, len(chosen))
	for i, c := range chosen {
		some[i] = texts[c]
	}
	if emb == nil || script.IsBlank(question) {
		return
	}
	theirs, ok := embedText(ctx, emb, some)
	if !ok {
		return
	}
	asked, ok := vectorsFor(ctx, emb, llm.Query, []string{question})
	if !ok {
		return
	}
	cosines := make([]float64, len(some))
	for i := range some {
		cosines[i] = asked.cosine(0, theirs, i)
	}
	low, high := slices.Min(cosines), slices.Max(cosines)
	for i := range scores {
		scores[i] /= 2
	}
	for i, c := range chosen {
		if high > low {
			scores[c] += (cosines[i] - low) / (high - low) / 2
		}
	}
}

// windowsOf cuts a page into windows of whole paragraphs of about size units. A heading starts
// a window. A paragraph that is too long is cut between sentences, and a sentence anywhere.
func windowsOf(page string, size int) []Span {
	var out []Span
	length := 0 // length of the last window
	for _, p := range paragraphs(page, size) {
		n := Len16(page[p.start:p.end])
		if length == 0 || length+n > size || p.kind == unmarked && heading.MatchString(page[p.start:p.end]) {
			out, length = append(out, Span{p.start, p.start}), 0
		}
		out[len(out)-1][1] = p.end
		length += n
	}
	return out
}

// paragraphs are the lines of a page that are not blank, in pieces of at most size units.
func paragraphs(page string, size int) []line {
	var out []line
	for _, l := range linesOf(page) {
		text := page[l.start:l.end]
		trimmed := strings.TrimLeftFunc(text, script.IsSpace)
		l.start = l.end - len(trimmed)
		l.end = l.start + len(strings.TrimRightFunc(trimmed, script.IsSpace))
		switch {
		case l.start == l.end:
		case Len16(page[l.start:l.end]) <= size:
			out = append(out, l)
		default:
			out = appendPieces(out, page, l, size)
		}
	}
	return out
}

func appendPieces(out []line, page string, l line, size int) []line {
	text := page[l.start:l.end]
	for _, s := range appendSentences(nil, text, 0, len(text), nil) {
		start := l.start + s.Span[0]
		for end := l.start + s.Span[1]; start < end; {
			at := ruler{bytes: start}
			at.advanceUnits(page[:end], size)
			out = append(out, line{start, at.bytes, l.kind})
			start = at.bytes
		}
	}
	return out
}

// termCounts compares texts with a question by their words.
type termCounts struct {
	counts []map[string]int
	in     map[string]int // by term: the number of texts that have it
}

func newTermCounts(texts []string) *termCounts {
	x := &termCounts{counts: make([]map[string]int, len(texts)), in: map[string]int{}}
	for i, text := range texts {
		counts := map[string]int{}
		for _, t := range index.Terms(text) {
			if counts[t]++; counts[t] == 1 {
				x.in[t]++
			}
		}
		x.counts[i] = counts
	}
	return x
}

// scores returns for each text the share of the question that it has, 0 to 1. A word weighs
// more if it is rare, and twice if it is a number or a name. How often it occurs counts little.
func (x *termCounts) scores(question string) []float64 {
	scores := make([]float64, len(x.counts))
	facts := claim.FactsOf(question)
	double := claim.Distinct(index.Terms(strings.Join(slices.Concat(facts.Names, facts.Titles, facts.Numbers()), " ")))
	total := 0.0
	terms := index.Terms(question)
	slices.Sort(terms) // sums are rounded the same way each time
	for _, t := range slices.Compact(terms) {
		weight := math.Log(1 + float64(len(x.counts))/(0.5+float64(x.in[t])))
		if double[t] {
			weight *= 2
		}
		total += weight
		if x.in[t] == 0 {
			continue
		}
		for i, counts := range x.counts {
			if n := float64(counts[t]); n > 0 {
				scores[i] += weight * (0.8 + 0.2*n/(n+1))
			}
		}
	}
	for i := range scores {
		scores[i] /= max(total, 1e-9)
	}
	return scores
}
