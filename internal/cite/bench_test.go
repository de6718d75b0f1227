package cite

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"nodest/llm"
)

// random is an embedder whose vectors were made before: what is measured is not embedding.
type random struct{ vectors [][]float32 }

func newRandom(texts, dim int) random {
	r := rand.New(rand.NewPCG(1, 2))
	vectors := make([][]float32, texts)
	for i := range vectors {
		vectors[i] = make([]float32, dim)
		for j := range vectors[i] {
			vectors[i][j] = r.Float32() - 0.3
		}
	}
	return random{vectors}
}

func (r random) ModelID() string { return "random" }
func (r random) Dim() int        { return len(r.vectors[0]) }

func (r random) Embed(_ context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	return llm.Embeddings{Vectors: r.vectors[:len(texts)]}, nil
}

// madeLines returns lines of about 150 units of words that differ from line to line.
func madeLines(n int) []string {
	r := rand.New(rand.NewPCG(3, 4))
	words := strings.Fields("lighthouse keeper granite tower paraffin automated museum lantern 云溪镇灯会 三千六百盏油灯 harbour board quarry beam diary climate readings baseline visitors steps")
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for b.Len() < 150 {
			b.WriteString(words[r.IntN(len(words))] + " ")
			if r.IntN(6) == 0 {
				b.WriteString(strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(7)) + " ")
			}
		}
		out[i] = b.String() + "."
	}
	return out
}

func referencesOf(n int) (string, []Source) {
	all := madeLines(40 + n)
	sources := make([]Source, 40)
	for i, text := range all[40:] {
		s := &sources[i%40]
		s.URL = "https://a.test/" + strings.Repeat("x", i%40)
		s.Chunks = append(s.Chunks, Chunk{Text: text})
	}
	return strings.Join(all[:40], "\n"), sources
}

func BenchmarkBuildReferences40x2000(b *testing.B) {
	answer, sources := referencesOf(2000)
	emb := newRandom(2040, 1024)
	b.ReportAllocs()
	for b.Loop() {
		BuildReferences(b.Context(), emb, answer, sources, DefaultReferences(ByLine))
	}
}

func BenchmarkJaccard40x2000(b *testing.B) {
	answer, sources := referencesOf(2000)
	b.ReportAllocs()
	for b.Loop() {
		BuildReferences(b.Context(), nil, answer, sources, DefaultReferences(ByLine))
	}
}

func BenchmarkCherryPick200KB(b *testing.B) {
	page := strings.Join(madeLines(1300), "\n")[:200_000]
	emb := newRandom(1000, 1024)
	b.ReportAllocs()
	for b.Loop() {
		CherryPick(b.Context(), emb, "when was the lighthouse automated", page, PickOptions{})
	}
}

func BenchmarkChunkText1MB(b *testing.B) {
	text := strings.Join(madeLines(6500), "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ChunkText(text, ChunkOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// markedReply is a reply of 40 sentences, each with a mark that holds, and pages of 60 sentences.
func markedReply() (string, []Source) {
	all := madeLines(40 * 60)
	sources := make([]Source, 40)
	var reply strings.Builder
	for i := range sources {
		page := all[i*60 : (i+1)*60]
		sources[i] = Source{URL: "https://a.test/" + strings.Repeat("x", i), Chunks: lines(strings.Join(page, "\n"), 1)}
		reply.WriteString(strings.TrimSuffix(page[i], ".") + "[" + strconv.Itoa(i+1) + "].\n")
	}
	return reply.String(), sources
}

func BenchmarkCheckMarks40x60(b *testing.B) {
	reply, sources := markedReply()
	b.ReportAllocs()
	for b.Loop() {
		CheckMarks(b.Context(), nil, reply, sources, MarkOptions{})
	}
}
