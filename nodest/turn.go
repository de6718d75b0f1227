package nodest

import (
	"context"
	"errors"

	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/op"
)

// assignment is a generation that a request has asked for, and what it writes.
type assignment struct {
	gen *chat.Generation
	// target is the placeholder, or the message that gets another swipe or is
	// lengthened; nil for an impersonation. Of a generation that had to wait it is
	// read again when its turn has come.
	target  *chat.Message
	message *chat.Message // that is stored with it and answered; nil = none
	version int64         // of the chat that it is stored in
	cancel  []string      // generations that it replaces
}

// play is a turn. The request is answered when it is accepted; the engine does the rest behind the
// answer, and ends by itself, by Cancel, or with the process.
func play[T any](ctx context.Context, e *Engine, c *op.Call, q query, do func(tx Tx, s *turnSetup) (T, *assignment, error)) (T, error) {
	answer, t, err := accept(ctx, e, c, q, do)
	if t == nil {
		return answer, err
	}
	go func() {
		defer e.untrack(t)
		stopKeeping := e.keep(t)
		err := e.awaitTurn(t)
		ctx, stopClock := context.WithTimeoutCause(t.ctx, e.opts.TurnTimeout, errTooLong)
		defer stopClock()
		var turn *turn
		if err == nil {
			turn, err = e.gather(ctx, t)
		}
		if err == nil {
			err = e.ask(ctx, t, turn)
		}
		if err == nil {
			err = e.speak(ctx, t, turn)
		}
		stopKeeping()
		e.end(t, ending(ctx, err))
	}()
	return answer, nil
}

// accept stores what a request has asked for in one transaction: do stores messages, and accept the
// generation. It returns the task of the generation, nil where none begins: with an error, for a repeated call.
func accept[T any](ctx context.Context, e *Engine, c *op.Call, q query, do func(tx Tx, s *turnSetup) (T, *assignment, error)) (T, *task, error) {
	var none T
	if err := e.enter(); err != nil {
		return none, nil, err
	}
	defer e.leave()
	s, missing := e.loadSetup(ctx, c.UserID, q)
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	defer cancel()
	answer, as, err := op.Accept(storing, e.store, c, func(tx Tx) (T, *assignment, error) {
		if missing != nil { // reported here, because a repeated call must get its first answer
			return none, nil, missing
		}
		answer, as, err := do(tx, s)
		if err != nil {
			return none, nil, err
		}
		return answer, as, tx.InsertGeneration(as.gen)
	})
	if as == nil {
		return answer, nil, err
	}
	for _, id := range as.cancel {
		e.stop(c.UserID, id)
	}
	if as.message != nil {
		e.histories.append(as.gen.ConversationID, as.version, as.message)
	}
	t := newTask(c, s, as)
	e.track(t)
	return answer, t, nil
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
