package cite

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"nodest/internal/cite/claim"
	"nodest/internal/index"
	"nodest/llm"
)

const (
	shortAnswer     = 400 // units: below, short sentences get marks too
	shortSentence   = 20
	maxQuote        = 300 // code points
	hitsPerSentence = 8
	marksPerClaim   = 2
)

// numberBonus is what a number in common adds to the share of words in common.
const numberBonus = 0.1

// snippetFactor lets a page that was opened win against the description of a search result.
const snippetFactor = 0.95

// citeSentences gives each sentence up to two references, each a sentence or two of a source.
func citeSentences(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o ReferenceOptions) Cited {
	minWeight := 2 * o.MinChunkLength
	if o.MinChunkLength <= 0 {
		minWeight = 2 * minChunk
		if Len16(answer) < shortAnswer {
			minWeight = 2 * shortSentence
		}
	}
	found, chunks := claims(answer, minWeight)
	passages := sentencesIn(quotable(sources, o.Hostnames, func(s string) bool { return weight(s) >= minWeight }))
	if len(found) == 0 || len(passages) == 0 {
		return Cited{Answer: answer}
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.Text
	}
	threshold, floor := o.MinRelScore, min(o.MinRelScore, cmp.Or(o.MinOverlap, minOverlap))
	rows, relevance, byWords := match(ctx, emb, texts, passages, matching{hitsPerSentence, threshold, floor - numberBonus, index.Terms, false})
	if byWords {
		threshold = floor
	}
	refs := collector{sources: sources, most: o.MaxRef, auto: true}
	var marks []placed
	for i, row := range rows {
		for _, n := range refs.addAll(chunks[i], choose(texts[i], row, passages, sources, threshold, byWords)) {
			marks = append(marks, placed{found[i].mark, n})
		}
	}
	return Cited{insert(answer, marks), refs.list, relevance}
}

// claims are the sentences of an answer that can get a mark, with their positions.
func claims(answer string, minWeight int) ([]sentence, []Chunk) {
	in := linesOf(answer)
	var found []sentence
	var spans []Span
	safe := protected(answer, in)
	for _, s := range sentencesOf(answer, in, safe) {
		if len(found) < maxAnswerChunks && weight(answer[s.Span[0]:s.Span[1]]) >= minWeight && !endsAddress(answer, safe, s.mark) {
			found, spans = append(found, s), append(spans, s.Span)
		}
	}
	return found, locate(answer, spans)
}

// sentencesIn divides chunks into sentences. Very short ones are left out, unless a chunk has
// no other.
func sentencesIn(chunks []passage) []passage {
	var out []passage
	for _, c := range chunks {
		all := plainSentences(c.text)
		for _, s := range all {
			text := c.text[s.Span[0]:s.Span[1]]
			if len(out) < maxSourceChunks && (len(all) == 1 || weight(text) >= 2*shortSentence) {
				out = append(out, passage{c.source, c.chunk, s.Span, text})
			}
		}
	}
	return out
}

// quote is what a reference quotes, and how well it supports its sentence.
type quote struct {
	passage
	score float64
}

// choose returns the quotes for a sentence: the best one, and a second one if it has facts that
// the best one lacks. Facts that neither has lower the scores of both.
func choose(text string, row []hit, passages []passage, sources []Source, threshold float64, byWords bool) []quote {
	if len(row) == 0 {
		return nil
	}
	claimed := claim.FactsOf(text)
	lacks := make([]claim.Facts, len(row))
	first, top := 0, -1.0
	for i, h := range row {
		p := passages[h.chunk]
		s := &sources[p.source]
		lacks[i] = claimed.Missing(claim.NewEvidence(p.text, s.title()))
		if byWords && len(lacks[i].Numbers()) < len(claimed.Numbers()) {
			row[i].score = min(1, row[i].score+numberBonus)
		}
		score := row[i].score * factor(lacks[i], byWords)
		if s.Evidence == EvidenceSnippet {
			score *= snippetFactor
		}
		if score > top {
			first, top = i, score
		}
	}
	chosen, lacking := []int{first}, lacks[first]
	for i := range row {
		if both := lacks[first].And(lacks[i]); both.Count() < lacking.Count() {
			chosen, lacking = []int{first, i}, both
		}
	}
	var out []quote
	var said []*claim.Text
	for _, i := range chosen {
		if score := row[i].score * factor(lacking, byWords); score >= threshold {
			out = append(out, quote{passages[row[i].chunk], score})
			said = append(said, claim.Read(passages[row[i].chunk].text, nil))
		}
	}
	if len(out) > 0 {
		pair := claim.Pair{Claim: claim.Read(text, nil), Quote: said, Page: said, Lenient: true}
		if pair.Contradiction() != nil {
			return nil
		}
	}
	return out
}

// factor lowers the score of a quote without some facts. Without a number, it is below all
// sensible thresholds: half of what cosines reach, a quarter of what words do.
func factor(lacking claim.Facts, byWords bool) float64 {
	switch {
	case len(lacking.Numbers()) > 0 && byWords:
		return 0.25
	case len(lacking.Numbers()) > 0:
		return 0.5
	case len(lacking.Names)+len(lacking.Titles) > 0:
		return 0.85
	}
	return 1
}

// collector numbers references in the order in which they are added. A chunk of a source keeps
// its number as long as one short quote covers what supports all its sentences.
type collector struct {
	sources []Source
	most    int
	auto    bool
	list    []Reference
	quoted  []quote // by reference
}

// addAll returns the numbers for one sentence, without repetition, in order.
func (c *collector) addAll(answer Chunk, quotes []quote) []int {
	var numbers []int
	for _, q := range quotes {
		if n := c.add(answer, q); n > 0 && !slices.Contains(numbers, n) && len(numbers) < marksPerClaim {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, cmp.Compare)
	return numbers
}

// add returns 0 if there are as many references as may be.
func (c *collector) add(answer Chunk, q quote) int {
	source := &c.sources[q.source]
	text := source.Chunks[q.chunk].Text
	for i := range c.quoted {
		old := &c.quoted[i]
		if old.source != q.source || old.chunk != q.chunk {
			continue
		}
		both := Span{min(old.span[0], q.span[0]), max(old.span[1], q.span[1])}
		if both == old.span || utf8.RuneCountInString(text[both[0]:both[1]]) <= maxQuote {
			old.span = both
			c.list[i].ExactQuote = cutQuote(text[both[0]:both[1]])
			return i + 1
		}
	}
	if len(c.list) >= c.most {
		return 0
	}
	ref := newReference(source, q.chunk, cutQuote(text[q.span[0]:q.span[1]]), q.score, answer)
	ref.Marker, ref.Auto = len(c.list)+1, c.auto
	c.list, c.quoted = append(c.list, ref), append(c.quoted, q)
	return ref.Marker
}

// cutQuote returns the first 300 code points of s.
func cutQuote(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxQuote {
			return s[:i]
		}
	}
	return s
}
