package store

import (
	"cmp"
	"slices"

	"nodest/chat"
	"nodest/fault"
)

// StateAt returns a conversation as it was at a version.
func (t *tx) StateAt(conversationID string, version int64) (*chat.Conversation, error) {
	row, err := t.findConversation(conversationID, "")
	if err != nil {
		return nil, err
	}
	var state conversationStateRow
	found, err := t.scan(t.raw(`SELECT s.conversation_id, s.version, s.user_id, s.head_id, s.persona_id, s.summary_id,
			d.author_note, d.settings, d.pins, s.documents_version, s.created_at
		FROM conversation_states s
		JOIN conversation_states d ON d.user_id = s.user_id AND d.conversation_id = s.conversation_id AND d.version = s.documents_version
		WHERE s.user_id = ? AND s.conversation_id = ? AND s.version = ?`,
		text(t.userID), text(conversationID), version), &state)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNoVersion(version)
	}
	row.Version, row.HeadID, row.PersonaID, row.SummaryID = state.Version, state.HeadID, state.PersonaID, state.SummaryID
	row.AuthorNote, row.Settings, row.Pins = state.AuthorNote, state.Settings, state.Pins
	return row.conversation()
}

func errNoVersion(version int64) error {
	return fault.New(fault.NotFound, "the conversation has no version %d", version)
}

// oldMessageRow is a message with the state that it had at a version.
type oldMessageRow struct {
	messageRow
	ThenRev        int64
	ThenRevisionID string
	ThenStatus     text
	ThenDeleted    bool
}

// asThen are the columns of an oldMessageRow: of a message m and its state o.
const asThen = "m.*, o.rev AS then_rev, o.revision_id AS then_revision_id, o.status AS then_status, o.is_deleted AS then_deleted"

// PathAt is Path as it was at a version. It walks as Path does; a step costs a search
// for the state too. Messages that were stored after the version are left out.
func (t *tx) PathAt(conversationID string, version int64, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, false, err
	}
	start, skip := headID, 0
	if beforeID != "" {
		start, skip = beforeID, 1
	}
	if start == "" {
		return nil, false, nil
	}
	if err := t.inConversation(conversationID, start); err != nil {
		return nil, false, err
	}
	limit = pageLength(limit)
	// at is the version of the state, 0 where the message is not on the page.
	const stateOf = `(SELECT CASE WHEN s.is_deleted THEN 0 ELSE s.version END FROM message_states s
		WHERE s.user_id = up.user_id AND s.conversation_id = up.conversation_id AND s.message_id = up.id AND s.version <= ?
		ORDER BY s.version DESC LIMIT 1)`
	user := text(t.userID)
	var rows []*oldMessageRow
	_, err := t.scan(t.raw(`WITH RECURSIVE path (user_id, id, parent_id, step, found, at) AS (
			SELECT up.user_id, up.id, up.parent_id, 0, 0, CASE WHEN ? = 1 THEN 0 ELSE COALESCE(`+stateOf+`, 0) END
			FROM messages up WHERE up.user_id = ? AND up.id = ?
			UNION ALL
			SELECT up.user_id, up.id, up.parent_id, path.step + 1, path.found + CASE WHEN path.at > 0 THEN 1 ELSE 0 END,
				COALESCE(`+stateOf+`, 0)
			FROM path CROSS JOIN messages up
			WHERE up.user_id = path.user_id AND up.id = path.parent_id AND path.found + CASE WHEN path.at > 0 THEN 1 ELSE 0 END <= ?
		)
		SELECT `+asThen+`
		FROM path CROSS JOIN messages m CROSS JOIN message_states o
		WHERE path.at > 0 AND m.user_id = path.user_id AND m.id = path.id AND o.user_id = m.user_id
			AND o.conversation_id = m.conversation_id AND o.message_id = m.id AND o.version = path.at
		ORDER BY path.step LIMIT ?`,
		skip, version, user, text(start), version, limit, limit+1), &rows)
	if err != nil {
		return nil, false, err
	}
	more := len(rows) > limit
	if more {
		rows = rows[:limit]
	}
	slices.Reverse(rows)
	items, err := t.oldMessages(rows)
	return items, more, err
}

