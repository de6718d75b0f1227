package knowledge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"nodest/internal/fair"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/lru"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge/chunk"
	"nodest/knowledge/parse"
	"nodest/llm"
)

// Parser turns a file into text: parse.Parse, or parse.Child.
type Parser func(ctx context.Context, in parse.Input) (*parse.Document, error)

// Model is a language model that answers questions of a user.
type Model struct {
	llm.Asker
	Provider string
	Name     string
}

// Pipeline is what a Service works with in the background and for searches. Zero values are
// the defaults.
type Pipeline struct {
	Parser Parser                               // default parse.Parse
	Rules  func(contentType string) chunk.Rules // for files whose knowledge bases have none; default chunk.Default

	// Embedder returns the embedding provider of a user; nil = files are found by words only.
	Embedder func(ctx context.Context, userID string) (llm.Embedder, error)
	// EmbedderOf returns the one with a model id that Embedder returned earlier, for questions
	// to vectors that were made by it; nil = no other one can be asked any more.
	EmbedderOf func(ctx context.Context, userID, modelID string) (llm.Embedder, error)
	// Meaning returns the embedding provider that checks citations; nil, or nil from it =
	// words are compared.
	Meaning func(ctx context.Context, userID string) (llm.Embedder, error)
	// Model returns what answers questions; nil from it = no provider is configured.
	Model func(ctx context.Context, userID string) (*Model, error)
	// Rerank orders the best 30 chunks of a search once more; nil = they stay in the order that
	// their texts gave them.
	Rerank Reranker
	// Transient delivers an event that is not stored.
	Transient func(*stream.Event)

	CacheBytes    int           // segments and vectors in memory, and as much again for those of running searches; default 128 MB
	Batch         int           // chunks of one embedding call; default 50
	InFlight      int           // embedding calls side by side; default 10, and 1 for the offline model
	Stall         time.Duration // without progress after which an attempt is given up; default 10 min
	Backoff       time.Duration // before a refused embedding call is repeated, doubled each time; default 1 s
	QueryTime     time.Duration // for the vector of a question; default 2 s
	MinSimilarity float64       // least similarity of hits that only their vector found; 0 = any
	RerankTime    time.Duration // for Rerank, after which hits stay in their order; default 2 s
	NoRerank      bool          // hits stay in the order of their ranks
	Log           *slog.Logger  // default slog.Default()
}

func (p Pipeline) withDefaults() Pipeline {
	if p.Parser == nil {
		p.Parser = parse.Parse
	}
	if p.Rules == nil {
		p.Rules = func(string) chunk.Rules { return chunk.Default }
	}
	if p.Transient == nil {
		p.Transient = func(*stream.Event) {}
	}
	p.CacheBytes = cmp.Or(p.CacheBytes, 128<<20)
	p.Batch = cmp.Or(p.Batch, 50)
	p.InFlight = cmp.Or(p.InFlight, 10)
	p.Stall = cmp.Or(p.Stall, 10*time.Minute)
	p.Backoff = cmp.Or(p.Backoff, time.Second)
	p.QueryTime = cmp.Or(p.QueryTime, 2*time.Second)
	p.RerankTime = cmp.Or(p.RerankTime, 2*time.Second)
	p.Log = cmp.Or(p.Log, slog.Default())
	return p
}

// engine is the state of the pipeline in this process.
type engine struct {
	cache    *lru.Cache[cacheKey, any]
	searches *fair.Gate // bytes that searches hold
	asks     *fair.Gate
	places   *fair.Gate // files that are parsed, cut and indexed
	gates    llm.Gates
	turnWait time.Duration

	resuming sync.Mutex
	resumed  time.Time // when Sweep last tried refused keys again
}

func newEngine(p Pipeline) *engine {
	return &engine{
		cache:    lru.New[cacheKey, any](p.CacheBytes),
		searches: fair.New(fair.Rules{Places: fair.Fixed(int64(p.CacheBytes)), Spare: leastOfSearch(p)}),
		asks:     fair.New(fair.Rules{Places: fair.Fixed(asksAtOnce), Each: asksPerUser}),
		places:   fair.New(fair.Rules{Places: fair.Fixed(parsedAtOnce), Spare: 1}),
		turnWait: turnWait,
	}
}

// The jobs of the pipeline.
const (
	IngestKind  = "knowledge.ingest"  // subject: a file, which is parsed, cut and indexed
	EmbedKind   = "knowledge.embed"   // subject: a file, whose chunks get their vectors
	ReindexKind = "knowledge.reindex" // no subject; all files of a user get vectors of another model
)

const (
	// mostFailures is how many attempts of a job may fail one after another. Attempts that a
	// crash ended are not counted: the runner bounds these.
	mostFailures = 5
	mostAttempts = 25
	jobTime      = 24 * time.Hour // watch ends attempts that hang
)

// A process parses parsedAtOnce files at a time, and another one that is small, of a user who has
// none among these. A file that waits for a model to write its context lines, which may take an hour,
// gives its place away meanwhile. A job that waits for its place holds nothing, so there may be many.
const (
	parsedAtOnce  = 2
	smallFile     = 1 << 20 // bytes
	ingestsAtOnce = 64
	embedsAtOnce  = 16
)

