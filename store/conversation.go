package store

import (
	"bytes"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
)

type conversationRow struct {
	bun.BaseModel `bun:"table:conversations,alias:c"`
	ID            string `bun:"id,pk"`
	UserID        string
	CharacterID   text
	Title         text
	PersonaID     text
	HeadID        text
	AuthorNote    document
	Settings      document
	Archived      bool
	Extra         document
	Pins          document
	SummaryID     string
	Version       int64
	LastMessage   document
	// MessageSeq is the newest seq that was given to a message, DocumentsVersion
	// the version at which AuthorNote, Settings or Pins changed last.
	MessageSeq       int64
	DocumentsVersion int64
	CreatedAt        int64
	UpdatedAt        int64
	DeletedAt        *int64
}

// conversationStateRow is what a conversation was at one version.
type conversationStateRow struct {
	bun.BaseModel    `bun:"table:conversation_states"`
	ConversationID   string
	Version          int64
	UserID           string
	HeadID           text
	PersonaID        text
	SummaryID        string
	AuthorNote       document
	Settings         document
	Pins             document
	DocumentsVersion int64
	CreatedAt        int64
}

func (r *conversationRow) conversation() (*chat.Conversation, error) {
	c := &chat.Conversation{
		ID: r.ID, CharacterID: string(r.CharacterID), Title: string(r.Title), PersonaID: string(r.PersonaID),
		HeadID: string(r.HeadID), AuthorNote: []byte(r.AuthorNote), Settings: []byte(r.Settings),
		Archived: r.Archived, Extra: []byte(r.Extra), SummaryID: r.SummaryID, Version: r.Version,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt),
	}
	if err := decode(r.Pins, &c.Pins); err != nil {
		return nil, err
	}
	return c, decode(r.LastMessage, &c.LastMessage)
}

func (t *tx) conversationRow(c *chat.Conversation) (*conversationRow, error) {
	last, err := encode(c.LastMessage)
	if err != nil {
		return nil, err
	}
	pins, err := encode(c.Pins)
	if err != nil {
		return nil, err
	}
	return &conversationRow{
		ID: c.ID, UserID: t.userID, CharacterID: text(c.CharacterID), Title: text(c.Title),
		PersonaID: text(c.PersonaID), HeadID: text(c.HeadID), AuthorNote: document(c.AuthorNote),
		Settings: document(c.Settings), Archived: c.Archived, Extra: document(c.Extra), Pins: pins, SummaryID: c.SummaryID, Version: c.Version,
		LastMessage: last, DocumentsVersion: c.Version,
		CreatedAt: millis(c.CreatedAt), UpdatedAt: millis(c.UpdatedAt),
	}, nil
}

// InsertConversation stores a new conversation; a Version or time of zero
// becomes 1 or Now.
func (t *tx) InsertConversation(c *chat.Conversation) error {
	if err := t.writable(); err != nil {
		return err
	}
	row, err := t.newConversationRow(c)
	if err != nil {
		return err
	}
	if err := t.insert(row); err != nil {
		return err
	}
	return t.logConversation(row, true)
}

// newConversationRow gives c a version and times where it has none.
func (t *tx) newConversationRow(c *chat.Conversation) (*conversationRow, error) {
	t.fillTimes(&c.CreatedAt, &c.UpdatedAt)
	c.Version = max(c.Version, 1)
	return t.conversationRow(c)
}

// logConversation keeps the state under its version. The documents are kept only
// where they changed; other versions point to that one.
func (t *tx) logConversation(row *conversationRow, documents bool) error {
	state := &conversationStateRow{
		ConversationID: row.ID, Version: row.Version, UserID: t.userID, HeadID: row.HeadID,
		PersonaID: row.PersonaID, SummaryID: row.SummaryID, DocumentsVersion: row.DocumentsVersion, CreatedAt: t.now,
	}
	if documents {
		state.AuthorNote, state.Settings, state.Pins = row.AuthorNote, row.Settings, row.Pins
	}
	t.versions[row.ID] = row.Version
	return t.insert(state)
}

