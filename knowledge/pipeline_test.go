package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/knowledge/knowledgetest"
	"nodest/knowledge/parse"
	"nodest/knowledge/search"
	"nodest/llm"
	"nodest/llm/offline"
)

// embedder is the offline embedding model under a name, which can fail as a test says.
type embedder struct {
	name      string
	dim       int                        // length of the vectors; 0 = that of the model
	fail      func(texts []string) error // before a call; nil = it never fails
	wait      func(ctx context.Context)  // before a call
	mu        sync.Mutex
	made      []string // texts that got a vector, without questions
	questions int
}

func (e *embedder) ModelID() string { return e.name }
func (e *embedder) Dim() int        { return e.dim }

func (e *embedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if e.wait != nil {
		e.wait(ctx)
	}
	if ctx.Err() != nil {
		return llm.Embeddings{}, ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		if err := e.fail(texts); err != nil {
			return llm.Embeddings{}, err
		}
	}
	found, err := offline.Embedder{}.Embed(ctx, task, texts)
	if task == llm.Passage {
		e.made = append(e.made, texts...)
	} else {
		e.questions += len(texts)
	}
	for i := range found.Vectors {
		if e.dim > 0 {
			found.Vectors[i] = found.Vectors[i][:e.dim]
			found.Vectors[i][0]++ // it is not zero
		}
	}
	return found, err
}

func (e *embedder) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.made)
}

// pipe is a fixture whose jobs are run by the test, one after another.
type pipe struct {
	*fixture
	embeds   *embedder
	older    *embedder // can still be asked; nil = none
	killAt   int       // number of the transaction at which the process dies; 0 = it does not
	killLate bool      // when it was committed
	dead     bool
	attempts int // at jobs
	sent     []*stream.Event
	mu       sync.Mutex
}

// killed is the store of a process that dies at a transaction: before or after its commit.
type killed struct {
	knowledge.Store
	p *pipe
}

var errKilled = errors.New("the process was killed")

func (k killed) Update(ctx context.Context, userID string, fn func(knowledge.Tx) error) error {
	before, after := k.p.nextUpdate()
	if before {
		return errKilled
	}
	err := k.Store.Update(ctx, userID, fn)
	if after {
		return errKilled
	}
	return err
}

func (k killed) View(ctx context.Context, userID string, fn func(knowledge.Tx) error) error {
	k.p.mu.Lock()
	dead := k.p.dead
	k.p.mu.Unlock()
	if dead {
		return errKilled
	}
	return k.Store.View(ctx, userID, fn)
}

// nextUpdate says whether the process dies before or after its next transaction. A dead one
// does nothing more.
func (p *pipe) nextUpdate() (before, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.killAt == 0 {
		return p.dead, false
	}
	if p.killAt--; p.killAt > 0 {
		return false, false
	}
	p.dead = true
	return !p.killLate, p.killLate
}

// onPipes runs a test on both databases.
func onPipes(t *testing.T, change func(o *knowledge.Options), test func(p *pipe)) {
	t.Helper()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		p := &pipe{fixture: f, embeds: &embedder{name: "test:one"}}
		o := knowledge.Options{Pipeline: knowledge.Pipeline{
			Batch: 3, InFlight: 2, Backoff: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Embedder: func(context.Context, string) (llm.Embedder, error) { return p.embeds, nil },
			EmbedderOf: func(_ context.Context, _, model string) (llm.Embedder, error) {
				if p.older != nil && p.older.name == model {
					return p.older, nil
				}
				return nil, nil
			},
			Transient: func(e *stream.Event) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.sent = append(p.sent, e)
			},
		}}
		if change != nil {
			change(&o)
		}
		p.Svc = knowledge.New(killed{f.DB.Knowledge(), p}, o)
		test(p)
	})
}

// claim leases the next job, of which a user may have some at once; nil = there is none.
func (p *pipe) claim(perUser int) *jobs.Job {
	p.Helper()
	var wants []jobs.Want
	for _, k := range p.Svc.Kinds() {
		wants = append(wants, jobs.Want{Kind: k.Name, Free: 1, PerUser: perUser})
	}
	for _, w := range wants {
		claimed, err := p.DB.ClaimJobs(context.Background(), "p", time.Hour, []jobs.Want{w})
		p.Must(err)
		if len(claimed) > 0 {
			return claimed[0]
		}
	}
	return nil
}

