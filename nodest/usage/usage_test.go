package usage_test

import (
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/nodest/usage"
)

// ledger is a meter at a time.
type ledger struct {
	now  time.Time
	rows []usage.Row
}

func (l *ledger) Now() time.Time { return l.now }

func (l *ledger) Usage(from, to string) (rows []usage.Row, err error) {
	for _, r := range l.rows {
		if r.Day >= from && r.Day <= to {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func row(day, model string, tokens int64, usd float64) usage.Row {
	return usage.Row{Day: day, Provider: "openrouter", Model: model, Requests: 1, PromptTokens: tokens, CostUSD: usd}
}

func TestTheMoneyOfAMonthIsLimited(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		rows     []usage.Row
		reserved int64
		used     float64
		warned   bool
		refused  time.Duration // when it is allowed again; 0 = it is
	}{
		"nothing is used":             {},
		"the month before":            {rows: []usage.Row{row("2026-10-31", "a", 1000, 50)}},
		"half of it":                  {rows: []usage.Row{row("2026-11-01", "a", 1000, 2), row("2026-11-30", "b", 10, 3)}, used: 5},
		"80 %":                        {rows: []usage.Row{row("2026-11-01", "a", 1000, 8)}, used: 8, warned: true},
		"all":                         {rows: []usage.Row{row("2026-11-29", "a", 1000, 10)}, used: 10, warned: true, refused: 12 * time.Hour},
		"more than all":               {rows: []usage.Row{row("2026-11-29", "a", 1000, 11)}, used: 11, warned: true, refused: 12 * time.Hour},
		"the rest is reserved":        {rows: []usage.Row{row("2026-11-29", "a", 1000, 5)}, reserved: 1000, used: 5, refused: 5 * time.Second},
		"a part is reserved":          {rows: []usage.Row{row("2026-11-29", "a", 1000, 5)}, reserved: 999, used: 5},
		"tokens that cost nothing":    {rows: []usage.Row{row("2026-11-29", "a", 1_000_000, 0)}, reserved: 1_000_000},
		"the dearest price reserves":  {rows: []usage.Row{row("2026-11-28", "a", 100_000, 1), row("2026-11-29", "b", 100, 1)}, reserved: 800, used: 2, refused: 5 * time.Second},
		"a row with money, no tokens": {rows: []usage.Row{row("2026-11-29", "a", 0, 1)}, reserved: 5, used: 1},
	} {
		t.Run(name, func(t *testing.T) {
			tx, limits := &ledger{noon, c.rows}, usage.Limits{}.Or(0, 10)
			s, err := limits.Month(tx)
			if err != nil || s.UsedUSD != c.used || s.Warned != c.warned || s.Month != "2026-11" {
				t.Errorf("%+v, %v", s, err)
			}
			err = limits.Check(tx, c.reserved)
			if (err != nil) != (c.refused > 0) {
				t.Fatalf("error %v", err)
			}
			if e := fault.Public(err); err != nil && (e.Code != fault.QuotaExceeded || e.Details["quota"] != "usdPerMonth" || e.RetryAfter != c.refused || e.Retry() != "later") {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestModelsWithoutAPriceAreNamed(t *testing.T) {
	t.Parallel()
	tx := &ledger{time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC), []usage.Row{row("2026-11-01", "free", 5, 0), row("2026-11-02", "free", 5, 0), row("2026-11-02", "paid", 5, 1)}}
	s, err := usage.Limits{MonthlyUSD: 3}.Or(0, 10).Month(tx)
	if err != nil || len(s.Unpriced) != 1 || s.Unpriced[0] != "openrouter/free" || s.LimitUSD != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := (usage.Limits{}).Month(tx); s != nil || err != nil {
		t.Errorf("without a limit: %+v, %v", s, err)
	}
}
