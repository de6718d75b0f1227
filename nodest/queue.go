package nodest

import (
	"context"
	"time"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest/admission"
)

// pollQueue is how often a waiting generation looks whether another process has
// finished one; ends in this process wake it at once.
const pollQueue = time.Second

// awaitTurn waits until a queued generation may start, and sets its status to building.
// An error is the reason why it never will.
func (e *Engine) awaitTurn(t *task) error {
	if !t.queued {
		return nil
	}
	poll := time.NewTicker(pollQueue)
	defer poll.Stop()
	for {
		oneEnded := e.nextEnd(t.userID)
		g, err := e.claim(t)
		if err != nil {
			return err
		}
		if g != nil {
			t.setStored(g)
			t.on(turnCame)
			return nil
		}
		select {
		case <-oneEnded:
		case <-poll.C:
		case <-t.ctx.Done():
			return context.Cause(t.ctx)
		}
	}
}

// claim gives a queued generation its place, and returns it as it is stored then; nil = it is not its turn.
func (e *Engine) claim(t *task) (*chat.Generation, error) {
	may, err := op.Read(t.ctx, e.store, t.userID, func(tx Tx) (bool, error) { return turnOf(tx, tx.Limits, t.id, e.opts) })
	if err != nil || !may {
		return nil, err
	}
	return op.Write(t.ctx, e.store, t.userID, func(tx Tx) (*chat.Generation, error) {
		g, err := e.own(tx, t)
		if err != nil {
			return nil, err
		}
		if may, err := turnOf(tx, tx.LockLimits, t.id, e.opts); err != nil || !may {
			return nil, err
		}
		g.Status, g.LeaseUntil = chat.GenBuilding, tx.Now().Add(e.opts.Lease)
		return g, tx.UpdateGeneration(g)
	})
}

// turnOf reports whether a queued generation may start; read is Limits, or LockLimits if
// the caller then starts it.
func turnOf(tx Tx, read func() (UserLimits, error), id string, opts Options) (bool, error) {
	limits, err := read()
	if err != nil {
		return false, err
	}
	running, err := tx.Chats.Running("")
	if err != nil {
		return false, err
	}
	return admission.MayStart(running, id, parallel(limits, opts)), nil
}

// own locks the conversation of a generation and reads the generation, which this
// process must still own: errLost otherwise.
func (e *Engine) own(tx Tx, t *task) (*chat.Generation, error) {
	conv, g, err := lockRunning(tx, t.conversationID, t.id)
	if err == nil && (conv == nil || g.LeaseOwner != e.opts.Process) {
		err = errLost
	}
	return g, err
}

// parallel is the number of generations that may run at once for a user.
func parallel(limits UserLimits, opts Options) int {
	if limits.Generations > 0 {
		return limits.Generations
	}
	return opts.GenerationsPerUser
}

// limitsOf are the limits of a user, with the server's defaults.
func (o Options) limitsOf(own UserLimits) UserLimits { return own.Or(o.TokensPerDay, o.MonthlyUSD) }

// tokensLeft returns QuotaExceeded when the user's tokens of the day or money of the month are used up, or may be
// once what reserved tokens has ended.
func (e *Engine) tokensLeft(tx Tx, reserved int64) error {
	limits, err := tx.Limits()
	if err != nil {
		return err
	}
	return e.opts.limitsOf(limits).Check(tx, reserved)
}

// reservedTokens is the most that one request of each generation may cost.
func reservedTokens(running []*chat.Generation) (n int64) {
	for _, g := range running {
		context, _ := budget(g.Options, Model{})
		n += int64(context)
	}
	return n
}

// reserve keeps tokens of the user's day for a background request of this process, until release is
// called. It returns QuotaExceeded like tokensLeft. Replies do not count here: each reserves a whole
// context, and a reply whose model picks the search words would refuse its own request.
func (e *Engine) reserve(ctx context.Context, userID string, tokens int64) (release func(), err error) {
	others := e.addReserved(userID, tokens) - tokens
	release = func() { e.addReserved(userID, -tokens) }
	err = e.store.View(ctx, userID, func(tx Tx) error { return e.tokensLeft(tx, others) })
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// addReserved adds to what the background has reserved for a user, and returns the sum.
func (e *Engine) addReserved(userID string, tokens int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reserved[userID] += tokens
	n := e.reserved[userID]
	if n == 0 {
		delete(e.reserved, userID)
	}
	return n
}
