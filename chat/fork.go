package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/summary"
)

// JobFork is the kind of job that completes a long fork, which is its subject.
const JobFork = "chat.fork"

type forkOrder struct {
	From ForkSource `json:"from"`
	By   string     `json:"by"` // device that asked for it
}

type forkProgress struct {
	Copied int `json:"copied"` // messages
	Total  int `json:"total"`
}

// Fork makes a conversation of the branch that ends in a message, the head if
// none is named: with the texts, swipes and times of the messages, with the summary
// that is in force there, and with persona, note, settings and pins of the
// conversation as they are now. A fork of more than Options.ForkStep texts is
// Copying in the answer: a job completes it, and it is invisible until its event chat.created.
//
// Errors: NotFound for a message that is not one of the conversation; Invalid for
// the title; Busy while a message of the branch is being written.
func (svc *Service) Fork(ctx context.Context, c *op.Call, in ForkInput) (*Conversation, error) {
	if err := op.CheckLine("title", in.Title, MaxTitle); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Conversation, error) { return svc.fork(tx, c, in) })
}

func (svc *Service) fork(tx Tx, c *op.Call, in ForkInput) (*Conversation, error) {
	source, err := tx.LockConversation(in.ConversationID)
	if err != nil {
		return nil, err
	}
	fork := &Conversation{
		ID: op.NewID(), CharacterID: source.CharacterID, Title: cmp.Or(in.Title, source.Title), PersonaID: source.PersonaID, Tags: source.Tags,
		AuthorNote: source.AuthorNote, Settings: source.Settings, Extra: source.Extra, Pins: source.Pins,
		Version: 1, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
	}
	last := cmp.Or(in.MessageID, source.HeadID)
	if last == "" {
		return fork, InsertConversation(tx, c, fork)
	}
	m, err := liveMessageIn(tx, source.ID, last)
	if err != nil {
		return nil, err
	}
	if err := checkWritten(tx, m); err != nil {
		return nil, err
	}
	kept, err := summaryAt(tx, source, m.ID)
	if err != nil {
		return nil, err
	}
	fork.HeadID, fork.LastMessage = tx.CopyOf(fork.ID, m.ID), m.Preview()
	fork.LastMessage.ID, fork.LastMessage.RevisionID = fork.HeadID, tx.CopyOf(fork.ID, fork.LastMessage.RevisionID)
	kept = kept.forFork(tx, fork.ID, m)
	if kept != nil && kept.DeletedAt == nil {
		fork.SummaryID = kept.ID
	}
	play, err := playAt(tx, source, m.ID)
	if err != nil {
		return nil, err
	}
	fork.PlayID = tx.CopyOf(fork.ID, play.ID)
	if err := tx.BeginLoad(fork); err != nil {
		return nil, err
	}
	if err := insertPlayOf(tx, fork, play); err != nil {
		return nil, err
	}
	if kept != nil {
		if err := tx.InsertSummary(kept); err != nil {
			return nil, err
		}
	}
	order := forkOrder{ForkSource{source.ID, m.ID, source.Version}, c.By()}
	p, err := order.copyMore(tx, c.UserID, fork.ID, svc.opts.ForkStep)
	if err != nil || p.Copied == p.Total {
		return fork, err
	}
	fork.Copying = true
	return fork, tx.Jobs.Enqueue(jobs.Spec{Kind: JobFork, Subject: fork.ID, Payload: op.MustJSON(order)})
}

// insertPlayOf stores the state that a fork begins with, if there is one; those of other texts are copied with them.
func insertPlayOf(tx Tx, fork *Conversation, play *Play) error {
	if play.ID == "" {
		return nil
	}
	play.ID, play.ConversationID = fork.PlayID, fork.ID
	return tx.InsertPlay(play)
}

// copyMore copies the next step texts of a fork, and shows it when it has all of them.
func (o forkOrder) copyMore(tx Tx, userID, forkID string, step int) (p forkProgress, err error) {
	fork, err := tx.Loading(forkID)
	if err != nil {
		return p, err
	}
	if p.Copied, p.Total, err = tx.CopyPath(o.From, forkID, step); err != nil || p.Copied < p.Total {
		return p, err
	}
	if _, err := tx.Characters.CharacterCard(fork.CharacterID); err != nil { // it may be gone
		return p, err
	}
	fork.UpdatedAt = tx.Now()
	if err := tx.FinishLoad(fork, nil, nil); err != nil {
		return p, err
	}
	if err := repairInherited(tx, fork); err != nil {
		return p, err
	}
	return p, tx.Emit(ConversationEvent(userID, "chat.created", o.By, fork))
}