// run runs one job as a runner does, but without waiting after a failure.
func (p *pipe) run(ctx context.Context, j *jobs.Job) {
	p.Helper()
	p.mu.Lock()
	p.attempts++
	p.mu.Unlock()
	kinds := p.Svc.Kinds()
	kind := kinds[slices.IndexFunc(kinds, func(k jobs.Kind) bool { return k.Name == j.Kind })]
	err := kind.Run(ctx, j)
	o := jobs.Outcome{State: jobs.Done}
	switch public := fault.Public(err); {
	case p.dead:
		p.dead = false
		attempts := map[string]int{}
		for _, k := range kinds {
			attempts[k.Name] = k.Attempts
		}
		p.Must(p.DB.RecoverJobs(context.Background(), attempts, "another"))
		return
	case err != nil && public.Retry() == "no":
		o = jobs.Outcome{State: jobs.Failed, Error: &jobs.Failure{Code: public.Code, Message: public.Message}}
	case err != nil:
		o = jobs.Outcome{State: jobs.Queued}
	}
	if err := p.DB.EndJob(context.Background(), j, o); err != nil && !errors.Is(err, jobs.ErrLost) {
		p.Fatal(err)
	}
}

// drain runs jobs until none is left.
func (p *pipe) drain() {
	p.Helper()
	for n := 0; ; n++ {
		p.Clock.Add(int64(time.Hour / time.Millisecond)) // nothing waits for its time
		j := p.claim(1)
		if j == nil {
			return
		}
		if n > 500 {
			p.Fatal("the jobs never end")
		}
		p.run(context.Background(), j)
	}
}

func (p *pipe) file(id string) *knowledge.File {
	p.Helper()
	f, err := p.Svc.File(context.Background(), p.User, id)
	p.Must(err)
	return f
}

func (p *pipe) isReady(id string) *knowledge.File {
	p.Helper()
	f := p.file(id)
	if f.State != knowledge.Ready || f.Error != nil {
		p.Fatalf("the file is %s, with %+v", f.State, f.Error)
	}
	return f
}

func (p *pipe) search(in knowledge.SearchRequest) *knowledge.SearchResult {
	p.Helper()
	if in.BaseIDs == nil {
		in.FileOnly = true
	}
	r, err := p.Svc.Search(context.Background(), p.User, in)
	p.Must(err)
	return r
}

// rows counts what is stored of a file.
func (p *pipe) rows(table, file string) int64 {
	p.Helper()
	var rows map[string]int64
	p.Must(p.DB.Knowledge().View(context.Background(), p.User, func(tx knowledge.Tx) (err error) {
		rows, err = tx.IndexRows(file)
		return err
	}))
	return rows[table]
}

// harbour is a document of some chunks, each with a word of its own.
func harbour(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		fmt.Fprintf(&b, "# The %s\n\nThe %s stands at the harbour. %s\n\n", w, w, strings.Repeat("Ships pass it at night and in the morning. ", 12))
	}
	return b.String()
}

var places = []string{"lighthouse", "customs", "brewery", "chapel", "market", "foundry", "archive"}

func TestAFileBecomesSearchable(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		text := harbour(places...)
		f := p.Upload("places.md", text)
		p.take()
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("states told", p.take(), []string{"file.updated", "file.updated", "file.updated", "file.updated"})
		p.Equal("chunks", f.Chunks, len(places))
		p.Equal("rows of chunks", p.rows("knowledge_chunks", f.ID), f.Chunks)
		p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), f.Chunks)
		p.Equal("calls", p.embeds.calls(), f.Chunks)
		for _, mode := range []string{search.Hybrid, search.Lexical, search.Vector} {
			r := p.search(knowledge.SearchRequest{Query: "where is the brewery?", Mode: mode})
			if len(r.Chunks) == 0 || !strings.Contains(r.Chunks[0].Text, "brewery") || len(r.Degraded) > 0 {
				p.Errorf("%s: %+v", mode, r)
			}
			p.Equal("file", r.Files[0].File.ID, f.ID)
		}
		read, err := p.Svc.Text(context.Background(), p.User, f.ID, 0, 0)
		p.Must(err)
		p.Equal("text", read.Text, strings.TrimSpace(text))
		page, err := p.Svc.Chunks(context.Background(), p.User, f.ID, "", 3)
		p.Must(err)
		points := []rune(read.Text)
		for _, c := range page.Items {
			p.Equal("text of a chunk", c.Text, string(points[c.Start:c.End]))
			p.Equal("has a vector", c.Embedded, true)
		}
		p.Equal("next", page.NextCursor, "3")
	})
}

