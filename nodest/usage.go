package nodest

import (
	"context"
	"time"

	"nodest/internal/op"
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
		used, limit, err = tokensOfToday(tx, limits, e.opts)
		return err
	})
	return used, limit, err
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

// UserLimits are limits of one user; 0 = the server's default.
type UserLimits struct {
	TokensPerDay int64 `json:"tokensPerDay"`
	Generations  int   `json:"generations"`
}

// UsageRow is the meter of one day and model.
type UsageRow struct {
	Day              string  `json:"day"`
	Provider         string  `json:"provider"`
	Model            string  `json:"model"`
	Requests         int64   `json:"requests"`
	PromptTokens     int64   `json:"promptTokens"`
	CompletionTokens int64   `json:"completionTokens"`
	CostUSD          float64 `json:"costUsd"`
}

// UserUsage is the meter of one user.
type UserUsage struct {
	UserID           string  `json:"userId"`
	Requests         int64   `json:"requests"`
	PromptTokens     int64   `json:"promptTokens"`
	CompletionTokens int64   `json:"completionTokens"`
	CostUSD          float64 `json:"costUsd"`
}
