package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest/recent"
)

// assignment is a generation that a request has asked for, and what it writes.
type assignment struct {
	gen     *chat.Generation
	history history            // before it; of a generation that had to wait it is read again when its turn has come
	conv    *chat.Conversation // that it is stored in
	message *chat.Message      // that is stored with it and answered; nil = none
	cancel  []string           // generations that it replaces
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
		e.end(t, whatEnded(ctx, err), err)
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
		e.histories.Append(recent.Chat{UserID: c.UserID, ID: as.conv.ID}, as.conv.Version, as.message)
	}
	t := newTask(c, s, as)
	e.track(t)
	return answer, t, nil
}