// A process that dies between any two transactions leaves nothing undone, does nothing twice,
// and pays for no batch twice whose vectors were stored.
func TestAKilledProcessLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	onPipes(t, func(o *knowledge.Options) { o.InFlight = 1 }, func(p *pipe) {
		for n := 0; ; n++ {
			f := p.Upload(fmt.Sprint("places", n, ".md"), harbour(append(places, fmt.Sprint("pier", n))...))
			before := p.embeds.calls()
			p.killAt, p.killLate = 1+n/2, n%2 == 1
			p.drain()
			f = p.isReady(f.ID)
			p.Equal("chunks", f.Chunks, len(places)+1)
			p.Equal("rows of chunks", p.rows("knowledge_chunks", f.ID), f.Chunks)
			p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), f.Chunks)
			p.Equal("rows of documents", p.rows("knowledge_documents", f.ID), 1)
			p.Equal("rows of segments", p.rows("knowledge_segments", f.ID), 1)
			if paid := p.embeds.calls() - before; paid > f.Chunks+3 { // a batch that was killed before it was stored
				p.Errorf("killed at %d: %d embeddings for %d chunks", n, paid, f.Chunks)
			}
			if p.killAt > 0 { // it was not killed any more
				p.Log("killed", n, "times")
				break
			}
		}
	})
}

func TestATextThatTheModelRejectsIsFoundByWords(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.embeds.fail = func(texts []string) error {
			if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "chapel stands") }) {
				return llm.StatusError("test", 400, 0, nil)
			}
			return nil
		}
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("warnings", f.Warnings, "[1_chunks_without_vector]")
		p.Equal("calls", p.embeds.calls(), f.Chunks-1)
		r := p.search(knowledge.SearchRequest{Query: "chapel"})
		if len(r.Chunks) == 0 || !strings.Contains(r.Chunks[0].Text, "chapel") {
			p.Errorf("got %+v", r.Chunks)
		}
	})
}

func TestAModelThatRejectsEverythingFailsTheFile(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.embeds.fail = func([]string) error { return llm.StatusError("test", 400, 0, nil) }
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		f = p.file(f.ID)
		p.Equal("state", f.State, knowledge.Failed)
		p.Equal("code", f.Error.Code, "upstream_bad_answer")
		p.Equal("found by words", len(p.search(knowledge.SearchRequest{Query: "brewery"}).Files), 1)
	})
}

func TestFailuresThatPassAreRetried(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		n := 0
		p.embeds.fail = func([]string) error {
			if n++; n%2 == 1 {
				return llm.StatusError("test", 429, time.Millisecond, nil)
			}
			return nil
		}
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("attempts", p.attempts, 2)
		p.Equal("calls", p.embeds.calls(), f.Chunks)
	})
}

func TestARejectedKeyStopsAtOnceAndTheNextOneGoesOn(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.embeds.fail = func([]string) error { return llm.StatusError("test", 401, 0, nil) }
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		p.Equal("attempts", p.attempts, 2)
		p.Equal("code", p.file(f.ID).Error.Code, "upstream_auth")
		p.embeds.fail = nil
		p.Must(p.Svc.Resume(context.Background(), p.User))
		p.drain()
		p.isReady(f.ID)
	})
}

func TestAProviderThatStaysAwayFailsTheFileAfterFiveAttempts(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.embeds.fail = func([]string) error { return llm.StatusError("test", 503, time.Microsecond, nil) }
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		p.Equal("attempts", p.attempts, 1+5)
		f = p.file(f.ID)
		p.Equal("error", *f.Error, knowledge.FileError{Code: "upstream_unavailable", Detail: "test is not available", Retryable: true})
		p.embeds.fail = nil
		_, err := p.Svc.Retry(context.Background(), p.Call(), f.ID)
		p.Must(err)
		p.drain()
		p.isReady(f.ID)
	})
}

