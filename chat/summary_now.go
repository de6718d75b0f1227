package chat

import (
	"context"
	"time"

	"nodest/summary"
)

// SummariseNow makes the summary that is due and returns it: the model's when that is
// there within wait. Else it is one by rule, which is not stored, and a job has the
// model write one.
//
// Errors: Conflict when none is due; NotFound.
func (svc *Service) SummariseNow(ctx context.Context, userID, conversationID string, wait time.Duration) (*summary.Summary, error) {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return nil, err
	}
	d, err := svc.planSummary(ctx, userID, conversationID, summaryOrder{}, model == nil)
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
	err = svc.store.Update(ctx, userID, func(tx Tx) error {
		if _, err := tx.LockConversation(conversationID); err != nil {
			return err
		}
		return enqueueSummary(tx, conversationID, summaryOrder{}, time.Time{})
	})
	if err != nil {
		return nil, err
	}
	if err := d.write(ctx, nil); err != nil {
		return nil, err
	}
	return d.plan.Summary(d.work, d.written), nil
}
