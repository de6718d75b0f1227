package knowledge_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/sharedtest"
	"nodest/knowledge"
	"nodest/knowledge/parse"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/store"
	"nodest/store/storetest"
)

// corpus returns the documents of the data set kb; the benchmark is skipped without them.
func corpus(b *testing.B) map[string][]byte {
	b.Helper()
	files := map[string][]byte{}
	for _, path := range sharedtest.Files(b, "data/kb/docs/*") {
		if data, err := os.ReadFile(path); err == nil {
			files[filepath.Base(path)] = data
		}
	}
	return files
}

// bench is a server's part that processes files.
type bench struct {
	*testing.B
	svc  *knowledge.Service
	user string
}

func newBench(b *testing.B, embedder llm.Embedder) *bench {
	b.Helper()
	var r *jobs.Runner
	db := storetest.OpenWith(b, store.Options{Jobs: func(cancelled []string) { r.Changed(cancelled) }})
	quiet := slog.New(slog.DiscardHandler)
	o := knowledge.Options{Pipeline: knowledge.Pipeline{Log: quiet, Parser: withCache}}
	if embedder != nil {
		o.Embedder = func(context.Context, string) (llm.Embedder, error) { return embedder, nil }
	}
	svc := knowledge.New(db.Knowledge(), o)
	r = jobs.New(db, jobs.Options{Alone: true, Poll: 20 * time.Millisecond, Log: quiet})
	r.Handle(svc.Kinds()...)
	r.Start()
	b.Cleanup(func() { _ = r.Close(context.Background()) })
	return &bench{b, svc, storetest.User(b, db)}
}

// withCache is a parser that keeps the compiled PDF library, as a server does from its first PDF on.
func withCache(ctx context.Context, in parse.Input) (*parse.Document, error) {
	in.CacheDir = filepath.Join(os.TempDir(), "nodest-bench-parse-cache")
	return parse.Parse(ctx, in)
}

// ingest uploads files and waits until all are ready.
func (b *bench) ingest(files map[string][]byte) (chunks int) {
	b.Helper()
	ctx := context.Background()
	for name, data := range files {
		_, err := b.svc.Upload(ctx, &op.Call{UserID: b.user}, knowledge.NewFile{Name: name, Body: bytes.NewReader(data), Size: int64(len(data))})
		if err != nil {
			b.Fatal(err)
		}
	}
	deadline := time.Now().Add(5 * time.Minute)
	for ready := 0; ready < len(files); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d files are ready", ready, len(files))
		}
		page, err := b.svc.Files(ctx, b.user, "", "", 200)
		if err != nil {
			b.Fatal(err)
		}
		ready, chunks = 0, 0
		for _, f := range page.Items {
			switch f.State {
			case knowledge.Failed:
				b.Fatalf("%s: %+v", f.Name, f.Error)
			case knowledge.Ready:
				ready++
			}
			chunks += f.Chunks
		}
	}
	return chunks
}

// BenchmarkIngest processes the shared documents, without vectors and with those of the
// offline model.
func BenchmarkIngest(b *testing.B) {
	files := corpus(b)
	size := 0
	for _, data := range files {
		size += len(data)
	}
	for name, embedder := range map[string]llm.Embedder{"words": nil, "offline": offline.Embedder{}} {
		b.Run(name, func(b *testing.B) {
			chunks := 0
			for b.Loop() {
				chunks += newBench(b, embedder).ingest(files)
			}
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N*len(files))/seconds, "files/s")
			b.ReportMetric(float64(b.N*size)/seconds/1e6, "MB/s")
			b.ReportMetric(float64(chunks)/seconds, "chunks/s")
		})
	}
}

// BenchmarkSearch asks the shared documents, with what is searched in memory and read from the
// database.
func BenchmarkSearch(b *testing.B) {
	x := newBench(b, offline.Embedder{})
	x.ingest(corpus(b))
	ask := func(b *testing.B) {
		r, err := x.svc.Search(context.Background(), x.user, knowledge.SearchRequest{Query: "Who keeps the lighthouse?", FileOnly: true})
		if err != nil || len(r.Chunks) == 0 {
			b.Fatal(r, err)
		}
	}
	b.Run("memory", func(b *testing.B) {
		ask(b)
		for b.Loop() {
			ask(b)
		}
	})
	b.Run("database", func(b *testing.B) {
		for b.Loop() {
			knowledge.Forget(x.svc)
			ask(b)
		}
	})
}
