package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// messageTx stores messages with their swipes and texts, and reads branches.
type messageTx struct {
	*tx
	states map[string]*messageStateRow // by message; finish writes them
	hidden []hiddenPiece               // messages that were hidden or shown
	near   bool                        // pages leave out texts, see NearTexts
}

type messageRow struct {
	chat.Message `db:"ClientMsgID=client_msg_key AuthorID=author_key Greeting=is_greeting Hidden=is_hidden Imported=is_imported -Swipes -Extra -Display -Files"`
	UserID       string
	// Depth counts the messages from the root to this one, itself included. Chain names
	// the unbranched run of the tree that contains it (see place). Both are set once.
	Depth, Chain int64
	// Since is the version of the conversation from which on the message has its only state; 0 = it has
	// rows of states.
	Since int64
}

func (r *messageRow) message() *chat.Message { return &r.Message }

func (t *messageTx) messageRow(m *chat.Message) *messageRow {
	return &messageRow{Message: *m, UserID: t.userID}
}

// messageStateRow is what a message showed at one version of its conversation.
type messageStateRow struct {
	chat.DumpedState                  `db:"Deleted=is_deleted Hidden=is_hidden"`
	UserID, ConversationID, MessageID string
	// Previous is the version of the message's state before this one, which held
	// until Version; 0 = there is none.
	Previous int64
	only     bool // it is no row, but what the message has since Version
	isNew    bool // the transaction stored the message
}

// InsertMessage stores messages. Their seqs come from the conversation's row, whose lock
// orders the messages of one conversation.
func (t *messageTx) InsertMessage(messages ...*chat.Message) error {
	if len(messages) == 0 {
		return nil
	}
	conversationID := messages[0].ConversationID
	last, err := t.chats.takeSeqs(conversationID, len(messages))
	if err != nil {
		return err
	}
	tree, err := t.treePlaces(conversationID, parentsOf(messages)...)
	if err != nil {
		return err
	}
	b, next := &bulk{}, t.chats.nextVersion(conversationID)
	for i, m := range messages {
		t.fillTimes(&m.CreatedAt)
		b.addLine(t.userID, m)
		m.Seq, m.Rev = last-int64(len(messages)-1-i), max(m.Rev, 1)
		row := t.messageRow(m)
		if !row.place(tree) {
			return errNotInConversation()
		}
		b.messages = append(b.messages, row)
		if m.DeletedAt == nil {
			row.Since = next
		}
		t.addSwipes(b, m, nil)
	}
	if err := cmp.Or(t.putMessages(b), t.putSwipes(b)); err != nil {
		return err
	}
	for _, m := range messages {
		t.logState(m, &messageStateRow{DumpedState: chat.DumpedState{Version: next}, only: m.DeletedAt == nil, isNew: true})
	}
	return nil
}

// nextVersion is the version that a conversation will probably have in the end; see flushStates.
func (t *chatTx) nextVersion(conversationID string) int64 {
	if stored := t.locked[conversationID]; stored != nil {
		return stored.version + 1
	}
	return max(1, t.stored[conversationID].Version)
}

// takeSeqs gives a conversation n further seqs, and returns the last one. Where the row is
// locked, they are stored with it.
func (t *chatTx) takeSeqs(conversationID string, n int) (last int64, err error) {
	if stored := t.locked[conversationID]; stored != nil {
		stored.seq += int64(n)
		stored.took = true
		t.words.noteGrowth(conversationID, stored.seq-int64(n), stored.seq)
		return stored.seq, nil
	}
	seq, err := sqldb.Get[int64](t, "conversation", "UPDATE conversations SET message_seq = message_seq + ?"+
		" WHERE user_id = ? AND id = ? AND deleted_at IS NULL RETURNING message_seq", n, t.userID, conversationID)
	if err != nil {
		return 0, err
	}
	t.words.noteGrowth(conversationID, *seq-int64(n), *seq)
	return *seq, nil
}

// unlock forgets what LockConversation has read.
func (t *chatTx) unlock() error {
	for id, stored := range t.locked {
		if !stored.took {
			continue
		}
		if err := t.Run("UPDATE conversations SET message_seq = ? WHERE user_id = ? AND id = ?", stored.seq, t.userID, id); err != nil {
			return err
		}
	}
	clear(t.locked)
	return nil
}