// forkKind allows many attempts, since each continues where the last one ended.
func (svc *Service) forkKind() jobs.Kind {
	return jobs.Kind{Name: JobFork, Run: svc.completeFork, AtOnce: 2, PerUser: 1, Attempts: 100}
}

// forkTurn is how long a fork goes on before those of others have their turn.
const forkTurn = 5 * time.Second

func (svc *Service) completeFork(ctx context.Context, j *jobs.Job) error {
	var order forkOrder
	if err := json.Unmarshal(j.Payload, &order); err != nil {
		return fmt.Errorf("payload of %s: %w", JobFork, err)
	}
	for begun := time.Now(); ; {
		var p forkProgress
		err := svc.store.Update(ctx, j.UserID, func(tx Tx) (err error) {
			if p, err = order.copyMore(tx, j.UserID, j.Subject, svc.opts.ForkStep); err != nil {
				return err
			}
			if err := tx.Jobs.NoteJob(j, p); err != nil || p.Copied < p.Total {
				return err
			}
			return tx.Jobs.FinishJob(j)
		})
		if err != nil || p.Copied == p.Total {
			return ignoreGone(err)
		}
		if time.Since(begun) > forkTurn {
			return jobs.ErrLater
		}
	}
}

// summaryAt is the summary that is active on the branch that ends in head, or would be if
// it were shown, or a deleted one that says that the user wants none there. nil = none.
func summaryAt(tx Tx, conv *Conversation, head string) (*KeptSummary, error) {
	k, err := ActiveSummary(tx, conv.SummaryID, head, 0)
	if k != nil || err != nil {
		return k, err
	}
	k, deleted, err := summaryFor(tx, conv.ID, head)
	switch {
	case err != nil:
		return nil, err
	case deleted != nil:
		return tx.Summary(deleted.ID, 0)
	case head == conv.HeadID:
		return nil, nil
	}
	return k, nil
}

// forFork is a copy for a fork whose last message is a copy of m. The messages that it
// is about are copied after it.
func (k *KeptSummary) forFork(tx Tx, forkID string, m *Message) *KeptSummary {
	if k == nil {
		return nil
	}
	s := *k.Summary
	s.ID, s.BaseID = op.NewID(), ""
	s.Range.StartID = tx.CopyOf(forkID, k.Range.StartID)
	s.Range.EndID = tx.CopyOf(forkID, k.Range.EndID)
	copied := &KeptSummary{
		Summary: &s, ConversationID: forkID, MadeVersion: 1,
		HeadSeq: min(k.HeadSeq, m.Seq), ViewLength: k.ViewLength, DeletedAt: k.DeletedAt,
	}
	if k.Stale {
		copied.MadeVersion = 0
	}
	return copied
}

// repairInherited enqueues a repair of a fork's summary if it is stale or was made
// without a model.
func repairInherited(tx Tx, fork *Conversation) error {
	k, err := ActiveSummary(tx, fork.SummaryID, fork.HeadID, 0)
	if err != nil || k == nil || k.Method == summary.MethodUser || !k.Stale && k.Method != summary.MethodExtractive {
		return err
	}
	return enqueueSummary(tx, fork.ID, summaryOrder{Rest: true}, tx.Now().Add(summaryRest))
}

// checkWritten returns Busy while m or an ancestor is being written. A message with a
// higher seq or without children cannot be an ancestor.
func checkWritten(tx Tx, m *Message) error {
	running, err := tx.Running(m.ConversationID)
	if err != nil {
		return err
	}
	for _, g := range running {
		if g.MessageID == m.ID {
			return Busy(g)
		}
		if g.MessageID == "" {
			continue
		}
		writing, err := tx.Message(g.MessageID)
		if err != nil {
			return err
		}
		if writing.Seq > m.Seq {
			continue
		}
		below, err := tx.Children(m.ConversationID, writing.ID)
		if err != nil {
			return err
		}
		if len(below) > 0 {
			return Busy(g)
		}
	}
	return nil
}
