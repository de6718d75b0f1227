package nodest

import (
	"context"
	"errors"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/op"
)

// assignment says what a generation is to write.
type assignment struct {
	// target is the placeholder, or the message that gets another swipe or is
	// lengthened; nil for an impersonation. Of a generation that had to wait it is
	// read again when its turn has come.
	target *chat.Message
	// version is the chat's after a message was stored for this; 0 = none was.
	version int64
	// fresh is the message that is answered, where it was stored with the generation: the
	// turn may be built before readers see it. nil = none was.
	fresh *chat.Message
}

// start gives an accepted generation to a goroutine of the engine. It must be confirmed, or
// refused, when its transaction has ended.
func (e *Engine) start(c *op.Call, s *turnSetup, begun *accepted) *task {
	t := newTask(c, s, begun)
	e.admit(t, begun.gen)
	e.launch(t)
	return t
}

// launch has a goroutine of the engine carry out a task. It is called between enter and leave.
func (e *Engine) launch(t *task) {
	e.working.Add(1)
	go e.run(t)
}

// admit tells a task that it is accepted as it was expected, unless storing that fails.
func (e *Engine) admit(t *task, as *chat.Generation) {
	t.mu.Lock()
	t.gen = *as
	t.mu.Unlock()
	e.track(t)
	close(t.admitted)
}

// run carries out a generation and stores its end.
func (e *Engine) run(t *task) {
	defer e.untrack(t)
	defer t.cancel(nil)
	stopKeeping := e.keep(t)
	err := e.awaitTurn(t)
	ctx, stopClock := context.WithTimeoutCause(t.ctx, e.opts.TurnTimeout, errTooLong)
	defer stopClock()
	if err == nil {
		err = e.generate(ctx, t)
	}
	stopKeeping()
	how := ending(ctx, err)
	how.lost = how.lost || t.committed() != nil
	e.conclude(t, how)
}

// generate writes one text: gather, build, converse. run commits what it has written.
func (e *Engine) generate(ctx context.Context, t *task) error {
	begun := time.Now()
	e.publishStage(t, "building", begun)
	gathered := t.step(func(times *chat.Timing, took chat.Span) { times.Gather = &took })
	turn, err := e.gather(ctx, t)
	gathered()
	if err != nil {
		return err
	}
	e.askSources(ctx, turn, func(name string) func() {
		e.publishStage(t, name, begun)
		return t.step(func(times *chat.Timing, took chat.Span) {
			times.Sources = append(times.Sources, chat.SourceTiming{Name: name, Took: took})
		})
	})
	built := t.step(func(times *chat.Timing, took chat.Span) { times.Build = &took })
	prompt, err := e.build(ctx, turn)
	built()
	if err != nil {
		return err
	}
	turn.built(prompt, time.Since(begun))
	stored := e.announce(ctx, t, turn)
	if err := t.awaitAdmission(); err != nil {
		return err
	}
	t.noteRequest(turn)
	e.publishStage(t, "waiting", begun)
	return e.converse(ctx, t, turn, stored)
}

// ending classifies the end of a generation that ran in ctx.
func ending(ctx context.Context, err error) end {
	if err == nil {
		return end{status: chat.GenDone}
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errLost), errors.Is(cause, errLost):
		return end{lost: true}
	case errors.Is(cause, errCancelled):
		return end{status: chat.GenCancelled, finish: llm.FinishCancelled}
	case errors.Is(cause, errStopping):
		return end{status: chat.GenInterrupted, finish: llm.FinishInterrupted}
	case errors.Is(cause, errTooLong):
		return failure(fault.Wrap(cause, fault.UpstreamTimeout, "the reply took too long"))
	case fault.Is(err, fault.StorageDown), fault.Is(err, fault.StorageBusy): // no answer to keep under a key: the message is stored
		return end{status: chat.GenInterrupted, finish: llm.FinishInterrupted, cause: err}
	}
	return failure(err)
}

func failure(err error) end {
	e := end{status: chat.GenFailed, finish: llm.FinishError, err: fault.Public(err), cause: err}
	if e.err.Code == fault.Blocked {
		e.finish = llm.FinishBlocked
	}
	return e
}
