package store

import (
	"slices"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
)

type saveRow struct {
	bun.BaseModel  `bun:"table:saves"`
	ID             string `bun:"id,pk"`
	UserID         string
	ConversationID string
	CharacterID    text
	Version        int64
	HeadID         text
	Description    text
	PreviewText    text
	MessageCount   int
	IsAutomatic    bool
	Thumbnail      text
	Pins           document
	Extra          document
	ImportedAt     *int64
	CreatedAt      int64
}

type saveResourceRow struct {
	bun.BaseModel `bun:"table:save_resources"`
	UserID        string `bun:"user_id,pk"`
	SaveID        string `bun:"save_id,pk"`
	ResourceID    string `bun:"resource_id,pk"`
}

func (r *saveRow) save() (*chat.Save, error) {
	s := &chat.Save{
		ID: r.ID, ConversationID: r.ConversationID, CharacterID: string(r.CharacterID), Version: r.Version,
		HeadID: string(r.HeadID), Description: string(r.Description), PreviewText: string(r.PreviewText),
		MessageCount: r.MessageCount, Automatic: r.IsAutomatic, Thumbnail: string(r.Thumbnail),
		Extra: []byte(r.Extra), ImportedAt: momentOrNil(r.ImportedAt), CreatedAt: moment(r.CreatedAt),
	}
	return s, decode(r.Pins, &s.Pins)
}

// InsertSave stores a save point; a CreatedAt of zero becomes Now. What its pins
// name is kept as long as it is there.
func (t *tx) InsertSave(s *chat.Save) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(s.ConversationID, ""); err != nil {
		return err
	}
	t.fillTimes(&s.CreatedAt)
	pins, err := encode(s.Pins)
	if err != nil {
		return err
	}
	err = t.insert(&saveRow{
		ID: s.ID, UserID: t.userID, ConversationID: s.ConversationID, CharacterID: text(s.CharacterID), Version: s.Version,
		HeadID: text(s.HeadID), Description: text(s.Description), PreviewText: text(s.PreviewText),
		MessageCount: s.MessageCount, IsAutomatic: s.Automatic, Thumbnail: text(s.Thumbnail), Pins: pins,
		Extra: document(s.Extra), ImportedAt: millisOrNull(s.ImportedAt), CreatedAt: millis(s.CreatedAt),
	})
	if err != nil || s.Pins == nil {
		return err
	}
	var ids []string
	for _, r := range s.Pins.Resources {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	for part := range slices.Chunk(slices.Compact(ids), 400) {
		rows := make([]saveResourceRow, len(part))
		for i, id := range part {
			rows[i] = saveResourceRow{UserID: t.userID, SaveID: s.ID, ResourceID: id}
		}
		if err := t.insert(&rows); err != nil {
			return err
		}
	}
	return nil
}

// Save returns one; fault.NotFound also when its conversation is deleted.
func (t *tx) Save(id string) (*chat.Save, error) {
	var row saveRow
	found, err := t.scan(t.raw("SELECT s.* FROM saves s JOIN conversations c ON c.user_id = s.user_id AND c.id = s.conversation_id"+
		" WHERE s.user_id = ? AND s.id = ? AND c.deleted_at IS NULL", text(t.userID), text(id)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNoSave()
	}
	return row.save()
}

func errNoSave() error { return fault.New(fault.NotFound, "no such save point") }

// Saves lists the save points of a conversation, newest first.
func (t *tx) Saves(conversationID string, automatic bool, cursor string, limit int) ([]*chat.Save, string, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, "", err
	}
	var rows []*saveRow
	q := t.db.NewSelect().Model(&rows).Where("user_id = ?", text(t.userID)).Where("conversation_id = ?", text(conversationID))
	if !automatic {
		q.Where("NOT is_automatic")
	}
	limit = pageLength(limit)
	if err := page(q, "created_at", cursor, limit); err != nil {
		return nil, "", err
	}
	if _, err := t.scan(q); err != nil {
		return nil, "", err
	}
	rows, next := cut(rows, limit, func(r *saveRow) place { return place{r.CreatedAt, r.ID} })
	items := make([]*chat.Save, len(rows))
	for i, row := range rows {
		var err error
		if items[i], err = row.save(); err != nil {
			return nil, "", err
		}
	}
	return items, next, nil
}

// DeleteSave removes a save point. What it points to stays in the conversation.
func (t *tx) DeleteSave(id string) error {
	if err := t.writable(); err != nil {
		return err
	}
	n, err := t.exec(t.raw("DELETE FROM saves WHERE user_id = ? AND id = ? AND EXISTS"+
		" (SELECT 1 FROM conversations c WHERE c.user_id = saves.user_id AND c.id = saves.conversation_id AND c.deleted_at IS NULL)",
		text(t.userID), text(id)))
	if err == nil && n == 0 {
		return errNoSave()
	}
	return err
}
