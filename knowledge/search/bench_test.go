package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
)

// generated has files of about 80 chunks, of words whose frequencies fall as in texts.
func generated(b *testing.B, chunks, dim int) search.Files {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 60_000)
	var files search.Files
	for n := 0; n < chunks; {
		var text strings.Builder
		for text.Len() < 40_000 {
			for range 12 {
				fmt.Fprintf(&text, "w%x ", zipf.Uint64())
			}
			text.WriteString(". ")
		}
		cut := chunk.Cut(&parse.Document{Text: text.String()}, chunk.Default)
		data, _, err := search.Encode(b.Context(), "name", text.String(), cut)
		if err != nil {
			b.Fatal(err)
		}
		segment, err := search.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		packed := make([]index.Packed, len(cut))
		for i := range packed {
			vector := make([]float32, dim)
			for k := range vector {
				vector[k] = float32(r.IntN(255) - 127)
			}
			packed[i] = index.Pack(vector)
		}
		files = append(files, search.File{ID: fmt.Sprint(n), Segment: segment, Vectors: search.NewVectors(packed)})
		n += len(cut)
	}
	return files
}

func BenchmarkSearch20000(b *testing.B) {
	const dim = 512
	files := generated(b, 20_000, dim)
	vector := make([]float32, dim)
	for i := range vector {
		vector[i] = float32(i%17) - 8
	}
	for _, mode := range []string{search.Lexical, search.Vector} {
		b.Run(mode, func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 4))
			zipf := rand.NewZipf(r, 1.1, 20, 60_000)
			for b.Loop() {
				var question strings.Builder
				for range 12 {
					fmt.Fprintf(&question, "w%x ", zipf.Uint64())
				}
				if _, err := search.Search(b.Context(), files, search.Query{Text: question.String(), Mode: mode, Vector: vector}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