// A failure of a content that was replaced meanwhile is not the file's any more.
func TestAReplacedFileDoesNotFailForItsOldContent(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		replaced := false
		p.embeds.fail = func([]string) error {
			if replaced {
				return nil
			}
			replaced = true
			_, err := p.Svc.Replace(context.Background(), p.Call(), f.ID, 0, knowledgetest.NewFile("places.md", harbour("observatory")))
			p.Must(err)
			return llm.StatusError("test", 401, 0, nil)
		}
		for j := p.claim(1); j != nil; j = p.claim(1) {
			p.run(context.Background(), j)
			p.Clock.Add(1000)
			if now := p.file(f.ID); now.State == knowledge.Failed {
				p.Fatalf("the file has failed: %+v", now.Error)
			}
		}
		p.Equal("chunks", p.isReady(f.ID).Chunks, 1)
	})
}

func TestVectorsOfAnotherLengthAreRefused(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.Upload("a.md", harbour("lighthouse"))
		p.drain()
		p.embeds.dim = 100
		f := p.Upload("b.md", harbour("customs"))
		p.drain()
		p.Equal("error", *p.file(f.ID).Error, knowledge.FileError{
			Code: "embedding_dimension_mismatch", Detail: "the embedding model sent vectors with 100 numbers where 512 were expected",
		})
	})
}

// An answer with a vector that is zero or not finite is refused whole: nothing of it is stored.
func TestVectorsWithoutADirectionAreRefused(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]float32{"zero": 0, "not a number": float32(math.NaN()), "infinite": float32(math.Inf(1))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := &llm.Batches{Provider: "test", Model: "one", Texts: 64, Bytes: 1 << 20, Call: func(_ context.Context, _ llm.EmbedTask, texts []string) ([][]float32, int, error) {
				vectors := make([][]float32, len(texts))
				for i := range vectors {
					vectors[i] = []float32{bad, 0}
				}
				return vectors, 0, nil
			}}
			change := func(o *knowledge.Options) {
				o.Embedder = func(context.Context, string) (llm.Embedder, error) { return provider, nil }
			}
			onPipes(t, change, func(p *pipe) {
				f := p.Upload("a.md", harbour("lighthouse"))
				p.drain()
				p.Equal("code", p.file(f.ID).Error.Code, string(fault.UpstreamBadAnswer))
				p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), 0)
			})
		})
	}
}

func TestAStepWithoutProgressIsTakenBackAndFailsInTheEnd(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ parse.Input) (*parse.Document, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	onPipes(t, func(o *knowledge.Options) { o.Parser, o.Stall = hang, 5*time.Millisecond }, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		p.Equal("attempts", p.attempts, 5)
		f = p.file(f.ID)
		p.Equal("code", f.Error.Code, "stalled")
		p.Equal("retryable", f.Error.Retryable, true)
	})
}

func TestAPanicCountsAsAFailure(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, parse.Input) (*parse.Document, error) { panic("a case that nobody thought of") }
	onPipes(t, func(o *knowledge.Options) { o.Parser = broken }, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		p.Equal("attempts", p.attempts, 5)
		f = p.file(f.ID)
		p.Equal("state", f.State, knowledge.Failed)
		p.Equal("code", f.Error.Code, "internal")
	})
}

func TestAFileThatCannotBeParsedSaysWhy(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("empty.md", " \n\n ")
		p.drain()
		p.Equal("attempts", p.attempts, 1)
		f = p.file(f.ID)
		p.Equal("state", f.State, knowledge.Failed)
		p.Equal("code", f.Error.Code, "empty_document")
		p.Equal("retryable", f.Error.Retryable, false)
	})
}

func TestAReplacedFileIsSearchedThroughout(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		first := p.isReady(f.ID)
		in := knowledgetest.NewFile("places.md", harbour(append(places[1:], "observatory")...))
		_, err := p.Svc.Replace(context.Background(), p.Call(), f.ID, 0, in)
		p.Must(err)
		made := p.embeds.calls()
		for j := p.claim(1); j != nil; j = p.claim(1) {
			r := p.search(knowledge.SearchRequest{Query: "lighthouse"})
			if len(r.Chunks) == 0 || !strings.Contains(r.Chunks[0].Text, "lighthouse") {
				p.Fatalf("before %s: %+v", j.Kind, r)
			}
			p.run(context.Background(), j)
			p.Clock.Add(1000)
		}
		now := p.isReady(f.ID)
		p.Equal("embedded again", p.embeds.calls()-made, 1)
		p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), now.Chunks)
		p.Equal("rows of chunks", p.rows("knowledge_chunks", f.ID), now.Chunks)
		p.Equal("rows of documents", p.rows("knowledge_documents", f.ID), 1)
		if now.Edition <= first.Edition {
			p.Errorf("edition %d after %d", now.Edition, first.Edition)
		}
		r := p.search(knowledge.SearchRequest{Query: "observatory"})
		if len(r.Chunks) == 0 || !strings.Contains(r.Chunks[0].Text, "observatory") {
			p.Errorf("got %+v", r)
		}
	})
}