// parentsOf returns the parents of messages that are not themselves among them.
func parentsOf(messages []*chat.Message) []string {
	parents, own := []string{}, map[string]bool{}
	for _, m := range messages {
		if !own[m.ParentID] {
			parents = append(parents, m.ParentID)
		}
		own[m.ID] = true
	}
	slices.Sort(parents)
	return slices.Compact(parents)
}

// treePlace is the position of a message in the tree.
type treePlace struct {
	ID, ConversationID string
	Depth, Chain       int64
	HasChild           bool
}

// treePlaces returns the positions of messages of a conversation, by id. Others are left
// out.
func (t *messageTx) treePlaces(conversationID string, ids ...string) (map[string]*treePlace, error) {
	tree := make(map[string]*treePlace, len(ids))
	return tree, sqldb.Each(t, func(p *treePlace) error {
		if at := *p; p.ConversationID == conversationID { // not in SQL, so that the index of ids serves
			tree[p.ID] = &at
		}
		return nil
	}, "SELECT p.id, p.conversation_id, p.depth, p.chain, "+hasChild+" AS has_child FROM messages p WHERE p.user_id = ? AND p.id IN (?)", t.userID, ids)
}

// hasChild is a condition on messages p: one goes on with their chain, or branches off there.
const hasChild = `(EXISTS (SELECT 1 FROM messages b WHERE b.user_id = p.user_id AND b.conversation_id = p.conversation_id
		AND b.chain = p.chain AND b.depth = p.depth + 1)
	OR EXISTS (SELECT 1 FROM messages b WHERE b.user_id = p.user_id AND b.conversation_id = p.conversation_id
		AND b.parent_id = p.id AND b.chain = b.seq))`

// place sets the position of a new message in the tree, and adds it there; ok is false if
// its parent is missing. The first child of a message (deleted ones count) continues its
// parent's chain. Any other child begins a chain, named by its own seq, and so does a
// root. So the messages of one chain up to a depth are a piece of a path, and a path has
// few pieces, however long it is.
func (r *messageRow) place(tree map[string]*treePlace) (ok bool) {
	r.Depth, r.Chain = 1, r.Seq
	if r.ParentID != "" {
		up := tree[r.ParentID]
		if up == nil {
			return false
		}
		r.Depth = up.Depth + 1
		if !up.HasChild {
			r.Chain = up.Chain
		}
		up.HasChild = true
	}
	tree[r.ID] = &treePlace{Depth: r.Depth, Chain: r.Chain}
	return true
}

func errNotInConversation() error {
	return fault.New(fault.NotFound, "no such message in this conversation")
}

// inConversation returns fault.NotFound if the message is not one of it. Because
// a parent is checked when its child is stored, the ancestors of a message are
// all of its conversation and its user.
func (t *messageTx) inConversation(conversationID, messageID string) error {
	in, err := sqldb.Value[string](t, "SELECT conversation_id FROM messages WHERE user_id = ? AND id = ?", t.userID, messageID)
	if err == nil && in != conversationID {
		return errNotInConversation()
	}
	return err
}

// logState records what m shows now; finish writes it under the final version of the
// conversation. earlier is what the transaction has recorded of it before, nil = nothing.
func (t *messageTx) logState(m *chat.Message, earlier *messageStateRow) {
	state := &messageStateRow{UserID: t.userID, ConversationID: m.ConversationID, MessageID: m.ID, Previous: unknownPrevious}
	state.Rev, state.Status, state.Deleted, state.Hidden = m.Rev, m.Status, m.DeletedAt != nil, m.Hidden
	if s := m.Chosen(); s != nil {
		state.RevisionID = s.RevisionID
	}
	if earlier != nil {
		state.Previous, state.Version, state.only, state.isNew = earlier.Previous, earlier.Version, earlier.only, earlier.isNew
	}
	t.states[m.ID] = state
}

// unknownPrevious stands in a state until flushStates looks the previous one up.
const unknownPrevious = -1

// shownText is the id of the text that a message m shows.
const shownText = `(SELECT r.id FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id
	AND r.position = m.swipe_index AND r.is_shown)`

// stateColumns are the columns of message_states.
const stateColumns = "user_id, conversation_id, message_id, version, previous, rev, status, is_deleted, is_hidden, revision_id"

