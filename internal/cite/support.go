package cite

import (
	"context"
	"slices"

	"nodest/internal/index"
	"nodest/llm"
)

const (
	minSupport      = 0.55 // cosine
	minWordsSupport = 0.5  // share of the terms of a sentence that its source has
	minContained    = 0.8  // likewise, where there are vectors
	pairFactor      = 0.95 // one sentence is a better quote than two
)

// What is compared in one reply.
const (
	maxClaims       = 200
	maxClaimSources = 2000 // sentences of one source
)

// claim is a sentence and the number of the source that it cites.
type claim struct{ sentence, number int }

// checker looks for the quotes that support sentences.
type checker struct {
	sources   []Source
	sentences []Chunk
	wanted    []claim
	quotes    map[claim]quote
}

func (c *checker) want(w claim) {
	if w.number >= 1 && w.number <= len(c.sources) && len(c.wanted) < maxClaims && !slices.Contains(c.wanted, w) {
		c.wanted = append(c.wanted, w)
	}
}

// candidate is a text of a source: a chunk with its quotes, or one of these.
type candidate struct {
	passage
	evidence
	text int             // its place among the embedded texts
	pair bool            // two sentences
	has  map[string]bool // its terms
}

// chunkCandidates are a chunk of a source and its possible quotes.
type chunkCandidates struct {
	whole  candidate
	quotes []candidate
}

// check fills quotes.
func (c *checker) check(ctx context.Context, emb llm.Embedder, threshold float64) {
	texts := make([]string, 0, len(c.wanted))
	for _, w := range c.wanted {
		texts = append(texts, c.sentences[w.sentence].Text)
	}
	chunks := map[int][]chunkCandidates{} // by number of a source
	for _, w := range c.wanted {
		if _, ok := chunks[w.number]; !ok {
			chunks[w.number], texts = c.candidates(w.number-1, texts)
		}
	}
	v, ok := vectorsFor(ctx, emb, llm.Similarity, texts)
	for i, w := range c.wanted {
		terms := distinct(index.Terms(texts[i]))
		score := func(x candidate) float64 {
			return max(v.cosine(i, v, x.text), contained(share(terms, x.has)))
		}
		if !ok {
			threshold = minWordsSupport
			score = func(x candidate) float64 { return share(terms, x.has) }
		}
		if q := support(factsOf(texts[i]), chunks[w.number], score, !ok); q.score >= threshold {
			c.quotes[w] = q
		}
	}
}

// candidates returns the chunks of a source, and texts with theirs appended.
func (c *checker) candidates(source int, texts []string) ([]chunkCandidates, []string) {
	s := &c.sources[source]
	add := func(chunk int, span Span, pair bool) candidate {
		text := s.Chunks[chunk].Text[span[0]:span[1]]
		texts = append(texts, text)
		return candidate{passage{source, chunk, span, text}, newEvidence(text, s.title()), len(texts) - 1, pair, distinct(index.Terms(text))}
	}
	var out []chunkCandidates
	sentences := 0
	for j, chunk := range s.Chunks {
		all := plainSentences(chunk.Text)
		if sentences += len(all); len(all) == 0 || sentences > maxClaimSources {
			continue
		}
		var cc chunkCandidates
		for k, found := range all {
			cc.quotes = append(cc.quotes, add(j, found.Span, false))
			if k > 0 {
				cc.quotes = append(cc.quotes, add(j, Span{all[k-1].Span[0], found.Span[1]}, true))
			}
		}
		if cc.whole = cc.quotes[0]; len(all) > 1 {
			cc.whole = add(j, Span{0, len(chunk.Text)}, false)
		}
		out = append(out, cc)
	}
	return out, texts
}

// support returns the best quote from the chunk that supports a sentence best. Without vectors,
// a chunk that has all its numbers and names supports it too, if these are telling: the
// languages may differ.
func support(claimed facts, chunks []chunkCandidates, score func(candidate) float64, byWords bool) quote {
	top := quote{score: -1}
	for _, cc := range chunks {
		value, rank, best := score(cc.whole), -1.0, 0
		for i, q := range cc.quotes {
			s := score(q)
			value = max(value, s)
			if q.pair {
				s *= pairFactor
			}
			if s *= claimed.missing(q.evidence).factor(byWords); s > rank {
				rank, best = s, i
			}
		}
		lacking := claimed.missing(cc.whole.evidence)
		value *= lacking.factor(byWords)
		if byWords && lacking.count() == 0 && claimed.telling() {
			value = max(value, minWordsSupport)
		}
		if value > top.score {
			top = quote{cc.quotes[best].passage, value}
		}
	}
	return top
}

// contained is the score of a source that has a share of the terms of a sentence: most of
// them say as much as vectors, which are far apart for a short sentence and a long one.
func contained(share float64) float64 {
	if share < minContained {
		return 0
	}
	return share
}

func distinct(terms []string) map[string]bool {
	set := make(map[string]bool, len(terms))
	for _, t := range terms {
		set[t] = true
	}
	return set
}

// share is the share of terms that has contains.
func share(terms, has map[string]bool) float64 {
	n := 0
	for t := range terms {
		if has[t] {
			n++
		}
	}
	return float64(n) / float64(max(len(terms), 1))
}