func TestOtherChunkRulesMakeAnotherEdition(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		f := p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		first := p.isReady(f.ID)
		size, overlap := 200, 0
		_, err := p.Svc.UpdateBase(context.Background(), p.Call(), b.ID, 0, knowledge.NewBase{ChunkSize: &size, ChunkOverlap: &overlap})
		p.Must(err)
		state, err := p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		p.Equal("state before the job begins", state.State, "running")
		state, err = p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state before the job begins", state.State, "running")
		p.drain()
		state, err = p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state at the end", state.State, "idle")
		now := p.isReady(f.ID)
		if now.Chunks <= first.Chunks {
			p.Errorf("%d chunks after %d", now.Chunks, first.Chunks)
		}
		p.Equal("rows of chunks", p.rows("knowledge_chunks", f.ID), now.Chunks)
		made := p.embeds.calls()
		_, err = p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		p.drain()
		p.Equal("embedded without a change", p.embeds.calls()-made, 0)
		p.Equal("edition", p.isReady(f.ID).Edition, now.Edition)
	})
}

func TestAnotherModelIsBuiltBesideTheOneThatIsSearched(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		f := p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		p.older, p.embeds = p.embeds, &embedder{name: "test:two", dim: 256}
		p.Must(p.Svc.Sweep(context.Background()))
		state, err := p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state", *state, knowledge.Reindexing{State: "running", Model: "test:two", Total: 7, Calls: 3, SearchedBy: "test:one"})
		r := p.search(knowledge.SearchRequest{Query: "brewery", Mode: search.Vector})
		p.Equal("degraded", r.Degraded, "[]")
		p.Equal("by vectors", r.Chunks[0].Vector, 1)

		old := p.older
		p.older = nil // its provider is gone
		r = p.search(knowledge.SearchRequest{Query: "the brewery"})
		p.Equal("degraded", r.Degraded, "[vector]")
		p.Equal("found by words", r.Chunks[0].Lexical, 1)
		p.older = old

		p.killAt = 3
		p.drain()
		p.isReady(f.ID)
		p.Equal("vectors of the old model are gone", p.rows("knowledge_vectors", f.ID), 7)
		state, err = p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state", *state, knowledge.Reindexing{State: "idle", Model: "test:two", Done: 7, Total: 7, SearchedBy: "test:two"})
		r = p.search(knowledge.SearchRequest{Query: "brewery", Mode: search.Vector})
		p.Equal("degraded", r.Degraded, "[]")
	})
}

func TestACancelledReindexStaysCancelled(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		f := p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		p.older, p.embeds = p.embeds, &embedder{name: "test:two"}
		p.Must(p.Svc.Sweep(context.Background()))
		p.Must(p.Svc.CancelReindex(context.Background(), p.Call(), b.ID))
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.Equal("new vectors", p.embeds.calls(), 0)
		another := p.Upload("more.md", harbour("tannery"))
		p.drain()
		p.isReady(another.ID)
		p.Equal("vectors of the model that is searched", p.rows("knowledge_vectors", another.ID), 1)
		p.Equal("new vectors", p.embeds.calls(), 0)
		_, err := p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		p.drain()
		p.Equal("new vectors", p.embeds.calls(), 8)
		p.isReady(f.ID)
	})
}

func TestACancellationThatIsRepeatedCancelsNothingLater(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		f := p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		cancel := p.Call()
		cancel.Key = "cancel"
		p.Must(p.Svc.CancelReindex(context.Background(), cancel, b.ID))
		_, err := p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		queued := p.jobs(f.ID)
		p.Must(p.Svc.CancelReindex(context.Background(), cancel, b.ID))
		p.Equal("jobs after the repetition", p.jobs(f.ID), queued)
	})
}

// reindexed returns the states that were told of reindexings since the last call.
// nested runs all jobs during an embedding call, once, after a change.
func (p *pipe) nested(e *embedder, change func()) {
	var begun atomic.Bool
	e.wait = func(context.Context) {
		if begun.CompareAndSwap(false, true) {
			change()
			p.drain()
		}
	}
}

