package store

import (
	"cmp"
	"slices"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// historyTx reads conversations as they were, and sets them back.
type historyTx struct{ *tx }

// StateAt returns a conversation as it was at a version.
func (t historyTx) StateAt(conversationID string, version int64) (*chat.Conversation, error) {
	row, err := t.chats.findConversation(conversationID, "")
	if err != nil {
		return nil, err
	}
	if version > row.Version {
		return nil, errNoVersion(version)
	}
	state, err := sqldb.One[conversationStateRow](t, `SELECT s.head_id, s.persona_id, s.summary_id, s.play_id, d.author_note, d.settings, d.pins
		FROM conversation_states s
		JOIN conversation_states d ON d.user_id = s.user_id AND d.conversation_id = s.conversation_id AND d.version = s.documents_version
		WHERE s.user_id = ? AND s.conversation_id = ? AND s.version <= ? ORDER BY s.version DESC LIMIT 1`, t.userID, conversationID, version)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errNoVersion(version)
	}
	row.Version, row.HeadID, row.PersonaID, row.SummaryID = version, state.HeadID, state.PersonaID, state.SummaryID
	row.PlayID, row.AuthorNote, row.Settings, row.Pins = state.PlayID, state.AuthorNote, state.Settings, state.Pins
	return &row.Conversation, nil
}

func errNoVersion(version int64) error {
	return fault.New(fault.NotFound, "the conversation has no version %d", version)
}

// oldMessageRow is a message with the state that it had at a version.
type oldMessageRow struct {
	messageRow
	ThenRev        int64
	ThenRevisionID string
	ThenStatus     string
	ThenDeleted    bool
	ThenHidden     bool
	Bytes          int64
}

// asThen are the columns of an oldMessageRow: of a message m and its state o, which is NULL where it has
// no rows of states.
const asThen = "m.*, COALESCE(o.rev, m.rev) AS then_rev, " + textThen + " AS then_revision_id," +
	" COALESCE(o.status, m.status) AS then_status, COALESCE(o.is_deleted, FALSE) AS then_deleted," +
	" COALESCE(o.is_hidden, m.is_hidden) AS then_hidden"

// sizeThen is the size of the texts of an oldMessageRow: those of its swipes, and the one that it had.
const sizeThen = sizeOfTexts + ` + COALESCE((SELECT octet_length(r.text) + octet_length(r.reasoning) FROM revisions r
	WHERE r.user_id = m.user_id AND r.id = o.revision_id AND r.message_id = m.id AND NOT r.is_shown), 0) AS bytes`

// PathAt is Path as it was at a version. It walks as Path does; a step costs a search
// for the state too. Messages that were stored after the version are left out. The conversation may be
// deleted.
func (t historyTx) PathAt(conversationID string, version int64, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	start, skip, err := t.messages.pathEnd(conversationID, headID, beforeID)
	if err != nil || start == nil {
		return nil, false, err
	}
	limit = sqldb.Length(limit)
	// at is the version of the state, 0 where the message is not on the page.
	const stateOf = `CASE WHEN up.since > 0 AND up.since <= ? THEN up.since
		ELSE COALESCE((SELECT CASE WHEN s.is_deleted THEN 0 ELSE s.version END FROM message_states s
		WHERE s.user_id = up.user_id AND s.conversation_id = up.conversation_id AND s.message_id = up.id AND s.version <= ?
		ORDER BY s.version DESC LIMIT 1), 0) END`
	rows, cut, err := t.rowsThen(`WITH RECURSIVE path (user_id, id, parent_id, step, found, at) AS (
			SELECT up.user_id, up.id, up.parent_id, 0, 0, CASE WHEN ? = 1 THEN 0 ELSE `+stateOf+` END
			FROM messages up WHERE up.user_id = ? AND up.id = ?
			UNION ALL
			SELECT up.user_id, up.id, up.parent_id, path.step + 1, path.found + CASE WHEN path.at > 0 THEN 1 ELSE 0 END,
				`+stateOf+`
			FROM path CROSS JOIN messages up
			WHERE up.user_id = path.user_id AND up.id = path.parent_id AND path.found + CASE WHEN path.at > 0 THEN 1 ELSE 0 END <= ?
		)
		SELECT `+asThen+`, `+sizeThen+`
		FROM path CROSS JOIN messages m LEFT JOIN message_states o ON o.user_id = m.user_id
			AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version = path.at
		WHERE path.at > 0 AND m.user_id = path.user_id AND m.id = path.id
		ORDER BY path.step LIMIT ?`,
		skip, version, version, t.userID, start.ID, version, version, limit, limit+1)
	if err != nil {
		return nil, false, err
	}
	rows, more := pathPage(rows, limit)
	items, err := t.oldMessages(rows)
	return items, more || cut, err
}

// pathPage is a page of what was read from the end of a path upwards, oldest first.
func pathPage[T any](rows []T, limit int) (page []T, more bool) {
	page = rows[:min(len(rows), limit)]
	slices.Reverse(page)
	return page, len(rows) > limit
}

// rowsThen reads rows with sizeThen, until they are too large for a page.
func (t historyTx) rowsThen(query string, args ...any) (rows []oldMessageRow, cut bool, err error) {
	total := int64(0)
	err = sqldb.Each(t, func(r *oldMessageRow) error {
		total += r.Bytes
		if cut = total > sqldb.PageBytes && len(rows) > 0; !cut {
			rows = append(rows, *r)
		}
		return nil
	}, query, args...)
	return rows, cut, err
}

