package store

import (
	"encoding/json"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// Chats returns the store of chat.Service.
func (db *DB) Chats() chat.Store { return part[chat.Tx]{db, (*tx).forChats} }

// forChats returns t as package chat has it.
func (t *tx) forChats() chat.Tx {
	return chat.Tx{
		Tx: t, Jobs: t.jobs, Memory: t.forMemory(), Characters: t.forCharacters(), ConversationTx: t.chats, SaveTx: t.chats, MessageTx: t.messages,
		HistoryTx: t.history, PlayTx: t.plays, SummaryTx: t.summaries, RunningTx: t.generations, WordTx: t.words, ForkTx: t.archive, ArchiveTx: t.archive,
	}
}

// chatTx stores conversations and save points.
type chatTx struct {
	*tx
	stored map[string]chatNow // conversations that were stored here
	// locked are the rows of conversations that LockConversation read and that
	// nobody, this transaction included, has changed since.
	locked map[string]*storedConversation
	// owned are conversations that LockConversation has found, which stay until the transaction
	// ends or deletes them.
	owned map[string]bool
}

type conversationRow struct {
	chat.Conversation `db:"-Copying -Play"`
	UserID            string
	// MessageSeq is the newest seq that was given to a message, DocumentsVersion
	// the version at which AuthorNote, Settings or Pins changed last.
	MessageSeq, DocumentsVersion int64
	DeletedAt                    *time.Time
}

// conversationStateRow is the state of a conversation from one version until the next row.
type conversationStateRow struct {
	chat.Conversation `db:"ID=conversation_id -CharacterID -Title -Tags -Archived -Extra -Copying -Play -LastMessage -CreatedAt -UpdatedAt"`
	UserID            string
	DocumentsVersion  int64
}

func (r *conversationRow) conversation() *chat.Conversation { return &r.Conversation }

func (t *chatTx) conversationRow(c *chat.Conversation) *conversationRow {
	return &conversationRow{Conversation: *c, UserID: t.userID, DocumentsVersion: c.Version}
}

// storedConversation is what a new version of a conversation is compared with.
type storedConversation struct {
	version, documentsVersion int64
	documents, state          string
	seq                       int64 // message_seq
	took                      bool  // seq is not stored yet
}

func (r *conversationRow) stored() *storedConversation {
	return &storedConversation{version: r.Version, documentsVersion: r.DocumentsVersion, documents: r.documents(), state: r.state(), seq: r.MessageSeq}
}

// chatNow is what later parts of a transaction need of a conversation that it has stored.
type chatNow struct {
	Version     int64
	CharacterID string
}

func (t *chatTx) noteStored(r *conversationRow) { t.stored[r.ID] = chatNow{r.Version, r.CharacterID} }

// now is the conversation with an id as the transaction has left it; nil if there is none.
func (t *chatTx) now(conversationID string) (*chatNow, error) {
	if known, ok := t.stored[conversationID]; ok {
		return &known, nil
	}
	read, err := sqldb.One[chatNow](t, "SELECT version, character_id FROM conversations WHERE user_id = ? AND id = ?", t.userID, conversationID)
	if read != nil {
		t.stored[conversationID] = *read
	}
	return read, err
}

// state is the rest of what conversation_states keeps.
func (r *conversationRow) state() string {
	return strings.Join([]string{r.HeadID, r.PersonaID, r.SummaryID, r.PlayID}, "\x00")
}

// documents are the parts of a conversation that are kept only where they change.
func (r *conversationRow) documents() string {
	var pins []byte
	if r.Pins != nil {
		pins, _ = json.Marshal(r.Pins) // it came from JSON
	}
	return strings.Join([]string{string(r.AuthorNote), string(r.Settings), string(pins)}, "\x00")
}

// InsertConversation stores a new conversation; a Version or time of zero
// becomes 1 or Now.
func (t *chatTx) InsertConversation(c *chat.Conversation) error {
	row := t.newConversationRow(c)
	if err := t.Insert("conversations", row); err != nil {
		return err
	}
	t.noteStored(row)
	return t.logConversation(row, true)
}

// newConversationRow gives c a version and times where it has none.
func (t *chatTx) newConversationRow(c *chat.Conversation) *conversationRow {
	t.fillTimes(&c.CreatedAt, &c.UpdatedAt)
	c.Version = max(c.Version, 1)
	return t.conversationRow(c)
}

// logConversation keeps the state of a version that differs from the one before. The
// documents are kept only where they changed; other states point to that one.
func (t *chatTx) logConversation(row *conversationRow, documents bool) error {
	state := &conversationStateRow{row.Conversation, t.userID, row.DocumentsVersion}
	if !documents {
		state.AuthorNote, state.Settings, state.Pins = nil, nil, nil
	}
	return t.Insert("conversation_states", state)
}

func (t *chatTx) Conversation(id string) (*chat.Conversation, error) {
	return sqldb.Find(t, "conversation", (*conversationRow).conversation, selectConversation, t.userID, id)
}

func (t *chatTx) LockConversation(id string) (*chat.Conversation, error) {
	if err := t.Writable(); err != nil {
		return nil, err
	}
	if err := t.unlock(); err != nil { // it may be locked again
		return nil, err
	}
	row, err := t.findConversation(id, t.ForUpdate())
	if err != nil {
		return nil, err
	}
	t.locked[id] = row.stored()
	t.owned[id] = true
	return &row.Conversation, nil
}

const selectConversation = "SELECT * FROM conversations WHERE user_id = ? AND id = ? AND deleted_at IS NULL"

func (t *chatTx) findConversation(id, lock string) (*conversationRow, error) {
	return sqldb.Get[conversationRow](t, "conversation", selectConversation+lock, t.userID, id)
}

// owns returns fault.NotFound for a conversation that is not there, or is
// not the user's.
func (t *chatTx) owns(id string) error {
	if t.owned[id] {
		return t.Ready()
	}
	return t.Require("conversation", "SELECT 1 FROM conversations WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, id)
}

// with returns the session for statements about a conversation: each returns
// fault.NotFound unless owns is satisfied.
func (t *chatTx) with(id string) *sqldb.Session { return t.Unless(t.owns(id)) }

func (t *chatTx) Conversations(f chat.ConversationFilter, cursor string, limit int) ([]*chat.Conversation, string, error) {
	where, args, by := "user_id = ? AND deleted_at IS NULL", []any{t.userID}, "updated_at"
	if f.CharacterID != "" {
		where, args = where+" AND character_id = ?", append(args, f.CharacterID)
	}
	if f.Archived != nil {
		where, args = where+" AND archived = ?", append(args, *f.Archived)
	}
	if f.Sort == op.SortCreated {
		by = "created_at"
	}
	var keep func(*conversationRow) bool
	if match := f.Match(); match != nil {
		keep = func(r *conversationRow) bool { return match(r.Title, r.Tags) }
	}
	return sqldb.PageOf(t, keep, (*conversationRow).conversation, by, cursor, limit, "SELECT * FROM conversations WHERE "+where, args...)
}

func (t *chatTx) UpdateConversation(c *chat.Conversation) error {
	c.UpdatedAt = t.Now()
	return t.storeConversation(c)
}

// ChooseSummary stores c as its next version and leaves UpdatedAt as it was.
func (t *chatTx) ChooseSummary(c *chat.Conversation) error { return t.storeConversation(c) }

func (t *chatTx) storeConversation(c *chat.Conversation) error {
	stored := t.locked[c.ID]
	if stored == nil {
		row, err := t.findConversation(c.ID, t.ForUpdate())
		if err != nil {
			return err
		}
		stored = row.stored()
	}
	if stored.version != c.Version-1 {
		return fault.New(fault.Conflict, "the conversation was changed by another request").With("currentVersion", stored.version)
	}
	row := t.conversationRow(c)
	changed := row.documents() != stored.documents
	if !changed {
		row.DocumentsVersion = stored.documentsVersion
	}
	row.MessageSeq = stored.seq
	delete(t.locked, c.ID)
	but := []string{"id", "user_id", "created_at", "deleted_at"}
	if _, err := t.Update("conversations", row, but, "WHERE user_id = ? AND id = ?", t.userID, row.ID); err != nil {
		return err
	}
	t.noteStored(row)
	if !changed && row.state() == stored.state { // as the version before
		return nil
	}
	return t.logConversation(row, changed)
}

// DeleteConversation hides it; maintenance removes it later.
func (t *chatTx) DeleteConversation(id string) error {
	delete(t.owned, id)
	if err := t.unlock(); err != nil {
		return err
	}
	character, err := sqldb.Get[string](t, "conversation", "UPDATE conversations SET deleted_at = ?"+
		" WHERE user_id = ? AND id = ? AND deleted_at IS NULL RETURNING character_id", t.Now(), t.userID, id)
	if err != nil {
		return err
	}
	t.memory.news(*character).whole = true
	if err := t.Run("DELETE FROM source_votes WHERE user_id = ? AND conversation_id = ?", t.userID, id); err != nil {
		return err
	}
	return t.jobs.cancel("subject = ? AND kind LIKE ?", id, memoryJobs)
}
