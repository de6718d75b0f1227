package nodest

import (
	"context"
	"time"

	"nodest/internal/op"
	"nodest/nodest/usage"
)

// usageDays is the default length of a usage report.
const usageDays = 30

// Usage returns the user's meter from day to day, both inclusive
// ("2006-01-02", UTC), oldest first. Without from it begins 29 days before to;
// without to it ends today.
func (e *Engine) Usage(ctx context.Context, userID, from, to string) ([]UsageRow, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) ([]UsageRow, error) {
		from, to, err := op.Days(from, to, tx.Now().UTC(), usageDays)
		if err != nil {
			return []UsageRow{}, err
		}
		found, err := tx.Usage(from, to)
		return append([]UsageRow{}, found...), err
	})
}

// TokensToday returns how many tokens the user has used today (UTC), and how many a day may
// have; without a limit both are 0.
func (e *Engine) TokensToday(ctx context.Context, userID string) (used, limit int64, err error) {
	err = e.store.View(ctx, userID, func(tx Tx) error {
		limits, err := tx.Limits()
		if err != nil {
			return err
		}
		limits = e.opts.limitsOf(limits)
		limit = limits.TokensPerDay
		used, err = limits.Today(tx)
		return err
	})
	return used, limit, err
}

// Spending returns the user's money of this month (UTC), nil if it has no limit.
func (e *Engine) Spending(ctx context.Context, userID string) (*usage.Spending, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) (*usage.Spending, error) {
		limits, err := tx.Limits()
		if err != nil {
			return nil, err
		}
		return e.opts.limitsOf(limits).Month(tx)
	})
}

// addUsage adds to the user's meter, and tells the user once when most of the money of the month is spent.
func (e *Engine) addUsage(tx Tx, row UsageRow) error {
	if err := tx.AddUsage(row); err != nil || row.CostUSD <= 0 {
		return err
	}
	limits, err := tx.Limits()
	if err != nil {
		return err
	}
	spent, err := e.opts.limitsOf(limits).Month(tx)
	if err != nil || spent == nil || !spent.Warned {
		return err
	}
	first, err := tx.NoteWarned(spent.Key())
	if err != nil || !first {
		return err
	}
	return tx.Emit(op.Event(tx.UserID(), "usage.warning", "server", map[string]any{"spending": spent}))
}

// UsageByUser returns what each user used, by id; from and to are as in Usage, limit is 1 to 200,
// 0 = 50. The caller checks that an owner asks.
func (e *Engine) UsageByUser(ctx context.Context, from, to, cursor string, limit int) (*op.Page[UserUsage], error) {
	from, to, err := op.Days(from, to, time.Now().UTC(), usageDays)
	if err != nil {
		return nil, err
	}
	if limit, err = op.CheckLimit(limit); err != nil {
		return nil, err
	}
	items, next, err := e.store.UsageByUser(ctx, from, to, cursor, limit)
	return &op.Page[UserUsage]{Items: items, NextCursor: next}, err
}

// The meter, and the limits on it, are in package usage.
type (
	UsageRow   = usage.Row
	UserUsage  = usage.OfUser
	UserLimits = usage.Limits
)
