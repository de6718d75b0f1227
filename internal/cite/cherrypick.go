package cite

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"nodest/internal/cite/script"
	"nodest/llm"
)

// LateChunker is an Embedder whose model can read all passages of a text together, so that each
// vector knows what the passages around it are about (late chunking, as in Jina's API).
type LateChunker interface {
	// EmbedChunks returns one vector per chunk of a single text, as llm.Embedder.Embed does.
	EmbedChunks(ctx context.Context, chunks []string) (llm.Embeddings, error)
}

// embedText returns the vectors of the chunks of one text.
func embedText(ctx context.Context, emb llm.Embedder, chunks []string) (vectors, bool) {
	late, ok := emb.(LateChunker)
	if !ok || len(chunks) == 0 {
		return vectorsFor(ctx, emb, llm.Passage, chunks)
	}
	answer, err := late.EmbedChunks(ctx, chunks)
	if err != nil {
		return vectors{}, false
	}
	return newVectors(answer.Vectors, len(chunks))
}

// PickOptions is how CherryPick shortens a text. The zero value gives two to five snippets of
// 6,000 units.
type PickOptions struct {
	SnippetLength int // units; 0 = 6,000
	Snippets      int // 0 = one per 6,000 units of the text, at least 2 and at most 5
	ChunkSize     int // units that are compared with the question at a time; 0 = 300
}

// Picked is what CherryPick took from a text.
type Picked struct {
	Text     string  // for the model: the whole text, or the snippets in tags
	Snippets []Chunk // best first; without any, Text is the start of the text
}

// CherryPick returns the parts of a text that are about the question. A text of fewer than two
// snippets stays whole. If there is no question, or embedding fails, it returns the start.
func CherryPick(ctx context.Context, emb llm.Embedder, question, text string, o PickOptions) Picked {
	if o.SnippetLength <= 0 {
		o.SnippetLength = 6000
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = 300
	}
	length := Len16(text)
	if o.Snippets <= 0 {
		o.Snippets = max(2, min(5, length/o.SnippetLength))
	}
	if length < 2*o.SnippetLength {
		return Picked{Text: text}
	}
	cuts := cutsOf(text, o.ChunkSize)
	scores := chunkScores(ctx, emb, question, text, cuts)
	if scores == nil {
		var end ruler
		end.advanceUnits(text, o.SnippetLength*o.Snippets)
		return Picked{Text: text[:end.bytes]}
	}
	var out Picked
	var b strings.Builder
	width := (o.SnippetLength + o.ChunkSize - 1) / o.ChunkSize
	for i, first := range bestWindows(scores, width, o.Snippets) {
		start := cuts[first]
		end := start
		end.advanceUnits(text, o.SnippetLength-(start.units-first*o.ChunkSize))
		c := Chunk{text[start.bytes:end.bytes], Span{start.bytes, end.bytes}, Span{start.units, end.units}, Span{start.points, end.points}}
		out.Snippets = append(out.Snippets, c)
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "<snippet-%d>\n\n%s\n\n</snippet-%d>", i+1, c.Text, i+1)
	}
	out.Text = b.String()
	return out
}

// cutsOf returns the positions at every multiple of size units, and the end of text.
func cutsOf(text string, size int) []ruler {
	cuts := []ruler{{}}
	for i := 1; ; i++ {
		at := cuts[i-1]
		at.advanceUnits(text, i*size-at.units)
		cuts = append(cuts, at)
		if at.bytes == len(text) {
			return cuts
		}
	}
}

// chunkScores is the similarity of each chunk to the question; nil if it cannot be told. Chunks
// of signs only have none.
func chunkScores(ctx context.Context, emb llm.Embedder, question, text string, cuts []ruler) []float64 {
	if script.IsBlank(question) {
		return nil
	}
	var chunks []string
	var places []int
	for i := range len(cuts) - 1 {
		if chunk := text[cuts[i].bytes:cuts[i+1].bytes]; hasLetters(chunk) {
			chunks, places = append(chunks, chunk), append(places, i)
		}
	}
	scores := make([]float64, len(cuts)-1)
	if emb == nil {
		for i, s := range newTermCounts(chunks).scores(question) {
			scores[places[i]] = s
		}
		return scores
	}
	theirs, ok := embedText(ctx, emb, chunks)
	if !ok {
		return nil
	}
	asked, ok := vectorsFor(ctx, emb, llm.Query, []string{question})
	if !ok {
		return nil
	}
	for i := range chunks {
		scores[places[i]] = asked.cosine(0, theirs, i)
	}
	return scores
}

func hasLetters(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r != '�' && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r))
	})
}

// bestWindows returns the starts of at most n windows with the highest sums, best first. They
// do not overlap. The sums are added up afresh for each start: a sliding sum would round
// differently, and decide ties at random.
func bestWindows(scores []float64, width, n int) []int {
	used := make([]bool, len(scores))
	var starts []int
	for range n {
		best, top := -1, 0.0
	windows:
		for j := 0; j+width <= len(scores); j++ {
			sum := 0.0
			for k := j; k < j+width; k++ {
				if used[k] {
					j = k // no window until here is free
					continue windows
				}
				sum += scores[k]
			}
			if best < 0 || sum > top {
				best, top = j, sum
			}
		}
		if best < 0 {
			break
		}
		for k := best; k < best+width; k++ {
			used[k] = true
		}
		starts = append(starts, best)
	}
	return starts
}
