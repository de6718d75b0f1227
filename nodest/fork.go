package nodest

import (
	"cmp"
	"context"
	"errors"

	"nodest/fault"
	"nodest/memory"
)

const (
	// forkNow is how many messages a fork has from the start: a page of history
	// and some more, so that who opens it does not wait for the others.
	forkNow = 60
	// copyStep is how many messages one transaction copies after that.
	copyStep = 200
	// forksAtOnce is how many forks this process completes side by side; the others
	// follow when Recover looks again.
	forksAtOnce = 4
)

// Fork makes a conversation of the branch that ends in a message, the head if
// none is named: with the texts, swipes and times of the messages, with the summary
// that is in force there, and with persona, note, settings and pins of the
// conversation as they are now. It is
// there at once with its newest messages; the others are copied after it, and
// everything that reads it sees all of them.
//
// Errors: NotFound for a message that is not one of the conversation; Invalid for
// the title; Busy while a message of the branch is being written.
func (e *Engine) Fork(ctx context.Context, c *Call, in ForkInput) (*Conversation, error) {
	if err := checkLine("title", in.Title, maxTitle); err != nil {
		return nil, err
	}
	fork, err := once(ctx, e, c, func(tx Tx) (*Conversation, error) { return fork(tx, c, in) })
	if err == nil && !c.Replayed {
		e.copyBehind(ForkRef{UserID: c.UserID, ConversationID: fork.ID})
	}
	return fork, err
}

func fork(tx Tx, c *Call, in ForkInput) (*Conversation, error) {
	source, err := tx.LockConversation(in.ConversationID)
	if err != nil {
		return nil, err
	}
	fork := &Conversation{
		ID: newID(), CharacterID: source.CharacterID, Title: cmp.Or(in.Title, source.Title), PersonaID: source.PersonaID,
		AuthorNote: source.AuthorNote, Settings: source.Settings, Extra: source.Extra, Pins: source.Pins,
		Version: 1, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
	}
	last := cmp.Or(in.MessageID, source.HeadID)
	if last == "" {
		return fork, insertConversation(tx, c, fork)
	}
	m, err := liveMessage(tx, last)
	if err == nil && m.ConversationID != source.ID {
		err = fault.New(fault.NotFound, "no message %q in this conversation", last)
	}
	if err != nil {
		return nil, inField("messageId", err)
	}
	if err := checkWritten(tx, m); err != nil {
		return nil, err
	}
	kept, err := summaryAt(tx, source, m.ID)
	if err != nil {
		return nil, err
	}
	kept = kept.forFork(tx, fork.ID, m)
	if kept != nil && kept.DeletedAt == nil {
		fork.SummaryID = kept.ID
	}
	if err := tx.InsertFork(fork, source.ID, m.ID, forkNow); err != nil {
		return nil, err
	}
	if err := insertInherited(tx, kept); err != nil {
		return nil, err
	}
	return fork, tx.Emit(conversationEvent(c.UserID, "chat.created", c.by(), fork))
}

