// Package usage has what a user's requests to models use, and the limits of a day and a month on that. Days and
// months are those of UTC, by which the meter counts.
package usage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"nodest/internal/fault"
)

// Row is the meter of one day and model.
type Row struct {
	Day              string  `json:"day"`
	Provider         string  `json:"provider"`
	Model            string  `json:"model"`
	Requests         int64   `json:"requests"`
	PromptTokens     int64   `json:"promptTokens"`
	CompletionTokens int64   `json:"completionTokens"`
	CostUSD          float64 `json:"costUsd"` // 0 = nothing, or not known
}

func (r Row) tokens() int64 { return r.PromptTokens + r.CompletionTokens }

// OfUser is the meter of one user.
type OfUser struct {
	UserID           string  `json:"userId"`
	Requests         int64   `json:"requests"`
	PromptTokens     int64   `json:"promptTokens"`
	CompletionTokens int64   `json:"completionTokens"`
	CostUSD          float64 `json:"costUsd"`
}

// Limits are limits of one user; 0 = the server's default, and there no limit.
type Limits struct {
	TokensPerDay int64   `json:"tokensPerDay"`
	Generations  int     `json:"generations"`
	MonthlyUSD   float64 `json:"usdPerMonth"`
}

// Or returns l with the defaults of the server.
func (l Limits) Or(tokensPerDay int64, usdPerMonth float64) Limits {
	return Limits{cmp.Or(l.TokensPerDay, tokensPerDay), l.Generations, cmp.Or(l.MonthlyUSD, usdPerMonth)}
}

// Tx is what a transaction offers.
type Tx interface {
	Now() time.Time
	// Usage returns the meter from day to day, both inclusive ("2006-01-02").
	Usage(from, to string) ([]Row, error)
}

// Check returns QuotaExceeded if the tokens of today or the money of this month are used up, or may be once what
// reserved tokens has ended.
func (l Limits) Check(tx Tx, reserved int64) error {
	if err := l.checkDay(tx, reserved); err != nil {
		return err
	}
	return l.checkMonth(tx, reserved)
}

// reservedRetry is how long a client waits before it tries again when the rest is reserved.
const reservedRetry = 5 * time.Second

func (l Limits) checkDay(tx Tx, reserved int64) error {
	limit := l.TokensPerDay
	used, err := l.Today(tx)
	switch {
	case err != nil || limit <= 0 || used+reserved < limit:
		return err
	case used < limit:
		return fault.New(fault.QuotaExceeded, "the rest of today's limit of %d tokens is reserved for running replies and background requests", limit).
			With("quota", "tokensPerDay").With("limit", limit).With("used", used).With("reserved", reserved).After(reservedRetry)
	}
	now := tx.Now().UTC()
	tomorrow := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
	return fault.New(fault.QuotaExceeded, "today's limit of %d tokens is used up", limit).
		With("quota", "tokensPerDay").With("limit", limit).With("used", used).After(tomorrow.Sub(now))
}

// Today is how many tokens were used today; 0 if they have no limit.
func (l Limits) Today(tx Tx) (used int64, err error) {
	if l.TokensPerDay <= 0 {
		return 0, nil
	}
	today := tx.Now().UTC().Format(time.DateOnly)
	rows, err := tx.Usage(today, today)
	for _, r := range rows {
		used += r.tokens()
	}
	return used, err
}

func (l Limits) checkMonth(tx Tx, reserved int64) error {
	s, err := l.Month(tx)
	if err != nil || s == nil {
		return err
	}
	kept := s.price * float64(reserved)
	switch {
	case s.UsedUSD+kept < s.LimitUSD:
		return nil
	case s.UsedUSD < s.LimitUSD:
		return fault.New(fault.QuotaExceeded, "the rest of this month's limit of %s is reserved for running replies and background requests", dollars(s.LimitUSD)).
			With("quota", "usdPerMonth").With("limit", s.LimitUSD).With("used", s.UsedUSD).With("reserved", kept).After(reservedRetry)
	}
	now := tx.Now().UTC()
	return fault.New(fault.QuotaExceeded, "this month's limit of %s for models is used up; ask the owner of the server for more", dollars(s.LimitUSD)).
		With("quota", "usdPerMonth").With("limit", s.LimitUSD).With("used", s.UsedUSD).After(monthOf(now).AddDate(0, 1, 0).Sub(now))
}

func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// monthOf is the beginning of a month.
func monthOf(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// warnAt is the share of the money of a month at which a user is warned.
const warnAt = 0.8

// Spending is the money of a month.
type Spending struct {
	Month    string   `json:"month"` // 2006-01
	UsedUSD  float64  `json:"usedUsd"`
	LimitUSD float64  `json:"limitUsd"`
	Warned   bool     `json:"warned"`   // 80 % are used
	Unpriced []string `json:"unpriced"` // provider/model whose requests are not counted: they are free, or nobody tells their price

	price float64 // US dollars for a token, the highest that a day and model of this month has had; 0 = unknown
}

// Month returns the money of this month, nil if it has no limit.
func (l Limits) Month(tx Tx) (*Spending, error) {
	if l.MonthlyUSD <= 0 {
		return nil, nil
	}
	now := tx.Now().UTC()
	rows, err := tx.Usage(monthOf(now).Format(time.DateOnly), now.Format(time.DateOnly))
	if err != nil {
		return nil, err
	}
	s := &Spending{Month: now.Format("2006-01"), LimitUSD: l.MonthlyUSD, Unpriced: []string{}}
	for _, r := range rows {
		s.UsedUSD += r.CostUSD
		switch name := r.Provider + "/" + r.Model; {
		case r.CostUSD > 0:
			s.price = max(s.price, r.CostUSD/float64(max(r.tokens(), 1)))
		case !slices.Contains(s.Unpriced, name):
			s.Unpriced = append(s.Unpriced, name)
		}
	}
	slices.Sort(s.Unpriced)
	s.Warned = s.UsedUSD >= warnAt*s.LimitUSD
	return s, nil
}

// Key names the limit of a month: each is warned of once.
func (s *Spending) Key() string { return fmt.Sprintf("%s %g", s.Month, s.LimitUSD) }