// onlyStates selects the states of messages that have no rows of states.
const onlyStates = "SELECT m.user_id, m.conversation_id, m.id AS message_id, m.since AS version, 0 AS previous, m.rev, m.status," +
	" FALSE AS is_deleted, m.is_hidden, " + shownText + " AS revision_id FROM messages m WHERE m.since > 0 AND m.user_id = ? AND m.id IN (?)"

// earlierState is what is recorded of m before it changes. Its only state becomes a row, unless it
// is a placeholder.
func (t *messageTx) earlierState(m *chat.Message) (*messageStateRow, error) {
	if earlier := t.states[m.ID]; earlier != nil {
		if earlier.only && m.DeletedAt != nil { // has rows
			return &messageStateRow{}, nil
		}
		return earlier, nil
	}
	state, err := sqldb.One[messageStateRow](t, onlyStates, t.userID, []string{m.ID})
	if err != nil || state == nil {
		return nil, err
	}
	if state.isPlaceholder() && m.DeletedAt == nil {
		state.only = true
		return state, nil
	}
	return &messageStateRow{Previous: state.Version}, t.Insert("message_states", state)
}

// overState ends the INSERT of states: one version has one of each message.
const overState = "ON CONFLICT (user_id, conversation_id, message_id, version) DO UPDATE SET" +
	" rev = EXCLUDED.rev, revision_id = EXCLUDED.revision_id, status = EXCLUDED.status, is_deleted = EXCLUDED.is_deleted, is_hidden = EXCLUDED.is_hidden"

// flushStates writes the log of states.
func (t *messageTx) flushStates() error {
	rows := make([]*messageStateRow, 0, len(t.states))
	changed := map[string][]string{} // messages that were there before, by conversation, mostly one
	moved := map[int64][]string{}    // messages whose only state is since another version than they say
	for _, id := range slices.Sorted(maps.Keys(t.states)) {
		state := t.states[id]
		now, err := t.chats.now(state.ConversationID)
		if err != nil {
			return err
		}
		if state.only {
			if now != nil && state.isNew && state.Version != now.Version {
				moved[now.Version] = append(moved[now.Version], id)
			}
			continue
		}
		if now != nil {
			state.Version = now.Version
		}
		if state.Previous == unknownPrevious {
			state.Previous = 0
			changed[state.ConversationID] = append(changed[state.ConversationID], id)
		}
		rows = append(rows, state)
	}
	for conversationID, ids := range changed {
		err := sqldb.Each(t, func(last *messageStateRow) error {
			if state := t.states[last.MessageID]; last.isPlaceholder() && !state.Deleted {
				state.Version = last.Version
			} else {
				state.Previous = last.Version
			}
			return nil
		}, `SELECT s.* FROM message_states s WHERE s.user_id = ? AND s.conversation_id = ? AND s.message_id IN (?)
			AND s.version = (SELECT MAX(o.version) FROM message_states o WHERE o.user_id = s.user_id AND o.conversation_id = s.conversation_id
				AND o.message_id = s.message_id AND o.version < ?)`, t.userID, conversationID, ids, t.chats.stored[conversationID].Version)
		if err != nil {
			return err
		}
	}
	for version, ids := range moved {
		if err := t.Run("UPDATE messages SET since = ? WHERE user_id = ? AND id IN (?)", version, t.userID, ids); err != nil {
			return err
		}
	}
	return t.Insert("message_states", rows, overState)
}

// isPlaceholder reports whether a message was stored for a text that was still to be written. What
// becomes of it takes the place of this state: no version has half a reply.
func (s *messageStateRow) isPlaceholder() bool {
	return s.Previous == 0 && s.RevisionID == "" && !s.Deleted && (s.Status == chat.StatusPending || s.Status == chat.StatusStreaming)
}

func (t *messageTx) Message(id string) (*chat.Message, error) {
	return t.oneMessage("m.id = ?", id)
}

func (t *messageTx) MessageByClientID(conversationID, clientMsgID string) (*chat.Message, error) {
	return t.oneMessage("m.conversation_id = ? AND m.client_msg_key = ? AND m.client_msg_key <> ''",
		conversationID, clientMsgID)
}

