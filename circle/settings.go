package circle

import (
	"context"
	"regexp"
	"time"

	"nodest/circle/rules"
	"nodest/internal/op"
)

// State returns the settings of the circle, and whether it sleeps.
func (svc *Service) State(ctx context.Context, userID string) (*State, error) {
	return op.Read(ctx, svc.store, userID, Tx.CircleState)
}

// SetSettings replaces the settings of the circle.
//
// Errors: Invalid with the field.
func (svc *Service) SetSettings(ctx context.Context, c *op.Call, in Settings) (*State, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*State, error) {
		s, err := tx.CircleState()
		if err != nil {
			return nil, err
		}
		s.Settings, s.UpdatedAt = in, tx.Now()
		if err := tx.PutCircleSettings(s); err != nil {
			return nil, err
		}
		if err := Replan(tx.Jobs); err != nil {
			return nil, err
		}
		return s, emitState(tx, c.By(), s)
	})
}

var clockTime = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// Check refuses values out of range.
func (s *Settings) Check() error {
	var c op.Checks
	clock := func(field, text string) {
		c.That(clockTime.MatchString(text), field, "range", "must be a time of day from 00:00 to 23:59")
	}
	between := func(field string, n, low, high int64) {
		c.That(n >= low && n <= high, field, "range", "must be from %d to %d", low, high)
	}
	clock("quietFrom", s.QuietFrom)
	clock("quietUntil", s.QuietUntil)
	between("callsPerDay", s.CallsPerDay, 0, 10_000)
	between("tokensPerDay", s.TokensPerDay, 0, 100_000_000)
	between("sleepAfter", int64(s.SleepAfter), 1, 365)
	between("proactiveADay", int64(s.ProactiveADay), 1, 24)
	between("silentHours", int64(s.SilentHours), 1, 720)
	return c.Err()
}

// habit is when a character reacts.
func (s *Settings) habit(characterID string) rules.Habit {
	h := rules.HabitOf(characterID)
	if s.Quick {
		return h.Quick()
	}
	return h
}

// Cost is what the circle has cost, and what it may cost.
type Cost struct {
	Today        string // in the user's time zone
	Days         []*Spend
	CallsPerDay  int64
	TokensPerDay int64
}

const costDays = 30 // without a range

// Cost returns what the circle has cost on the days from one to another, both inclusive and
// of the form 2006-01-02; "" = the last 30 days. Days without a call may be missing.
//
// Errors: Invalid for a day.
func (svc *Service) Cost(ctx context.Context, userID, from, to string) (*Cost, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Cost, error) {
		set, err := tx.Characters.Settings()
		if err != nil {
			return nil, err
		}
		today := tx.Now().In(set.Zone())
		first, last, err := op.Days(from, to, today, costDays)
		if err != nil {
			return nil, err
		}
		state, err := tx.CircleState()
		if err != nil {
			return nil, err
		}
		days, err := tx.Spends(first, last)
		return &Cost{today.Format(time.DateOnly), days, state.Settings.CallsPerDay, state.Settings.TokensPerDay}, err
	})
}
