package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/summary"
)

// JobSummarise is the kind of job that makes, or repairs, the summary of a
// conversation, which is its subject.
const JobSummarise = "memory.summarise"

// Kinds are the jobs of the engine, for jobs.Runner.Handle.
func (svc *Service) Kinds() []jobs.Kind {
	return []jobs.Kind{{Name: JobSummarise, Run: svc.summarise}, svc.forkKind(), {Name: JobWords, Run: svc.indexWords, AtOnce: 1}}
}

// summaryOrder is the payload of the job; its zero value is what a reply asks for.
type summaryOrder struct {
	Rest   bool          `json:"rest,omitempty"`   // nothing happens in the conversation: the time for repairs
	Forced *SummaryRange `json:"forced,omitempty"` // the user asks
	Tries  int           `json:"tries,omitempty"`  // that came to nothing
	Tokens *int          `json:"tokens,omitempty"` // those of a chat that is due, as the turn knows them (Setup.SummaryTokens); nil = by the conversation's model

	atOnce bool // a turn waits
}

func (o summaryOrder) spec(conversationID string, notBefore time.Time) jobs.Spec {
	return jobs.Spec{Kind: JobSummarise, Subject: conversationID, Payload: op.MustJSON(o), NotBefore: notBefore}
}

// repairTries is how often a model is asked to replace a summary by rule.
const repairTries = 5

// errOutdated reports that a conversation changed while its summary was being written.
var errOutdated = fault.New(fault.Conflict, "the conversation changed while its summary was being written")

// errNotDue is the error that no summary is due, with the reason.
func errNotDue(skip summary.Skip) error {
	why := map[summary.Skip]string{
		summary.SkipFew:        ": the chat is too short (the first three and last three messages are never summarised)",
		summary.SkipNothingNew: ": all messages between the first three and the last three are already summarised",
		summary.SkipUserText:   ": you wrote the summary, and there are no new messages since",
	}
	return fault.New(fault.Conflict, "nothing to summarise%s", why[skip]).With("reason", string(skip))
}

// SummaryDue enqueues the summary of a conversation, due from a number of tokens on (0 = from the
// character's length on). The job decides whether one is due.
func SummaryDue(tx Tx, conversationID string, tokens int) error {
	return enqueueSummary(tx, conversationID, summaryOrder{Tokens: &tokens}, time.Time{})
}

// enqueueSummary enqueues the job of a conversation, unless it would replace a waiting
// one that the user has requested. The caller has locked the conversation, so that no
// request comes in between.
func enqueueSummary(tx Tx, conversationID string, o summaryOrder, at time.Time) error {
	open, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: JobSummarise, Subject: conversationID, Open: true}, "", 0)
	if err != nil {
		return err
	}
	for _, j := range open {
		waiting := j.Payload
		switch {
		case j.Next != nil:
			waiting = j.Next.Payload
		case j.State == jobs.Running:
			continue
		}
		waits, err := readOrder(waiting)
		if err != nil {
			return err
		}
		if waits.Forced != nil {
			return nil
		}
	}
	return tx.Jobs.Enqueue(o.spec(conversationID, at))
}

func readOrder(payload json.RawMessage) (o summaryOrder, err error) {
	if len(payload) > 0 {
		if err = json.Unmarshal(payload, &o); err != nil {
			err = fmt.Errorf("payload of %s: %w", JobSummarise, err)
		}
	}
	return o, err
}

// RepairSummary enqueues a repair when messages that the summary in force covers
// have changed. It does not look whether they show something else.
func RepairSummary(tx Tx, conv *Conversation, changed ...*Message) error {
	if conv.SummaryID == "" {
		return nil
	}
	k, err := tx.Summary(conv.SummaryID, 0)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(changed, func(m *Message) bool { return m.Seq >= k.Range.StartSeq && m.Seq <= k.Range.EndSeq }) {
		return nil
	}
	return enqueueSummary(tx, conv.ID, summaryOrder{Rest: true}, tx.Now().Add(summaryRest))
}

// summaryRest is how long a conversation is quiet before its summary is repaired.
const summaryRest = 2 * time.Minute

func (svc *Service) summarise(ctx context.Context, j *jobs.Job) error {
	o, err := readOrder(j.Payload)
	if err != nil {
		return err
	}
	if o.Rest {
		later, err := svc.postpone(ctx, j, o)
		if later || err != nil {
			return ignoreGone(err)
		}
	}
	d, err := svc.draftSummary(ctx, j.UserID, j.Subject, o)
	switch {
	case fault.Is(err, fault.NotFound): // the conversation is gone
		return nil
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.Invalid): // nothing to do
		return nil
	case err != nil:
		return err
	}
	if d.pointless() {
		return ignoreGone(svc.store.Update(ctx, j.UserID, func(tx Tx) error {
			if _, err := tx.LockConversation(j.Subject); err != nil {
				return err
			}
			if err := d.followUp(tx); err != nil {
				return err
			}
			return tx.Jobs.FinishJob(j)
		}))
	}
	err = svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if _, err := d.store(tx, "server"); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
	switch {
	case !errors.Is(err, errOutdated):
		return ignoreGone(err)
	case o.Tries > 0:
		return nil
	}
	o.Tries++
	return svc.requeue(ctx, j, o, time.Time{})
}

// pointless reports that a repair would replace a summary by rule with another.
func (d *draft) pointless() bool {
	return d.order.Rest && d.written.Method == summary.MethodExtractive && d.base != nil &&
		d.base.Method == summary.MethodExtractive && !d.base.Stale
}

func ignoreGone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// requeue ends a job and enqueues it once more, unless its conversation is gone.
func (svc *Service) requeue(ctx context.Context, j *jobs.Job, o summaryOrder, at time.Time) error {
	err := svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if _, err := tx.LockConversation(j.Subject); err != nil {
			return err
		}
		if err := enqueueSummary(tx, j.Subject, o, at); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
	return ignoreGone(err)
}

// postpone delays a repair while the conversation is active.
func (svc *Service) postpone(ctx context.Context, j *jobs.Job, o summaryOrder) (yes bool, err error) {
	var quiet time.Time
	err = svc.store.View(ctx, j.UserID, func(tx Tx) error {
		conv, err := tx.Conversation(j.Subject)
		if err == nil {
			quiet = conv.UpdatedAt.Add(summaryRest)
			yes = tx.Now().Before(quiet)
		}
		return err
	})
	if !yes || err != nil {
		return false, err
	}
	return true, svc.requeue(ctx, j, o, quiet)
}
