package store

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"nodest/chat"
	"nodest/cite"
	"nodest/fault"
	"nodest/op"
	"nodest/store/sqldb"
)

// swipeRow is a place for a text at a message; revisionRow is one text.
type swipeRow struct {
	UserID     string
	MessageID  string
	ID         string
	Position   int
	Rev        int64
	RevisionID string
	IsDeleted  bool
	CreatedAt  time.Time
}

type revisionRow struct {
	chat.Swipe        `db:"ID=swipe_id RevisionID=id -Deleted"`
	UserID, MessageID string
}

// addSwipes adds what is new in m.Swipes to b: a swipe that is not in stored, or a
// text under another revision id; it gets the next rev. Ids that are missing are
// made. The text of a revision that is stored is never looked at again: it cannot
// change. The rev of a stored swipe is the highest that it ever had: after a rewind
// not that of the text that it shows.
func (t *tx) addSwipes(b *bulk, m *chat.Message, stored []swipeRow) {
	var revisions []*revisionRow
	for i := range m.Swipes {
		s := &m.Swipes[i]
		old := find(stored, s.ID)
		fresh := old == nil || old.RevisionID != s.RevisionID || old.Rev < s.Rev
		if fresh {
			if old != nil {
				s.Rev = old.Rev + 1
			}
			revisions = append(revisions, t.newRevision(m, s, old))
		}
		row := t.swipeRow(m, i)
		if !fresh {
			row.Rev = old.Rev
		}
		if fresh || old.Position != i || old.IsDeleted != s.Deleted {
			b.swipes = append(b.swipes, row)
		}
	}
	t.noteTexts(m, revisions)
	b.revisions = append(b.revisions, revisions...)
}

// putSwipes stores the swipes and revisions of b.
func (t *tx) putSwipes(b *bulk) error {
	if err := t.Insert("revisions", b.revisions); err != nil {
		return err
	}
	return t.Insert("swipes", b.swipes, "ON CONFLICT (user_id, message_id, id) DO UPDATE SET position = EXCLUDED.position,"+
		" rev = EXCLUDED.rev, revision_id = EXCLUDED.revision_id, is_deleted = EXCLUDED.is_deleted")
}

// swipeRow is the row of one of m's swipes.
func (t *tx) swipeRow(m *chat.Message, position int) *swipeRow {
	s := &m.Swipes[position]
	return &swipeRow{
		UserID: t.userID, MessageID: m.ID, ID: s.ID, Position: position, Rev: s.Rev, RevisionID: s.RevisionID,
		IsDeleted: s.Deleted, CreatedAt: s.CreatedAt,
	}
}

func find(stored []swipeRow, id string) *swipeRow {
	i := slices.IndexFunc(stored, func(row swipeRow) bool { return row.ID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &stored[i]
}

func (t *tx) newRevision(m *chat.Message, s *chat.Swipe, old *swipeRow) *revisionRow {
	if s.ID == "" {
		s.ID = op.NewID()
	}
	// A revision id that is still the old one cannot name the new text.
	if s.RevisionID == "" || old != nil && s.RevisionID == old.RevisionID {
		s.RevisionID = op.NewID()
	}
	s.Rev = max(s.Rev, 1)
	t.fillTimes(&s.CreatedAt)
	row := &revisionRow{*s, t.userID, m.ID}
	if old != nil {
		row.CreatedAt = t.Now()
	}
	return row
}

// swipeText is a swipe with its newest text.
type swipeText struct {
	chat.Swipe `db:"Deleted=is_deleted"`
	MessageID  string
	Position   int
}

// fillSwipes gives messages of the user their texts, in few statements. References to files that
// the user may not read now are gone.
func (t *tx) fillSwipes(items []*chat.Message) error {
	_, err := t.readSwipes(items, math.MaxInt)
	return err
}

// readSwipes is fillSwipes that stops when the texts exceed most bytes. It returns the bytes
// that it has read.
func (t *tx) readSwipes(items []*chat.Message, most int) (size int, err error) {
	if len(items) == 0 {
		return 0, nil
	}
	byID, ids := make(map[string]*chat.Message, len(items)), make([]string, len(items))
	for i, m := range items {
		m.Swipes = []chat.Swipe{}
		byID[m.ID], ids[i] = m, m.ID
	}
	rows := make([]swipeText, 0, len(items))
	err = sqldb.EachSized(t, func(row *swipeText, n int) error {
		if size += n; size > most {
			return errTextsTooLong
		}
		rows = append(rows, *row)
		return nil
	}, `SELECT s.message_id, s.position, s.id, r.rev, s.revision_id, s.is_deleted, s.created_at,`+revisionTexts+`
		FROM swipes s JOIN revisions r ON r.user_id = s.user_id AND r.id = s.revision_id
		WHERE s.user_id = ? AND s.message_id IN (?)`, t.userID, ids)
	if errors.Is(err, errTextsTooLong) {
		return size, nil
	}
	if err != nil {
		return 0, err
	}
	// Not in SQL, where texts would be sorted too.
	slices.SortStableFunc(rows, func(a, b swipeText) int { return cmp.Compare(a.Position, b.Position) })
	var cited []*cite.Reference
	for i := range rows {
		m := byID[rows[i].MessageID]
		m.Swipes = append(m.Swipes, rows[i].Swipe)
		cited = appendCited(cited, rows[i].Citations)
	}
	return size, knowledgeTx{t}.markGone(cited)
}

var errTextsTooLong = errors.New("store: the texts exceed a page")

// revisionTexts are the columns of a revision r that a swipe shows.
const revisionTexts = " r.text, r.reasoning, r.blocks, r.model, r.finish, r.usage, r.generation_id, r.wish, r.memory_ids, r.citations, r.tools"

func appendCited(cited []*cite.Reference, c *chat.Citations) []*cite.Reference {
	if c != nil {
		for i := range c.References {
			cited = append(cited, &c.References[i])
		}
	}
	return cited
}

// Written returns swipes as revisions have them, by the ids of those. References to files
// that the user may not read now are gone.
func (t *tx) Written(revisionIDs []string) (map[string]*chat.Swipe, error) {
	byID := make(map[string]*chat.Swipe, len(revisionIDs))
	var cited []*cite.Reference
	err := sqldb.Each(t, func(s *chat.Swipe) error {
		row := *s
		byID[row.RevisionID] = &row
		cited = appendCited(cited, row.Citations)
		return nil
	}, "SELECT r.swipe_id AS id, r.id AS revision_id, r.rev, r.created_at,"+revisionTexts+
		" FROM revisions r WHERE r.user_id = ? AND r.id IN (?)", t.userID, revisionIDs)
	if err != nil {
		return nil, err
	}
	for _, id := range revisionIDs {
		if byID[id] == nil {
			return nil, fault.New(fault.NotFound, "no such revision")
		}
	}
	return byID, knowledgeTx{t}.markGone(cited)
}

const selectRevisions = "SELECT id, message_id, swipe_id, rev, text, created_at FROM revisions WHERE user_id = ?"

// Revision returns one stored text.
func (t *tx) Revision(id string) (*chat.Revision, error) {
	return sqldb.Get[chat.Revision](t, "revision", selectRevisions+" AND id = ?", t.userID, id)
}

// Revisions returns every stored text of a message, oldest first.
func (t *tx) Revisions(messageID string) ([]*chat.Revision, error) {
	if _, err := t.Message(messageID); err != nil {
		return nil, err
	}
	return sqldb.Map(t, func(r *chat.Revision) *chat.Revision { return r },
		selectRevisions+" AND message_id = ? ORDER BY created_at, id", t.userID, messageID)
}
