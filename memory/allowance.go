package memory

import (
	"context"
	"errors"

	"nodest/jobs"
)

// Reading is what the extraction of a conversation has cost, and who has asked for
// it; the zero value is that of one that was never read. It outlives jobs and
// processes.
type Reading struct {
	Exchanges int   // that were read without a free order; an edited message is said anew
	Calls     int   // of a model for them, each counted before it is made
	Orders    int64 // how often somebody has ordered it
	Free      int64 // the last order that is free; 0 = none
	Served    int64 // orders up to this one are done
}

// A model is asked at most callsFor times for perExchanges exchanges.
const (
	callsFor     = 2
	perExchanges = 5
)

// freeAttempts of a job may ask a model for nothing, all but the last one: an order
// that always fails does not cost without end.
const freeAttempts = 4

// pays reports whether what was read, with n exchanges more, pays for another call.
func (r *Reading) pays(n int) bool {
	return callsFor*(r.Exchanges+n) >= perExchanges*(r.Calls+1)
}

func (r *Reading) ordered() bool { return r.Orders > r.Served }

// free reports whether calls need not be paid for: somebody wants them.
func (r *Reading) free() bool { return r.Free > r.Served }

// ExtractNow enqueues the extraction of everything in a conversation that was not
// read yet, with the model where there is one: when the user asks for it, and when
// the conversation is archived. What it costs is not counted; each order pays for one
// reading. The order stays open until that is done, whatever becomes of the job, but
// is free no longer when freeAttempts of one have failed.
func ExtractNow(tx Tx, conversationID string) error { return orderReading(tx, conversationID, true) }

// ExtractFirst is ExtractNow before a conversation is summarised: nothing is waited
// for, but the model is asked only as far as the exchanges pay for it.
func ExtractFirst(tx Tx, conversationID string) error { return orderReading(tx, conversationID, false) }

func orderReading(tx Tx, conversationID string, free bool) error {
	r, err := tx.LockReading(conversationID)
	if err != nil {
		return err
	}
	r.Orders++
	if free {
		r.Free = r.Orders
	}
	if err := tx.PutReading(conversationID, r); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobExtract, Subject: conversationID})
}

// errSpent says that the exchanges do not pay for another call.
var errSpent = errors.New("the limit of model calls for these exchanges is reached")

// allowance asks a model about some exchanges as far as they pay for it. A call is
// counted in a transaction of its own before it is made: one whose answer is lost
// in a crash was made too.
type allowance struct {
	*reading
	exchanges int
	failed    error // to count a call
}

// Ask returns errSpent where the call is not paid for.
func (a *allowance) Ask(ctx context.Context, p Prompt) (string, error) {
	if !a.state.free() {
		paid, err := a.count(ctx)
		if a.failed = err; err != nil {
			return "", err
		}
		if !paid {
			return "", errSpent
		}
	}
	return a.model.Ask(ctx, p)
}

func (a *allowance) count(ctx context.Context) (paid bool, err error) {
	err = a.store.Update(ctx, a.job.UserID, func(tx Tx) error {
		r, err := tx.LockReading(a.job.Subject)
		if err != nil {
			return err
		}
		if paid = r.pays(a.exchanges); paid {
			r.Calls++
		}
		a.state.Exchanges, a.state.Calls = r.Exchanges, r.Calls // an order of just now is for the next run
		return tx.PutReading(a.job.Subject, r)
	})
	return paid, err
}

// lapse ends what is free in the orders that the run has seen, when it is tried too
// often.
func (r *reading) lapse(ctx context.Context) error {
	if !r.state.free() || r.job.Attempt <= freeAttempts {
		return nil
	}
	return r.store.Update(ctx, r.job.UserID, func(tx Tx) error {
		state, err := tx.LockReading(r.job.Subject)
		if err != nil || state.Free > r.state.Orders {
			return err
		}
		state.Free, r.state.Free = 0, 0
		return tx.PutReading(r.job.Subject, state)
	})
}

// settle notes that exchanges were read and, at the end, that the orders are done
// which the run has seen.
func (r *reading) settle(tx Tx, exchanges int, end bool) error {
	end = end && r.state.ordered() && !r.unserved
	if exchanges == 0 && !end {
		return nil
	}
	state, err := tx.LockReading(r.job.Subject)
	if err != nil {
		return err
	}
	state.Exchanges += exchanges
	if end {
		state.Served = max(state.Served, r.state.Orders)
	}
	return tx.PutReading(r.job.Subject, state)
}

// more reports whether another call would be made.
func (a *allowance) more() bool { return a.state.free() || a.state.pays(a.exchanges) }
