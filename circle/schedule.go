package circle

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/civil"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// When characters post. JobDay plans the day of a user: a turn and a job for each slot of
// each member. It runs at local midnight, and whenever Replan asks for it; it ends when the
// circle has no members or sleeps. The queue has one JobDay of a user, and a slot of a day
// has one turn, so that several processes plan nothing twice.

// digestSlot is that of the post with which the circle wakes.
const digestSlot = "digest"

// dayStart is the payload of a JobDay that plans a whole day: slots that have passed before
// it ran were missed. Without it, slots in the past do not count.
type dayStart struct {
	Day string `json:"day"`
}

// Replan plans the rest of the user's day again. Whatever changes who posts when calls it:
// settings of the circle or of a character, or the user's time zone.
func Replan(tx jobs.Tx) error { return tx.Enqueue(jobs.Spec{Kind: JobDay}) }

func (svc *Service) runDay(ctx context.Context, j *jobs.Job) error {
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if err := tx.Jobs.FinishJob(j); err != nil {
			return err
		}
		return svc.planDay(tx, j.Payload)
	})
}

// today is a user's day.
type today struct {
	now   time.Time // in the user's zone
	day   string
	state *State
}

func readToday(tx Tx) (today, error) {
	set, err := tx.Characters.Settings()
	if err != nil {
		return today{}, err
	}
	state, err := tx.CircleState()
	if err != nil {
		return today{}, err
	}
	now := tx.Now().In(set.Zone())
	return today{now: now, day: now.Format(time.DateOnly), state: state}, nil
}

// asleep says whether the circle sleeps, noted or not.
func (d today) asleep() bool {
	return d.state.AsleepAt != nil || !d.state.LookedAt.IsZero() && !d.now.Before(d.bedtime())
}

// bedtime is when the circle falls asleep if the user does not look at it.
func (d today) bedtime() time.Time {
	return d.state.LookedAt.Add(time.Duration(d.state.Settings.SleepAfter) * 24 * time.Hour)
}

func (d today) quiet() rules.Quiet {
	return rules.QuietHours(d.state.Settings.QuietFrom, d.state.Settings.QuietUntil)
}

// next is when the next day begins.
func (d today) next() time.Time {
	y, m, day := d.now.Date()
	return civil.At(y, m, day+1, 0, d.now.Location())
}

func (svc *Service) planDay(tx Tx, payload json.RawMessage) error {
	d, err := readToday(tx)
	if err != nil {
		return err
	}
	if _, err := tx.LockSpend(d.day); err != nil { // no turn changes meanwhile
		return err
	}
	members, err := tx.Members()
	if err != nil {
		return err
	}
	switch {
	case len(members) == 0:
		return closeCircle(tx, d)
	case d.asleep():
		return fallAsleep(tx, d)
	case d.state.LookedAt.IsZero(): // to have a circle is to have looked at it
		d.state.LookedAt = tx.Now()
		if err := tx.PutCircleState(d.state); err != nil {
			return err
		}
	}
	from := d.now
	var start dayStart
	if len(payload) > 0 && json.Unmarshal(payload, &start) == nil && start.Day == d.day {
		from = time.Time{}
	}
	wanted, err := d.slots(members, from)
	if err != nil {
		return err
	}
	if err := planSlots(tx, d, wanted); err != nil {
		return err
	}
	if err := errors.Join(svc.planMessage(tx, d), resume(tx)); err != nil {
		return err
	}
	next := jobs.Spec{Kind: JobDay, NotBefore: d.next(), Payload: op.MustJSON(dayStart{d.next().Format(time.DateOnly)})}
	if bedtime := d.bedtime(); bedtime.Before(next.NotBefore) {
		next.NotBefore, next.Payload = bedtime, nil
	}
	return tx.Jobs.Enqueue(next)
}

// closeCircle ends the plan of a circle without members. One that has members later begins
// anew, awake.
func closeCircle(tx Tx, d today) error {
	if !d.state.LookedAt.IsZero() {
		d.state.LookedAt, d.state.AsleepAt = time.Time{}, nil
		if err := tx.PutCircleState(d.state); err != nil {
			return err
		}
	}
	return leaveOutPlanned(tx, rules.NoteGone, scheduled)
}

func fallAsleep(tx Tx, d today) error {
	if d.state.AsleepAt == nil {
		now := tx.Now()
		d.state.AsleepAt = &now
		if err := tx.PutCircleState(d.state); err != nil {
			return err
		}
		if err := emitState(tx, server, d.state); err != nil {
			return err
		}
	}
	return leaveOutPlanned(tx, rules.NoteAsleep, func(*Turn) bool { return true })
}

type slotOf struct{ characterID, name string }

// slots are those of the day that are due at a time or later, and when.
func (d today) slots(members []*character.Character, from time.Time) (map[slotOf]time.Time, error) {
	wanted := map[slotOf]time.Time{}
	quiet := d.quiet()
	for _, ch := range members {
		set, err := ch.ParseSettings()
		if err != nil {
			return nil, err
		}
		seed := rules.Seed(ch.ID, d.day)
		for _, s := range rules.Slots(d.now, set.Circle.ScheduledTimes, set.Circle.PostsPerDay, quiet, seed) {
			if !s.At.Before(from) {
				wanted[slotOf{ch.ID, s.Name}] = s.At
			}
		}
	}
	return wanted, nil
}

