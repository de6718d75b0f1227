package store

import (
	"cmp"
	"slices"
	"time"

	"nodest/chat"
	"nodest/index"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store/sqldb"
)

// textRow is a text that was said, by its revision.
type textRow struct {
	UserID         string
	RevisionID     string
	CharacterID    string
	ConversationID string
	MessageID      string
	Seq            int64
	Session        int64
	Role           string
	Name           string
	Terms          string
	Hash           string
	IsRead         bool
	IsForgotten    bool
	Change         int64
	SaidAt         time.Time
}

const (
	// pause is how long nobody says anything between two sessions.
	pause = 4 * time.Hour

	// saidAtOnce is how many texts of one conversation a turn can store; those of a
	// transaction with more come from elsewhere, and are read on demand only.
	saidAtOnce = 16
)

// said is what memory keeps of a revision; nil if there is nothing to keep.
func (t *tx) said(m *chat.Message, r *revisionRow) *textRow {
	if m.Hidden || m.Role != chat.RoleUser && m.Role != chat.RoleAssistant {
		return nil
	}
	words := memory.Clean(lang.Role(m.Role), r.Text)
	if words == "" {
		return nil
	}
	return &textRow{
		RevisionID: r.RevisionID, UserID: t.userID, ConversationID: m.ConversationID, MessageID: m.ID, Seq: m.Seq,
		Role: m.Role, Name: m.Name, Terms: index.Join(words), Hash: memory.ContentHash(words),
		IsRead: m.Extra != nil, SaidAt: m.CreatedAt,
	}
}

// hear notes revisions that were stored; finish writes them.
func (t *tx) hear(m *chat.Message, revisions []*revisionRow) {
	for _, r := range revisions {
		if row := t.said(m, r); row != nil {
			t.texts = append(t.texts, row)
		}
	}
}

// saidByScope sorts the texts of the transaction by characters and gives them their
// sessions.
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
		characterID, err := sqldb.One[string](t, "SELECT character_id FROM conversations WHERE user_id = ? AND id = ?", t.userID, id)
		if err != nil {
			return nil, err
		}
		if characterID == nil { // its messages would not be there either
			continue
		}
		if err := t.sit(id, rows); err != nil {
			return nil, err
		}
		scopes[*characterID] = append(scopes[*characterID], rows...)
	}
	return scopes, nil
}

// sit gives texts of a conversation their sessions: that of the text before, unless
// there was a pause.
func (t *tx) sit(conversationID string, rows []*textRow) error {
	slices.SortStableFunc(rows, func(a, b *textRow) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(rows) > saidAtOnce {
		for _, row := range rows {
			row.IsRead = true
		}
	}
	last, err := sqldb.One[textRow](t, "SELECT seq, session, said_at FROM memory_texts WHERE user_id = ? AND conversation_id = ? AND seq <= ?"+
		" ORDER BY seq DESC LIMIT 1", t.userID, conversationID, rows[0].Seq)
	if err != nil {
		return err
	}
	if last == nil {
		last = &textRow{Session: 1, SaidAt: rows[0].SaidAt}
	}
	for _, row := range rows {
		if row.Seq != last.Seq && row.SaidAt.Sub(last.SaidAt) >= pause {
			last.Session++
		}
		row.Session = last.Session
		last.Seq, last.SaidAt = row.Seq, row.SaidAt
	}
	return nil
}
