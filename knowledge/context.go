package knowledge

import (
	"context"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/knowledge/chunk"
	"nodest/knowledge/contextline"
	"nodest/knowledge/parse"
	"nodest/llm"
)

// A context line says in a sentence what a chunk is about and where in the document it stands.
// It is searched and embedded with the chunk, and neither shown nor cited. The owner of a
// knowledge base switches lines on; the owner's model writes them.
const (
	contextGroup   = 8   // chunks of one request
	contextAtOnce  = 4   // requests side by side, for one file
	contextTries   = 3   // tries of one request
	contextGivesUp = 4   // groups in a row without an answer that can be used, after which no more are asked for
	contextsAtOnce = 400 // lines that one statement looks up
)

// withoutContext is the end of the warning that says how many chunks have no line.
const withoutContext = "_chunks_without_context"

// contextWork is the writing of the lines of an edition.
type contextWork struct {
	*making
	model  *Model
	doc    *parse.Document
	chunks []chunk.Chunk
	hashes []string // by chunk

	mu   sync.Mutex
	done int // chunks that were asked for
	told time.Time
	bad  int  // groups in a row without an answer that can be used
	quit bool // the model cannot be used
}

// addContext gives chunks their lines: those that are stored already, and then what the model
// writes. A model that fails leaves chunks without one.
func (m *making) addContext(ctx context.Context, doc *parse.Document, chunks []chunk.Chunk) (missing int, err error) {
	w := &contextWork{making: m, doc: doc, chunks: chunks, hashes: make([]string, len(chunks))}
	for i, c := range chunks {
		w.hashes[i] = textHash(embedded(m.file.Name, c.Heading, "", c.Text))
	}
	lacking, err := w.recall(ctx)
	if err == nil && len(lacking) > 0 {
		if w.model = m.contextModel(ctx); w.model != nil {
			err = w.askElsewhere(ctx, lacking)
		}
	}
	for _, c := range chunks {
		if c.Context == "" {
			missing++
		}
	}
	return missing, err
}

// contextModel returns what writes lines; nil = there is no such model.
func (m *making) contextModel(ctx context.Context) *Model {
	if m.s.opts.Model == nil {
		return nil
	}
	model, err := m.s.opts.Model(ctx, m.job.UserID)
	if err != nil {
		m.s.opts.Log.WarnContext(ctx, "no model for context lines", "file", m.file.ID, "err", err)
		return nil
	}
	if model != nil && model.Provider == "offline" { // its words say nothing about a text
		return nil
	}
	return model
}

// recall takes the lines that were written before, and returns the chunks without one.
func (w *contextWork) recall(ctx context.Context) (lacking []int, err error) {
	for from := 0; from < len(w.chunks); from += contextsAtOnce {
		to := min(len(w.chunks), from+contextsAtOnce)
		err := w.update(ctx, func(tx Tx, _ *File) error {
			lines, err := tx.Contexts(w.file.ID, w.hashes[from:to])
			if err != nil {
				return err
			}
			for i := from; i < to; i++ {
				w.chunks[i].Context = lines[w.hashes[i]]
			}
			return tx.PutContexts(w.file.ID, w.no, lines) // they are lines of this edition now
		})
		if err != nil {
			return nil, err
		}
	}
	for i, c := range w.chunks {
		if c.Context == "" {
			lacking = append(lacking, i)
		}
	}
	w.done = len(w.chunks) - len(lacking)
	return lacking, nil
}

// askElsewhere is askAll while other files are parsed.
func (w *contextWork) askElsewhere(ctx context.Context, lacking []int) error {
	w.leavePlace()
	if err := w.askAll(ctx, lacking); err != nil {
		return err
	}
	return w.takePlace(ctx)
}

// askAll asks for the lines of chunks, some requests side by side. Each answer is stored at
// once, so the next attempt pays for nothing twice.
func (w *contextWork) askAll(ctx context.Context, lacking []int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, contextAtOnce)
	var calls sync.WaitGroup
	for len(lacking) > 0 && ctx.Err() == nil {
		group := lacking[:min(contextGroup, len(lacking))]
		lacking = lacking[len(group):]
		slots <- struct{}{}
		if w.stopped() {
			break
		}
		calls.Go(func() {
			defer func() { <-slots }()
			if err := w.askFor(ctx, group); err != nil {
				cancel(err)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

func (w *contextWork) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quit
}

// askFor asks for the lines of a group and stores them. An error is not of the model.
func (w *contextWork) askFor(ctx context.Context, group []int) error {
	lines, err := w.ask(ctx, contextline.Prompt(w.file.Name, w.doc, w.passages(group)), len(group))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		w.s.opts.Log.WarnContext(ctx, "chunks stay without context lines", "file", w.file.ID, "err", err)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bad++
		w.quit = w.quit || w.bad >= contextGivesUp || !unusable(err) && !fault.Is(err, fault.Blocked)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bad = 0
	w.done += len(group)
	stored := make(map[string]string, len(group))
	for i, at := range group {
		if lines[i] != "" {
			stored[w.hashes[at]] = lines[i]
			w.chunks[at].Context = lines[i]
		}
	}
	var tell func()
	err = w.update(ctx, func(tx Tx, _ *File) (err error) {
		if err := tx.PutContexts(w.file.ID, w.no, stored); err != nil {
			return err
		}
		tell, err = w.progress(tx, Chunking, w.done, len(w.chunks))
		return err
	})
	if err != nil {
		return err
	}
	w.beat()
	if time.Since(w.told) > progressIn {
		tell()
		w.told = time.Now()
	}
	return nil
}

// unusable reports whether a model answered, and another answer may be of use.
func unusable(err error) bool {
	return fault.Is(err, fault.UpstreamBadAnswer) || fault.Is(err, fault.EmptyReply) // EmptyReply: it has thought too long
}

// ask asks the model for n lines, again after failures that pass and answers of another form.
func (w *contextWork) ask(ctx context.Context, p llm.Prompt, n int) ([]string, error) {
	for try := 1; ; try++ {
		reply, err := w.model.Ask(ctx, p)
		var lines []string
		if err == nil {
			if lines, err = contextline.Read(w.model.Provider, reply, n); err == nil {
				return lines, nil
			}
		}
		public := fault.Public(err)
		if try == contextTries || ctx.Err() != nil || !passes(public) && !unusable(err) {
			return nil, err
		}
		w.beat()
		if err := llm.Sleep(ctx, pause(w.s.opts.Backoff, try, public.RetryAfter)); err != nil {
			return nil, err
		}
	}
}

// passages are the chunks of a group.
func (w *contextWork) passages(group []int) []chunk.Chunk {
	list := make([]chunk.Chunk, len(group))
	for i, at := range group {
		list[i] = w.chunks[at]
	}
	return list
}
