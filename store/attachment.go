package store

import (
	"nodest/internal/attachment"
	"nodest/store/sqldb"
)

// Attachments returns the store of attachment.Service.
func (db *DB) Attachments() attachment.Store { return part[attachment.Tx]{db, (*tx).forAttachments} }

// forAttachments returns t as package attachment has it.
func (t *tx) forAttachments() attachment.Tx {
	return attachment.Tx{Tx: t, AttachmentTx: t.attachments}
}

// attachmentTx stores images.
type attachmentTx struct{ *tx }

type attachmentRow struct {
	attachment.Attachment
	UserID string
	Data   []byte
}

func (t attachmentTx) InsertAttachment(a *attachment.Attachment, data []byte) error {
	t.fillTimes(&a.CreatedAt)
	return t.Insert("attachments", &attachmentRow{*a, t.userID, append([]byte{}, data...)})
}

func (t attachmentTx) Attachment(id string) (*attachment.Attachment, error) {
	return sqldb.Find(t, "attachment", func(r *attachmentRow) *attachment.Attachment { return &r.Attachment },
		"SELECT id, name, content_type, width, height, size, etag, created_at FROM attachments WHERE user_id = ? AND id = ?", t.userID, id)
}

func (t attachmentTx) AttachmentData(id string) ([]byte, error) {
	return valueOf(sqldb.Get[[]byte](t, "attachment", "SELECT data FROM attachments WHERE user_id = ? AND id = ?", t.userID, id))
}

func (t attachmentTx) DeleteAttachment(id string) error {
	return t.Unless(t.dropReplies(t.userID, id)).ExecOne("attachment", "DELETE FROM attachments WHERE user_id = ? AND id = ?", t.userID, id)
}

// LockAttachments locks the user's row.
func (t attachmentTx) LockAttachments() (int64, error) {
	if _, err := t.users.LockLimits(); err != nil {
		return 0, err
	}
	return sqldb.Value[int64](t, "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM attachments WHERE user_id = ?", t.userID)
}