// pipelineKinds are the background jobs.
func (s *Service) pipelineKinds() []jobs.Kind {
	return []jobs.Kind{
		{Name: IngestKind, AtOnce: ingestsAtOnce, PerUser: 2, Attempts: mostAttempts, Timeout: jobTime, Run: s.attempt(s.runIngest)},
		{Name: EmbedKind, AtOnce: embedsAtOnce, PerUser: 2, Attempts: mostAttempts, Timeout: jobTime, Run: s.attempt(s.runEmbed)},
		{Name: ReindexKind, AtOnce: 2, PerUser: 1, Attempts: mostAttempts, Timeout: jobTime, Run: s.attempt(s.runReindex)},
	}
}

// Kinds are the background jobs.
func (s *Service) Kinds() []jobs.Kind { return append(s.pipelineKinds(), s.purgeKind()) }

// ingest makes a file searchable, in the transaction that stores it.
func ingest(tx Tx, fileID string) error {
	return tx.Jobs.Enqueue(jobs.Spec{Kind: IngestKind, UserID: tx.UserID(), Subject: fileID})
}

// run is one attempt at a job.
type run struct {
	s    *Service
	job  *jobs.Job
	note note
	beat func() // there was progress; safe for concurrent use

	small bool   // its file
	leave func() // gives the place back where it may parse; nil = it may not
}

// takePlace waits until the run may parse; leavePlace lets another one.
func (r *run) takePlace(ctx context.Context) (err error) {
	for r.leave == nil {
		waiting, cancel := context.WithTimeout(ctx, r.s.opts.Stall/2)
		r.leave, err = r.s.engine.places.Enter(waiting, r.job.UserID, 1, r.small)
		cancel()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.beat() // to wait for others is no stall
	}
	return nil
}

func (r *run) leavePlace() {
	if r.leave != nil {
		r.leave()
		r.leave = nil
	}
}

// note is the progress of a job. It outlives the attempt.
type note struct {
	Progress
	Failures int        `json:"failures,omitempty"` // attempts that failed since there was progress
	Error    *FileError `json:"error,omitempty"`    // a reindexing that does not go on by itself has one
}

var errStalled = &jobFault{FileError{Code: "stalled", Detail: "there was no progress for a long time", Retryable: true}}

// jobFault is an error with a code of files.
type jobFault struct{ FileError }

func (e *jobFault) Error() string { return e.Code + ": " + e.Detail }

// attempt returns the handler of a kind of job. It ends the context of an attempt without
// progress, and counts failures; the last one is written to the file.
func (s *Service) attempt(do func(ctx context.Context, r *run) error) func(ctx context.Context, j *jobs.Job) error {
	return func(ctx context.Context, j *jobs.Job) error {
		r := &run{s: s, job: j}
		_ = json.Unmarshal(j.Progress, &r.note) // nil, or what an attempt noted
		working, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := time.AfterFunc(s.opts.Stall, func() { cancel(errStalled) })
		defer timer.Stop()
		r.beat = func() { timer.Reset(s.opts.Stall) }
		err := guarded(working, r, do)
		if errors.Is(context.Cause(working), errStalled) {
			err = errStalled
		}
		switch {
		case err == nil, fault.Is(err, fault.NotFound): // the file was deleted
			return nil
		case ctx.Err() != nil, errors.Is(err, jobs.ErrLost):
			return err
		}
		return r.failed(ctx, err)
	}
}

// guarded makes an error of a panic: what a document makes of its text counts as a failure.
func guarded(ctx context.Context, r *run, do func(ctx context.Context, r *run) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %s: %v\n%s", r.job.Kind, p, debug.Stack())
		}
	}()
	return do(ctx, r)
}

// failed counts a failure. When trying again is pointless the file fails, together with the
// job; else the error is returned, and the runner tries again.
func (r *run) failed(ctx context.Context, err error) error {
	r.note.Failures++
	e, final := fileError(err)
	final = final || r.note.Failures >= mostFailures
	if final && r.job.Kind != ReindexKind {
		r.s.opts.Log.WarnContext(ctx, "file failed", "file", r.job.Subject, "code", e.Code, "err", err)
		return r.fileFailed(ctx, e)
	}
	if final {
		r.s.opts.Log.WarnContext(ctx, "reindexing failed", "user", r.job.UserID, "code", e.Code, "err", err)
		r.note.Error = &e
	}
	noted := r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error { return tx.Jobs.NoteJob(r.job, r.note) })
	if noted != nil {
		return noted
	}
	if final {
		r.s.tellAll(ctx, r.job.UserID, "server")
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		err = fault.Wrap(err, fault.UpstreamTimeout, "%s", e.Detail)
	}
	return err
}

