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
	e.admit(t, begun)
	e.launch(t)
	return t
}

// launch has a goroutine of the engine carry out a task. It is called between enter and leave.
func (e *Engine) launch(t *task) {
	e.working.Add(1)
	go e.run(t)
}

// admit tells a task that it is accepted as it was expected, but for the commit.
func (e *Engine) admit(t *task, as *accepted) {
	t.mu.Lock()
	t.gen, t.fresh = *as.gen, as.assignment.fresh
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
	if err := t.awaitAdmission(); err != nil {
		return err
	}
	turn.built(prompt, time.Since(begun))
	t.noteRequest(turn)
	announced := e.announce(ctx, t, turn)
	e.publishStage(t, "waiting", begun)
	return e.converse(ctx, t, turn, announced)
}

// announce stores and publishes the start while the model is being asked, behind the
// transaction that accepted it, which may still be on its way to the disk. The caller
// waits for the result before it publishes anything of the reply; nil is success.
func (e *Engine) announce(ctx context.Context, t *task, turn *turn) <-chan error {
	result := make(chan error, 1)
	go func() { result <- e.storeStart(ctx, t, turn) }()
	return result
}

func (e *Engine) storeStart(ctx context.Context, t *task, turn *turn) error {
	body := turn.prompt.Compact()
	if err := t.committed(); err != nil {
		return err
	}
	if turn.fresh != nil {
		e.histories.append(t.conversationID, t.assignment.version, t.fresh)
	}
	var g *chat.Generation
	err := e.store.Update(ctx, t.userID, func(tx Tx) error {
		var err error
		if g, err = e.own(tx, t); err != nil {
			return err
		}
		now := tx.Now()
		promptID := op.NewID()
		g.Status, g.StartedAt, g.PromptID = chat.GenWaiting, &now, promptID
		g.Options, g.Model, g.Base, g.SwipeID = turn.setup.Options, turn.setup.model.Name, turn.base, turn.swipeID
		g.LeaseUntil, g.Timing = now.Add(e.opts.Lease), t.generation().Timing
		if err := tx.UpdateGeneration(g); err != nil {
			return err
		}
		if err := tx.PutPrompt(&StoredPrompt{
			ID: promptID, ConversationID: g.ConversationID, GenerationID: g.ID, Stored: body, CreatedAt: now,
		}); err != nil {
			return err
		}
		return tx.Emit(
			generationEvent(t.userID, "gen.started", t.device, g, startedData(g, turn)),
			generationEvent(t.userID, "gen.context", t.device, g, contextData(turn)),
		)
	})
	if err != nil {
		return err
	}
	e.histories.noteSent(t.conversationID, sentPrompt{g.PromptID, g.ID, turn.prompt.Hashes})
	t.setStored(g)
	return nil
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
