package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"nodest/internal/cite"
	"nodest/llm"
)

// The sizes of what References measures.
const (
	referenceLines = 40   // lines of the answer
	referenceDim   = 1024 // dimensions of the vectors
	referencePages = 40
	chunkUnits     = 150 // units of a made-up line, about
)

// References measures citing: the processor time, allocations and bytes of one run each. The
// vectors are made before, so embedding is not part of it. It needs no network.
//
// Then it prints how right and how complete the citations of replies are, over the closed
// web in the folder that NODEST_MINIWEB names, if there is one.
func References(ctx context.Context, out io.Writer) error {
	if err := measureReferences(ctx, out, 1, time.Second); err != nil {
		return err
	}
	return measureCitations(ctx, out, cmp.Or(os.Getenv("NODEST_MINIWEB"), "../shared/data/miniweb"))
}

// measureReferences is References with sizes divided by small, each row repeated for a time.
func measureReferences(ctx context.Context, out io.Writer, small int, each time.Duration) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	t := &cpuTable{out: out, each: each, self: &child{cmd: &exec.Cmd{Process: self}}}
	r := rand.New(rand.NewPCG(1, 2)) // the same texts each time
	emb := newMadeVectors(r, (referenceLines+5000)/small)
	fmt.Fprintf(out, "%-58s %10s %10s %12s\n", "citing (vectors made before)", "CPU ms", "allocs", "bytes")
	for _, chunks := range []int{2000, 5000} {
		answer, sources := madeSources(r, chunks/small)
		t.row(fmt.Sprintf("references, %d lines and %d chunks of %d dimensions", referenceLines, chunks/small, referenceDim), func() {
			cite.BuildReferences(ctx, emb, answer, sources, cite.DefaultReferences(cite.ByLine))
		})
		t.row(fmt.Sprintf("references by words, %d lines and %d chunks", referenceLines, chunks/small), func() {
			cite.BuildReferences(ctx, nil, answer, sources, cite.DefaultReferences(cite.ByLine))
		})
	}
	page := strings.Join(madeLines(r, 1_000_000/chunkUnits/small), "\n")
	part := page[:strings.LastIndexByte(page[:len(page)/5], '\n')]
	t.row(fmt.Sprintf("best parts of a page of %d KB", len(part)/1000), func() {
		cite.CherryPick(ctx, emb, "When was the lighthouse automated?", part, cite.PickOptions{})
	})
	t.row(fmt.Sprintf("passages of a page of %d KB", len(part)/1000), func() {
		cite.Passages(ctx, emb, "When was the lighthouse automated?", part, cite.PassageOptions{})
	})
	t.row(fmt.Sprintf("chunks of a text of %d KB", len(page)/1000), func() {
		if _, err := cite.ChunkText(page, cite.ChunkOptions{}); err != nil && t.err == nil {
			t.err = err
		}
	})
	return t.err
}

// madeVectors is an embedder that returns the same random vectors for all texts.
type madeVectors [][]float32

func newMadeVectors(r *rand.Rand, texts int) madeVectors {
	v := make(madeVectors, texts)
	for i := range v {
		v[i] = make([]float32, referenceDim)
		for j := range v[i] {
			v[i][j] = r.Float32() - 0.3 // similar enough that many pairs count
		}
	}
	return v
}

func (v madeVectors) ModelID() string { return "random" }
func (v madeVectors) Dim() int        { return referenceDim }

func (v madeVectors) Embed(_ context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	return llm.Embeddings{Vectors: v[:min(len(texts), len(v))]}, nil
}

// madeLines returns lines of some words and some noise.
func madeLines(r *rand.Rand, n int) []string {
	words := strings.Fields("lighthouse keeper granite tower paraffin automated museum lantern 云溪镇灯会 三千六百盏油灯 " +
		"harbour board quarry beam diary climate readings baseline visitors steps")
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for b.Len() < chunkUnits {
			b.WriteString(words[r.IntN(len(words))] + " ")
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "%x ", r.IntN(5000))
			}
		}
		out[i] = b.String() + "."
	}
	return out
}

func madeSources(r *rand.Rand, chunks int) (answer string, sources []cite.Source) {
	sources = make([]cite.Source, referencePages)
	for i, line := range madeLines(r, chunks) {
		s := &sources[i%referencePages]
		s.URL = fmt.Sprintf("https://pages.test/%d", i%referencePages)
		s.Chunks = append(s.Chunks, cite.Chunk{Text: line})
	}
	return strings.Join(madeLines(r, referenceLines), "\n"), sources
}

// cpuTable prints measurements in processor time, which other programs disturb least.
type cpuTable struct {
	out  io.Writer
	each time.Duration // processor time, of which the system counts hundredths of a second
	self *child
	err  error
}

func (t *cpuTable) row(name string, run func()) {
	run() // caches and the allocator warm up
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started, n, used := t.used(), 0, time.Duration(0)
	for n == 0 || used < t.each && t.err == nil {
		run()
		n++
		used = t.used() - started
	}
	runtime.ReadMemStats(&after)
	fmt.Fprintf(t.out, "%-58s %10.2f %10d %12d\n", name, float64(used)/1e6/float64(n),
		(after.Mallocs-before.Mallocs)/uint64(n), (after.TotalAlloc-before.TotalAlloc)/uint64(n))
}

func (t *cpuTable) used() time.Duration {
	used, err := t.self.cpu()
	if err != nil && t.err == nil {
		t.err = err
	}
	return used
}
