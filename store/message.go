package store

import (
	"slices"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
)

type messageRow struct {
	bun.BaseModel  `bun:"table:messages,alias:m"`
	ID             string `bun:"id,pk"`
	UserID         string
	ConversationID string
	ParentID       text
	ClientMsgID    text
	Seq            int64
	Role           text
	Name           text
	AuthorID       text
	IsGreeting     bool
	IsHidden       bool
	SwipeIndex     int
	Rev            int64
	Status         text
	Error          document
	GenerationID   text
	Extra          document
	// Depth counts the messages from the root to it, itself included. Chain names
	// the unbranched run of the tree that it is in, see place. Both are set once.
	Depth     int64
	Chain     int64
	CreatedAt int64
	EditedAt  *int64
	DeletedAt *int64
}

func (r *messageRow) message() (*chat.Message, error) {
	m := &chat.Message{
		ID: r.ID, ConversationID: r.ConversationID, ParentID: string(r.ParentID), ClientMsgID: string(r.ClientMsgID),
		Seq: r.Seq, Role: string(r.Role), Name: string(r.Name), AuthorID: string(r.AuthorID),
		Greeting: r.IsGreeting, Hidden: r.IsHidden, SwipeIndex: r.SwipeIndex, Rev: r.Rev, Status: string(r.Status),
		GenerationID: string(r.GenerationID), Extra: []byte(r.Extra), CreatedAt: moment(r.CreatedAt),
		EditedAt: momentOrNil(r.EditedAt), DeletedAt: momentOrNil(r.DeletedAt),
	}
	return m, decode(r.Error, &m.Error)
}

func (t *tx) messageRow(m *chat.Message) (*messageRow, error) {
	failure, err := encode(m.Error)
	if err != nil {
		return nil, err
	}
	return &messageRow{
		ID: m.ID, UserID: t.userID, ConversationID: m.ConversationID, ParentID: text(m.ParentID),
		ClientMsgID: text(m.ClientMsgID), Seq: m.Seq, Role: text(m.Role), Name: text(m.Name),
		AuthorID: text(m.AuthorID), IsGreeting: m.Greeting, IsHidden: m.Hidden, SwipeIndex: m.SwipeIndex,
		Rev: m.Rev, Status: text(m.Status), Error: failure, GenerationID: text(m.GenerationID),
		Extra: document(m.Extra), CreatedAt: millis(m.CreatedAt),
		EditedAt: millisOrNull(m.EditedAt), DeletedAt: millisOrNull(m.DeletedAt),
	}, nil
}

// messageStateRow is what a message showed at one version of its conversation.
type messageStateRow struct {
	bun.BaseModel  `bun:"table:message_states"`
	ConversationID string
	MessageID      string
	Version        int64
	UserID         string
	Rev            int64
	RevisionID     string
	Status         text
	IsDeleted      bool
	// Previous is the version of the message's state before this one, which held
	// until Version; 0 = there is none.
	Previous int64
}

// InsertMessage stores m. Its seq comes from the conversation's row, whose lock
// orders the messages of one conversation.
func (t *tx) InsertMessage(m *chat.Message) error {
	if err := t.writable(); err != nil {
		return err
	}
	found, err := t.scan(t.raw("UPDATE conversations SET message_seq = message_seq + 1"+
		" WHERE user_id = ? AND id = ? AND deleted_at IS NULL RETURNING message_seq",
		text(t.userID), text(m.ConversationID)), &m.Seq)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.NotFound, "no such conversation")
	}
	t.fillTimes(&m.CreatedAt)
	m.Rev = max(m.Rev, 1)
	row, err := t.messageRow(m)
	if err != nil {
		return err
	}
	if err := t.place(row); err != nil {
		return err
	}
	if err := t.insert(row); err != nil {
		return err
	}
	if err := t.putSwipes(m, nil); err != nil {
		return err
	}
	t.logState(m, true)
	return nil
}

// place says where a new message stands in the tree, and returns fault.NotFound
// if its parent is not of the conversation. The first child of a message, deleted
// ones count, goes on with its parent's chain. Any other child begins a chain,
// named by its own seq, and so does a root. So the messages of one chain up to a
// depth are a piece of a path, and a path is few pieces, however long it is.
func (t *tx) place(row *messageRow) error {
	row.Depth, row.Chain = 1, row.Seq
	if row.ParentID == "" {
		return nil
	}
	var in string
	var depth, chain int64
	var branches bool
	found, err := t.scan(t.raw(`SELECT p.conversation_id, p.depth, p.chain, EXISTS
			(SELECT 1 FROM messages s WHERE s.user_id = p.user_id AND s.conversation_id = p.conversation_id AND s.parent_id = p.id)
		FROM messages p WHERE p.user_id = ? AND p.id = ?`, text(t.userID), row.ParentID), &in, &depth, &chain, &branches)
	if err != nil {
		return err
	}
	if !found || in != row.ConversationID {
		return errNotInConversation()
	}
	row.Depth = depth + 1
	if !branches {
		row.Chain = chain
	}
	return nil
}