// A call to an embedding model that another one replaces meanwhile leaves no vectors, and its file
// gets those of the other one.
func TestNoVectorOutlivesItsModel(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func([]string) error{
		"embedded": nil,
		"rejected": func([]string) error { return llm.StatusError("test", 400, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			onPipes(t, nil, func(p *pipe) {
				p.Upload("first.md", harbour("tannery"))
				p.drain()
				one, two := p.embeds, &embedder{name: "test:two"}
				one.fail = func(texts []string) error {
					if texts[0] == "hello" || fail == nil {
						return nil
					}
					return fail(texts)
				}
				f := p.Upload("places.md", harbour(places...))
				p.nested(one, func() {
					p.older, p.embeds = one, two
					p.Must(p.Svc.Sweep(context.Background()))
				})
				p.drain()
				now := p.isReady(f.ID)
				p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), now.Chunks)
				p.Equal("warnings", now.Warnings, "[]")
				p.Equal("made by the other model", two.calls(), now.Chunks+1)
			})
		})
	}
}

// A file that is replaced while a new space is built has the vectors of its new content alone.
func TestNoVectorOutlivesItsContent(t *testing.T) {
	t.Parallel()
	onPipes(t, func(o *knowledge.Options) { o.InFlight = 9 }, func(p *pipe) { // some of the calls wait
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		two := &embedder{name: "test:two"}
		p.older, p.embeds = p.embeds, two
		p.Must(p.Svc.Sweep(context.Background()))
		p.nested(two, func() {
			_, err := p.Svc.Replace(context.Background(), p.Call(), f.ID, 0, knowledgetest.NewFile("places.md", harbour("observatory", "tannery")))
			p.Must(err)
		})
		p.drain()
		p.drain()
		now := p.isReady(f.ID)
		p.Equal("chunks", now.Chunks, 2)
		p.Equal("rows of vectors", p.rows("knowledge_vectors", f.ID), now.Chunks)
	})
}

// A reindexing that is cancelled just when its job has begun leaves the file as it was.
func TestACancelledJobThatHasBegunChangesNothing(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		f := p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		size, overlap := 200, 0
		_, err := p.Svc.UpdateBase(context.Background(), p.Call(), b.ID, 0, knowledge.NewBase{ChunkSize: &size, ChunkOverlap: &overlap})
		p.Must(err)
		_, err = p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		j := p.claim(1)
		p.Must(p.Svc.CancelReindex(context.Background(), p.Call(), b.ID))
		p.run(context.Background(), j)
		p.drain()
		p.Equal("edition", p.isReady(f.ID).LastEdition, 1)
	})
}

// Where the new model refuses its key, the reindexing says so and waits for another key; the old
// model is searched meanwhile.
func TestAReindexingWhoseKeyIsRefusedSaysSo(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		p.UploadTo(b.ID, "places.md", harbour(places...))
		p.drain()
		p.older, p.embeds = p.embeds, &embedder{name: "test:two"}
		p.embeds.fail = func([]string) error { return llm.StatusError("test", 401, 0, nil) }
		p.Must(p.Svc.Sweep(context.Background()))
		p.take()
		p.attempts = 0
		p.drain()
		state, err := p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state", state.State, "failed")
		p.Equal("code", state.Error.Code, "upstream_auth")
		p.Equal("searched", state.SearchedBy, "test:one")
		p.Equal("told", p.reindexed(), "[failed]")
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.Equal("attempts", p.attempts, 1)
		p.embeds.fail = nil
		p.Must(p.Svc.Resume(context.Background(), p.User))
		p.drain()
		state, err = p.Svc.Reindexing(context.Background(), p.User, b.ID)
		p.Must(err)
		p.Equal("state", state.State, "idle")
		p.Equal("searched", state.SearchedBy, "test:two")
	})
}

func (p *pipe) reindexed() (states []string) {
	for _, e := range p.take() {
		if state, ok := strings.CutPrefix(e, "knowledge.reindex "); ok {
			states = append(states, state)
		}
	}
	return states
}

