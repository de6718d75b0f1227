package store

import (
	"cmp"
	"slices"
	"time"

	"nodest/chat"
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
	Seq            int64
	Session        int64
	Role           string
	Name           string
	Hash           string
	IsRead         bool
	IsForgotten    bool
	IsBuried       bool
	IsUsed         bool
	FirstChange    int64
	Change         int64
	SaidAt         time.Time
	storedVector
}

// textTx stores what was said in chats, and what of it prompts were given.
type textTx struct {
	*tx
	said    []*textRow          // in this transaction; finish writes them
	imports bool                // they are a part of an import
	found   map[string][]string // units that were found for generations, by rank
}

const (
	// sessionPause is the silence that ends a session.
	sessionPause = 4 * time.Hour

	// mostPerTurn is how many texts of one conversation a turn can store at most; if a
	// transaction stores more they are imported, and extraction reads them on demand only.
	mostPerTurn = 16
)

// textOf returns what memory keeps of a revision; nil if that is nothing.
func (t *textTx) textOf(m *chat.Message, r *revisionRow) *textRow {
	if m.Role != chat.RoleUser && m.Role != chat.RoleAssistant {
		return nil
	}
	words := memory.Clean(lang.Role(m.Role), r.Text)
	if words == "" {
		return nil
	}
	return &textRow{
		RevisionID: r.RevisionID, UserID: t.userID, ConversationID: m.ConversationID, Seq: m.Seq,
		Role: m.Role, Name: m.Name, Hash: lang.ContentHash(words),
		IsRead: m.Imported, SaidAt: m.CreatedAt,
	}
}

// noteTexts adds the texts of revisions that were stored; finish writes them.
func (t *textTx) noteTexts(m *chat.Message, revisions []*revisionRow) {
	for _, r := range revisions {
		if row := t.textOf(m, r); row != nil {
			t.said = append(t.said, row)
		}
	}
}

// textsByScope groups the texts of the transaction by character and sets their sessions.
func (t *textTx) textsByScope() (map[string][]*textRow, error) {
	if len(t.said) == 0 {
		return nil, nil
	}
	chats := map[string][]*textRow{}
	for _, row := range t.said {
		chats[row.ConversationID] = append(chats[row.ConversationID], row)
	}
	scopes := map[string][]*textRow{}
	for id, rows := range chats {
		now, err := t.chats.now(id)
		if err != nil {
			return nil, err
		}
		if now == nil { // its messages would not be there either
			continue
		}
		if err := t.setSessions(id, rows); err != nil {
			return nil, err
		}
		scopes[now.CharacterID] = append(scopes[now.CharacterID], rows...)
	}
	return scopes, nil
}

// setSessions sets the sessions of texts of a conversation: that of the text before, unless
// there was a pause.
func (t *textTx) setSessions(conversationID string, rows []*textRow) error {
	slices.SortStableFunc(rows, func(a, b *textRow) int { return cmp.Compare(a.Seq, b.Seq) })
	if t.imports || len(rows) > mostPerTurn {
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
		if row.Seq != last.Seq && row.SaidAt.Sub(last.SaidAt) >= sessionPause {
			last.Session++
		}
		row.Session = last.Session
		last.Seq, last.SaidAt = row.Seq, row.SaidAt
	}
	return nil
}
