package extract

import (
	"context"
	"errors"

	"nodest/llm"
	"nodest/memory"
)

// orderAttempts is how many attempts of a job carry an order out; the last one drops it.
const orderAttempts = 4

var errSpent = errors.New("the limit of model calls for these exchanges is reached")

// allowance asks a model within the limit of calls for some exchanges. A call is counted, in a
// transaction of its own, before it is made: a crash may lose its answer.
type allowance struct {
	*attempt
	exchanges int
	failed    error // to count a call
}

func (a *allowance) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	if !a.ordered {
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
	err = a.changeReading(ctx, func(r *memory.Reading) {
		if paid = r.Pays(a.exchanges); paid {
			r.Calls++
		}
		a.state.Exchanges, a.state.Calls = r.Exchanges, r.Calls // an order of just now is for the next run
	})
	return paid, err
}

func (a *allowance) more() bool { return a.ordered || a.state.Pays(a.exchanges) }

// changeReading changes the counters in a transaction of its own.
func (r *attempt) changeReading(ctx context.Context, change func(*memory.Reading)) error {
	return r.store.Update(ctx, r.job.UserID, func(tx memory.Tx) error {
		state, err := tx.LockReading(r.job.Subject)
		if err != nil {
			return err
		}
		change(&state)
		return tx.PutReading(r.job.Subject, state)
	})
}

// dropOrder ends an order that was tried too often.
func (r *attempt) dropOrder(ctx context.Context) error {
	if !r.ordered || r.job.Attempt <= orderAttempts {
		return nil
	}
	r.ordered = false
	return r.changeReading(ctx, func(state *memory.Reading) {
		if state.Ordered == r.state.Ordered {
			state.Ordered = 0
		}
	})
}

// settle counts exchanges that were read and, in the end, ends an order that is carried out.
func (r *attempt) settle(tx memory.Tx, exchanges int, end bool) error {
	if exchanges == 0 && !(end && r.ordered) {
		return nil
	}
	state, err := tx.LockReading(r.job.Subject)
	if err != nil {
		return err
	}
	state.Exchanges += exchanges
	if end && r.ordered {
		left, _, err := unreadTexts(tx, r.job.Subject)
		if err != nil {
			return err
		}
		if !r.scene.Enabled || len(left) == 0 || left[0].Seq > state.Ordered {
			state.Ordered = 0
		}
	}
	return tx.PutReading(r.job.Subject, state)
}
