package store

import (
	"slices"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
	"nodest/op"
)

// swipeRow is a place for a text at a message; revisionRow is one text.
type swipeRow struct {
	bun.BaseModel `bun:"table:swipes"`
	UserID        string `bun:"user_id,pk"`
	MessageID     string `bun:"message_id,pk"`
	ID            string `bun:"id,pk"`
	Position      int
	Rev           int64
	RevisionID    string
	IsDeleted     bool
	CreatedAt     int64
}

type revisionRow struct {
	bun.BaseModel `bun:"table:revisions,alias:r"`
	ID            string `bun:"id,pk"`
	UserID        string
	MessageID     string
	SwipeID       string
	Rev           int64
	Text          text
	Reasoning     text
	Blocks        document
	Model         text
	Finish        text
	Usage         document
	GenerationID  text
	Wish          text
	MemoryIDs     document `bun:"memory_ids"`
	CreatedAt     int64
}

// putSwipes stores what is new in m.Swipes: a swipe that is not in stored, or a
// text under another revision id; it gets the next rev. Ids that are missing are
// made. The text of a revision that is stored is never looked at again: it cannot
// change. The rev of a stored swipe is the highest that it ever had: after a rewind
// not that of the text that it shows.
func (t *tx) putSwipes(m *chat.Message, stored []*swipeRow) error {
	var swipes []*swipeRow
	var revisions []*revisionRow
	for i := range m.Swipes {
		s := &m.Swipes[i]
		old := find(stored, s.ID)
		fresh := old == nil || old.RevisionID != s.RevisionID || old.Rev < s.Rev
		if fresh {
			if old != nil {
				s.Rev = old.Rev + 1
			}
			r, err := t.newRevision(m, s, old)
			if err != nil {
				return err
			}
			revisions = append(revisions, r)
		}
		row := t.swipeRow(m, i)
		if !fresh {
			row.Rev = old.Rev
		}
		if fresh || old.Position != i || old.IsDeleted != s.Deleted {
			swipes = append(swipes, row)
		}
	}
	t.hear(m, revisions)
	for rows := range slices.Chunk(revisions, 100) {
		if err := t.insert(&rows); err != nil {
			return err
		}
	}
	for rows := range slices.Chunk(swipes, 500) {
		err := t.insert(&rows, "ON CONFLICT (user_id, message_id, id) DO UPDATE SET position = EXCLUDED.position,"+
			" rev = EXCLUDED.rev, revision_id = EXCLUDED.revision_id, is_deleted = EXCLUDED.is_deleted")
		if err != nil {
			return err
		}
	}
	return nil
}

// swipeRow is the row of one of m's swipes.
func (t *tx) swipeRow(m *chat.Message, position int) *swipeRow {
	s := &m.Swipes[position]
	return &swipeRow{
		UserID: t.userID, MessageID: m.ID, ID: s.ID, Position: position, Rev: s.Rev, RevisionID: s.RevisionID,
		IsDeleted: s.Deleted, CreatedAt: millis(s.CreatedAt),
	}
}

func find(stored []*swipeRow, id string) *swipeRow {
	for _, row := range stored {
		if row.ID == id && id != "" {
			return row
		}
	}
	return nil
}

func (t *tx) newRevision(m *chat.Message, s *chat.Swipe, old *swipeRow) (*revisionRow, error) {
	if s.ID == "" {
		s.ID = op.NewID()
	}
	// A revision id that is still the old one cannot name the new text.
	if s.RevisionID == "" || old != nil && s.RevisionID == old.RevisionID {
		s.RevisionID = op.NewID()
	}
	s.Rev = max(s.Rev, 1)
	t.fillTimes(&s.CreatedAt)
	blocks, err := encode(s.Blocks)
	if err != nil {
		return nil, err
	}
	usage, err := encode(s.Usage)
	if err != nil {
		return nil, err
	}
	memories, err := encodeList(s.MemoryIDs)
	if err != nil {
		return nil, err
	}
	at := t.now
	if old == nil {
		at = millis(s.CreatedAt)
	}
	return &revisionRow{
		ID: s.RevisionID, UserID: t.userID, MessageID: m.ID, SwipeID: s.ID, Rev: s.Rev,
		Text: text(s.Text), Reasoning: text(s.Reasoning), Blocks: blocks, Model: text(s.Model),
		Finish: text(s.Finish), Usage: usage, GenerationID: text(s.GenerationID), Wish: text(s.Wish), MemoryIDs: memories, CreatedAt: at,
	}, nil
}