func (t *messageTx) oneMessage(where string, args ...any) (*chat.Message, error) {
	m, err := sqldb.Find(t, "message", (*messageRow).message, "SELECT m.* FROM messages m WHERE m.user_id = ? AND "+where+" AND "+inLivingChat,
		append([]any{t.userID}, args...)...)
	if err != nil {
		return nil, err
	}
	return m, t.fillSwipes([]*chat.Message{m})
}

// inLivingChat is a condition on messages m: their conversation is not deleted, and they are not
// being loaded.
const inLivingChat = "EXISTS (SELECT 1 FROM conversations c WHERE c.user_id = m.user_id AND c.id = m.conversation_id AND c.deleted_at IS NULL)" +
	" AND " + notLoading

// messages reads the messages that rest, the end of the statement, selects.
func (t *messageTx) readMessages(rest string, args ...any) ([]*chat.Message, error) {
	items, err := sqldb.Map(t, (*messageRow).message, "SELECT m.* FROM messages m "+rest, args...)
	if err != nil {
		return nil, err
	}
	return items, t.fillSwipes(items)
}

// sizeOfTexts is the bytes of the newest texts of a message m, with swipeJSON for each further swipe.
const sizeOfTexts = `COALESCE((SELECT SUM(256 + octet_length(r.text) + octet_length(r.reasoning)
		+ octet_length(COALESCE(r.blocks, '')) + octet_length(COALESCE(r.citations, '')) + octet_length(COALESCE(r.tools, ''))) - 256
	FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id AND r.is_shown), 0)`

// pageColumns are the columns of messages m that differ within a page, and are not only for
// searching.
const pageColumns = "m.id, m.parent_id, m.client_msg_key, m.seq, m.role, m.name, m.author_key, m.is_greeting, m.is_hidden, m.is_imported," +
	" m.swipe_index, m.rev, m.status, m.error, m.generation_id, m.created_at, m.edited_at, m.deleted_at"

// messagePage is a page of messages of a conversation while it is read.
type messagePage struct {
	items []*chat.Message // without texts until fillPage
	bytes int             // bytes of their rows
	cut   bool            // it has sqldb.PageBytes, so messages were left out
}

// cutTo leaves as many messages as a page has.
func (p *messagePage) cutTo(limit int) {
	p.cut, p.items = p.cut || len(p.items) > limit, p.items[:min(len(p.items), limit)]
}

// addToPage adds the messages that rest, the end of the statement, selects.
func (t *messageTx) addToPage(p *messagePage, conversationID, rest string, args ...any) error {
	return sqldb.EachSized(t, func(r *messageRow, size int) error {
		p.bytes += size
		if p.cut = p.cut || p.bytes > sqldb.PageBytes && len(p.items) > 0; !p.cut {
			m := r.Message
			m.ConversationID = conversationID
			p.items = append(p.items, &m)
		}
		return nil
	}, "SELECT "+pageColumns+" FROM messages m "+rest, args...)
}

// fillPage adds the texts, and leaves out the messages that fillFirst does.
func (t *messageTx) fillPage(p *messagePage) error {
	n, err := t.fillFirst(p.items, sqldb.PageBytes)
	p.items, p.cut = p.items[:n], p.cut || n < len(p.items)
	return err
}

// fillFirst adds the texts to the first of some messages, and returns to how many: to those before the one
// with whose texts all of them exceed most bytes, but to one at least.
func (t *messageTx) fillFirst(items []*chat.Message, most int) (int, error) {
	room := most + len(items)<<10 // with the ids and names beside the texts
	size, err := t.readSwipes(items, room)
	if err != nil || size <= room {
		return len(items), err
	}
	for i := range items { // few have so many bytes
		if size, err = t.readPage(items[i], ""); err != nil {
			return 0, err
		}
		if room -= size; room < 0 && i > 0 {
			return i, nil
		}
	}
	return len(items), nil
}

func (t *messageTx) UpdateMessage(m *chat.Message) error {
	earlier, err := t.earlierState(m)
	if err != nil {
		return err
	}
	row := t.messageRow(m)
	if earlier != nil && earlier.only {
		row.Since = earlier.Version
	}
	n, err := t.Update("messages", row, []string{"id", "user_id", "conversation_id", "parent_id", "client_msg_key", "seq", "is_imported", "depth", "chain", "created_at"},
		"WHERE user_id = ? AND id = ? AND COALESCE(conversation_id, conversation_id) = ? AND rev = ?", // to be found by its id, whatever the planner knows
		t.userID, m.ID, m.ConversationID, m.Rev-1)
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
	stored, err := t.storedSwipes(m.ID)
	if err != nil {
		return err
	}
	b := &bulk{}
	t.addSwipes(b, m, stored)
	t.logState(m, earlier)
	return cmp.Or(t.putSwipes(b), t.words.noteRevisions(m, len(b.revisions)))
}