// Conversation returns one that is not deleted.
func (t *tx) Conversation(id string) (*chat.Conversation, error) {
	row, err := t.findConversation(id, "")
	if err != nil {
		return nil, err
	}
	return row.conversation()
}

// LockConversation keeps others from changing it until the transaction ends.
func (t *tx) LockConversation(id string) (*chat.Conversation, error) {
	if err := t.writable(); err != nil {
		return nil, err
	}
	row, err := t.findConversation(id, t.forUpdate())
	if err != nil {
		return nil, err
	}
	kept := *row // what is returned is the caller's
	kept.AuthorNote, kept.Settings = bytes.Clone(row.AuthorNote), bytes.Clone(row.Settings)
	t.locked[id] = &kept
	return row.conversation()
}

func (t *tx) findConversation(id, lock string) (*conversationRow, error) {
	var row conversationRow
	found, err := t.scan(t.raw("SELECT * FROM conversations WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+lock,
		text(t.userID), text(id)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such conversation")
	}
	return &row, nil
}

// Conversations lists those with the newest change first.
func (t *tx) Conversations(f chat.ConversationFilter, cursor string, limit int) ([]*chat.Conversation, string, error) {
	var rows []*conversationRow
	q := t.db.NewSelect().Model(&rows).Where("user_id = ?", text(t.userID)).Where("deleted_at IS NULL")
	if f.CharacterID != "" {
		q.Where("character_id = ?", text(f.CharacterID))
	}
	if f.Archived != nil {
		q.Where("archived = ?", *f.Archived)
	}
	limit = pageLength(limit)
	if err := page(q, "updated_at", cursor, limit); err != nil {
		return nil, "", err
	}
	if _, err := t.scan(q); err != nil {
		return nil, "", err
	}
	rows, next := cut(rows, limit, func(r *conversationRow) place { return place{r.UpdatedAt, r.ID} })
	items := make([]*chat.Conversation, len(rows))
	for i, row := range rows {
		var err error
		if items[i], err = row.conversation(); err != nil {
			return nil, "", err
		}
	}
	return items, next, nil
}

// UpdateConversation stores c as its next version.
func (t *tx) UpdateConversation(c *chat.Conversation) error {
	c.UpdatedAt = t.Now()
	return t.storeConversation(c)
}

// ChooseSummary stores c as its next version and leaves UpdatedAt as it was.
func (t *tx) ChooseSummary(c *chat.Conversation) error { return t.storeConversation(c) }

func (t *tx) storeConversation(c *chat.Conversation) error {
	if err := t.writable(); err != nil {
		return err
	}
	stored := t.locked[c.ID]
	delete(t.locked, c.ID)
	if stored == nil {
		var err error
		if stored, err = t.findConversation(c.ID, t.forUpdate()); err != nil {
			return err
		}
	}
	if stored.Version != c.Version-1 {
		return fault.New(fault.Conflict, "the conversation was changed by another request").With("currentVersion", stored.Version)
	}
	row, err := t.conversationRow(c)
	if err != nil {
		return err
	}
	changed := !bytes.Equal(stored.AuthorNote, row.AuthorNote) || !bytes.Equal(stored.Settings, row.Settings) ||
		!bytes.Equal(stored.Pins, row.Pins)
	if !changed {
		row.DocumentsVersion = stored.DocumentsVersion
	}
	but := []string{"id", "user_id", "message_seq", "created_at", "deleted_at"}
	if _, err := t.update(row, but, "WHERE user_id = ? AND id = ?", text(t.userID), row.ID); err != nil {
		return err
	}
	return t.logConversation(row, changed)
}

// DeleteConversation hides it; maintenance removes it later.
func (t *tx) DeleteConversation(id string) error {
	if err := t.writable(); err != nil {
		return err
	}
	clear(t.locked)
	var character text
	found, err := t.scan(t.raw("UPDATE conversations SET deleted_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL"+
		" RETURNING character_id", t.now, text(t.userID), text(id)), &character)
	if err != nil {
		return err
	}
	if !found {
		return fault.New(fault.NotFound, "no such conversation")
	}
	t.news(string(character)).whole = true
	return t.cancel("subject = ? AND kind LIKE ?", text(id), memoryJobs)
}
