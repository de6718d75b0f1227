// Package admission says when a reply may be written: at most one generation runs per conversation and a few per
// user, and a short queue holds the next. The rules are functions of the user's generations that have not ended. They
// agree in all processes, because these are read from the database.
package admission

import (
	"cmp"

	"nodest/chat"
	"nodest/internal/fault"
)

// Values of whenBusy.
const (
	Fail   = ""
	Queue  = "queue"
	Cancel = "cancel"
)

// Decision is what becomes of a new generation.
type Decision struct {
	Queued bool
	Cancel []string // generations that it replaces
}

// Admit decides about a new generation in a conversation. running are the user's
// generations that have not ended, oldest first.
//
// Errors: Busy with details.generationId, TooManyGenerations.
func Admit(running []*chat.Generation, conversationID, whenBusy string, parallel, queue int) (Decision, error) {
	var d Decision
	active, waiting, busyWith := 0, 0, ""
	for _, g := range running {
		here := g.ConversationID == conversationID
		replaced := here && whenBusy == Cancel
		if here {
			busyWith = cmp.Or(busyWith, g.ID)
		}
		if replaced {
			d.Cancel = append(d.Cancel, g.ID)
		}
		switch {
		case g.Status != chat.GenQueued:
			active++
		case !replaced:
			waiting++
		}
	}
	if busyWith != "" && whenBusy == Fail {
		return Decision{}, fault.New(fault.Busy, "a reply is being written in this conversation").With("generationId", busyWith)
	}
	d.Queued = busyWith != "" || active >= parallel
	if d.Queued && waiting >= queue {
		return Decision{}, fault.New(fault.TooManyGenerations,
			"%d replies are being written and %d are waiting; the limits are %d and %d", active, waiting, parallel, queue).
			With("running", active).With("waiting", waiting)
	}
	return d, nil
}

// MayStart reports whether a queued generation may start: no older one is left in its
// conversation, and there is a free place that no older one can take.
func MayStart(running []*chat.Generation, id string, parallel int) bool {
	free := parallel
	taken := map[string]bool{} // conversations
	for _, g := range running {
		if g.Status != chat.GenQueued {
			free--
			taken[g.ConversationID] = true
		}
	}
	for _, g := range running { // oldest first
		if g.Status != chat.GenQueued {
			continue
		}
		starts := free > 0 && !taken[g.ConversationID]
		if g.ID == id {
			return starts
		}
		if starts {
			free--
		}
		taken[g.ConversationID] = true
	}
	return false
}