// swipeText is a swipe with its newest text.
type swipeText struct {
	MessageID    string
	ID           string
	Rev          int64
	RevisionID   string
	IsDeleted    bool
	CreatedAt    int64
	Text         text
	Reasoning    text
	Blocks       document
	Model        text
	Finish       text
	Usage        document
	GenerationID text
	Wish         text
	MemoryIDs    document `bun:"memory_ids"`
}

func (r *swipeText) swipe() (chat.Swipe, error) {
	s := chat.Swipe{
		ID: r.ID, RevisionID: r.RevisionID, Rev: r.Rev, Text: string(r.Text), Reasoning: string(r.Reasoning),
		Model: string(r.Model), Finish: string(r.Finish), GenerationID: string(r.GenerationID),
		Wish: string(r.Wish), Deleted: r.IsDeleted, CreatedAt: moment(r.CreatedAt),
	}
	if err := decode(r.Blocks, &s.Blocks); err != nil {
		return s, err
	}
	if err := decode(r.MemoryIDs, &s.MemoryIDs); err != nil {
		return s, err
	}
	return s, decode(r.Usage, &s.Usage)
}

// fillSwipes gives messages of the user their texts, in few statements.
func (t *tx) fillSwipes(items []*chat.Message) error {
	for part := range slices.Chunk(items, 500) {
		byID := make(map[string]*chat.Message, len(part))
		ids := make([]string, len(part))
		for i, m := range part {
			m.Swipes = []chat.Swipe{}
			byID[m.ID], ids[i] = m, m.ID
		}
		in, which := among(ids)
		var rows []*swipeText
		_, err := t.scan(t.raw(`SELECT s.message_id, s.id, r.rev, s.revision_id, s.is_deleted, s.created_at,
				r.text, r.reasoning, r.blocks, r.model, r.finish, r.usage, r.generation_id, r.wish, r.memory_ids
			FROM swipes s JOIN revisions r ON r.user_id = s.user_id AND r.id = s.revision_id
			WHERE s.user_id = ? AND s.message_id `+in+` ORDER BY s.message_id, s.position`, text(t.userID), which), &rows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			s, err := row.swipe()
			if err != nil {
				return err
			}
			m := byID[row.MessageID]
			m.Swipes = append(m.Swipes, s)
		}
	}
	return nil
}

func (r *revisionRow) revision() *chat.Revision {
	return &chat.Revision{
		ID: r.ID, MessageID: r.MessageID, SwipeID: r.SwipeID, Rev: r.Rev,
		Text: string(r.Text), CreatedAt: moment(r.CreatedAt),
	}
}

// Revision returns one stored text.
func (t *tx) Revision(id string) (*chat.Revision, error) {
	var row revisionRow
	found, err := t.scan(t.raw("SELECT * FROM revisions WHERE user_id = ? AND id = ?", text(t.userID), text(id)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such revision")
	}
	return row.revision(), nil
}

// Revisions returns every stored text of a message, oldest first.
func (t *tx) Revisions(messageID string) ([]*chat.Revision, error) {
	if _, err := t.Message(messageID); err != nil {
		return nil, err
	}
	var rows []*revisionRow
	_, err := t.scan(t.raw("SELECT * FROM revisions WHERE user_id = ? AND message_id = ? ORDER BY created_at, id",
		text(t.userID), text(messageID)), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]*chat.Revision, len(rows))
	for i, row := range rows {
		items[i] = row.revision()
	}
	return items, nil
}
