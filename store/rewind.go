package store

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/fault"
	"nodest/store/sqldb"
)

type rewindRow struct {
	chat.Rewind            `db:"At=version To=to_version"`
	UserID, ConversationID string
}

// pieces is the beginning of a statement: the path that ends in a message, as
// pieces of chains, each up to a depth; see place. Its arguments are the user and
// the message. To SQLite CROSS JOIN means that it must join in this order.
const pieces = `WITH RECURSIVE path (user_id, conversation_id, chain, depth) AS (
		SELECT user_id, conversation_id, chain, depth FROM messages WHERE user_id = ? AND id = ?
		UNION ALL
		SELECT up.user_id, up.conversation_id, up.chain, up.depth FROM path
		CROSS JOIN messages first CROSS JOIN messages up
		WHERE first.user_id = path.user_id AND first.conversation_id = path.conversation_id AND first.seq = path.chain
			AND up.user_id = first.user_id AND up.id = first.parent_id
	) `

// Count returns the length of a path, without its deleted messages.
func (t *tx) Count(conversationID, headID string) (int, error) {
	if start, _, err := t.pathStart(conversationID, headID, ""); err != nil || start == nil {
		return 0, err
	}
	return sqldb.Value[int](t, pieces+`SELECT (SELECT MAX(depth) FROM path) - (SELECT COUNT(*) FROM path
			CROSS JOIN messages gone WHERE gone.user_id = path.user_id AND gone.conversation_id = path.conversation_id
			AND gone.chain = path.chain AND gone.depth <= path.depth AND gone.deleted_at IS NOT NULL)`, t.userID, headID)
}

// Born returns the conversation's version in which a message was stored.
func (t *tx) Born(messageID string) (int64, error) {
	version, err := sqldb.Value[int64](t, `SELECT CASE WHEN m.since > 0 THEN m.since ELSE COALESCE((SELECT MIN(s.version) FROM message_states s
			WHERE s.user_id = m.user_id AND s.conversation_id = m.conversation_id AND s.message_id = m.id), 0) END FROM messages m
		JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id AND c.deleted_at IS NULL
		WHERE m.user_id = ? AND m.id = ?`, t.userID, messageID)
	if err == nil && version == 0 {
		err = fault.New(fault.NotFound, "no such message")
	}
	return version, err
}

// DeletedIn returns the conversation's version in which a message was deleted.
func (t *tx) DeletedIn(messageID string) (int64, error) {
	version, err := sqldb.Value[int64](t, `SELECT MIN(s.version) FROM messages m
		JOIN conversations c ON c.user_id = m.user_id AND c.id = m.conversation_id AND c.deleted_at IS NULL
		JOIN message_states s ON s.user_id = m.user_id AND s.conversation_id = m.conversation_id AND s.message_id = m.id
		WHERE m.user_id = ? AND m.id = ? AND s.is_deleted AND s.version > COALESCE((SELECT MAX(o.version) FROM message_states o
			WHERE o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND NOT o.is_deleted), 0)`,
		t.userID, messageID)
	if err == nil && version == 0 {
		err = fault.New(fault.NotFound, "the message is not deleted")
	}
	return version, err
}

// Rewinds returns the conversation's rewinds, oldest first.
func (t *tx) Rewinds(conversationID string) ([]chat.Rewind, error) {
	return sqldb.All[chat.Rewind](t.withConversation(conversationID), "SELECT version AS at, to_version AS \"to\" FROM rewinds"+
		" WHERE user_id = ? AND conversation_id = ? ORDER BY version", t.userID, conversationID)
}

