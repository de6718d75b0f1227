// Package kb measures knowledge bases: how often a search finds the right file and passage, how
// long that takes, and how well a model answers with the tools.
package kb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"nodest/internal/bench/figure"
	"nodest/knowledge/search"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/nodest"
)

// Options name the documents and questions of a measurement of knowledge bases.
type Options struct {
	Corpus    string        // folder of documents
	Queries   string        // file of questions, one JSON object per line
	Mode      string        // search.Hybrid, Lexical or Vector; "" = hybrid
	Rerank    string        // local or none; "" = local
	Every     int           // ask every nth question only; 0 = all
	Synthetic int           // instead of files: measure the speed with this number of generated chunks
	Loop      string        // scripted or live: also let a character answer the questions, with a scripted model or one of Models; "" = no
	LoopEvery int           // let it answer every nth question only; 0 = all
	Models    nodest.Models // for a live loop
	Embedder  llm.Embedder  // nil = the offline embeddings
	Misses    bool          // print the questions whose document or passage is not found
	JSON      bool
	Gate      string // file of least figures, in the form of the JSON output
}

// The ways to order the best chunks.
const (
	rerankLocal = "local"
	rerankNone  = "none"
)

// The models that answer: a double that does the same for the same input, and a real one.
const (
	LoopScripted = "scripted"
	LoopLive     = "live"
)

func (o *Options) check() error {
	if o.Mode == "" {
		o.Mode = search.Hybrid
	}
	if o.Rerank == "" {
		o.Rerank = rerankLocal
	}
	if o.Embedder == nil {
		o.Embedder = offline.Embedder{}
	}
	switch {
	case !slices.Contains([]string{search.Hybrid, search.Lexical, search.Vector}, o.Mode):
		return fmt.Errorf("--mode must be hybrid, lexical or vector, not %q", o.Mode)
	case o.Rerank != rerankLocal && o.Rerank != rerankNone:
		return fmt.Errorf("--rerank must be local or none, not %q", o.Rerank)
	case !slices.Contains([]string{"", LoopScripted, LoopLive}, o.Loop):
		return fmt.Errorf("--loop must be scripted or live, not %q", o.Loop)
	case (o.Loop == LoopLive) != (o.Models != nil):
		return errors.New("a live loop needs a model provider")
	case o.Synthetic == 0 && (o.Corpus == "" || o.Queries == ""):
		return errors.New("required: --corpus DIR and --queries FILE, or --synthetic N")
	}
	return nil
}

// Run parses, cuts and embeds the documents of a folder, asks the questions, and prints how often the right document and the right passage are among the first,
// with plain BM25 beside it. It returns an error if a figure misses the gate.
func Run(ctx context.Context, out io.Writer, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Synthetic > 0 {
		return synthetic(ctx, out, o)
	}
	r, err := measure(ctx, out, o)
	if err != nil {
		return err
	}
	if o.JSON {
		err = json.NewEncoder(out).Encode(r)
	} else {
		err = r.print(out)
	}
	if err != nil || o.Gate == "" {
		return err
	}
	return errors.Join(r.gate(o.Gate), r.Loop.gate())
}

// scores are means over questions, from 0 to 1.
type scores struct {
	Questions    int     `json:"questions"`
	FileRecall1  float64 `json:"fileRecall1"`
	FileRecall3  float64 `json:"fileRecall3"`
	FileRecall5  float64 `json:"fileRecall5"`
	FileRecall10 float64 `json:"fileRecall10"`
	MRR          float64 `json:"mrr"` // mean reciprocal rank of the file, among the first ten

	QuoteRecall1  float64 `json:"quoteRecall1"` // recall of a chunk with the passage
	QuoteRecall3  float64 `json:"quoteRecall3"`
	QuoteRecall5  float64 `json:"quoteRecall5"`
	QuoteRecall10 float64 `json:"quoteRecall10"`
	QuoteMRR      float64 `json:"quoteMrr"`
}

