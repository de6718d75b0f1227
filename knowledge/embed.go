package knowledge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/offline"
)

// Sizes of embedding jobs.
const (
	embedTries = 6               // tries of one call
	embedWait  = time.Minute     // at most between two of them, unless the provider asks for more
	dropAtOnce = 500             // rows of old editions
	progressIn = 2 * time.Second // between two events
)

// runEmbed gives the chunks of a file the vectors that they lack, makes the edition the one
// that is searched, and removes older ones. Each batch is committed, so the next attempt pays
// for nothing twice.
func (s *Service) runEmbed(ctx context.Context, r *run) error {
	for {
		w, err := r.work(ctx)
		if err != nil || w == nil {
			return err
		}
		if w.embedder != nil {
			err = w.embedAll(ctx)
		}
		if err == nil {
			err = w.complete(ctx)
		}
		if !errors.Is(err, errLacks) && !errors.Is(err, errOtherModel) {
			return err
		}
	}
}

// work is an edition that is being embedded.
type work struct {
	*run
	edition  Edition
	embedder llm.Embedder // nil = there is none

	mu    sync.Mutex
	done  int // chunks with a vector
	total int
	told  time.Time
	probe sync.Once // see refused
	works error
}

// work returns the newest complete edition of the file; nil if there is none.
func (r *run) work(ctx context.Context) (w *work, err error) {
	e, err := r.s.target(ctx, r.job.UserID)
	if err != nil {
		return nil, err
	}
	err = r.s.store.View(ctx, r.job.UserID, func(tx Tx) error {
		editions, err := tx.Editions(r.job.Subject)
		at := slices.IndexFunc(editions, func(e Edition) bool { return e.Chunks >= 0 })
		if err != nil || at < 0 {
			return err
		}
		w = &work{run: r, edition: editions[at], embedder: e, total: editions[at].Chunks}
		if e != nil {
			done, rejected, err := tx.EditionCoverage(r.job.Subject, w.edition.Edition, e.ModelID())
			w.done = done + rejected
			return err
		}
		return nil
	})
	return w, err
}

