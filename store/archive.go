package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"nodest/chat"
	"nodest/chat/attached"
	"nodest/internal/fault"
	"nodest/internal/tavern/folder"
	"nodest/store/sqldb"
)

// archiveTx stores whole conversations: files, imports and forks.
type archiveTx struct{ *tx }

func (t archiveTx) Dump(conversationID string, after int64, limit int) ([]*chat.DumpedMessage, error) {
	p := &messagePage{}
	err := t.chats.owns(conversationID)
	if err == nil {
		err = t.messages.addToPage(p, conversationID, "WHERE m.user_id = ? AND m.conversation_id = ? AND m.seq > ? AND "+notLoading+" ORDER BY m.seq LIMIT ?",
			t.userID, conversationID, after, sqldb.Length(limit))
	}
	if err == nil {
		err = t.messages.fillPage(p)
	}
	items := p.items
	if err != nil || len(items) == 0 {
		return nil, err
	}
	dumped := make([]*chat.DumpedMessage, len(items))
	byID := make(map[string]*chat.DumpedMessage, len(items))
	for i, m := range items {
		dumped[i] = &chat.DumpedMessage{Message: m, Texts: []chat.DumpedText{}, States: []chat.DumpedState{}}
		byID[m.ID] = dumped[i]
	}
	return dumped, cmp.Or(t.dumpTexts(byID), t.dumpStates(conversationID, byID))
}

// storedText is a text with the time at which it was stored.
type storedText struct {
	swipeText
	StoredAt time.Time
}

func (t archiveTx) dumpTexts(byID map[string]*chat.DumpedMessage) error {
	return sqldb.Each(t, func(row *storedText) error {
		m := byID[row.MessageID]
		m.Texts = append(m.Texts, chat.DumpedText{Swipe: row.Swipe, StoredAt: row.StoredAt})
		return nil
	}, "SELECT r.message_id, "+swipeColumns+", r.created_at AS stored_at FROM revisions r"+
		" WHERE r.user_id = ? AND r.message_id IN (?) ORDER BY r.message_id, r.created_at, r.id", t.userID, slices.Collect(maps.Keys(byID)))
}

// dumpStates leaves out the names of texts that maintenance has removed.
func (t archiveTx) dumpStates(conversationID string, byID map[string]*chat.DumpedMessage) error {
	ids := slices.Collect(maps.Keys(byID))
	note := func(row *messageStateRow) error {
		m := byID[row.MessageID]
		if !hasText(m, row.RevisionID) {
			row.RevisionID = ""
		}
		m.States = append(m.States, row.DumpedState)
		return nil
	}
	return cmp.Or(
		sqldb.Each(t, note, onlyStates, t.userID, ids),
		sqldb.Each(t, note, "SELECT * FROM message_states WHERE user_id = ? AND conversation_id = ? AND message_id IN (?) ORDER BY message_id, version",
			t.userID, conversationID, ids),
	)
}

func hasText(m *chat.DumpedMessage, revisionID string) bool {
	return slices.ContainsFunc(m.Texts, func(s chat.DumpedText) bool { return s.RevisionID == revisionID })
}

// BeginLoad stores c as if it were deleted. Unlike a conversation that is deleted, it has
// no state yet.
func (t archiveTx) BeginLoad(c *chat.Conversation) error {
	row, now := t.chats.newConversationRow(c), t.Now()
	row.DeletedAt = &now
	return t.Insert("conversations", row)
}

func (t archiveTx) Loading(conversationID string) (*chat.Conversation, error) {
	return sqldb.Find(t.Unless(t.Writable()), "conversation is being loaded", (*conversationRow).conversation,
		"SELECT * FROM conversations c WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NOT NULL"+
			" AND NOT EXISTS (SELECT 1 FROM conversation_states s WHERE s.user_id = c.user_id AND s.conversation_id = c.id)"+t.ForUpdate(),
		t.userID, conversationID)
}

// bulk gathers the rows of many messages, so that they are stored with few
// statements.
type bulk struct {
	messages  []*messageRow
	lines     []*lineRow
	revisions []*revisionRow
	plays     []*chat.Play
	changed   []changedSwipe // that were stored before
	states    []*messageStateRow
}

// lineRow is the line of an imported log that a message came from.
type lineRow struct {
	UserID, MessageID string
	Line              json.RawMessage
}

// addLine comes before the row of m is made.
func (b *bulk) addLine(userID string, m *chat.Message) {
	if m.Imported = m.Extra != nil; m.Imported {
		b.lines = append(b.lines, &lineRow{userID, m.ID, m.Extra})
	}
}

// putMessages stores messages with their lines.
func (t *messageTx) putMessages(b *bulk) error {
	return cmp.Or(t.Insert("messages", b.messages), t.Insert("message_lines", b.lines))
}

func (t archiveTx) Line(messageID string) (json.RawMessage, error) {
	return sqldb.Value[json.RawMessage](t, "SELECT line FROM message_lines WHERE user_id = ? AND message_id = ?", t.userID, messageID)
}

