package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"nodest/memory"
	"nodest/nodest"
)

// textRow is a text that was said, by its revision.
type textRow struct {
	bun.BaseModel  `bun:"table:memory_texts"`
	RevisionID     string `bun:"revision_id,pk"`
	UserID         string
	CharacterID    string
	ConversationID string
	MessageID      string
	Seq            int64
	Sitting        int64
	Role           string
	Name           text
	Terms          text
	Hash           string
	IsRead         bool
	IsForgotten    bool
	Change         int64
	SaidAt         int64
}

const (
	// pause is how long nobody says anything between two sittings. Source: memory
	// specification 2.2.
	pause = 4 * time.Hour

	// saidAtOnce is how many texts of one conversation a turn can store; those of a
	// transaction with more come from elsewhere, and are read on demand only.
	saidAtOnce = 16
)

// said is what memory keeps of a revision; nil if there is nothing to keep.
func (t *tx) said(m *nodest.Message, r *revisionRow) *textRow {
	if m.Hidden || m.Role != nodest.RoleUser && m.Role != nodest.RoleAssistant {
		return nil
	}
	words := memory.Clean(memory.Role(m.Role), string(r.Text))
	if words == "" {
		return nil
	}
	return &textRow{
		RevisionID: r.ID, UserID: t.userID, ConversationID: m.ConversationID, MessageID: m.ID, Seq: m.Seq,
		Role: m.Role, Name: text(m.Name), Terms: text(memory.Terms(words)), Hash: memory.ContentHash(words),
		IsRead: m.Extra != nil, SaidAt: millis(m.CreatedAt),
	}
}

// hear notes revisions that were stored; finish writes them.
func (t *tx) hear(m *nodest.Message, revisions []*revisionRow) {
	for _, r := range revisions {
		if row := t.said(m, r); row != nil {
			t.texts = append(t.texts, row)
		}
	}
}

// saidByScope sorts the texts of the transaction by characters and gives them their
// sittings.
func (t *tx) saidByScope() (map[string][]*textRow, error) {
	if len(t.texts) == 0 {
		return nil, nil
	}
	chats := map[string][]*textRow{}
	for _, row := range t.texts {
		chats[row.ConversationID] = append(chats[row.ConversationID], row)
	}
	scopes := map[string][]*textRow{}
	for id, rows := range chats {
		c, found, err := t.listened(id)
		if err != nil {
			return nil, err
		}
		if !found { // its messages would not be there either
			continue
		}
		for after, part := range c.parts(rows) {
			if err := t.sit(id, part, after); err != nil {
				return nil, err
			}
			scopes[string(c.CharacterID)] = append(scopes[string(c.CharacterID)], part...)
		}
	}
	return scopes, nil
}

// listening says whose a conversation is, and what of it was heard: see Adoption.
type listening struct {
	CharacterID      text
	OldSeq, HeardSeq int64
}

func (t *tx) listened(conversationID string) (c listening, found bool, err error) {
	read := func(lock string) (bool, error) {
		return t.scan(t.raw("SELECT character_id, old_seq, heard_seq FROM conversations WHERE id = ? AND user_id = ?"+lock,
			text(conversationID), text(t.userID)), &c)
	}
	found, err = read("")
	if err == nil && c.HeardSeq < c.OldSeq { // the job must not go on meanwhile
		found, err = read(t.forUpdate())
	}
	return c, found, err
}

// parts are the rows that are heard now, by the seq after which their sittings are
// counted. How many there were until OldSeq is not known before all is heard.
func (c listening) parts(rows []*textRow) map[int64][]*textRow {
	if c.HeardSeq >= c.OldSeq {
		return map[int64][]*textRow{0: rows}
	}
	parts := map[int64][]*textRow{}
	for _, r := range rows {
		switch {
		case r.Seq <= c.HeardSeq:
			parts[0] = append(parts[0], r)
		case r.Seq > c.OldSeq:
			parts[c.OldSeq] = append(parts[c.OldSeq], r)
		}
	}
	return parts
}

// sit gives texts of a conversation their sittings: that of the text before, which
// is one after a seq, unless there was a pause.
func (t *tx) sit(conversationID string, rows []*textRow, after int64) error {
	slices.SortStableFunc(rows, func(a, b *textRow) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(rows) > saidAtOnce {
		for _, row := range rows {
			row.IsRead = true
		}
	}
	last := textRow{Sitting: after + 1, SaidAt: rows[0].SaidAt}
	_, err := t.scan(t.raw("SELECT seq, sitting, said_at FROM memory_texts WHERE conversation_id = ? AND seq > ? AND seq <= ?"+
		" ORDER BY seq DESC LIMIT 1", text(conversationID), after, rows[0].Seq), &last.Seq, &last.Sitting, &last.SaidAt)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Seq != last.Seq && row.SaidAt-last.SaidAt >= pause.Milliseconds() {
			last.Sitting++
		}
		row.Sitting = last.Sitting
		last.Seq, last.SaidAt = row.Seq, row.SaidAt
	}
	return nil
}
