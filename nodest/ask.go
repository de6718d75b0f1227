package nodest

import (
	"context"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest/recent"
)

// ask stores what the model is about to be asked, with what was recalled for it, and the events that tell it.
func (e *Engine) ask(ctx context.Context, t *task, turn *turn) error {
	body, err := turn.pack()
	if err != nil {
		return err
	}
	g, err := op.Write(ctx, e.store, t.userID, func(tx Tx) (*chat.Generation, error) {
		g, err := e.own(tx, t)
		if err != nil {
			return nil, err
		}
		return g, e.storeStart(tx, t, turn, g, body)
	})
	if err != nil {
		return err
	}
	t.setStored(g)
	t.on(promptStored)
	t.meter.noteModel(turn.setup.model)
	t.watch.asked()
	e.histories.NoteSent(t.chat(), recent.Sent{PromptID: g.PromptID, GenerationID: t.id, Hashes: turn.prompt.Hashes})
	e.publishStage(t, "waiting", turn.since)
	return nil
}

// storeStart stores g as one that waits for the model, and its prompt.
func (e *Engine) storeStart(tx Tx, t *task, turn *turn, g *chat.Generation, body []byte) error {
	now := tx.Now()
	g.Status, g.StartedAt, g.PromptID = chat.GenWaiting, &now, g.ID
	g.Options, g.Model = turn.setup.Options, turn.setup.model.Name
	lengthened := ""
	if longer := turn.past.longer; longer != nil {
		g.Base, g.SwipeID, lengthened = longer.Text, longer.ID, longer.GenerationID
	}
	if err := turn.keepPlay(tx, g); err != nil {
		return err
	}
	g.LeaseUntil, g.Timing = now.Add(e.opts.Lease), t.generation().Timing
	g.Timing.Asked = new(t.watch.now())
	if err := tx.UpdateGeneration(g); err != nil {
		return err
	}
	if err := tx.Memory.PutUses(g.ConversationID, g.ID, lengthened, turn.used()); err != nil {
		return err
	}
	err := tx.PutPrompt(&StoredPrompt{
		ID: g.PromptID, ConversationID: g.ConversationID, GenerationID: g.ID, Body: body, FileIDs: turn.fileIDs(), CreatedAt: now,
	})
	if err != nil {
		return err
	}
	return tx.Emit(
		generationEvent(t.userID, "gen.started", t.device, g, startedData(g, turn)),
		generationEvent(t.userID, "gen.context", t.device, g, contextData(turn)),
	)
}
