package nodest

import (
	"context"
	"encoding/json"

	"nodest/chat"
	"nodest/internal/summary"
	"nodest/memory"
	"nodest/nodest/recent"
)

// history is what was said before a reply. storedChat is that of a stored chat; a turn whose messages
// are kept elsewhere, or come with the request, has another one.
type history interface {
	// read reads it, as far back as a prompt with room tokens for it can reach.
	read(ctx context.Context, room int) (*past, error)
	// shorten makes a summary of a history of more than some tokens, so that there is less to send when it
	// is read again. It reports whether it did; a turn does not fail because it has no summary.
	shorten(ctx context.Context, tokens int) (bool, error)
}

// past is what a turn has read of its history.
type past struct {
	messages []*chat.Message  // oldest first, without those that the summary replaces
	summary  *summary.Summary // nil = none
	front    int              // messages before it
	unread   bool             // there are older messages
	version  int64            // version of the chat that they are stored in; 0 = they are not stored
	earlier  int              // messages of the branch that are not in messages; read for the SillyTavern dialect only
	place    memory.Place     // the branch of the chat
	texts    int              // that the message in the making already has
	longer   *chat.Swipe      // the text that is lengthened; nil = none
	previous recent.Sent      // the request before, which the provider may have cached
	play     *chat.Play       // the branch hands it on to the prompt; nil = nothing
	globals  json.RawMessage  // the user's variables; nil = none
}