// PathAtAfter reads the pieces of the path, as PathAfter does, with the states that the messages
// had.
func (t historyTx) PathAtAfter(conversationID string, version int64, headID, afterID string, limit int) ([]*chat.Message, bool, error) {
	p := &messagePage{}
	err := t.messages.pathAfter(p, conversationID, headID, afterID, limit, func(o pathPiece) error {
		rows, cut, err := t.rowsThen(`SELECT `+asThen+`, `+sizeThen+` FROM messages m `+stateThen+`
			WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = ? AND m.depth > ? AND m.depth <= ? AND `+thereThen+`
			AND o.is_deleted IS NOT TRUE ORDER BY m.depth LIMIT ?`, version, t.userID, conversationID, o.chain, o.above, o.to, version, o.limit)
		if err != nil {
			return err
		}
		items, err := t.oldMessages(rows)
		p.items, p.cut = append(p.items, items...), cut
		return err
	})
	return p.items, p.cut, err
}

// stateThen joins the states o that messages m had at a version; thereThen is true of messages that
// were there at it.
const thereThen = "(o.version IS NOT NULL OR m.since > 0 AND m.since <= ?)"

// textThen is the id of the text that a message m showed then; NULL = none.
const textThen = "CASE WHEN o.version IS NULL THEN " + shownText + " ELSE o.revision_id END"

const stateThen = `LEFT JOIN message_states o ON o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id
	AND o.version = (SELECT MAX(s.version) FROM message_states s WHERE s.user_id = m.user_id
		AND s.conversation_id = m.conversation_id AND s.message_id = m.id AND s.version <= ?)`

// MessagesAt reads some hundred messages with one statement.
func (t historyTx) MessagesAt(conversationID string, version int64, ids []string) ([]*chat.Message, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, err
	}
	rows, err := sqldb.All[oldMessageRow](t, `SELECT `+asThen+` FROM messages m `+stateThen+`
		WHERE m.user_id = ? AND m.id IN (?) AND m.conversation_id = ? AND `+thereThen, version, t.userID, ids, conversationID, version)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b oldMessageRow) int { return cmp.Compare(a.Seq, b.Seq) })
	return t.oldMessages(rows)
}

// oldMessages gives messages the state and the text that they had.
func (t historyTx) oldMessages(rows []oldMessageRow) ([]*chat.Message, error) {
	items, then := make([]*chat.Message, len(rows)), make([]string, len(rows))
	for i := range rows {
		row := &rows[i]
		m := &row.Message
		if m.Status = row.ThenStatus; m.Status != chat.StatusError {
			m.Error = nil
		}
		m.Rev, m.Hidden = row.ThenRev, row.ThenHidden
		t.setThenDeleted(m, row.ThenDeleted)
		items[i], then[i] = m, row.ThenRevisionID
	}
	if err := t.fillThen(items, then); err != nil {
		return nil, err
	}
	_, err := t.choose(items, then)
	return items, err
}

// fillThen adds the texts to messages that fit a page, or are one message, which show revisions.
func (t historyTx) fillThen(items []*chat.Message, revisions []string) error {
	if !t.messages.near {
		return t.messages.fillSwipes(items)
	}
	size, err := t.messages.readSwipes(items, sqldb.PageBytes)
	if err != nil || size <= sqldb.PageBytes {
		return err
	}
	for i, m := range items {
		if _, err := t.messages.readNear(m, revisions[i]); err != nil {
			return err
		}
	}
	return nil
}

// setThenDeleted says whether m is deleted; the time at which it was stays.
func (t historyTx) setThenDeleted(m *chat.Message, deleted bool) {
	switch {
	case !deleted:
		m.DeletedAt = nil
	case m.DeletedAt == nil:
		now := t.Now()
		m.DeletedAt = &now
	}
}

// choose makes every message show the revision at the same place in revisions; "" is
// none. shown reports which texts exist: maintenance may have removed some, and their
// messages show nothing.
func (t historyTx) choose(items []*chat.Message, revisions []string) (shown []bool, err error) {
	var missing []string
	for i, m := range items {
		if !point(m, revisions[i]) || m.Chosen() != nil && m.Chosen().Omitted {
			missing = append(missing, revisions[i])
		}
	}
	texts, err := t.messages.textsOf(missing)
	if err != nil {
		return nil, err
	}
	shown = make([]bool, len(items))
	for i, m := range items {
		if r := texts[revisions[i]]; r != nil && r.MessageID == m.ID {
			restore(m, r)
		}
		shown[i] = point(m, revisions[i])
	}
	return shown, nil
}

// point chooses the swipe of m whose text is the revision. It returns false, and
// chooses none, if there is no such swipe.
func point(m *chat.Message, revisionID string) bool {
	m.SwipeIndex = -1
	if revisionID == "" {
		if len(m.Swipes) == 0 {
			m.SwipeIndex = 0 // as it is where nothing was written yet
		}
		return true
	}
	m.SwipeIndex = slices.IndexFunc(m.Swipes, func(s chat.Swipe) bool { return s.RevisionID == revisionID })
	if m.SwipeIndex < 0 {
		return false
	}
	m.Swipes[m.SwipeIndex].Deleted = false
	return true
}

// restore gives the swipe of m an older text.
func restore(m *chat.Message, r *swipeText) {
	if i := slices.IndexFunc(m.Swipes, func(s chat.Swipe) bool { return s.ID == r.Swipe.ID }); i >= 0 {
		old := r.Swipe
		old.CreatedAt = m.Swipes[i].CreatedAt
		m.Swipes[i] = old
	}
}
