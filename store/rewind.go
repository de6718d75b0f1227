package store

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
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

func (t *messageTx) Count(conversationID, headID string) (int, error) {
	if is, err := t.isPath(conversationID, headID); err != nil || !is {
		return 0, err
	}
	return sqldb.Value[int](t, pieces+`SELECT (SELECT MAX(depth) FROM path) - (SELECT COUNT(*) FROM path
			CROSS JOIN messages gone WHERE gone.user_id = path.user_id AND gone.conversation_id = path.conversation_id
			AND gone.chain = path.chain AND gone.depth <= path.depth AND gone.deleted_at IS NOT NULL)`, t.userID, headID)
}

func (t *messageTx) CountHidden(conversationID, headID string) (int, error) {
	if is, err := t.isPath(conversationID, headID); err != nil || !is {
		return 0, err
	}
	return sqldb.Value[int](t, pieces+`SELECT COUNT(*) FROM path
			CROSS JOIN messages m WHERE m.user_id = path.user_id AND m.conversation_id = path.conversation_id
			AND m.chain = path.chain AND m.depth <= path.depth AND m.is_hidden AND m.deleted_at IS NULL`, t.userID, headID)
}

func (t historyTx) Born(messageID string) (int64, error) {
	version, err := sqldb.Value[int64](t, `SELECT CASE WHEN m.since > 0 THEN m.since ELSE COALESCE((SELECT MIN(s.version) FROM message_states s
			WHERE s.user_id = m.user_id AND s.conversation_id = m.conversation_id AND s.message_id = m.id), 0) END FROM messages m
		WHERE m.user_id = ? AND m.id = ?`, t.userID, messageID)
	if err == nil && version == 0 {
		err = fault.New(fault.NotFound, "no such message")
	}
	return version, err
}

