package dream

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"nodest/internal/civil"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
)

// SweepEvery is how often Sweep is to be called.
const SweepEvery = time.Hour

// Sweep plans the nights of all memories that come before the next sweep, and those that were missed.
// A memory that cannot be planned keeps no other one from its night: the first error is returned in the end.
// Who has said enough only in the hour before their night has it with the sweep after that.
func (s *Service) Sweep(ctx context.Context) error {
	var failed error
	for after := (memory.Scope{}); ; {
		scopes, err := s.store.DueForDreams(ctx, 1, after, 200)
		if err != nil || len(scopes) == 0 {
			return cmp.Or(err, failed)
		}
		for _, scope := range scopes {
			if err := s.plan(ctx, scope); err != nil && !fault.Is(err, fault.NotFound) {
				failed = cmp.Or(failed, fmt.Errorf("plan a dream: %w", err))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		after = scopes[len(scopes)-1]
	}
}

// plan enqueues the job of the night that was missed, or of the next one. The job looks for itself whether
// there is something to do then.
func (s *Service) plan(ctx context.Context, scope memory.Scope) error {
	scene, err := s.opts.Scenes(ctx, scope.UserID, scope.CharacterID)
	if err != nil || scene.Mode != Full {
		return err
	}
	at, err := op.Read(ctx, s.store, scope.UserID, func(tx Tx) (at time.Time, err error) {
		now := tx.Now()
		last, next := nights(now, &scene)
		if due, err := s.due(tx, scope.CharacterID, &scene, last); err != nil || due {
			return now, err
		}
		if next.Sub(now) > SweepEvery {
			return time.Time{}, nil
		}
		unread, err := tx.UnreadBefore(scope.CharacterID, now)
		if err != nil || unread < int64(scene.Least) {
			return time.Time{}, err
		}
		return next, nil
	})
	if err != nil || at.IsZero() {
		return err
	}
	return s.store.Update(ctx, scope.UserID, func(tx Tx) error {
		return tx.Memory.Jobs.Enqueue(jobs.Spec{Kind: JobDream, Subject: scope.CharacterID, NotBefore: at, Once: true})
	})
}

// nights returns when the last night began, and when the next one does. A time that a change of the clocks
// leaves out, or has twice, comes once.
func nights(now time.Time, scene *Scene) (last, next time.Time) {
	at, err := time.Parse("15:04", scene.At)
	if err != nil { // the settings have checked it
		at = time.Time{}
	}
	y, m, d := now.In(scene.Zone).Date()
	night := func(days int) time.Time { return civil.At(y, m, d+days, at.Hour()*60+at.Minute(), scene.Zone) }
	if tonight := night(0); !now.Before(tonight) {
		return tonight, night(1)
	}
	return night(-1), night(0)
}

// due reports whether a night has something to do: enough was said before it that no run has read, no run
// has begun since, and the last ones had a result.
func (s *Service) due(tx Tx, characterID string, scene *Scene, night time.Time) (bool, error) {
	runs, _, err := tx.DreamRuns(characterID, "", emptyRuns)
	if err != nil || len(runs) > 0 && !runs[0].CreatedAt.Before(night) {
		return false, err
	}
	empty := 0
	for _, r := range runs {
		if r.fruitless() {
			empty++
		}
	}
	if empty == emptyRuns && tx.Now().Sub(runs[0].CreatedAt) < restTime {
		return false, nil
	}
	unread, err := tx.UnreadBefore(characterID, night)
	return unread >= int64(scene.Least), err
}

// tonight begins the run of a night, if there is something to do; else the job ends, or waits until the
// user is away.
func (a *attempt) tonight(tx Tx) (*Run, error) {
	last, _ := nights(tx.Now(), &a.scene)
	due, err := a.due(tx, a.job.Subject, &a.scene, last)
	if err != nil {
		return nil, err
	}
	spent, err := a.spent(tx, a.job.Subject, &a.scene, 0)
	if err != nil {
		return nil, err
	}
	if a.scene.Mode != Full || !due || spent {
		return nil, tx.Memory.Jobs.FinishJob(a.job)
	}
	if active, err := a.active(tx, a.job.Subject); err != nil || active {
		if err == nil {
			err = a.later(tx, payload{})
		}
		return nil, err
	}
	run := &Run{ID: a.job.ID, Cause: byNight}
	return run, add(tx, a.job.Subject, run)
}
