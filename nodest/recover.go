package nodest

import (
	"context"
	"errors"
	"fmt"

	"nodest/chat"
	"nodest/internal/cite"
)

const recoverBatch = 100

// Recover ends the generations that a process left behind when it crashed, over
// all users: they become interrupted, with the text of their last checkpoint.
// It is called at the start and every few seconds. One that cannot be ended does not
// keep the others from it.
func (e *Engine) Recover(ctx context.Context) error {
	owner := ""
	if e.opts.Alone {
		owner = e.opts.Process
	}
	var failed []error
	for {
		abandoned, err := e.store.Abandoned(ctx, owner, recoverBatch)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		ended := 0
		for _, g := range abandoned {
			if e.task(g.UserID, g.ID) != nil {
				continue // it is running, only its lease is late
			}
			if err := e.interrupt(ctx, g); err != nil {
				failed = append(failed, fmt.Errorf("end generation %s: %w", g.ID, err))
				continue
			}
			ended++
		}
		if ended == 0 || len(abandoned) < recoverBatch {
			return errors.Join(failed...)
		}
	}
}

func (e *Engine) interrupt(ctx context.Context, abandoned *chat.Generation) error {
	err := e.store.Update(ctx, abandoned.UserID, func(tx Tx) error {
		conv, stored, err := lockRunning(tx, abandoned.ConversationID, abandoned.ID)
		if err == nil && stored.LeaseUntil.After(abandoned.LeaseUntil) {
			err = errLost // it is running
		}
		if err != nil {
			return err
		}
		return e.endFromCheckpoint(tx, conv, stored, stopped)
	})
	if errors.Is(err, errLost) {
		return nil // another process was faster
	}
	return err
}

// fromCheckpoint makes a reply of what was stored of it while it was written. That has no
// references yet, so marks would lead nowhere.
func fromCheckpoint(g *chat.Generation) {
	if text := chat.TextOfBlocks(g.Blocks, g.Base != ""); !g.HasText() && text != "" {
		g.Text, g.Blocks = text, nil
	}
	g.Text = cite.StripAll(g.Text, 0)
}