// fileFailed ends the job and lets its file fail, unless it is to be processed again already, because
// it was replaced.
func (r *run) fileFailed(ctx context.Context, e FileError) error {
	again := false
	err := r.s.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		f, err := tx.OwnFile(r.job.Subject)
		if err != nil {
			return err
		}
		if err := tx.Jobs.FinishJob(r.job); err != nil {
			return err
		}
		next, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: IngestKind, Subject: f.ID, Open: true}, "", 1)
		if err != nil || len(next) > 0 {
			return err
		}
		f.State, f.Error, f.Progress, again = Failed, &e, nil, f.Edition > 0
		return putFile(tx, f)
	})
	if err == nil && again {
		r.s.rested(ctx, r.job.UserID, r.job.Subject)
	}
	return err
}

// fileError is what the user sees of an error, and whether trying again by itself is
// pointless.
func fileError(err error) (e FileError, final bool) {
	var parsing *parse.Error
	var coded *jobFault
	switch {
	case errors.As(err, &parsing):
		return FileError{parsing.Code, parsing.Detail, slices.Contains(worthAnother, parsing.Code)}, true
	case errors.As(err, &coded):
		return coded.FileError, coded != errStalled
	}
	public := fault.Public(err)
	e = FileError{Code: string(public.Code), Detail: public.Message, Retryable: public.Retry() != "no"}
	switch public.Code { //nolint:exhaustive // the others stay as they are
	case fault.UpstreamAuth, fault.UpstreamQuota: // it goes on by itself: Resume
		return FileError{string(public.Code), public.Message, true}, true
	case fault.StorageFull: // it goes on by itself: Sweep
		return FileError{string(public.Code), public.Message + "; it is tried again by itself when there is room", true}, true
	case fault.UpstreamTimeout, fault.EmptyReply:
		e.Code = string(fault.UpstreamDown)
	}
	return e, !e.Retryable
}

// worthAnother are the codes of parsing that another try may not have.
var worthAnother = []string{parse.ParseTimeout}

// putFile stores a file and tells the user's devices.
func putFile(tx Tx, f *File) error {
	if err := tx.UpdateFile(f); err != nil {
		return err
	}
	return tx.Emit(fileUpdated(&op.Call{UserID: tx.UserID()}, f))
}

// progress notes how far the step of a file is, in the transaction that got it there, and
// returns what to do after the commit.
func (r *run) progress(tx Tx, state string, done, total int) (tell func(), err error) {
	r.note = note{Progress: Progress{done, total}}
	ev := op.Event(r.job.UserID, "file.progress", "server", map[string]any{"fileId": r.job.Subject, "state": state, "done": done, "total": total})
	if err := tx.Jobs.NoteJob(r.job, r.note); err != nil || r.job.Kind == ReindexKind {
		return func() {}, err
	}
	return func() { r.s.opts.Transient(ev) }, tx.PutProgress(r.job.Subject, r.note.Progress)
}

// Resume lets files, and the building of a space, go on that failed because of the key of the
// embedding provider. It is called when a user has stored a key, and by Sweep.
func (s *Service) Resume(ctx context.Context, userID string) error {
	err := s.store.Update(ctx, userID, func(tx Tx) error { return reindexNext(tx, true) })
	if err != nil {
		return err
	}
	for range s.opts.MaxFiles/sweepBatch + 1 { // a file may fail again meanwhile
		resumed := 0
		err := s.store.Update(ctx, userID, func(tx Tx) error {
			ids, err := tx.Refused(keyRefused, sweepBatch)
			for _, id := range ids {
				if err := resume(tx, id); err != nil {
					return err
				}
			}
			resumed = len(ids)
			return err
		})
		if err != nil || resumed < sweepBatch {
			return err
		}
	}
	return nil
}

// retryFull lets files be processed again that failed because the disk was full. Where it still is,
// nothing changes.
func (s *Service) retryFull(ctx context.Context, userID string) error {
	err := s.store.Update(ctx, userID, func(tx Tx) error {
		ids, err := tx.Refused([]string{string(fault.StorageFull)}, sweepBatch)
		for _, id := range ids {
			f, err := tx.OwnFile(id)
			if err != nil {
				return err
			}
			f.State, f.Error, f.Progress = Pending, nil, nil
			if err := errors.Join(putFile(tx, f), ingest(tx, id)); err != nil {
				return err
			}
		}
		return err
	})
	if fault.Is(err, fault.StorageFull) {
		return nil
	}
	return err
}

// reindexNext enqueues the job that builds a space, if there is one to build. Where its key was
// refused, it waits for the key to be tried again.
func reindexNext(tx Tx, tried bool) error {
	spaces, err := tx.Spaces()
	if err != nil || !slices.ContainsFunc(spaces, func(s Space) bool { return s.State == SpaceBuilding }) {
		return err
	}
	e, err := reindexError(tx)
	if err != nil || !tried && e != nil && slices.Contains(keyRefused, e.Code) {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: ReindexKind, Once: true})
}

// keyRefused are the codes of failures that a new key may end.
var keyRefused = []string{string(fault.UpstreamAuth), string(fault.UpstreamQuota)}

// resume enqueues the embedding of a file that has failed.
func resume(tx Tx, id string) error {
	f, err := tx.OwnFile(id)
	if err != nil {
		return err
	}
	f.State, f.Error = Embedding, nil
	return errors.Join(putFile(tx, f), tx.Jobs.Enqueue(jobs.Spec{Kind: EmbedKind, Subject: id}))
}