// add counts a question by the ranks of its file and of its passage, from 1; 0 = not found.
func (s *scores) add(file, quote int) {
	s.Questions++
	for _, k := range []struct {
		sum     *float64
		rank, k int
	}{
		{&s.FileRecall1, file, 1}, {&s.FileRecall3, file, 3}, {&s.FileRecall5, file, 5}, {&s.FileRecall10, file, 10},
		{&s.QuoteRecall1, quote, 1}, {&s.QuoteRecall3, quote, 3}, {&s.QuoteRecall5, quote, 5}, {&s.QuoteRecall10, quote, 10},
	} {
		if k.rank > 0 && k.rank <= k.k {
			*k.sum++
		}
	}
	if file > 0 && file <= 10 {
		s.MRR += 1 / float64(file)
	}
	if quote > 0 && quote <= 10 {
		s.QuoteMRR += 1 / float64(quote)
	}
}

func (s *scores) mean() {
	n := float64(max(1, s.Questions))
	for _, sum := range []*float64{
		&s.FileRecall1, &s.FileRecall3, &s.FileRecall5, &s.FileRecall10, &s.MRR, &s.QuoteRecall1, &s.QuoteRecall3, &s.QuoteRecall5, &s.QuoteRecall10, &s.QuoteMRR,
	} {
		*sum /= n
	}
}

// figures are the scores of some questions, and those of plain BM25.
type figures struct {
	scores
	BM25 scores `json:"bm25"`
}

func (g *figures) add(rank, bm25 ranks) {
	g.scores.add(rank.file, rank.quote)
	g.BM25.add(bm25.file, bm25.quote)
}

func (g *figures) mean() {
	g.scores.mean()
	g.BM25.mean()
}

// result is what a measurement gives.
type result struct {
	figures
	P50Ms        float64             `json:"p50Ms"` // time of a search, with the embedding of the question
	P95Ms        float64             `json:"p95Ms"`
	ByLanguage   map[string]*figures `json:"byLanguage"`   // questions in the language of their document
	CrossLingual *figures            `json:"crossLingual"` // the others
	ByType       map[string]*figures `json:"byType"`       // by the type of the document
	Ingest       ingestion           `json:"ingest"`
	Loop         *loopFigures        `json:"loop,omitempty"`
	Mode         string              `json:"mode"`
	Rerank       string              `json:"rerank"`
}

// ingestion is what reading the documents took.
type ingestion struct {
	Files           int            `json:"files"`
	Failed          map[string]int `json:"failed"` // by code
	Chunks          int            `json:"chunks"`
	FilesPerSecond  float64        `json:"filesPerSecond"`
	MBPerSecond     float64        `json:"mbPerSecond"` // megabytes of the files
	ChunksPerSecond float64        `json:"chunksPerSecond"`
	ParseMs         float64        `json:"parseMs"`
	IndexMs         float64        `json:"indexMs"` // cutting, and words
	EmbedMs         float64        `json:"embedMs"`
	SegmentBytes    int            `json:"segmentBytesPerChunk"` // in memory
	StoredBytes     int            `json:"storedBytesPerChunk"`
}

func measure(ctx context.Context, out io.Writer, o Options) (*result, error) {
	questions, err := readQuestions(o.Queries)
	if err != nil {
		return nil, err
	}
	l, err := readLibrary(ctx, o.Corpus, o.Embedder)
	if err != nil {
		return nil, err
	}
	r := &result{ByLanguage: map[string]*figures{}, CrossLingual: &figures{}, ByType: map[string]*figures{}, Ingest: l.ingest, Mode: o.Mode, Rerank: o.Rerank}
	plain := newPlainIndex(l)
	var times []time.Duration
	for i, q := range questions {
		if !q.Answerable || i%max(1, o.Every) != 0 {
			continue
		}
		gold := l.gold(&q)
		rank, took, err := l.ask(ctx, &q, gold, o)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		base := plain.ask(&q, gold)
		for _, g := range r.groups(&q, l.typeOf(q.File)) {
			g.add(rank, base)
		}
		if o.Misses && (rank.file != 1 || rank.quote == 0 || rank.quote > 5) {
			fmt.Fprintf(out, "%-8s file %2d, passage %2d: %s (%s: %s)\n", q.ID, rank.file, rank.quote, q.Question, q.File, q.Quote)
		}
	}
	r.P50Ms, r.P95Ms = figure.Millis(figure.At(times, 0.5)), figure.Millis(figure.At(times, 0.95))
	for _, g := range slices.Concat([]*figures{&r.figures, r.CrossLingual}, slices.Collect(maps.Values(r.ByLanguage)), slices.Collect(maps.Values(r.ByType))) {
		g.mean()
	}
	if o.Loop != "" {
		r.Loop, err = talkAbout(ctx, out, l, talksOf(questions, o), o)
	}
	return r, err
}

