package nodest

import (
	"context"
	"sync"
	"time"

	"nodest/chat"
)

// start is what is stored when the model is about to be asked.
type start struct {
	turn *turn
	pack func() ([]byte, error) // its prompt: whoever needs it first makes it
}

// of makes g, the generation of a task, one that waits for the model.
func (s *start) of(t *task, g *chat.Generation, now time.Time, lease time.Duration) {
	g.Status, g.StartedAt, g.PromptID = chat.GenWaiting, &now, g.ID
	g.Options, g.Model, g.Base, g.SwipeID = s.turn.setup.Options, s.turn.setup.model.Name, s.turn.base, s.turn.swipeID
	g.LeaseUntil, g.Timing = now.Add(lease), t.generation().Timing
	if g.Timing.Asked == nil { // it is about to be asked
		g.Timing.Asked = new(t.watch.now())
	}
}

// store stores the prompt of g with what was recalled for it, and emits the events of its start.
func (s *start) store(tx Tx, t *task, g *chat.Generation) error {
	if err := tx.Memory.PutUses(g.ConversationID, g.ID, s.turn.begunBy, s.turn.used()); err != nil {
		return err
	}
	body, err := s.pack()
	if err != nil {
		return err
	}
	err = tx.PutPrompt(&StoredPrompt{
		ID: g.PromptID, ConversationID: g.ConversationID, GenerationID: g.ID, Body: body, FileIDs: s.turn.fileIDs(), CreatedAt: *g.StartedAt,
	})
	if err != nil {
		return err
	}
	return tx.Emit(
		generationEvent(t.userID, "gen.started", t.device, g, startedData(g, s.turn)),
		generationEvent(t.userID, "gen.context", t.device, g, contextData(s.turn)),
	)
}

// offer lets the transaction that accepts the task store its start too. It may be too late for that.
func (t *task) offer(s *start) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ready = s
}

// storeAccepted stores a generation that is accepted, and what it is about, together with its start
// if its prompt is ready in time: that takes the place of a transaction, which the first token would
// wait for.
func (e *Engine) storeAccepted(tx Tx, prepared *task, as *accepted) error {
	if as.store != nil {
		if err := as.store(); err != nil {
			return err
		}
	}
	if prepared == nil {
		return tx.InsertGeneration(as.gen)
	}
	tx.AtEnd(func() error { // the later, the more often it is ready
		prepared.mu.Lock()
		as.start = prepared.ready
		prepared.mu.Unlock()
		if as.start == nil {
			return tx.InsertGeneration(as.gen)
		}
		as.start.of(prepared, as.gen, tx.Now(), e.opts.Lease)
		if err := tx.InsertGeneration(as.gen); err != nil {
			return err
		}
		return as.start.store(tx, prepared, as.gen)
	})
	return nil
}

// announce stores and publishes the start while the model is being asked, with the
// transaction that accepts it or behind it, which may still be on its way to the disk. The caller
// calls stored, which waits for that, before it publishes anything of the reply; nil is success.
func (e *Engine) announce(ctx context.Context, t *task, turn *turn) (stored func() error) {
	s := &start{turn, sync.OnceValues(turn.pack)}
	t.offer(s)
	later := make(chan error, 1)
	go func() { later <- e.storeStart(ctx, t, s) }()
	return sync.OnceValue(func() error {
		err := t.committed()
		if err == nil && !t.begun {
			err = <-later
		}
		if err != nil {
			return err
		}
		if turn.fresh != nil {
			e.histories.append(t.conversationID, t.assignment.version, t.fresh)
		}
		e.histories.noteSent(t.conversationID, sentPrompt{t.generation().PromptID, t.id, turn.prompt.Hashes})
		return nil
	})
}

// storeStart stores a start that its acceptance came too early for.
func (e *Engine) storeStart(ctx context.Context, t *task, s *start) error {
	if _, err := s.pack(); err != nil {
		return err
	}
	if err := t.committed(); err != nil || t.begun {
		return err
	}
	var g *chat.Generation
	err := e.store.Update(ctx, t.userID, func(tx Tx) error {
		var err error
		if g, err = e.own(tx, t); err != nil {
			return err
		}
		s.of(t, g, tx.Now(), e.opts.Lease)
		if err := tx.UpdateGeneration(g); err != nil {
			return err
		}
		return s.store(tx, t, g)
	})
	if err == nil {
		t.setStored(g)
	}
	return err
}