func (t archiveTx) FileLines(messageIDs []string, each func(messageID string, line json.RawMessage) error) error {
	return sqldb.Each(t, func(row *lineRow) error { return each(row.MessageID, row.Line) },
		"SELECT user_id, message_id, line FROM message_lines WHERE user_id = ? AND message_id IN (?) AND (line LIKE '%images%' OR line LIKE '%files%')", t.userID, messageIDs)
}

func (t archiveTx) FilesAt(paths []string) ([]*attached.File, error) {
	found := map[string]*attached.File{}
	err := sqldb.Each(t, func(row *attached.File) error {
		f := *row
		found[f.Path] = &f // the newest comes last
		return nil
	}, "SELECT id, path, '' AS name, size FROM tavern_files WHERE user_id = ? AND kind IN (?, ?) AND path IN (?) AND "+keptFile+" ORDER BY created_at, id",
		t.userID, folder.Image, folder.File, paths)
	return slices.Collect(maps.Values(found)), err
}

// changedSwipe is the swipe of a message at a position.
type changedSwipe struct {
	message  *chat.Message
	position int
}

func (t archiveTx) Load(conversationID string, messages []*chat.DumpedMessage) error {
	if _, err := t.Loading(conversationID); err != nil || len(messages) == 0 {
		return err
	}
	parents := make([]string, len(messages))
	for i, m := range messages {
		parents[i] = m.ParentID
	}
	slices.Sort(parents)
	tree, err := t.messages.treePlaces(conversationID, slices.Compact(parents)...)
	if err != nil {
		return err
	}
	b := &bulk{}
	for _, m := range messages {
		m.ConversationID = conversationID
		b.addLine(t.userID, m.Message)
		row := t.messages.messageRow(m.Message)
		if !row.place(tree) {
			return fault.InvalidField("parentId", "reference", "message %q comes before its parent", m.ID)
		}
		b.messages = append(b.messages, row)
		t.loadTexts(b, m)
		t.loadStates(b, row, m)
	}
	return cmp.Or(t.messages.putMessages(b), t.Analyze("messages"), t.Insert("revisions", b.revisions), t.Insert("message_states", b.states))
}

func (t archiveTx) loadTexts(b *bulk, m *chat.DumpedMessage) {
	for i := range m.Texts {
		s := &m.Texts[i]
		row := &revisionRow{Swipe: s.Swipe, UserID: t.userID, MessageID: m.ID}
		row.Position = slices.IndexFunc(m.Swipes, func(place chat.Swipe) bool { return place.ID == s.ID })
		place := &m.Swipes[row.Position]
		row.Deleted, row.CreatedAt, row.IsShown = place.Deleted, place.CreatedAt, place.RevisionID == s.RevisionID
		row.storedAt(s.StoredAt)
		b.revisions = append(b.revisions, row)
		if said := t.texts.textOf(m.Message, row); said != nil {
			said.IsRead = true
			t.texts.said = append(t.texts.said, said)
		}
	}
}

// loadStates keeps the versions.
func (t archiveTx) loadStates(b *bulk, row *messageRow, m *chat.DumpedMessage) {
	if len(m.States) == 1 && isNow(m.Message, m.States[0]) {
		row.Since = m.States[0].Version
		return
	}
	previous := int64(0)
	for _, s := range m.States {
		b.states = append(b.states, &messageStateRow{DumpedState: s, UserID: t.userID, ConversationID: m.ConversationID, MessageID: m.ID, Previous: previous})
		previous = s.Version
	}
}

// isNow reports whether a message has the state, and is not deleted.
func isNow(m *chat.Message, s chat.DumpedState) bool {
	shown := ""
	if chosen := m.Chosen(); chosen != nil {
		shown = chosen.RevisionID
	}
	return m.DeletedAt == nil && !s.Deleted && s.Rev == m.Rev && s.Hidden == m.Hidden && s.Status == m.Status && s.RevisionID == shown
}

// FinishLoad shows the conversation. Of its versions, those of states and its
// newest are there then.
func (t archiveTx) FinishLoad(c *chat.Conversation, states []*chat.Conversation, rewinds []chat.Rewind) error {
	if _, err := t.Loading(c.ID); err != nil {
		return err
	}
	row := t.chats.newConversationRow(c)
	var err error
	row.MessageSeq, err = sqldb.Value[int64](t, "SELECT COALESCE(MAX(seq), 0) FROM messages WHERE user_id = ? AND conversation_id = ?", t.userID, c.ID)
	if err != nil {
		return err
	}
	if _, err := t.Update("conversations", row, []string{"id", "user_id"}, "WHERE user_id = ? AND id = ?", t.userID, c.ID); err != nil {
		return err
	}
	for _, state := range states {
		old := t.chats.conversationRow(state)
		old.ID = c.ID
		if err := t.chats.logConversation(old, true); err != nil {
			return err
		}
	}
	t.chats.noteStored(row)
	if err := t.chats.logConversation(row, true); err != nil {
		return err
	}
	t.memory.news(c.CharacterID).whole = true
	t.words.noteGrowth(c.ID, 0, row.MessageSeq)
	rows := make([]rewindRow, len(rewinds))
	for i, r := range rewinds {
		rows[i] = rewindRow{r, t.userID, c.ID}
	}
	return t.Insert("rewinds", rows)
}
