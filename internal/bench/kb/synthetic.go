package kb

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"nodest/internal/bench/figure"
	"nodest/internal/index"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
	"nodest/llm/offline"
)

// speed are the times of searches in generated documents.
type speed struct {
	Files          int     `json:"files"`
	Chunks         int     `json:"chunks"`
	Dim            int     `json:"dim"` // numbers of a vector; 0 = by words alone
	P50Ms          float64 `json:"p50Ms"`
	P95Ms          float64 `json:"p95Ms"`
	Bytes          int     `json:"bytesPerChunk"` // in memory: words and vectors
	ChunksPerSec   float64 `json:"chunksPerSecond"`
	DecodeUsPerDoc float64 `json:"decodeUsPerFile"`
}

// synthetic measures searches in n generated chunks: by words, and in both ways with vectors of
// two lengths. The best 30 are reranked by their texts, which are in memory.
func synthetic(ctx context.Context, out io.Writer, o Options) error {
	l, speed, err := generated(ctx, o.Synthetic)
	if err != nil {
		return err
	}
	words := speed.Bytes
	for _, dim := range []int{0, offline.Dim, 2 * offline.Dim} {
		speed.Dim, speed.Bytes = dim, words+l.randomVectors(dim)/max(1, speed.Chunks)
		times, err := l.speed(ctx, dim)
		if err != nil {
			return err
		}
		speed.P50Ms, speed.P95Ms = figure.Millis(figure.At(times, 0.5)), figure.Millis(figure.At(times, 0.95))
		if o.JSON {
			err = json.NewEncoder(out).Encode(speed)
		} else {
			_, err = fmt.Fprintf(out, "%d chunks in %d files, %4d numbers: search p50 %6.2f ms, p95 %6.2f ms; %d bytes per chunk; cut and indexed %.0f chunks/s, a file decoded in %.0f us\n",
				speed.Chunks, speed.Files, dim, speed.P50Ms, speed.P95Ms, speed.Bytes, speed.ChunksPerSec, speed.DecodeUsPerDoc)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// generated has files of about a hundred chunks, of words whose frequencies fall as in texts,
// every third of them Chinese.
func generated(ctx context.Context, n int) (*library, speed, error) {
	r := rand.New(rand.NewPCG(1, 2))
	english, chinese := rand.NewZipf(r, 1.1, 8, 60_000), rand.NewZipf(r, 1.2, 40, 4000)
	l, s := &library{byName: map[string]int{}}, speed{}
	var building, decoding time.Duration
	for s.Chunks < n {
		var text strings.Builder
		for text.Len() < 40_000 {
			generatedSentence(&text, r, english, chinese, len(l.files)%3 == 2)
		}
		name := fmt.Sprintf("file %05d.txt", len(l.files))
		doc := &parse.Document{Type: "text", Text: text.String()}
		begun := time.Now()
		chunks := chunk.Cut(doc, chunk.Default)
		chunks = chunks[:min(len(chunks), n-s.Chunks)]
		stored, _, err := search.Encode(ctx, name, doc.Text, chunks)
		if err != nil {
			return nil, s, err
		}
		building += time.Since(begun)
		begun = time.Now()
		segment, err := search.Decode(stored)
		if err != nil {
			return nil, s, err
		}
		decoding += time.Since(begun)
		s.Bytes += segment.Bytes()
		s.Chunks += len(chunks)
		l.files, l.chunks = append(l.files, search.File{ID: name, Segment: segment}), append(l.chunks, chunks)
	}
	s.Files = len(l.files)
	s.Bytes /= max(1, s.Chunks)
	s.ChunksPerSec = float64(s.Chunks) / building.Seconds()
	s.DecodeUsPerDoc = float64(decoding.Microseconds()) / float64(s.Files)
	return l, s, nil
}

func generatedSentence(text *strings.Builder, r *rand.Rand, english, chinese *rand.Zipf, dense bool) {
	for range 8 + r.IntN(12) {
		if dense {
			text.WriteRune(rune(0x4E00 + chinese.Uint64()))
		} else {
			fmt.Fprintf(text, "w%x ", english.Uint64())
		}
	}
	if dense {
		text.WriteString("。")
	} else {
		text.WriteString(". ")
	}
}

// randomVectors gives all chunks vectors that mean nothing, and returns their size in memory.
func (l *library) randomVectors(dim int) (bytes int) {
	if dim == 0 {
		return 0
	}
	r := rand.New(rand.NewPCG(3, 4))
	for f := range l.files {
		packed := make([]index.Packed, len(l.chunks[f]))
		for i := range packed {
			vector := make([]float32, dim)
			for k := range vector {
				vector[k] = float32(r.IntN(255) - 127)
			}
			packed[i] = index.Pack(vector)
		}
		l.files[f].Vectors = search.NewVectors(packed)
		bytes += l.files[f].Vectors.Bytes()
	}
	return bytes
}

// speed asks questions of eight words, or a dozen Chinese characters, with frequent and rare ones.
func (l *library) speed(ctx context.Context, dim int) (times []time.Duration, err error) {
	r := rand.New(rand.NewPCG(5, 6))
	english, chinese := rand.NewZipf(r, 1.1, 20, 60_000), rand.NewZipf(r, 1.2, 60, 4000)
	const rounds, warm = 220, 20
	for i := range rounds {
		var text strings.Builder
		generatedSentence(&text, r, english, chinese, i%3 == 2)
		q := search.Query{Text: text.String(), Texts: l.passages}
		if dim == 0 {
			q.Mode = search.Lexical
		} else {
			q.Vector = make([]float32, dim)
			for k := range q.Vector {
				q.Vector[k] = float32(r.NormFloat64())
			}
		}
		begun := time.Now()
		if _, err := search.Search(ctx, l.files, q); err != nil {
			return nil, err
		}
		if i >= warm {
			times = append(times, time.Since(begun))
		}
	}
	return times, nil
}
