package store

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// A user can delete and restore a hundred thousand messages with all their swipes at once. What is
// here reads no texts for that.

// hidePiece is how many messages a statement hides or shows.
const hidePiece = 500

// Below finds the chains that hang below the message, and reads the rest of each.
func (t *messageTx) Below(m *chat.Message, deletedIn int64) ([]*chat.Message, error) {
	at, err := t.placeIn(m.ConversationID, m.ID)
	if err != nil {
		return nil, err
	}
	chains, err := t.chains(m.ConversationID)
	if err != nil {
		return nil, err
	}
	from := map[int64]int64{at.Chain: at.Depth} // by chain: the depth from which on others hang below
	places := []any{at.Chain, at.Depth + 1}
	for _, c := range chains { // each after the one that it branches off from
		if c.UpChain == nil {
			continue
		}
		if first, hangs := from[*c.UpChain]; hangs && c.UpDepth >= first {
			from[c.Chain] = 0
			places = append(places, c.Chain, c.UpDepth+1)
		}
	}
	which, more := "m.deleted_at IS NULL", []any(nil)
	if deletedIn > 0 {
		which, more = "m.deleted_at = ? AND EXISTS (SELECT 1 FROM message_states s WHERE s.user_id = ? AND s.conversation_id = ?"+
			" AND s.message_id = m.id AND s.version = ? AND s.is_deleted)",
			[]any{m.DeletedAt, t.userID, m.ConversationID, deletedIn}
	}
	found := []*chat.Message{}
	for part := range slices.Chunk(places, 2*hidePiece) {
		args := append(slices.Clone(part), t.userID, m.ConversationID)
		some, err := sqldb.Map(t, func(r *bareRow) *chat.Message { return r.message(m.ConversationID, m.DeletedAt) },
			"WITH below (chain, depth) AS ("+values(2, len(part))+") SELECT m.id, m.seq, m.rev"+
				" FROM below CROSS JOIN messages m WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = below.chain AND m.depth >= below.depth AND "+which,
			append(args, more...)...)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	slices.SortFunc(found, func(a, b *chat.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

// SetDeleted writes what UpdateMessage would, with a few statements for many messages. Their new states
// follow in flushHidden.
func (t *messageTx) SetDeleted(at *time.Time, messages ...*chat.Message) error {
	for part := range slices.Chunk(messages, hidePiece) {
		ids := chat.IDsOf(part)
		if slices.ContainsFunc(ids, func(id string) bool { return t.states[id] != nil }) {
			return errors.New("store: a deletion comes before other changes of the message")
		}
		if err := t.Run("INSERT INTO message_states ("+stateColumns+") "+onlyStates, t.userID, ids); err != nil {
			return err
		}
		n, err := t.Exec("UPDATE messages SET deleted_at = ?, rev = rev + 1, since = 0 WHERE user_id = ? AND id IN (?) AND (deleted_at IS NULL) = ?",
			at, t.userID, ids, at != nil)
		if err != nil {
			return err
		}
		if n != int64(len(ids)) {
			return t.changedElsewhere(ids)
		}
		for _, m := range part {
			m.Rev, m.DeletedAt = m.Rev+1, at
		}
		t.hidden = append(t.hidden, hiddenPiece{part[0].ConversationID, ids})
	}
	return nil
}

// hiddenPiece names messages that were hidden or shown.
type hiddenPiece struct {
	conversationID string
	ids            []string
}

// flushHidden writes the states of messages that SetDeleted has changed.
func (t *messageTx) flushHidden() error {
	for _, p := range t.hidden {
		now, err := t.chats.now(p.conversationID)
		if err != nil || now == nil {
			return cmp.Or(err, errNotInConversation())
		}
		err = t.Run("INSERT INTO message_states ("+stateColumns+`) SELECT m.user_id, m.conversation_id, m.id, c.version, COALESCE((SELECT MAX(o.version)
				FROM message_states o WHERE o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version < c.version), 0),
				m.rev, m.status, m.deleted_at IS NOT NULL, m.is_hidden, `+shownText+`
			FROM conversations c CROSS JOIN messages m WHERE c.user_id = ? AND c.id = ? AND m.user_id = c.user_id AND m.id IN (?) `+overState, t.userID, p.conversationID, p.ids)
		if err != nil {
			return err
		}
	}
	return nil
}

// changedElsewhere is the error for messages of which one is not there, or was changed by somebody
// who does not have the conversation's lock.
func (t *messageTx) changedElsewhere(ids []string) error {
	for _, id := range ids {
		if _, err := t.Message(id); err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "a message was changed by another request")
}

// bareRow is a message without what its texts are.
type bareRow struct {
	ID       string
	Seq, Rev int64
}

func (r *bareRow) message(conversationID string, deletedAt *time.Time) *chat.Message {
	return &chat.Message{ID: r.ID, ConversationID: conversationID, Seq: r.Seq, Rev: r.Rev, Dates: chat.Dates{DeletedAt: deletedAt}}
}
