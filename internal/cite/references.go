package cite

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"nodest/llm"
)

// The ways to divide an answer.
const (
	ByLine     = "newline"  // a mark per line, a source line for one mark only
	BySentence = "sentence" // up to two marks per sentence, and quotes of one sentence
)

// The defaults of ReferenceOptions, and its counterpart for comparing words.
const (
	DefaultMaxRef      = 10
	DefaultMinRelScore = 0.7

	minOverlap = 0.25 // share of words in common, from which a reference counts
)

// At most this many chunks of an answer and of its sources are read: the rest is neither marked nor quoted.
const (
	maxAnswerChunks = 500
	maxSourceChunks = 20_000
)

// ReferenceOptions is how BuildReferences works. Start from DefaultReferences: MaxRef and
// MinRelScore may be zero.
type ReferenceOptions struct {
	Mode string // "" = ByLine

	// MinChunkLength is the length from which lines and chunks count, in units; 0 = 80. By
	// sentence, a character of a dense script counts 2.5, and 0 means 20 for answers of fewer
	// than 400 units.
	MinChunkLength int

	MaxRef      int      // references; 0 = none
	MinRelScore float64  // cosine, which depends on the embedding model. Words have a threshold of their own:
	MinOverlap  float64  // by sentence, the share of a sentence's words that its quote has; 0 = 0.25
	Hostnames   []string // only sources of these hosts; empty = all
}

// DocumentOverlap is the MinOverlap where documents were searched. A search nearly always finds
// something: with less, "I find nothing about that" would cite a sentence about finding.
const DocumentOverlap = 0.5

// DefaultReferences has the defaults for a mode.
func DefaultReferences(mode string) ReferenceOptions {
	return ReferenceOptions{Mode: mode, MaxRef: DefaultMaxRef, MinRelScore: DefaultMinRelScore}
}

// BuildReferences adds marks to an answer where the sources say the same. Marks that are
// already there are removed first. Code, headings and links get none. All texts are embedded
// in one call; if that fails, words are compared.
func BuildReferences(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o ReferenceOptions) Cited {
	answer = StripMarks(answer)
	if o.MaxRef <= 0 {
		return Cited{Answer: answer}
	}
	if o.Mode == BySentence {
		return citeSentences(ctx, emb, answer, sources, o)
	}
	return citeLines(ctx, emb, answer, sources, o)
}

// passage is a chunk, or a sentence of one, that can be quoted.
type passage struct {
	source, chunk int
	span          Span // place in the chunk's text
	text          string
}

// quotable returns the chunks of the sources that long accepts. A chunk that three pages of
// one host have is part of the site, not of the page.
func quotable(sources []Source, hosts []string, long func(string) bool) []passage {
	type line struct{ host, text string }
	seen := map[line]int{}
	hostnames := make([]string, len(sources))
	var out []passage
	for i := range sources {
		s := &sources[i]
		hostnames[i] = hostname(s.URL)
		if len(hosts) > 0 && !hostIn(hosts, hostnames[i]) {
			continue
		}
		for j, c := range s.Chunks {
			if len(out) < maxSourceChunks && c.Text != "" && s.title() != "" && long(c.Text) {
				out = append(out, passage{i, j, Span{0, len(c.Text)}, c.Text})
				seen[line{hostnames[i], c.Text}]++
			}
		}
	}
	kept := out[:0]
	for _, p := range out {
		if host := hostnames[p.source]; host == "" || seen[line{host, p.text}] < 3 {
			kept = append(kept, p)
		}
	}
	return kept
}

// hostname is the host of an address, in lower case and without "www."; "" if it has none.
func hostname(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
}

func hostIn(hosts []string, host string) bool {
	return host != "" && slices.ContainsFunc(hosts, func(h string) bool {
		return strings.TrimPrefix(strings.ToLower(h), "www.") == host
	})
}

// matching is how match compares texts.
type matching struct {
	k          int                   // hits per text
	minCosine  float64               // least cosine of a hit
	minOverlap float64               // least overlap of a hit, if there are no vectors
	terms      func(string) []string // likewise: the words to compare
	apart      bool                  // passages are no parts of a page
}

// match returns the best passages for each text of an answer, how near all of them are, and whether it
// compared words.
func match(ctx context.Context, emb llm.Embedder, answer []string, passages []passage, m matching) (rows [][]hit, relevance Relevance, byWords bool) {
	found := make([]best, len(answer))
	for i := range found {
		found[i].k = m.k
	}
	embed := vectorsOfPages
	if m.apart {
		embed = func(ctx context.Context, emb llm.Embedder, texts []string, passages []passage) (vectors, bool) {
			return vectorsFor(ctx, emb, llm.Similarity, withPassages(texts, passages))
		}
	}
	v, ok := embed(ctx, emb, answer, passages)
	if ok {
		ours, theirs := v.slice(0, len(answer)), v.slice(len(answer), len(answer)+len(passages))
		for j := range passages { // the vectors of the answer stay in the processor's cache
			for i := range answer {
				score := ours.cosine(i, theirs, j)
				relevance.add(score)
				if score >= m.minCosine {
					found[i].add(hit{j, score})
				}
			}
		}
	} else {
		x := newOverlap(len(passages), m.terms)
		for _, p := range passages {
			x.add(p.text)
		}
		for i, text := range answer {
			for j, score := range x.scores(text) {
				relevance.add(score)
				if score >= m.minOverlap {
					found[i].add(hit{j, score})
				}
			}
		}
	}
	rows = make([][]hit, len(answer))
	for i := range found {
		rows[i] = found[i].hits
	}
	relevance.finish()
	return rows, relevance, !ok
}