// Path reads the pieces of the path (see place) from its end upwards, and stops when it has
// enough: its cost is that of the page. It trusts that beforeID is on the branch, and goes
// on above it.
func (t *messageTx) Path(conversationID, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, false, err
	}
	p := &messagePage{}
	err := t.pathBefore(p, conversationID, headID, beforeID, limit, func(o pathPiece) error {
		return t.addToPage(p, conversationID, upChain, t.userID, conversationID, o.chain, o.to, o.limit)
	})
	if err != nil {
		return nil, false, err
	}
	err = t.fillPage(p)
	slices.Reverse(p.items)
	return p.items, p.cut, err
}

// pathBefore fills a page with pieces of a path from its end upwards, which read adds to it.
func (t *messageTx) pathBefore(p *messagePage, conversationID, headID, beforeID string, limit int, read func(pathPiece) error) error {
	at, skip, err := t.pathEnd(conversationID, headID, beforeID)
	if err != nil || at == nil {
		return err
	}
	limit = sqldb.Length(limit)
	p.items = make([]*chat.Message, 0, min(limit+1, 64))
	for at != nil && len(p.items) <= limit && !p.cut {
		if err := read(pathPiece{chain: at.Chain, to: at.Depth - skip, limit: limit + 1 - len(p.items)}); err != nil {
			return err
		}
		skip = 0
		if len(p.items) <= limit && !p.cut {
			if at, err = t.above(conversationID, at.Chain); err != nil {
				return err
			}
		}
	}
	p.cutTo(limit)
	return nil
}

// upChain selects messages of a chain from a depth upwards. The user's id is hidden from the
// planner, so that it takes the index of chains.
const upChain = "WHERE COALESCE(m.user_id, m.user_id) = ? AND m.conversation_id = ? AND m.chain = ? AND m.depth <= ?" +
	" AND m.deleted_at IS NULL ORDER BY m.depth DESC LIMIT ?"

// pathEnd is where the walk of a path begins, nil where there is no path, and how many messages are left
// out there. The conversation may be deleted.
func (t *messageTx) pathEnd(conversationID, headID, beforeID string) (start *chainPlace, skip int64, err error) {
	id := headID
	if beforeID != "" {
		id, skip = beforeID, 1
	}
	if id == "" {
		return nil, 0, nil
	}
	start, err = t.placeIn(conversationID, id)
	return start, skip, err
}

// isPath reports whether there is a path to a message of a conversation, which is not deleted.
func (t *messageTx) isPath(conversationID, headID string) (bool, error) {
	if err := t.chats.owns(conversationID); err != nil || headID == "" {
		return false, err
	}
	return true, t.inConversation(conversationID, headID)
}

func (t *messageTx) Children(conversationID, id string) ([]*chat.Message, error) {
	if err := t.chats.owns(conversationID); err != nil {
		return nil, err
	}
	at := &chainPlace{} // above the root of a fork, whose chain is 0
	if id != "" {
		var err error
		if at, err = t.placeIn(conversationID, id); err != nil {
			return nil, err
		}
	}
	below, args := "= ?", []any{t.userID, t.userID, conversationID, id}
	if id == "" {
		below, args = "IS NULL", args[:3]
	}
	return t.readMessages(fmt.Sprintf(childrenOf, below), append(args, t.userID, conversationID, at.Chain, at.Depth+1)...)
}

// childrenOf selects the messages that branch off at a message, or are roots, and the one that goes on
// with its chain.
const childrenOf = `WHERE m.user_id = ? AND m.id IN (
	SELECT b.id FROM messages b WHERE b.user_id = ? AND b.conversation_id = ? AND b.parent_id %s AND b.chain = b.seq
	UNION ALL SELECT b.id FROM messages b WHERE b.user_id = ? AND b.conversation_id = ? AND b.chain = ? AND b.depth = ?) ORDER BY m.seq`