func errNotInConversation() error {
	return fault.New(fault.NotFound, "no such message in this conversation")
}

// inConversation returns fault.NotFound if the message is not one of it. Because
// a parent is checked when its child is stored, the ancestors of a message are
// all of its conversation and its user.
func (t *tx) inConversation(conversationID, messageID string) error {
	var in string
	_, err := t.scan(t.raw("SELECT conversation_id FROM messages WHERE user_id = ? AND id = ?", text(t.userID), text(messageID)), &in)
	if err == nil && in != conversationID {
		return errNotInConversation()
	}
	return err
}

// logState notes what m shows now; finish writes it under the version that the
// conversation has in the end. isNew says that the message was not there before.
func (t *tx) logState(m *chat.Message, isNew bool) {
	state := &messageStateRow{
		ConversationID: m.ConversationID, MessageID: m.ID, UserID: t.userID, Rev: m.Rev,
		Status: text(m.Status), IsDeleted: m.DeletedAt != nil, Previous: unknownPrevious,
	}
	if s := m.Chosen(); s != nil {
		state.RevisionID = s.RevisionID
	}
	if isNew {
		state.Previous = 0
	}
	if i, ok := t.stateOf[m.ID]; ok { // it changes twice
		state.Previous = t.states[i].Previous
		t.states[i] = state
		return
	}
	t.stateOf[m.ID] = len(t.states)
	t.states = append(t.states, state)
}

// unknownPrevious stands in a state until flushStates looks the previous one up.
const unknownPrevious = -1

// flushStates writes the log of states.
func (t *tx) flushStates() error {
	for _, state := range t.states {
		version, ok := t.versions[state.ConversationID]
		if !ok {
			_, err := t.scan(t.raw("SELECT version FROM conversations WHERE user_id = ? AND id = ?",
				text(t.userID), state.ConversationID), &version)
			if err != nil {
				return err
			}
			t.versions[state.ConversationID] = version
		}
		state.Version = version
	}
	if err := t.fillPrevious(); err != nil {
		return err
	}
	for rows := range slices.Chunk(t.states, 500) {
		err := t.insert(&rows, "ON CONFLICT (user_id, conversation_id, message_id, version) DO UPDATE SET"+
			" rev = EXCLUDED.rev, revision_id = EXCLUDED.revision_id, status = EXCLUDED.status, is_deleted = EXCLUDED.is_deleted")
		if err != nil {
			return err
		}
	}
	return nil
}