// talksOf are the questions that are asked in chats.
func talksOf(questions []question, o Options) (talks []talk) {
	for i, q := range questions {
		if !q.Answerable || i%max(1, o.LoopEvery) == 0 {
			talks = append(talks, talk{question: q})
		}
	}
	return talks
}

// groups are those that a question counts in.
func (r *result) groups(q *question, typ string) []*figures {
	group := func(m map[string]*figures, name string) *figures {
		if m[name] == nil {
			m[name] = &figures{}
		}
		return m[name]
	}
	in := r.CrossLingual
	if !q.CrossLingual {
		in = group(r.ByLanguage, q.Lang)
	}
	return []*figures{&r.figures, in, group(r.ByType, typ)}
}

func (r *result) print(out io.Writer) error {
	i := &r.Ingest
	fmt.Fprintf(out, "%d files, %d chunks; failed: %v\n", i.Files, i.Chunks, i.Failed)
	fmt.Fprintf(out, "parse %.0f ms, cut and index %.0f ms, embed %.0f ms: %.1f files/s, %.2f MB/s, %.0f chunks/s; a chunk takes %d bytes of an index, %d stored\n",
		i.ParseMs, i.IndexMs, i.EmbedMs, i.FilesPerSecond, i.MBPerSecond, i.ChunksPerSecond, i.SegmentBytes, i.StoredBytes)
	fmt.Fprintf(out, "%-22s %5s  %6s %6s %6s %6s %6s   %6s %6s %6s %6s %6s\n", "mode "+r.Mode+", rerank "+r.Rerank, "n", "file@1", "@3", "@5", "@10", "MRR", "pass@1", "@3", "@5", "@10", "MRR")
	row := func(name string, s *scores) {
		fmt.Fprintf(out, "%-22s %5d  %6.3f %6.3f %6.3f %6.3f %6.3f   %6.3f %6.3f %6.3f %6.3f %6.3f\n", name, s.Questions,
			s.FileRecall1, s.FileRecall3, s.FileRecall5, s.FileRecall10, s.MRR, s.QuoteRecall1, s.QuoteRecall3, s.QuoteRecall5, s.QuoteRecall10, s.QuoteMRR)
	}
	group := func(name string, g *figures) {
		if g.Questions > 0 {
			row(name, &g.scores)
			row("  plain BM25", &g.BM25)
		}
	}
	group("all", &r.figures)
	for _, name := range slices.Sorted(maps.Keys(r.ByLanguage)) {
		group(name, r.ByLanguage[name])
	}
	group("cross-lingual", r.CrossLingual)
	for _, name := range slices.Sorted(maps.Keys(r.ByType)) {
		row("type "+name, &r.ByType[name].scores)
	}
	if _, err := fmt.Fprintf(out, "search p50 %.2f ms, p95 %.2f ms, with the embedding of the question\n", r.P50Ms, r.P95Ms); err != nil {
		return err
	}
	return r.Loop.print(out)
}

// gate compares the result with the least figures that a file demands.
func (r *result) gate(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var least, got map[string]any
	if err := json.Unmarshal(data, &least); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	figures, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(figures, &got); err != nil {
		return err
	}
	return errors.Join(missedFigures("", least, got)...)
}

// missedFigures names the figures that are below those demanded.
func missedFigures(path string, least, got map[string]any) (missed []error) {
	for _, name := range slices.Sorted(maps.Keys(least)) {
		switch want := least[name].(type) {
		case map[string]any:
			inner, _ := got[name].(map[string]any)
			missed = append(missed, missedFigures(path+name+".", want, inner)...)
		case float64:
			if have, ok := got[name].(float64); !ok || have < want {
				missed = append(missed, fmt.Errorf("%s%s is %.3f, below %.3f", path, name, have, want))
			}
		default:
			missed = append(missed, fmt.Errorf("%s%s: not a number", path, name))
		}
	}
	return missed
}