// embedAll makes the vectors that are missing, some calls side by side.
func (w *work) embedAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	most := w.s.opts.InFlight
	if _, ok := w.embedder.(offline.Embedder); ok { // it computes in this process
		most = 1
	}
	gate := w.s.engine.gates.For(w.embedder.ModelID(), most)
	var calls sync.WaitGroup
	defer calls.Wait()
	for after := -1; ; {
		var batch []StoredChunk
		var leave func()
		err := w.s.store.View(ctx, w.job.UserID, func(tx Tx) (err error) {
			batch, err = tx.Unembedded(w.edition.FileID, w.edition.Edition, w.embedder.ModelID(), after, w.s.opts.Batch)
			return err
		})
		if err == nil && len(batch) > 0 {
			after = batch[len(batch)-1].Index
			leave, err = gate.Enter(ctx, w.job.UserID)
		}
		if err != nil {
			cancel(err)
		}
		if err != nil || len(batch) == 0 {
			break
		}
		calls.Go(func() {
			defer leave()
			if err := w.embedBatch(ctx, gate, batch); err != nil {
				cancel(err)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// embedBatch embeds chunks and stores their vectors.
func (w *work) embedBatch(ctx context.Context, gate *llm.Gate, batch []StoredChunk) error {
	texts := make(map[string]string, len(batch))
	for _, c := range batch {
		texts[c.Hash] = embedded(w.edition.Name, c.Heading, c.Context, c.Text)
	}
	hashes := make([]string, 0, len(texts))
	for _, c := range batch {
		if !slices.Contains(hashes, c.Hash) {
			hashes = append(hashes, c.Hash)
		}
	}
	b := &batchWork{w, gate, texts, map[string]index.Packed{}, 0}
	if err := b.embed(ctx, hashes); err != nil {
		return err
	}
	if len(b.vectors) > 0 && b.length == 0 { // all were rejected: is it the texts, or the model?
		if err := w.answers(ctx); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var tell func()
	done := w.done + len(batch)
	err := w.s.store.Update(ctx, w.job.UserID, func(tx Tx) error {
		f, err := tx.OwnFile(w.edition.FileID)
		if err != nil {
			return err
		}
		if f.Edition > w.edition.Edition { // nothing would need the vectors any more
			return fault.New(fault.NotFound, "the file was replaced")
		}
		if err := fixLength(tx, w.embedder.ModelID(), b.length); err != nil {
			return err
		}
		if err := tx.PutChunkVectors(w.edition.FileID, w.embedder.ModelID(), b.vectors); err != nil {
			return err
		}
		tell, err = w.progress(tx, Embedding, min(done, w.total), w.total)
		return err
	})
	if err != nil {
		return err
	}
	w.done = done
	w.beat()
	if time.Since(w.told) > progressIn {
		tell()
		w.told = time.Now()
	}
	return nil
}

// batchWork is one batch of a work.
type batchWork struct {
	*work
	gate    *llm.Gate
	texts   map[string]string // by hash
	vectors map[string]index.Packed
	length  int // length of the vectors; 0 = there are none
}

// embed makes vectors, in halves to find what the provider rejects.
func (b *batchWork) embed(ctx context.Context, hashes []string) error {
	texts := make([]string, len(hashes))
	for i, hash := range hashes {
		texts[i] = b.texts[hash]
	}
	found, err := b.call(ctx, texts)
	switch {
	case err == nil:
		return b.keep(hashes, found)
	case !rejected(err):
		return err
	case len(hashes) == 1:
		b.vectors[hashes[0]] = nil
		return nil
	}
	half := len(hashes) / 2
	if err := b.embed(ctx, hashes[:half]); err != nil {
		return err
	}
	return b.embed(ctx, hashes[half:])
}

// keep checks vectors before anything is stored.
func (b *batchWork) keep(hashes []string, found [][]float32) error {
	if len(found) != len(hashes) {
		return fault.New(fault.UpstreamBadAnswer, "the embedding provider sent %d vectors for %d texts", len(found), len(hashes))
	}
	for i, hash := range hashes {
		packed := index.Pack(found[i])
		if packed == nil {
			return fault.New(fault.UpstreamBadAnswer, "the embedding provider sent a vector that is zero or not finite")
		}
		if b.length == 0 {
			b.length = packed.Dim()
		}
		if packed.Dim() != b.length {
			return mismatch(packed.Dim(), b.length)
		}
		b.vectors[hash] = packed
	}
	return nil
}

func mismatch(got, want int) error {
	return &jobFault{FileError{
		Code: "embedding_dimension_mismatch", Detail: fmt.Sprintf("the embedding model sent vectors with %d numbers where %d were expected", got, want),
	}}
}

// errOtherModel says that vectors of a model are not wanted any more: another one took its place.
var errOtherModel = errors.New("the embedding model was changed meanwhile")

// fixLength makes the length of the first vectors that of the space; 0 = all were rejected.
func fixLength(tx Tx, model string, length int) error {
	want, err := tx.FixLength(model, length)
	switch {
	case fault.Is(err, fault.NotFound):
		return errOtherModel
	case err == nil && length > 0 && want != length:
		return mismatch(length, want)
	}
	return err
}

// call asks the provider, again after failures that pass.
func (b *batchWork) call(ctx context.Context, texts []string) ([][]float32, error) {
	for try := 1; ; try++ {
		found, err := b.embedder.Embed(ctx, llm.Passage, texts)
		if err == nil {
			return found.Vectors, nil
		}
		public := fault.Public(err)
		if public.Code == fault.UpstreamRate {
			b.gate.Slow(time.Now())
		}
		if try == embedTries || ctx.Err() != nil || !passes(public) {
			return nil, err
		}
		b.beat()
		if err := llm.Sleep(ctx, pause(b.s.opts.Backoff, try, public.RetryAfter)); err != nil {
			return nil, err
		}
	}
}

// passes reports whether the same call may succeed later.
func passes(e *fault.Error) bool {
	switch e.Code { //nolint:exhaustive // the others stay
	case fault.UpstreamRate, fault.UpstreamDown, fault.UpstreamTimeout:
		return true
	}
	return false
}

// pause is what the provider asks for, else first, doubled with each try, ± 25 %.
func pause(first time.Duration, try int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	d := min(embedWait, first<<try)
	return d*3/4 + rand.N(d/2+1) //nolint:gosec // it spreads retries
}

// rejected reports whether the reason of an error may be one of the texts.
func rejected(err error) bool {
	switch fault.Public(err).Code {
	case fault.ContextTooLarge, fault.Blocked:
		return true
	case fault.UpstreamAuth, fault.UpstreamQuota, fault.UpstreamRate, fault.UpstreamDown: // some refuse a key with 400
		return false
	}
	status := llm.ProviderStatus(err)
	return status == 400 || status == 413 || status == 422
}

// answers checks once whether the provider embeds anything at all.
func (w *work) answers(ctx context.Context) error {
	w.probe.Do(func() { _, w.works = w.embedder.Embed(ctx, llm.Passage, []string{"hello"}) })
	return w.works
}

// complete checks that nothing is missing, and makes the edition the one that is searched,
// unless a newer one is being made. Then it removes what older ones have left. errLacks if some
// chunks have no vector yet, errOtherModel if they need those of another model.
func (w *work) complete(ctx context.Context) error {
	rejected, err := w.rejected(ctx)
	if err != nil {
		return err
	}
	newest, changed := false, false
	err = w.s.store.Update(ctx, w.job.UserID, func(tx Tx) error {
		f, err := tx.OwnFile(w.job.Subject)
		if err != nil {
			return err
		}
		if newest = f.LastEdition == w.edition.Edition && f.SHA256 == w.edition.SHA256; !newest { // another job follows
			return nil
		}
		if w.embedder != nil {
			if err := fixLength(tx, w.embedder.ModelID(), 0); err != nil {
				return err
			}
		}
		changed, err = w.ready(tx, f, warnings(f, rejected, w.embedder))
		return err
	})
	if err != nil || !newest || w.edition.Edition == 1 {
		return err
	}
	if changed {
		w.s.rested(ctx, w.job.UserID, w.job.Subject)
	}
	return w.tidy(ctx)
}

// rejected counts the chunks that the model rejects; errLacks if some have no vector yet.
func (w *work) rejected(ctx context.Context) (n int, err error) {
	if w.embedder == nil {
		return 0, nil
	}
	return op.Read(ctx, w.s.store, w.job.UserID, func(tx Tx) (int, error) {
		missing, err := tx.Unembedded(w.edition.FileID, w.edition.Edition, w.embedder.ModelID(), -1, 1)
		if err == nil && len(missing) > 0 {
			err = errLacks
		}
		if err != nil {
			return 0, err
		}
		_, n, err := tx.EditionCoverage(w.edition.FileID, w.edition.Edition, w.embedder.ModelID())
		return n, err
	})
}

// ready makes the edition the one that is searched; a file that has it stays as it is.
func (w *work) ready(tx Tx, f *File, warnings []string) (changed bool, err error) {
	if f.State == Ready && f.Edition == w.edition.Edition && slices.Equal(f.Warnings, warnings) {
		return false, nil
	}
	f.Edition = w.edition.Edition
	f.describe(&w.edition)
	f.State, f.Error, f.Progress, f.Warnings = Ready, nil, nil, warnings
	return true, putFile(tx, f)
}

var errLacks = errors.New("some chunks have no vector yet")

// The warnings that embedding adds.
const (
	lexicalOnly   = "lexical_only"
	withoutVector = "_chunks_without_vector"
)

func warnings(f *File, rejected int, e llm.Embedder) []string {
	var all []string
	for _, w := range f.Warnings {
		if w != lexicalOnly && !strings.HasSuffix(w, withoutVector) {
			all = append(all, w)
		}
	}
	if e == nil {
		all = append(all, lexicalOnly)
	}
	if rejected > 0 {
		all = append(all, fmt.Sprint(rejected, withoutVector))
	}
	return all
}

// tidy removes older editions in small transactions.
func (w *work) tidy(ctx context.Context) error {
	for removed := 1; removed > 0; {
		err := w.s.store.Update(ctx, w.job.UserID, func(tx Tx) (err error) {
			removed, err = tx.DropEditions(w.edition.FileID, w.edition.Edition, dropAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		w.beat()
	}
	return nil
}

func pointsIn(text string) int { return utf8.RuneCountInString(text) }