// summaryAt is the summary in force on the branch that ends in head, the one that
// would be if it were shown, or the one that the user has deleted there: that none is
// wanted is known by it. nil = none.
func summaryAt(tx Tx, conv *Conversation, head string) (*KeptSummary, error) {
	k, err := standing(tx, conv.SummaryID, head, 0)
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
// is about may be copied later.
func (k *KeptSummary) forFork(tx Tx, forkID string, m *Message) *KeptSummary {
	if k == nil {
		return nil
	}
	s := *k.Summary
	s.ID, s.BaseID = newID(), ""
	s.Range.StartID = tx.CopyOf(forkID, k.Range.StartID, k.Range.StartSeq)
	s.Range.EndID = tx.CopyOf(forkID, k.Range.EndID, k.Range.EndSeq)
	copied := &KeptSummary{
		Summary: &s, ConversationID: forkID, MadeVersion: 1,
		HeadSeq: min(k.HeadSeq, m.Seq), ViewLength: k.ViewLength, DeletedAt: k.DeletedAt,
	}
	if k.Stale {
		copied.MadeVersion = 0
	}
	return copied
}

// insertInherited stores the summary of a fork; nil = none. What waits for better in
// the source does so in the fork.
func insertInherited(tx Tx, k *KeptSummary) error {
	if k == nil {
		return nil
	}
	if err := tx.InsertSummary(k); err != nil {
		return err
	}
	if k.DeletedAt != nil || k.Method == memory.MethodUser || !k.Stale && k.Method != memory.MethodExtractive {
		return nil
	}
	return enqueueSummary(tx, k.ConversationID, summaryOrder{Rest: true}, tx.Now().Add(summaryRest))
}

// checkWritten is Busy while m or a message above it is being written. What is
// stored after m cannot be above it, and neither can what nothing hangs on.
func checkWritten(tx Tx, m *Message) error {
	running, err := tx.Running(m.ConversationID)
	if err != nil {
		return err
	}
	for _, g := range running {
		if g.MessageID == m.ID {
			return busy(g)
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
			return busy(g)
		}
	}
	return nil
}

// errShort says that a reader came to the end of what is copied of a fork.
var errShort = errors.New("older messages of the fork are still being copied")

// viewBack is a View for an fn that reads a conversation backwards: where fn
// returns errShort, because what is copied of a fork does not reach far enough
// back, some more is copied and fn runs again. It must set anew what it hands out.
func (e *Engine) viewBack(ctx context.Context, userID, conversationID string, fn func(tx Tx) error) error {
	for {
		err := e.store.View(ctx, userID, fn)
		if !errors.Is(err, errShort) {
			return err
		}
		if _, err := e.copyMore(ctx, userID, conversationID); err != nil {
			return err
		}
	}
}

// finishFork returns when nothing of a conversation is left to be copied; for one
// that is no fork that is at once. It is for those that need all of it.
func (e *Engine) finishFork(ctx context.Context, userID, conversationID string) error {
	conv, err := e.Conversation(ctx, userID, conversationID)
	if err != nil {
		return err
	}
	for left := conv.Copying; left; {
		if left, err = e.copyMore(ctx, userID, conversationID); err != nil {
			return err
		}
	}
	return nil
}

// copyMore copies the next older messages of a fork; left says that there are
// more.
func (e *Engine) copyMore(ctx context.Context, userID, conversationID string) (left bool, err error) {
	err = e.store.Update(ctx, userID, func(tx Tx) error {
		conv, err := tx.LockConversation(conversationID)
		left = err == nil && conv.Copying
		if !left {
			return err
		}
		left, err = tx.CopyMore(conversationID, copyStep)
		return err
	})
	return left, err
}

// copyBehind completes a fork in the background, unless that is going on or
// enough of them are being completed: Recover comes back to it.
func (e *Engine) copyBehind(fork ForkRef) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing || e.forks[fork.ConversationID] != nil || len(e.forks) >= forksAtOnce {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background()) // it outlives the request
	e.forks[fork.ConversationID] = cancel
	e.working.Go(func() {
		err := e.finishFork(ctx, fork.UserID, fork.ConversationID)
		stopped := context.Cause(ctx) != nil
		cancel(nil)
		e.mu.Lock()
		delete(e.forks, fork.ConversationID)
		e.mu.Unlock()
		if err != nil && !stopped && !fault.Is(err, fault.NotFound) { // not found: it was deleted meanwhile
			e.opts.Log.Warn("older messages of a fork not copied yet", "conversation", fork.ConversationID, "err", err)
		}
	})
}

// resumeForks goes on with forks that no process has completed.
func (e *Engine) resumeForks(ctx context.Context) error {
	forks, err := e.store.Copying(ctx, recoverBatch)
	if err != nil {
		return err
	}
	for _, fork := range forks {
		e.copyBehind(fork)
	}
	return nil
}