// planSlots makes the turns of the day those that are wanted. Turns that were carried out
// stay as they are, so that no slot is used twice.
func planSlots(tx Tx, d today, wanted map[slotOf]time.Time) error {
	known, err := allTurns(tx, TurnFilter{Slots: true, Day: d.day})
	if err != nil {
		return err
	}
	for _, t := range known {
		slot := slotOf{t.CharacterID, t.Slot}
		at, ok := wanted[slot]
		if ok {
			delete(wanted, slot)
			err = moveTurn(tx, t, at)
		}
		if err != nil {
			return err
		}
		if !ok && t.State == TurnPlanned && scheduled(t) && t.DueAt.After(tx.Now()) {
			if err := leaveOutTurn(tx, t, rules.NoteGone, cost{}); err != nil {
				return err
			}
		}
	}
	if err := leaveOutOtherDays(tx, d); err != nil {
		return err
	}
	for slot, at := range wanted {
		reason := rules.Scheduled
		if strings.HasPrefix(slot.name, "#") {
			reason = rules.Frequency
		}
		t := &Turn{ID: op.NewID(), CharacterID: slot.characterID, Slot: slot.name, Day: d.day, Reason: reason, State: TurnPlanned, DueAt: at, CreatedAt: tx.Now()}
		if err := addTurn(tx, t); err != nil {
			return err
		}
	}
	return nil
}

// leaveOutOtherDays ends the turns of days that are over, but for those that are being
// carried out, and of days that come later in another time zone: these are planned again
// then.
func leaveOutOtherDays(tx Tx, d today) error {
	ahead := func(t *Turn) bool { return scheduled(t) && t.Day > d.day }
	over := func(t *Turn) bool {
		late := d.now.Sub(t.DueAt)
		return scheduled(t) && t.Day < d.day && (late < 0 || late > lateAfter)
	}
	if err := leaveOutPlanned(tx, rules.NoteGone, ahead); err != nil {
		return err
	}
	return leaveOutPlanned(tx, rules.NoteMissed, over)
}

// addTurn plans a post, unless its slot is taken.
func addTurn(tx Tx, t *Turn) error {
	added, err := tx.InsertTurn(t)
	if err != nil || !added {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobPost, Subject: t.ID, NotBefore: t.DueAt})
}

// moveTurn gives a turn that was not carried out the time of its slot. One that was left
// out because of the settings, or because the circle slept, is planned again.
func moveTurn(tx Tx, t *Turn, at time.Time) error {
	revived := t.State == TurnLeftOut && (t.Note == rules.NoteGone || t.Note == rules.NoteAsleep) && at.After(tx.Now())
	if !revived && (t.State != TurnPlanned || t.Note != "" || t.DueAt.Equal(at)) {
		return nil
	}
	t.State, t.Note, t.Error, t.EndedAt, t.DueAt = TurnPlanned, "", nil, nil, at
	if err := tx.UpdateTurn(t); err != nil {
		return err
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobPost, Subject: t.ID, NotBefore: at})
}

// scheduled says whether a turn is for a slot of the day.
func scheduled(t *Turn) bool { return t.Reason == rules.Scheduled || t.Reason == rules.Frequency }

func leaveOutPlanned(tx Tx, why rules.Note, which func(*Turn) bool) error {
	planned, err := allTurns(tx, TurnFilter{State: TurnPlanned})
	if err != nil {
		return err
	}
	for _, t := range planned {
		if !which(t) {
			continue
		}
		if err := leaveOutTurn(tx, t, why, cost{}); err != nil {
			return err
		}
	}
	return nil
}

// allTurns reads turns that are few: those of a day, or the planned ones.
func allTurns(tx Tx, f TurnFilter) (all []*Turn, err error) {
	for cursor := ""; ; {
		var page []*Turn
		if page, cursor, err = tx.Turns(f, cursor, 200); err != nil {
			return nil, err
		}
		if all = append(all, page...); cursor == "" {
			return all, nil
		}
	}
}

// Looked notes that the user looks at a circle with members, at most once an hour, and wakes
// it. The operations that read the feed, post or comment call it.
func (svc *Service) Looked(tx Tx) error {
	d, err := readToday(tx)
	if err != nil {
		return err
	}
	slept := d.asleep()
	if !slept && d.now.Sub(d.state.LookedAt) < time.Hour {
		return nil
	}
	members, err := tx.Members()
	if err != nil || len(members) == 0 {
		return err
	}
	d.state.LookedAt, d.state.AsleepAt = tx.Now(), nil
	if err := tx.PutCircleState(d.state); err != nil {
		return err
	}
	if !slept { // the plan follows itself; should it ever have stopped, it goes on here
		return tx.Jobs.Enqueue(jobs.Spec{Kind: JobDay, Once: true})
	}
	if err := emitState(tx, server, d.state); err != nil {
		return err
	}
	if err := planDigest(tx, d, members); err != nil {
		return err
	}
	return Replan(tx.Jobs)
}

// planDigest lets the character that is closest to the user tell what happened.
func planDigest(tx Tx, d today, members []*character.Character) error {
	who, err := closest(tx, members)
	if err != nil {
		return err
	}
	return addTurn(tx, &Turn{
		ID: op.NewID(), CharacterID: who, Slot: digestSlot, Day: d.day, Reason: rules.Close,
		State: TurnPlanned, DueAt: tx.Now(), CreatedAt: tx.Now(),
	})
}

// closest returns the character that likes the user best; "" = there is none.
func closest(tx Tx, members []*character.Character) (who string, err error) {
	most := 0
	for _, ch := range members {
		r, err := tx.Relation(ch.ID, Me)
		if err != nil {
			return "", err
		}
		if who == "" || r.Strength > most {
			who, most = ch.ID, r.Strength
		}
	}
	return who, nil
}