// MessagesAt reads some hundred messages with one statement.
func (t *tx) MessagesAt(conversationID string, version int64, ids []string) ([]*chat.Message, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	items := []*chat.Message{}
	for part := range slices.Chunk(ids, 500) {
		var rows []*oldMessageRow
		_, err := t.scan(t.raw(`SELECT `+asThen+` FROM messages m
			JOIN message_states o ON o.user_id = m.user_id AND o.conversation_id = m.conversation_id AND o.message_id = m.id
				AND o.version = (SELECT MAX(s.version) FROM message_states s WHERE s.user_id = m.user_id
					AND s.conversation_id = m.conversation_id AND s.message_id = m.id AND s.version <= ?)
			WHERE m.user_id = ? AND m.id IN (?) AND m.conversation_id = ?`, version, text(t.userID), list(part), text(conversationID)), &rows)
		if err != nil {
			return nil, err
		}
		some, err := t.oldMessages(rows)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	slices.SortFunc(items, func(a, b *chat.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return items, nil
}

// oldMessages gives messages the state and the text that they had.
func (t *tx) oldMessages(rows []*oldMessageRow) ([]*chat.Message, error) {
	items := make([]*chat.Message, len(rows))
	for i, row := range rows {
		m, err := row.message()
		if err != nil {
			return nil, err
		}
		if m.Status = string(row.ThenStatus); m.Status != chat.StatusError {
			m.Error = nil
		}
		switch m.Rev = row.ThenRev; {
		case !row.ThenDeleted:
			m.DeletedAt = nil
		case m.DeletedAt == nil:
			now := t.Now()
			m.DeletedAt = &now
		}
		items[i] = m
	}
	if err := t.fillSwipes(items); err != nil {
		return nil, err
	}
	then := make([]string, len(rows))
	for i, row := range rows {
		then[i] = row.ThenRevisionID
	}
	_, err := t.choose(items, then)
	return items, err
}

// choose makes every message show the revision that is named at its place; "" is
// none. shown says of which messages the text is there: maintenance may have
// removed it. Those show nothing.
func (t *tx) choose(items []*chat.Message, revisions []string) (shown []bool, err error) {
	var missing []string
	for i, m := range items {
		if !point(m, revisions[i]) {
			missing = append(missing, revisions[i])
		}
	}
	texts, err := t.revisionTexts(missing)
	if err != nil {
		return nil, err
	}
	shown = make([]bool, len(items))
	for i, m := range items {
		if r := texts[revisions[i]]; r != nil && r.MessageID == m.ID {
			if err := restore(m, r); err != nil {
				return nil, err
			}
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
func restore(m *chat.Message, r *revisionRow) error {
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.ID != r.SwipeID {
			continue
		}
		old, err := (&swipeText{
			ID: s.ID, Rev: r.Rev, RevisionID: r.ID, CreatedAt: millis(s.CreatedAt), Text: r.Text, Reasoning: r.Reasoning,
			Blocks: r.Blocks, Model: r.Model, Finish: r.Finish, Usage: r.Usage, GenerationID: r.GenerationID, Wish: r.Wish, MemoryIDs: r.MemoryIDs,
		}).swipe()
		*s = old
		return err
	}
	return nil
}

func (t *tx) revisionTexts(ids []string) (map[string]*revisionRow, error) {
	texts := make(map[string]*revisionRow, len(ids))
	for part := range slices.Chunk(ids, 500) {
		in, which := among(part)
		var rows []*revisionRow
		_, err := t.scan(t.raw("SELECT * FROM revisions WHERE user_id = ? AND id "+in, text(t.userID), which), &rows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			texts[row.ID] = row
		}
	}
	return texts, nil
}