func (t historyTx) DeletedIn(messageID string) (int64, error) {
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

func (t historyTx) Rewinds(conversationID string) ([]chat.Rewind, error) {
	return sqldb.All[chat.Rewind](t.chats.with(conversationID), "SELECT version AS at, to_version AS \"to\" FROM rewinds"+
		" WHERE user_id = ? AND conversation_id = ? ORDER BY version", t.userID, conversationID)
}

// Rewind gives the messages of a path the states that they had. A message that was
// being written again then is interrupted now, because nobody writes it any more;
// one whose text maintenance has removed stays as it is.
//
// It must come before other changes of messages in the same transaction, because their
// states are not stored yet.
func (t historyTx) Rewind(c *chat.Conversation, version int64, headID string) (changed, moved []*chat.Message, err error) {
	for _, s := range t.messages.states {
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
	return t.rewind(c.ID, version, headID)
}

func (t historyTx) rewind(conversationID string, version int64, headID string) (changed, moved []*chat.Message, err error) {
	var gone, back []*chat.Message
	var others []replacedState
	err = sqldb.Each(t.Unless(t.messages.inConversation(conversationID, headID)), func(r *pastRow) error {
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
	if err := cmp.Or(t.messages.SetDeleted(&at, gone...), t.messages.SetDeleted(nil, back...)); err != nil {
		return nil, nil, err
	}
	ids := []string{}
	for part := range slices.Chunk(others, hidePiece) {
		some, err := t.setBack(conversationID, part)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, some...)
	}
	moved = slices.Concat(gone, back)
	slices.SortFunc(moved, func(a, b *chat.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	changed, err = t.changedNow(ids)
	return changed, moved, err
}

// changedBytes is how many bytes of texts a rewind reads, because it keeps others from writing meanwhile; the
// texts of one message at least.
const changedBytes = 1 << 20

// changedNow returns messages by seq, the first of them with their texts.
func (t historyTx) changedNow(ids []string) ([]*chat.Message, error) {
	items := []*chat.Message{}
	for part := range slices.Chunk(ids, hidePiece) {
		some, err := sqldb.Map(t, (*messageRow).message, "SELECT m.* FROM messages m WHERE m.user_id = ? AND m.id IN (?)", t.userID, part)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	slices.SortFunc(items, func(a, b *chat.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	n, err := t.messages.fillFirst(items, changedBytes)
	for _, m := range items[n:] {
		m.Swipes = nil
	}
	return items, err
}

// pastRow is a message that differs from the state that it had at a version.
type pastRow struct {
	bareRow
	Version int64 // version of the state
	Change  int   // that the state makes to it
}

// hides and shows are the changes of a message that differs in nothing else.
const hides, shows = 1, 2

// selectPast reads the messages of a path that had another state at a version. It compares their texts by
// their ids.
const selectPast = pieces + `SELECT * FROM (SELECT m.id, m.seq, m.rev, s.version, CASE
		WHEN s.revision_id IS DISTINCT FROM ` + shownText + ` OR m.status <> ` + restoredStatus + ` OR m.is_hidden <> s.is_hidden THEN 3
		WHEN s.is_deleted THEN CASE WHEN m.deleted_at IS NULL THEN 1 ELSE 0 END
		WHEN m.deleted_at IS NULL THEN 0 ELSE 2 END AS change
	FROM message_states n CROSS JOIN messages m CROSS JOIN path CROSS JOIN message_states s
	WHERE n.user_id = ? AND n.conversation_id = ? AND n.version > ? AND n.previous > 0 AND n.previous <= ?
		AND m.user_id = n.user_id AND m.id = n.message_id AND path.chain = m.chain AND m.depth <= path.depth
		AND s.user_id = n.user_id AND s.conversation_id = n.conversation_id AND s.message_id = n.message_id AND s.version = n.previous
	) past WHERE change > 0`

// restoredStatus is the status of a message that gets the state s back. What was being written is
// interrupted, because nobody writes it any more.
const restoredStatus = "CASE WHEN s.status IN ('" + chat.StatusPending + "', '" + chat.StatusStreaming + "') THEN '" + chat.StatusInterrupted + "' ELSE s.status END"

// replacedState names a state that another one replaced.
type replacedState struct {
	MessageID string
	Previous  int64
}

// replaced returns the states that messages of the conversation had at a version
// and have no longer. One held from the previous of its successor until the
// successor's version.
func (t historyTx) replaced(conversationID string, version int64) ([]replacedState, error) {
	return sqldb.All[replacedState](t, "SELECT message_id, previous FROM message_states"+
		" WHERE user_id = ? AND conversation_id = ? AND version > ? AND previous > 0 AND previous <= ?", t.userID, conversationID, version, version)
}

// backRow is a message that gets a state back, with what it is then.
type backRow struct {
	ID, SwipeID, RevisionID string
	SwipeIndex              int
	Status                  string
	IsHidden                bool
	DeletedAt               *time.Time
}

// setBack gives messages states that they had, and returns the ids of those that it changed: maintenance
// may have removed the texts of others. It reads no texts, and of the swipes only the one that a message
// shows then: -1 is none of those that it has. Their new states follow in flushHidden.
func (t historyTx) setBack(conversationID string, replaced []replacedState) ([]string, error) {
	var wanted, messages, swipes []any
	var ids []string
	for _, s := range replaced {
		wanted = append(wanted, sqldb.ID(s.MessageID), s.Previous)
	}
	err := sqldb.Each(t, func(r *backRow) error {
		ids = append(ids, r.ID)
		messages = append(messages, sqldb.ID(r.ID), r.SwipeIndex, r.Status, r.IsHidden, r.DeletedAt)
		if r.RevisionID != "" {
			swipes = append(swipes, sqldb.ID(r.ID), sqldb.ID(r.SwipeID), r.SwipeIndex, sqldb.ID(r.RevisionID))
		}
		return nil
	}, "WITH wanted (message_id, version) AS ("+values(2, len(wanted))+`)
		SELECT m.id, r.swipe_id, s.revision_id, COALESCE(r.position,
				CASE WHEN EXISTS (SELECT 1 FROM revisions x WHERE x.user_id = m.user_id AND x.message_id = m.id) THEN -1 ELSE 0 END) AS swipe_index,
			`+restoredStatus+` AS status, s.is_hidden, CASE WHEN s.is_deleted THEN COALESCE(m.deleted_at, CAST(? AS BIGINT)) END AS deleted_at
		FROM wanted CROSS JOIN messages m CROSS JOIN message_states s LEFT JOIN revisions r ON r.user_id = m.user_id AND r.id = s.revision_id AND r.message_id = m.id
		WHERE m.user_id = ? AND m.id = wanted.message_id AND s.user_id = ? AND s.conversation_id = ? AND s.message_id = wanted.message_id
			AND s.version = wanted.version AND (s.revision_id IS NULL OR r.id IS NOT NULL)`,
		append(wanted, t.Now(), t.userID, t.userID, conversationID)...)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	n, err := t.Exec("WITH new (id, swipe_index, status, is_hidden, deleted_at) AS ("+values(5, len(messages))+`)
		UPDATE messages SET swipe_index = new.swipe_index, rev = rev + 1, status = new.status, is_hidden = CAST(new.is_hidden AS BOOLEAN), deleted_at = CAST(new.deleted_at AS BIGINT),
			error = CASE WHEN new.status = '`+chat.StatusError+`' THEN error END
		FROM new WHERE messages.user_id = ? AND messages.id = new.id AND messages.since = 0`, append(messages, t.userID)...)
	if err != nil {
		return nil, err
	}
	if n != int64(len(ids)) {
		return nil, t.messages.changedElsewhere(ids)
	}
	t.messages.hidden = append(t.messages.hidden, hiddenPiece{conversationID, ids})
	if len(swipes) == 0 {
		return ids, nil
	}
	return ids, t.Run("WITH new (message_id, id, position, revision_id) AS ("+values(4, len(swipes))+`)
		UPDATE revisions SET is_shown = (revisions.id = new.revision_id), is_deleted = FALSE
		FROM new WHERE revisions.user_id = ? AND revisions.message_id = new.message_id AND revisions.position = new.position AND revisions.swipe_id = new.id`,
		append(swipes, t.userID)...)
}

// values is VALUES (?, …), … for n arguments in rows of columns.
func values(columns, n int) string {
	row := "(" + strings.Repeat(", ?", columns)[2:] + ")"
	return "VALUES " + strings.Repeat(", "+row, n/columns)[2:]
}
