package circle

import (
	"context"
	"sync"
	"time"

	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/llm"
)

// errBudget says that the calls or tokens of the user's day do not suffice for a request.
var errBudget = fault.New(fault.QuotaExceeded, "the circle has used up its calls or tokens of the day")

// cost is what something has cost so far.
type cost struct{ calls, tokens int64 }

// urgency says how much of a day's limits may be used up before something is left out: what
// keeps a conversation going finds room when what begins another one does not.
type urgency int64

// The urgencies, in percent of the limits.
const (
	byChance  urgency = 70 // a reaction of somebody whom nobody has addressed
	byHabit   urgency = 85 // posts, and thinking about relationships
	addressed urgency = 100
)

// of is the part of a limit; of a small one, all.
func (u urgency) of(limit int64) int64 { return limit - limit*int64(addressed-u)/100 }

// urgencyOf is how urgent a reaction is.
func urgencyOf(t *Turn) urgency {
	if t.TargetID != Me && (t.Reason == rules.Chance || t.Reason == rules.Topic || t.Reason == rules.Close) {
		return byChance
	}
	return addressed
}

// ask sends one request that counts in the spend of the user's day. What it may cost at
// most is reserved first, so the limits hold even if the process dies meanwhile; what it
// did not use is given back. total, which may be nil, gets the cost.
//
// Errors: errBudget, when nothing was sent; those of the model.
func (svc *Service) ask(ctx context.Context, userID string, m *Model, p llm.Prompt, u urgency, total *cost) (reply string, err error) {
	// An estimate of the prompt may be too low.
	most := int64(llm.EstimatePrompt(p.Messages))*5/4 + int64(p.MaxTokens+p.MaxThought)
	day, err := svc.reserve(ctx, userID, most, u)
	if err != nil {
		return "", err
	}
	used := most // unless the model says what it was
	p.Used = func(u llm.Usage) { used = int64(u.PromptTokens) + int64(u.CompletionTokens) }
	if err = svc.paces.wait(ctx, m.Key, svc.opts.Pause); err == nil {
		reply, err = m.Ask(ctx, p)
	} else {
		used = 0
	}
	if total != nil {
		total.calls++
		total.tokens += used
	}
	if used == most {
		return reply, err
	}
	ctx = context.WithoutCancel(ctx)
	if settled := svc.settle(ctx, userID, day, used-most); settled != nil {
		svc.opts.Log.ErrorContext(ctx, "unused tokens of the circle not given back", "err", settled)
	}
	return reply, err
}

// reserve counts a call and its tokens, and returns the day that they count for.
func (svc *Service) reserve(ctx context.Context, userID string, tokens int64, u urgency) (day string, err error) {
	err = svc.store.Update(ctx, userID, func(tx Tx) error {
		state, err := tx.CircleState()
		if err != nil {
			return err
		}
		if day, err = dayOf(tx); err != nil {
			return err
		}
		s, err := tx.LockSpend(day)
		if err != nil {
			return err
		}
		if s.Calls+1 > u.of(state.Settings.CallsPerDay) || s.Tokens+tokens > u.of(state.Settings.TokensPerDay) {
			return errBudget
		}
		s.Calls++
		s.Tokens += tokens
		return tx.PutSpend(s)
	})
	return day, err
}

func (svc *Service) settle(ctx context.Context, userID, day string, tokens int64) error {
	return svc.store.Update(ctx, userID, func(tx Tx) error {
		s, err := tx.LockSpend(day)
		if err != nil {
			return err
		}
		s.Tokens = max(0, s.Tokens+tokens)
		return tx.PutSpend(s)
	})
}

// countLeftOut counts a turn that the limits of the day have left out.
func countLeftOut(tx Tx) error {
	day, err := dayOf(tx)
	if err != nil {
		return err
	}
	s, err := tx.LockSpend(day)
	if err != nil {
		return err
	}
	s.LeftOut++
	return tx.PutSpend(s)
}

// dayOf is the user's day, 2006-01-02.
func dayOf(tx Tx) (string, error) {
	set, err := tx.Characters.Settings()
	if err != nil {
		return "", err
	}
	return tx.Now().In(set.Zone()).Format(time.DateOnly), nil
}

// paces lets the requests of each key start one after another. A request that hangs holds
// up nobody else.
type paces struct {
	mu   sync.Mutex
	keys map[string]*pace
}

// pace is held by the one whose request is next.
type pace struct {
	turn  chan struct{}
	users int       // who hold it, or wait for it
	next  time.Time // when the next request may start
}

// wait returns when a request with the key may start: pause after the one before it. An
// empty key is not paced.
//
// Errors: those of ctx.
func (ps *paces) wait(ctx context.Context, key string, pause time.Duration) error {
	if key == "" {
		return nil
	}
	p := ps.enter(key)
	defer ps.leave(p)
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	timer := time.NewTimer(time.Until(p.next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.next = time.Now().Add(pause)
	return nil
}

func (ps *paces) enter(key string) *pace {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.keys == nil {
		ps.keys = map[string]*pace{}
	}
	p := ps.keys[key]
	if p == nil {
		p = &pace{turn: make(chan struct{}, 1)}
		ps.keys[key] = p
	}
	p.users++
	return p
}

// leave forgets the keys that nobody waits for and whose pause is over.
func (ps *paces) leave(p *pace) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.users--
	now := time.Now()
	for key, p := range ps.keys {
		if p.users == 0 && !now.Before(p.next) {
			delete(ps.keys, key)
		}
	}
}
