package store

import (
	"slices"

	"nodest/chat"
	"nodest/fault"
)

// Dump reads the messages with everything that they ever were.
func (t *tx) Dump(conversationID string) ([]*chat.DumpedMessage, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	items, err := t.messages("WHERE m.user_id = ? AND m.conversation_id = ? ORDER BY m.seq", text(t.userID), text(conversationID))
	if err != nil {
		return nil, err
	}
	dumped := make([]*chat.DumpedMessage, len(items))
	byID := make(map[string]*chat.DumpedMessage, len(items))
	for i, m := range items {
		dumped[i] = &chat.DumpedMessage{Message: m, Texts: []chat.DumpedText{}, States: []chat.DumpedState{}}
		byID[m.ID] = dumped[i]
	}
	if err := t.dumpTexts(conversationID, byID); err != nil {
		return nil, err
	}
	return dumped, t.dumpStates(conversationID, byID)
}

// storedText is a text with the time at which it was stored.
type storedText struct {
	swipeText
	StoredAt int64
}

func (t *tx) dumpTexts(conversationID string, byID map[string]*chat.DumpedMessage) error {
	var rows []*storedText
	_, err := t.scan(t.raw(`SELECT r.message_id, r.swipe_id AS id, r.rev, r.id AS revision_id, s.is_deleted, s.created_at,
			r.text, r.reasoning, r.blocks, r.model, r.finish, r.usage, r.generation_id, r.wish, r.memory_ids, r.created_at AS stored_at
		FROM messages m JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id
		JOIN swipes s ON s.user_id = r.user_id AND s.message_id = r.message_id AND s.id = r.swipe_id
		WHERE m.user_id = ? AND m.conversation_id = ? ORDER BY m.seq, r.created_at, r.id`,
		text(t.userID), text(conversationID)), &rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		s, err := row.swipe()
		if err != nil {
			return err
		}
		m := byID[row.MessageID]
		m.Texts = append(m.Texts, chat.DumpedText{Swipe: s, StoredAt: moment(row.StoredAt)})
	}
	return nil
}

// dumpStates leaves out the names of texts that maintenance has removed.
func (t *tx) dumpStates(conversationID string, byID map[string]*chat.DumpedMessage) error {
	var rows []*messageStateRow
	_, err := t.scan(t.raw("SELECT * FROM message_states WHERE user_id = ? AND conversation_id = ? ORDER BY message_id, version",
		text(t.userID), text(conversationID)), &rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		m := byID[row.MessageID]
		if m == nil { // maintenance has removed it
			continue
		}
		if !hasText(m, row.RevisionID) {
			row.RevisionID = ""
		}
		m.States = append(m.States, chat.DumpedState{
			Version: row.Version, Rev: row.Rev, RevisionID: row.RevisionID, Status: string(row.Status), Deleted: row.IsDeleted,
		})
	}
	return nil
}

func hasText(m *chat.DumpedMessage, revisionID string) bool {
	return slices.ContainsFunc(m.Texts, func(s chat.DumpedText) bool { return s.RevisionID == revisionID })
}

// BeginLoad stores c as if it were deleted. What tells it from a conversation that
// is deleted is that it has no state yet.
func (t *tx) BeginLoad(c *chat.Conversation) error {
	if err := t.writable(); err != nil {
		return err
	}
	row, err := t.newConversationRow(c)
	if err != nil {
		return err
	}
	row.DeletedAt = &t.now
	return t.insert(row)
}

// loading returns a conversation that is being loaded, fault.NotFound for any other;
// its row stays locked.
func (t *tx) loading(conversationID string) (*conversationRow, error) {
	if err := t.writable(); err != nil {
		return nil, err
	}
	var row conversationRow
	found, err := t.scan(t.raw("SELECT * FROM conversations c WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NOT NULL"+
		" AND NOT EXISTS (SELECT 1 FROM conversation_states s WHERE s.user_id = c.user_id AND s.conversation_id = c.id)"+t.forUpdate(),
		text(t.userID), text(conversationID)), &row)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "no such conversation is being loaded")
	}
	return &row, err
}

// Load stores messages with everything that they ever were, parents before their
// children.
func (t *tx) Load(conversationID string, messages []*chat.DumpedMessage) error {
	if _, err := t.loading(conversationID); err != nil || len(messages) == 0 {
		return err
	}
	tree, err := t.loadedParents(conversationID, messages)
	if err != nil {
		return err
	}
	b := &bulk{}
	for _, m := range messages {
		m.ConversationID = conversationID
		if err := t.loadMessage(b, tree, m); err != nil {
			return err
		}
	}
	return t.putBulk(b)
}

// standing is where a message stands in the tree.
type standing struct {
	depth, chain int64
	parent       bool // it has a child
}