// fillPrevious looks up which states the new ones follow.
func (t *tx) fillPrevious() error {
	changed := map[string][]*messageStateRow{} // by conversation: one, as a rule
	for _, state := range t.states {
		if state.Previous == unknownPrevious {
			state.Previous = 0
			changed[state.ConversationID] = append(changed[state.ConversationID], state)
		}
	}
	for conversationID, states := range changed {
		for part := range slices.Chunk(states, 500) {
			if err := t.fillPreviousOf(conversationID, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) fillPreviousOf(conversationID string, states []*messageStateRow) error {
	byID := make(map[string]*messageStateRow, len(states))
	ids := make([]string, len(states))
	for i, state := range states {
		byID[state.MessageID], ids[i] = state, state.MessageID
	}
	in, which := among(ids)
	var rows []struct {
		MessageID string
		Version   int64
	}
	_, err := t.scan(t.raw("SELECT message_id, MAX(version) AS version FROM message_states"+
		" WHERE user_id = ? AND conversation_id = ? AND message_id "+in+" AND version < ? GROUP BY message_id",
		text(t.userID), text(conversationID), which, states[0].Version), &rows)
	for _, row := range rows {
		byID[row.MessageID].Previous = row.Version
	}
	return err
}

// Message returns one, also when it is deleted.
func (t *tx) Message(id string) (*chat.Message, error) {
	return t.oneMessage("m.id = ?", text(id))
}

// MessageByClientID finds a message by the name the client gave it.
func (t *tx) MessageByClientID(conversationID, clientMsgID string) (*chat.Message, error) {
	return t.oneMessage("m.conversation_id = ? AND m.client_msg_id = ? AND m.client_msg_id <> ''",
		text(conversationID), text(clientMsgID))
}

func (t *tx) oneMessage(where string, args ...any) (*chat.Message, error) {
	items, err := t.messages("WHERE m.user_id = ? AND "+where+
		" AND EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = m.user_id AND c.id = m.conversation_id AND c.deleted_at IS NULL)",
		append([]any{text(t.userID)}, args...)...)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fault.New(fault.NotFound, "no such message")
	}
	return items[0], nil
}

// messages reads the messages that rest, the end of the statement, selects.
func (t *tx) messages(rest string, args ...any) ([]*chat.Message, error) {
	var rows []*messageRow
	if _, err := t.scan(t.raw("SELECT m.* FROM messages m "+rest, args...), &rows); err != nil {
		return nil, err
	}
	items := make([]*chat.Message, len(rows))
	for i, row := range rows {
		var err error
		if items[i], err = row.message(); err != nil {
			return nil, err
		}
	}
	return items, t.fillSwipes(items)
}

// UpdateMessage stores the state of m and the texts that are new in it.
func (t *tx) UpdateMessage(m *chat.Message) error {
	if err := t.writable(); err != nil {
		return err
	}
	row, err := t.messageRow(m)
	if err != nil {
		return err
	}
	n, err := t.update(row, []string{"id", "user_id", "conversation_id", "parent_id", "client_msg_id", "seq", "extra", "depth", "chain", "created_at"},
		"WHERE user_id = ? AND id = ? AND conversation_id || '' = ? AND rev = ?", // to be found by its id, whatever the planner knows
		text(t.userID), text(m.ID), text(m.ConversationID), m.Rev-1)
	if err != nil {
		return err
	}
	if n == 0 {
		current, err := t.Message(m.ID)
		if err != nil {
			return err
		}
		return fault.New(fault.Conflict, "the message was changed by another request").With("current", current)
	}
	var stored []*swipeRow
	if _, err := t.scan(t.raw("SELECT * FROM swipes WHERE user_id = ? AND message_id = ?", text(t.userID), text(m.ID)), &stored); err != nil {
		return err
	}
	if err := t.putSwipes(m, stored); err != nil {
		return err
	}
	t.logState(m, false)
	return nil
}

// Path walks from the end of the branch upwards, one search in the index per
// step, and stops when it has enough: its cost is that of the page. It trusts
// that beforeID is on the branch, and goes on from its parent.
func (t *tx) Path(conversationID, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	start, skip := headID, 0
	if beforeID != "" {
		start, skip = beforeID, 1
	}
	if start == "" {
		_, err := t.findConversation(conversationID, "")
		return nil, false, err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, false, err
	}
	if err := t.inConversation(conversationID, start); err != nil {
		return nil, false, err
	}
	limit = pageLength(limit)
	// found counts the messages of the page up to this step: not the deleted
	// ones, and not beforeID itself. Each step takes the user from the one before:
	// given the id once more, PostgreSQL may read all of a user's messages for each.
	items, err := t.messages(`
		JOIN (WITH RECURSIVE path (user_id, id, parent_id, step, found, wanted) AS (
			SELECT user_id, id, parent_id, 0, CASE WHEN deleted_at IS NULL THEN 1 - ? ELSE 0 END,
				CASE WHEN deleted_at IS NULL THEN 1 - ? ELSE 0 END
			FROM messages WHERE user_id = ? AND id = ?
			UNION ALL
			SELECT up.user_id, up.id, up.parent_id, path.step + 1,
				path.found + CASE WHEN up.deleted_at IS NULL THEN 1 ELSE 0 END,
				CASE WHEN up.deleted_at IS NULL THEN 1 ELSE 0 END
			FROM path CROSS JOIN messages up
			WHERE up.user_id = path.user_id AND up.id = path.parent_id AND path.found <= ?
		) SELECT user_id, id, step FROM path WHERE wanted = 1) walk ON walk.user_id = m.user_id AND walk.id = m.id
		ORDER BY walk.step LIMIT ?`,
		skip, skip, text(t.userID), text(start), limit, limit+1)
	if err != nil {
		return nil, false, err
	}
	more := len(items) > limit
	if more {
		items = items[:limit]
	}
	slices.Reverse(items)
	return items, more, nil
}

// Children returns the messages below id, by seq; id "" = the roots.
func (t *tx) Children(conversationID, id string) ([]*chat.Message, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	return t.messages("WHERE m.user_id = ? AND m.conversation_id = ? AND m.parent_id = ? ORDER BY m.seq",
		text(t.userID), text(conversationID), text(id))
}