func TestTheEndOfAReindexingIsTold(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		b := p.Base("World")
		p.UploadTo(b.ID, "places.md", harbour(places...))
		p.UploadTo(b.ID, "more.md", harbour("tannery"))
		p.drain()
		p.Equal("new files", p.reindexed(), "[]")

		size, overlap := 400, 0
		_, err := p.Svc.UpdateBase(context.Background(), p.Call(), b.ID, 0, knowledge.NewBase{ChunkSize: &size, ChunkOverlap: &overlap})
		p.Must(err)
		_, err = p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		p.drain()
		p.Equal("other chunks", p.reindexed(), "[running idle]")
		_, err = p.Svc.Reindex(context.Background(), p.Call(), b.ID)
		p.Must(err)
		p.drain()
		states := p.reindexed()
		p.Equal("nothing to do", states[len(states)-1], "idle")

		p.older, p.embeds = p.embeds, &embedder{name: "test:two"}
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.Equal("another model", p.reindexed(), "[idle]")
		p.older, p.embeds = p.embeds, &embedder{name: "test:three"}
		p.Must(p.Svc.Sweep(context.Background()))
		p.Must(p.Svc.CancelReindex(context.Background(), p.Call(), b.ID))
		p.Equal("cancelled", p.reindexed(), "[idle]")
	})
}

func TestASweepDoesNotTryARefusedKeyEachTime(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		p.embeds.fail = func([]string) error { return llm.StatusError("test", 401, 0, nil) }
		p.Upload("places.md", harbour(places...))
		p.drain()
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.take()
		p.Must(p.Svc.Sweep(context.Background()))
		p.Equal("events", p.take(), "[]")
		p.Equal("job", p.claim(1), "<nil>")
	})
}

func TestASweepRemovesWhatAFailedPurgeHasLeft(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		p.Must(p.Svc.DeleteFile(context.Background(), p.Call(), f.ID))
		p.Must(p.DB.Knowledge().Update(context.Background(), p.User, func(tx knowledge.Tx) error { return tx.Jobs.CancelJobs("all") }))
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.Equal("rows", p.rows("knowledge_chunks", f.ID), 0)
	})
}

func TestADeletedFileStopsAtOnceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		started := make(chan struct{}, 10)
		p.embeds.wait = func(ctx context.Context) {
			started <- struct{}{}
			<-ctx.Done()
		}
		f := p.Upload("places.md", harbour(places...))
		p.run(context.Background(), p.claim(1))
		j := p.claim(1)
		p.Equal("kind", j.Kind, knowledge.EmbedKind)
		ctx, cancel := context.WithCancelCause(context.Background()) // a runner cancels it when the job is
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.run(ctx, j)
		}()
		<-started
		p.Must(p.Svc.DeleteFile(context.Background(), p.Call(), f.ID))
		p.Equal("job", p.jobs(f.ID)[0], knowledge.EmbedKind+" cancelled")
		cancel(jobs.ErrLost)
		<-ended
		p.Equal("found", len(p.search(knowledge.SearchRequest{Query: "lighthouse"}).Files), 0)
		p.drain()
		for _, table := range []string{"knowledge_documents", "knowledge_texts", "knowledge_chunks", "knowledge_segments", "knowledge_vectors"} {
			p.Equal("rows of "+table, p.rows(table, f.ID), 0)
		}
	})
}

func TestASweepFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	onPipes(t, nil, func(p *pipe) {
		f := p.Upload("places.md", harbour(places...))
		p.run(context.Background(), p.claim(1))
		p.Must(p.DB.Knowledge().Update(context.Background(), p.User, func(tx knowledge.Tx) error { return tx.Jobs.CancelJobs(f.ID) }))
		p.drain()
		p.Equal("state", p.file(f.ID).State, knowledge.Embedding)
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.isReady(f.ID)
	})
}

// A file that failed because the disk was full is done again when there is room.
func TestAFullDiskIsTriedAgain(t *testing.T) {
	t.Parallel()
	full := true
	parser := func(ctx context.Context, in parse.Input) (*parse.Document, error) {
		if full {
			return nil, fault.New(fault.StorageFull, "the disk is full")
		}
		return parse.Parse(ctx, in)
	}
	onPipes(t, func(o *knowledge.Options) { o.Parser = parser }, func(p *pipe) {
		full = true
		f := p.Upload("places.md", harbour(places...))
		p.drain()
		failed := p.file(f.ID)
		p.Equal("state", failed.State, "failed")
		p.Equal("code", failed.Error.Code, "storage_full")
		p.Equal("detail", failed.Error.Detail, "the disk is full; it is tried again by itself when there is room")
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.Equal("state", p.file(f.ID).State, "failed")
		full = false
		p.Must(p.Svc.Sweep(context.Background()))
		p.drain()
		p.isReady(f.ID)
	})
}