// loadedParents reads where the parents of messages stand that were loaded before
// these.
func (t *tx) loadedParents(conversationID string, messages []*chat.DumpedMessage) (map[string]*standing, error) {
	var ids []string
	for _, m := range messages {
		if m.ParentID != "" {
			ids = append(ids, m.ParentID)
		}
	}
	slices.Sort(ids)
	tree := make(map[string]*standing, len(messages))
	for part := range slices.Chunk(slices.Compact(ids), 500) {
		in, which := among(part)
		var rows []struct {
			ID           string
			Depth, Chain int64
			HasChild     bool
		}
		_, err := t.scan(t.raw(`SELECT p.id, p.depth, p.chain, EXISTS (SELECT 1 FROM messages m
				WHERE m.user_id = p.user_id AND m.conversation_id = p.conversation_id AND m.parent_id = p.id) AS has_child
			FROM messages p WHERE p.user_id = ? AND p.conversation_id = ? AND p.id `+in, text(t.userID), text(conversationID), which), &rows)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			tree[row.ID] = &standing{row.Depth, row.Chain, row.HasChild}
		}
	}
	return tree, nil
}

func (t *tx) loadMessage(b *bulk, tree map[string]*standing, m *chat.DumpedMessage) error {
	at := &standing{depth: 1, chain: m.Seq} // see place
	if m.ParentID != "" {
		up := tree[m.ParentID]
		if up == nil {
			return fault.InvalidField("parentId", "reference", "message %q comes before its parent", m.ID)
		}
		at.depth = up.depth + 1
		if !up.parent {
			at.chain = up.chain
		}
		up.parent = true
	}
	tree[m.ID] = at
	row, err := t.messageRow(m.Message)
	if err != nil {
		return err
	}
	row.Depth, row.Chain = at.depth, at.chain
	b.messages = append(b.messages, row)
	if err := t.loadTexts(b, m); err != nil {
		return err
	}
	t.loadStates(b, m)
	return nil
}

func (t *tx) loadTexts(b *bulk, m *chat.DumpedMessage) error {
	for i := range m.Texts {
		s := &m.Texts[i]
		row, err := t.newRevision(m.Message, &s.Swipe, nil)
		if err != nil {
			return err
		}
		row.CreatedAt = millis(s.StoredAt)
		b.revisions = append(b.revisions, row)
		if said := t.said(m.Message, row); said != nil {
			said.IsRead = true
			b.texts = append(b.texts, said)
		}
	}
	for i, s := range m.Swipes {
		row := t.swipeRow(m.Message, i)
		row.Rev = highestRev(m, s.ID)
		b.swipes = append(b.swipes, row)
	}
	return nil
}

// highestRev is the rev of the newest text of a swipe, shown or not.
func highestRev(m *chat.DumpedMessage, swipeID string) (highest int64) {
	for i := range m.Texts {
		if t := &m.Texts[i]; t.ID == swipeID {
			highest = max(highest, t.Rev)
		}
	}
	return highest
}

// loadStates keeps the versions.
func (t *tx) loadStates(b *bulk, m *chat.DumpedMessage) {
	previous := int64(0)
	for _, s := range m.States {
		b.states = append(b.states, &messageStateRow{
			ConversationID: m.ConversationID, MessageID: m.ID, Version: s.Version, UserID: t.userID, Rev: s.Rev,
			RevisionID: s.RevisionID, Status: text(s.Status), IsDeleted: s.Deleted, Previous: previous,
		})
		previous = s.Version
	}
}

// FinishLoad shows the conversation. Of its versions, those of states and its
// newest are there then.
func (t *tx) FinishLoad(c *chat.Conversation, states []*chat.Conversation, rewinds []chat.Rewind) error {
	if _, err := t.loading(c.ID); err != nil {
		return err
	}
	row, err := t.newConversationRow(c)
	if err != nil {
		return err
	}
	_, err = t.scan(t.raw("SELECT COALESCE(MAX(seq), 0) FROM messages WHERE user_id = ? AND conversation_id = ?",
		text(t.userID), text(c.ID)), &row.MessageSeq)
	if err != nil {
		return err
	}
	if _, err := t.update(row, []string{"id", "user_id"}, "WHERE user_id = ? AND id = ?", text(t.userID), text(c.ID)); err != nil {
		return err
	}
	for _, state := range states {
		old, err := t.conversationRow(state)
		if err != nil {
			return err
		}
		old.ID = c.ID
		if err := t.logConversation(old, true); err != nil {
			return err
		}
	}
	if err := t.logConversation(row, true); err != nil {
		return err
	}
	news := t.news(c.CharacterID)
	news.chats = append(news.chats, c.ID)
	rows := make([]*rewindRow, len(rewinds))
	for i, r := range rewinds {
		rows[i] = &rewindRow{ConversationID: c.ID, Version: r.At, ToVersion: r.To, UserID: t.userID}
	}
	return insertAll(t, rows)
}
