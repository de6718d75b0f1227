package nodest

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Cancel stops a generation and returns its status when the end is stored. What
// it has written is kept. One that has ended already stays as it is: that is no
// error.
func (e *Engine) Cancel(ctx context.Context, userID, generationID string) (status string, err error) {
	if t := e.task(userID, generationID); t != nil {
		t.cancel(errCancelled)
		select {
		case <-t.done:
			return t.generation().Status, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return e.cancelElsewhere(ctx, userID, generationID)
}

// cancelElsewhere ends a generation that another process works on, or worked on
// when it crashed. That process stores its text when it is asked to, and learns of the
// end when it is asked again, or with its next checkpoint; then it closes its request.
func (e *Engine) cancelElsewhere(ctx context.Context, userID, generationID string) (status string, err error) {
	if !e.opts.Alone { // so that no text is lost that has been seen
		defer e.others.Attend(userID)()
		e.askOthers(ctx, userID)
	}
	status, err = op.Write(ctx, e.store, userID, func(tx Tx) (string, error) {
		g, err := tx.Generation(generationID)
		if err != nil {
			return "", err
		}
		if g.Ended() {
			return g.Status, nil
		}
		conv, g, err := lockRunning(tx, g.ConversationID, g.ID)
		if err != nil {
			return "", err
		}
		return chat.GenCancelled, e.endFromCheckpoint(tx, conv, g, cancelled)
	})
	if errors.Is(err, errLost) { // it has just ended by itself
		g, err := e.generation(ctx, userID, generationID)
		if err != nil {
			return "", err
		}
		return g.Status, nil
	}
	e.others.Ask(userID)
	e.others.Stored(userID)
	return status, err
}

// stop cancels a generation without waiting for its end.
func (e *Engine) stop(userID, generationID string) {
	if t := e.task(userID, generationID); t != nil {
		t.cancel(errCancelled)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storingTimeout) // the caller may be gone
	defer cancel()
	if _, err := e.cancelElsewhere(ctx, userID, generationID); err != nil {
		e.opts.Log.Warn("generation not cancelled", "generation", generationID, "err", err)
	}
}

// StopAll stops the generations of a user who is gone, in this process, and has others look whether theirs may go on.
func (e *Engine) StopAll(userID string) {
	defer e.others.Ask(userID)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tasks {
		if t.userID == userID {
			t.cancel(errCancelled)
		}
	}
}

// Attach returns the text of a generation from position off (code points of the
// message's text) to now. Deltas that come later begin at or before its end, so
// that by their positions nothing is missing and nothing is doubled. Of a
// generation in another process it is the text of a checkpoint that is made now, or
// of the last one if that process does not answer.
func (e *Engine) Attach(ctx context.Context, userID, generationID string, off int) (*Attached, error) {
	if off < 0 {
		return nil, fault.InvalidField("off", "range", "must not be negative")
	}
	g, err := e.generation(ctx, userID, generationID)
	if err == nil && !g.Ended() && !e.opts.Alone && e.task(userID, generationID) == nil {
		e.askOthers(ctx, userID)
		g, err = e.generation(ctx, userID, generationID)
	}
	if err != nil {
		return nil, err
	}
	text, at := from(g.Base+g.Text, off)
	return &Attached{Generation: g, Off: at, Text: text}, nil
}

// from returns the text behind the first off code points, and how many were
// skipped: fewer than off where the text is shorter.
func from(text string, off int) (rest string, skipped int) {
	for i := range text {
		if skipped == off {
			return text[i:], skipped
		}
		skipped++
	}
	return "", skipped
}

// generation returns a generation as it is now: of this process from memory, else
// as stored. It waits for an end that is being stored. One that another process has
// ended is as stored, even before this process notices.
func (e *Engine) generation(ctx context.Context, userID, id string) (*chat.Generation, error) {
	stored := func() (*chat.Generation, error) {
		return op.Read(ctx, e.store, userID, func(tx Tx) (*chat.Generation, error) { return tx.Generation(id) })
	}
	t := e.task(userID, id)
	if t == nil {
		return stored()
	}
	if !e.opts.Alone {
		if g, err := stored(); err != nil || g.Ended() {
			return g, err
		}
	}
	if g, sure := t.current(); sure {
		return g, nil
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return stored()
}

// pollElsewhere is how often Wait looks at a generation of another process.
const pollElsewhere = 500 * time.Millisecond

// Wait returns a generation when it has ended, whatever end. The end of ctx ends
// the waiting only.
func (e *Engine) Wait(ctx context.Context, userID, generationID string) (*chat.Generation, error) {
	if t := e.task(userID, generationID); t != nil {
		select {
		case <-t.done:
			if g := t.generation(); g.Ended() {
				return g, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer e.others.Attend(userID)()
	poll := time.NewTicker(pollElsewhere)
	defer poll.Stop()
	for {
		oneEnded := e.nextEnd(userID)
		g, err := e.generation(ctx, userID, generationID)
		if err != nil || g.Ended() {
			return g, err
		}
		select {
		case <-oneEnded:
		case <-poll.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Active returns the user's generations that have not ended, oldest first, each
// with the length of its text so far in Off; the text itself is left out.
func (e *Engine) Active(ctx context.Context, userID string) ([]*Attached, error) {
	stored, err := op.Read(ctx, e.store, userID, func(tx Tx) ([]*chat.Generation, error) { return tx.Chats.Running("") })
	if err != nil {
		return nil, err
	}
	active := make([]*Attached, 0, len(stored))
	for _, g := range stored {
		if t := e.task(userID, g.ID); t != nil {
			g = t.generation()
		}
		if g.Ended() {
			continue
		}
		off := utf8.RuneCountInString(g.Base) + utf8.RuneCountInString(g.Text)
		g.Base, g.Text, g.Reasoning, g.Blocks = "", "", "", nil
		active = append(active, &Attached{Generation: g, Off: off})
	}
	return active, nil
}
