package store

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/store/sqldb"
)

// A user can delete and restore a hundred thousand messages with all their swipes at once. What is
// here reads no texts for that.

// hidePiece is how many messages a statement hides or shows.
const hidePiece = 500

// bareColumns are the columns of messages m that tell where they are and whether they are deleted.
const bareColumns = "m.id, m.conversation_id, m.parent_id, m.seq, m.role, m.rev, m.status, m.deleted_at"

// Below finds the chains that hang below the message, and reads the rest of each.
func (t *tx) Below(m *chat.Message, deletedIn int64) ([]*chat.Message, error) {
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
		some, err := sqldb.Map(t, (*messageRow).message, "WITH below (chain, depth) AS ("+values(2, len(part))+") SELECT "+bareColumns+
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

// SetDeleted writes what UpdateMessage would, with a few statements for many messages.
func (t *tx) SetDeleted(at *time.Time, messages ...*chat.Message) error {
	byID := make(map[string]*chat.Message, len(messages))
	for _, m := range messages {
		if t.states[m.ID] != nil {
			return errors.New("store: a deletion comes before other changes of the message")
		}
		byID[m.ID] = m
	}
	for part := range slices.Chunk(chat.IDsOf(messages), hidePiece) {
		err := t.Run("INSERT INTO message_states (user_id, conversation_id, message_id, version, previous, rev, status, is_deleted, revision_id) "+
			onlyStates, t.userID, part)
		if err != nil {
			return err
		}
		n, err := t.Exec("UPDATE messages SET deleted_at = ?, rev = rev + 1, since = 0 WHERE user_id = ? AND id IN (?) AND (deleted_at IS NULL) = ?",
			at, t.userID, part, at != nil)
		if err != nil {
			return err
		}
		if n != int64(len(part)) {
			return t.changedElsewhere(part)
		}
		err = sqldb.Each(t, func(r *bareRow) error {
			m := byID[r.ID]
			m.Rev, m.DeletedAt = r.Rev, r.DeletedAt
			state := &messageStateRow{UserID: t.userID, ConversationID: r.ConversationID, MessageID: r.ID, Previous: unknownPrevious}
			state.Rev, state.Status, state.Deleted, state.RevisionID = r.Rev, r.Status, r.DeletedAt != nil, r.RevisionID
			t.states[r.ID] = state
			return nil
		}, selectBare, t.userID, part)
		if err != nil {
			return err
		}
	}
	return nil
}

// changedElsewhere is the error for messages of which one is not there, or was changed by somebody
// who does not have the conversation's lock.
func (t *tx) changedElsewhere(ids []string) error {
	for _, id := range ids {
		if _, err := t.Message(id); err != nil {
			return err
		}
	}
	return fault.New(fault.Conflict, "a message was changed by another request")
}

// bareRow is a message without texts, and the id of the one that it shows.
type bareRow struct {
	messageRow
	RevisionID string
}

const selectBare = "SELECT " + bareColumns + ", " + shownText + " AS revision_id FROM messages m WHERE m.user_id = ? AND m.id IN (?)"
