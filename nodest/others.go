package nodest

import (
	"context"
	"time"
)

// Others reaches the other processes on the database; *stream.Hub does. They may hear nothing: then they notice at
// their next look at the database.
type Others interface {
	// Attend has this process hear soon what others ask for and store of a user (Asked, StoredElsewhere), until leave is called.
	Attend(userID string) (leave func())
	Ask(userID string)
	Stored(userID string)
}

// nobody are the others of a process that is alone.
type nobody struct{}

func (nobody) Attend(string) func() { return func() {} }
func (nobody) Ask(string)           {}
func (nobody) Stored(string)        {}

// Asked has the user's generations in this process store what they have, and end if another process has ended them.
func (e *Engine) Asked(userID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake(userID)
	for _, t := range e.tasks {
		if t.userID != userID {
			continue
		}
		select {
		case t.asked <- struct{}{}:
		default: // it is asked already
		}
	}
}

// StoredElsewhere wakes those that wait for what another process stores of the user.
func (e *Engine) StoredElsewhere(userID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wake(userID)
}

// wake ends the channel of nextEnd; mu is locked.
func (e *Engine) wake(userID string) {
	if ch := e.turns[userID]; ch != nil {
		close(ch)
		delete(e.turns, userID)
	}
}

// answerTime is how long another process has to store what it has.
const answerTime = 200 * time.Millisecond

// askOthers waits until another process has stored what it has of the user, for answerTime at most.
func (e *Engine) askOthers(ctx context.Context, userID string) {
	stored := e.nextEnd(userID)
	e.others.Ask(userID)
	select {
	case <-stored:
	case <-time.After(answerTime):
	case <-ctx.Done():
	}
}