// Rewind gives the messages of a path the states that they had. A message that was
// being written again then is interrupted now, because nobody writes it any more;
// one whose text maintenance has removed stays as it is.
//
// It must come before other changes of messages in the same transaction, because their
// states are not stored yet.
func (t *tx) Rewind(c *chat.Conversation, version int64, headID string) (changed, moved []*chat.Message, err error) {
	for _, s := range t.states {
		if s.ConversationID == c.ID {
			return nil, nil, errors.New("store: a rewind comes before other changes of messages")
		}
	}
	found, err := t.Has(`SELECT 1 FROM conversations c
		JOIN conversation_states s ON s.user_id = c.user_id AND s.conversation_id = c.id
		WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NULL AND c.version >= ? AND s.version <= ? LIMIT 1`,
		t.userID, c.ID, version, version)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		return nil, nil, errNoVersion(version)
	}
	if err := t.Insert("rewinds", &rewindRow{chat.Rewind{At: c.Version + 1, To: version}, t.userID, c.ID}); err != nil {
		return nil, nil, err
	}
	if headID == "" {
		return nil, nil, nil
	}
	if err := t.inConversation(c.ID, headID); err != nil {
		return nil, nil, err
	}
	return t.rewind(c.ID, version, headID)
}

func (t *tx) rewind(conversationID string, version int64, headID string) (changed, moved []*chat.Message, err error) {
	var gone, back []*chat.Message
	var others []replacedState
	err = sqldb.Each(t, func(r *pastRow) error {
		switch r.Change {
		case hides:
			gone = append(gone, r.message(conversationID, nil))
		case shows:
			back = append(back, r.message(conversationID, nil))
		default:
			others = append(others, replacedState{r.ID, r.Version})
		}
		return nil
	}, selectPast, t.userID, headID, t.userID, conversationID, version, version)
	if err != nil {
		return nil, nil, err
	}
	at := t.Now()
	if err := t.SetDeleted(&at, gone...); err != nil {
		return nil, nil, err
	}
	if err := t.SetDeleted(nil, back...); err != nil {
		return nil, nil, err
	}
	for part := range slices.Chunk(others, 200) {
		some, err := t.setBack(conversationID, part)
		if err != nil {
			return nil, nil, err
		}
		changed = append(changed, some...)
	}
	moved = append(gone, back...)
	for _, all := range [][]*chat.Message{changed, moved} {
		slices.SortFunc(all, func(a, b *chat.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return changed, moved, nil
}

// pastRow is a message that differs from the state that it had at a version.
type pastRow struct {
	bareRow
	Version int64 // of the state
	Change  int   // what the state does to it
}

// hides and shows are the changes of a message that differs in nothing else.
const hides, shows = 1, 2

// selectPast reads the messages of a path that had another state at a version. It compares their texts by
// their ids, and the status as messageStateRow.restored has it.
const selectPast = pieces + `SELECT * FROM (SELECT m.id, m.seq, m.rev, s.version, CASE
		WHEN s.revision_id <> ` + shownText + ` OR m.status <> CASE WHEN s.status IN ('` + chat.StatusPending + `', '` + chat.StatusStreaming + `')
			THEN '` + chat.StatusInterrupted + `' ELSE s.status END THEN 3
		WHEN s.is_deleted THEN CASE WHEN m.deleted_at IS NULL THEN 1 ELSE 0 END
		WHEN m.deleted_at IS NULL THEN 0 ELSE 2 END AS change
	FROM message_states n CROSS JOIN messages m CROSS JOIN path CROSS JOIN message_states s
	WHERE n.user_id = ? AND n.conversation_id = ? AND n.version > ? AND n.previous > 0 AND n.previous <= ?
		AND m.user_id = n.user_id AND m.id = n.message_id AND path.chain = m.chain AND m.depth <= path.depth
		AND s.user_id = n.user_id AND s.conversation_id = n.conversation_id AND s.message_id = n.message_id AND s.version = n.previous
	) past WHERE change > 0`

// restored is the status of a message that gets the state back. What was being written is
// interrupted, because nobody writes it any more.
func (s *messageStateRow) restored() string {
	if s.Status == chat.StatusPending || s.Status == chat.StatusStreaming {
		return chat.StatusInterrupted
	}
	return s.Status
}

// replacedState names a state that another one replaced.
type replacedState struct {
	MessageID string
	Previous  int64
}

// replaced returns the states that messages of the conversation had at a version
// and have no longer. One held from the previous of its successor until the
// successor's version.
func (t *tx) replaced(conversationID string, version int64) ([]replacedState, error) {
	return sqldb.All[replacedState](t, "SELECT message_id, previous FROM message_states"+
		" WHERE user_id = ? AND conversation_id = ? AND version > ? AND previous > 0 AND previous <= ?", t.userID, conversationID, version, version)
}

// setBack gives messages states that they had, and returns those that it changed.
func (t *tx) setBack(conversationID string, replaced []replacedState) ([]*chat.Message, error) {
	var wanted []any
	for _, s := range replaced {
		wanted = append(wanted, s.MessageID, s.Previous)
	}
	states, err := sqldb.All[messageStateRow](t, "WITH wanted (message_id, version) AS ("+values(2, len(wanted))+`)
		SELECT s.* FROM wanted CROSS JOIN messages m CROSS JOIN message_states s WHERE m.user_id = ? AND m.id = wanted.message_id
			AND s.user_id = ? AND s.conversation_id = ? AND s.message_id = wanted.message_id AND s.version = wanted.version
		ORDER BY m.seq`, append(wanted, t.userID, t.userID, conversationID)...)
	if err != nil {
		return nil, err
	}
	ids, then := make([]string, len(states)), make([]string, len(states))
	for i, s := range states {
		ids[i], then[i] = s.MessageID, s.RevisionID
	}
	items, err := t.messages("WHERE m.user_id = ? AND m.id IN (?) ORDER BY m.seq", t.userID, ids)
	if err != nil {
		return nil, err
	}
	now := make([]string, len(items))
	for i, m := range items {
		if s := m.Chosen(); s != nil {
			now[i] = s.RevisionID
		}
	}
	shown, err := t.choose(items, then)
	if err != nil {
		return nil, err
	}
	var changed []*chat.Message
	for i, m := range items {
		if shown[i] && t.setState(m, &states[i], then[i] != now[i]) {
			changed = append(changed, m)
		}
	}
	if len(changed) == 0 {
		return changed, nil
	}
	return changed, t.storeStates(changed)
}

// setState gives m what else a state holds, and the next rev if it changed.
func (t *tx) setState(m *chat.Message, s *messageStateRow, changed bool) bool {
	status := s.restored()
	if status == m.Status && s.Deleted == (m.DeletedAt != nil) && !changed {
		return false
	}
	if m.Status = status; status != chat.StatusError {
		m.Error = nil
	}
	t.setDeleted(m, s.Deleted)
	m.Rev++
	return true
}

// storeStates writes what setState and choose changed, in one statement each.
func (t *tx) storeStates(items []*chat.Message) error {
	var messages, swipes []any
	for _, m := range items {
		messages = append(messages, m.ID, m.SwipeIndex, m.Rev, m.Status, m.Error, m.DeletedAt)
		if s := m.Chosen(); s != nil {
			swipes = append(swipes, m.ID, s.ID, s.RevisionID)
		}
		t.logState(m, nil) // it has rows of states
	}
	failure := "new.error"
	if t.Postgres { // does not know its type
		failure = "CAST(new.error AS TEXT)"
	}
	n, err := t.Exec("WITH new (id, swipe_index, rev, status, error, deleted_at) AS ("+values(6, len(messages))+`)
		UPDATE messages SET swipe_index = new.swipe_index, rev = new.rev, status = new.status,
			error = `+failure+`, deleted_at = CAST(new.deleted_at AS BIGINT)
		FROM new WHERE messages.user_id = ? AND messages.id = new.id AND messages.rev = new.rev - 1`,
		append(messages, t.userID)...)
	if err != nil {
		return err
	}
	if n != int64(len(items)) { // only where somebody changes messages without the conversation's lock
		return fault.New(fault.Conflict, "a message was changed by another request")
	}
	if len(swipes) == 0 {
		return nil
	}
	return t.Run("WITH new (message_id, id, revision_id) AS ("+values(3, len(swipes))+`)
		UPDATE revisions SET is_shown = (revisions.id = new.revision_id), is_deleted = FALSE
		FROM new WHERE revisions.user_id = ? AND revisions.message_id = new.message_id AND revisions.swipe_id = new.id`,
		append(swipes, t.userID)...)
}

// values is VALUES (?, …), … for n arguments in rows of columns.
func values(columns, n int) string {
	row := "(" + strings.Repeat(", ?", columns)[2:] + ")"
	return "VALUES " + strings.Repeat(", "+row, n/columns)[2:]
}
