package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	"nodest/internal/summary"
)

// mostAtOnce is how many messages are read at most while a turn waits for its summary. It is
// compared with seqs, so other branches count as well.
const mostAtOnce = 2000

// errLong reports that a summary needs more messages than mostAtOnce.
var errLong = errNotDue("too_long_to_wait")

// SummariseNow makes the summary of a chat of more than some tokens and returns it: the model's when that is
// there within wait. Else it is one by rule, which is not stored, and a job has the
// model write one. Where more than mostAtOnce messages have to be read, only that job is
// enqueued.
//
// Errors: Conflict when none is due, or none can be made at once; NotFound.
func (svc *Service) SummariseNow(ctx context.Context, userID, conversationID string, tokens int, wait time.Duration) (*summary.Summary, error) {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return nil, err
	}
	d, err := svc.planSummary(ctx, userID, conversationID, summaryOrder{Tokens: &tokens, atOnce: true}, model == nil)
	if errors.Is(err, errLong) {
		err = cmp.Or(svc.summariseSoon(ctx, userID, conversationID, tokens), err)
	}
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err = d.write(limited, model)
	switch {
	case err == nil:
		var kept *KeptSummary
		err := svc.store.Update(ctx, userID, func(tx Tx) (err error) {
			kept, err = d.store(tx, "server")
			return err
		})
		if err != nil {
			return nil, err
		}
		return kept.Summary, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	// It takes too long: the model writes it in the background.
	if err := svc.summariseSoon(ctx, userID, conversationID, tokens); err != nil {
		return nil, err
	}
	if err := d.write(ctx, nil); err != nil {
		return nil, err
	}
	return d.plan.Summary(d.work, d.written), nil
}

func (svc *Service) summariseSoon(ctx context.Context, userID, conversationID string, tokens int) error {
	return svc.store.Update(ctx, userID, func(tx Tx) error {
		if _, err := tx.LockConversation(conversationID); err != nil {
			return err
		}
		return SummaryDue(tx, conversationID, tokens)
	})
}
