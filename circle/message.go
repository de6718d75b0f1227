package circle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// Characters write private messages to a user who has been silent, if the user wants it:
// JobMessage looks when the next one is due, and plans itself again. The time doubles with each
// message that the user has not answered, and no character has more than one of them.

// JobMessage has no subject; a character writes to a silent user.
const JobMessage = "circle.message"

const (
	messageSlot   = "message#"
	messageTokens = 4_000 // that count for a message; its reply is metered like every reply
)

// planMessage begins to look after the user's silence.
func (svc *Service) planMessage(tx Tx, d today) error {
	if !d.state.Settings.Proactive || svc.opts.Greet == nil {
		return nil
	}
	return tx.Jobs.Enqueue(jobs.Spec{Kind: JobMessage})
}

func (svc *Service) runMessage(ctx context.Context, j *jobs.Job) error {
	if svc.opts.Greet == nil {
		return nil
	}
	wrote, newest, err := svc.opts.LastChats(ctx, j.UserID)
	if err != nil {
		return err
	}
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if err := tx.Jobs.FinishJob(j); err != nil {
			return err
		}
		next, err := nextMessage(tx, wrote, newest)
		if err != nil || next.IsZero() {
			return err
		}
		return tx.Jobs.Enqueue(jobs.Spec{Kind: JobMessage, NotBefore: next})
	})
}

func (svc *Service) greet(ctx context.Context, w *telling) error {
	if svc.opts.Greet == nil {
		return errNoModel
	}
	wrote, newest, err := svc.opts.LastChats(ctx, w.userID)
	if err != nil {
		return err
	}
	if wrote.After(w.turn.CreatedAt) { // the user is not silent any more
		w.note = rules.NoteEnded
		return nil
	}
	if newest[w.ch.ID] == "" {
		return fault.New(fault.NotFound, "there is no conversation with %s any more", w.ch.Name)
	}
	if _, err := svc.reserve(ctx, w.userID, messageTokens, byHabit); err != nil {
		return err
	}
	w.cost = cost{1, messageTokens}
	err = svc.opts.Greet(ctx, w.userID, newest[w.ch.ID], w.turn.ID)
	if fault.Is(err, fault.NotConfigured) {
		return errNoModel
	}
	return err
}

// nextMessage plans a message if one is due, and returns when to look again: no later than
// one could be due if the user wrote now. Zero = with the plan of the next day.
func nextMessage(tx Tx, wrote time.Time, newest map[string]string) (again time.Time, err error) {
	d, err := readToday(tx)
	if err != nil {
		return time.Time{}, err
	}
	set := d.state.Settings
	if !set.Proactive || d.asleep() || wrote.IsZero() {
		return time.Time{}, nil
	}
	unanswered, err := messages(tx, TurnFilter{Slots: true, Since: wrote})
	if err != nil {
		return time.Time{}, err
	}
	planned, err := messages(tx, TurnFilter{Slots: true, State: TurnPlanned})
	if err != nil {
		return time.Time{}, err
	}
	unanswered = append(unanswered, planned...)
	sent, err := messages(tx, TurnFilter{Slots: true, Day: d.day})
	if err != nil {
		return time.Time{}, err
	}
	silent := time.Duration(set.SilentHours) * time.Hour
	latest := d.now.Add(silent)
	due := wrote.Add(silent << min(len(unanswered), 10))
	switch end := d.quiet().End(d.now); {
	case latest.Before(due):
		return latest, nil
	case d.now.Before(due):
		return due, nil
	case !end.IsZero():
		return end, nil
	case len(sent) >= set.ProactiveADay:
		return d.next(), nil
	}
	who, err := whoWrites(tx, newest, unanswered)
	if err != nil || who == "" {
		return latest, err
	}
	return latest, addTurn(tx, &Turn{
		ID: op.NewID(), CharacterID: who, Slot: fmt.Sprint(messageSlot, len(sent)+1), Day: d.day, TargetID: Me,
		Reason: rules.Close, State: TurnPlanned, DueAt: tx.Now(), CreatedAt: tx.Now(),
	})
}

// messages are the private messages among turns.
func messages(tx Tx, f TurnFilter) ([]*Turn, error) {
	turns, err := allTurns(tx, f)
	return slices.DeleteFunc(turns, func(t *Turn) bool {
		return !strings.HasPrefix(t.Slot, messageSlot) || t.State != TurnDone && t.State != TurnPlanned
	}), err
}

// whoWrites returns the member that is closest to the user, of those with a conversation
// and without an unanswered message; "" = nobody.
func whoWrites(tx Tx, newest map[string]string, unanswered []*Turn) (string, error) {
	members, err := tx.Members()
	if err != nil {
		return "", err
	}
	members = slices.DeleteFunc(members, func(ch *character.Character) bool {
		wrote := slices.ContainsFunc(unanswered, func(t *Turn) bool { return t.CharacterID == ch.ID })
		return wrote || newest[ch.ID] == ""
	})
	return closest(tx, members)
}
