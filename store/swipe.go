package store

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/store/sqldb"
)

// revisionRow is a text of a swipe. What it has of the swipe, all its texts have.
type revisionRow struct {
	chat.Swipe        `db:"ID=swipe_id RevisionID=id Deleted=is_deleted -MemoryIDs -UsedProfile -Omitted -Play"` // created when it was stored
	UserID, MessageID string
	Position          int        // position of the swipe, which all its texts have
	IsShown           bool       // the swipe has this text
	SwipeAt           *time.Time // when the swipe was made; nil = with this text
}

// storedSwipe is a swipe as it is stored.
type storedSwipe struct {
	chat.Swipe `db:"ID=swipe_id RevisionID=id Deleted=is_deleted -Play"` // Rev is the highest that it ever had
	Position   int
	IsShown    bool
}

// storedSwipes returns the swipes of a message.
func (t *messageTx) storedSwipes(messageID string) ([]storedSwipe, error) {
	var swipes []storedSwipe
	return swipes, sqldb.Each(t, func(r *storedSwipe) error {
		old := find(swipes, r.ID)
		if old == nil {
			swipes = append(swipes, *r)
			return nil
		}
		if old.Rev = max(old.Rev, r.Rev); r.IsShown {
			old.RevisionID = r.RevisionID
		}
		return nil
	}, "SELECT swipe_id, id, rev, position, is_shown, is_deleted FROM revisions WHERE user_id = ? AND message_id = ?", t.userID, messageID)
}

// addSwipes adds what is new in m.Swipes to b: a swipe that is not in stored, or a
// text under another revision id; it gets the next rev. Ids that are missing are
// made. The text of a revision that is stored is never looked at again: it cannot
// change. The rev of a stored swipe is the highest that it ever had: after a rewind
// not that of the text that it shows.
func (t *messageTx) addSwipes(b *bulk, m *chat.Message, stored []storedSwipe) {
	var revisions []*revisionRow
	for i := range m.Swipes {
		s := &m.Swipes[i]
		old := find(stored, s.ID)
		fresh := old == nil || old.RevisionID != s.RevisionID || old.Rev < s.Rev
		if fresh {
			if old != nil {
				s.Rev = old.Rev + 1
			}
			revisions = append(revisions, t.newRevision(m, i, old))
			if s.Play != nil {
				b.plays = append(b.plays, s.Play)
				s.Play = nil
			}
		}
		if old != nil && (fresh || old.Position != i || old.Deleted != s.Deleted) {
			b.changed = append(b.changed, changedSwipe{m, i})
		}
	}
	t.texts.noteTexts(m, revisions)
	b.revisions = append(b.revisions, revisions...)
}

// putSwipes stores what addSwipes found.
func (t *messageTx) putSwipes(b *bulk) error {
	for _, c := range b.changed {
		s := &c.message.Swipes[c.position]
		err := t.Run("UPDATE revisions SET position = ?, is_deleted = ?, is_shown = (id = ?) WHERE user_id = ? AND message_id = ? AND swipe_id = ?",
			c.position, s.Deleted, s.RevisionID, t.userID, c.message.ID, s.ID)
		if err != nil {
			return err
		}
	}
	for _, p := range b.plays {
		if err := (playTx{t.tx}).InsertPlay(p); err != nil {
			return err
		}
	}
	return t.Insert("revisions", b.revisions)
}

func find(stored []storedSwipe, id string) *storedSwipe {
	i := slices.IndexFunc(stored, func(s storedSwipe) bool { return s.ID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &stored[i]
}

// newRevision is the text of the swipe of m at a position; old = it had another one.
func (t *messageTx) newRevision(m *chat.Message, position int, old *storedSwipe) *revisionRow {
	s := &m.Swipes[position]
	if s.ID == "" {
		s.ID = op.NewID()
	}
	// A revision id that is still the old one cannot name the new text.
	if s.RevisionID == "" || old != nil && s.RevisionID == old.RevisionID {
		s.RevisionID = op.NewID()
	}
	s.Rev = max(s.Rev, 1)
	t.fillTimes(&s.CreatedAt)
	row := &revisionRow{Swipe: *s, UserID: t.userID, MessageID: m.ID, Position: position, IsShown: true}
	if old != nil {
		row.storedAt(t.Now())
	}
	return row
}

// storedAt says when the text was stored, if its swipe is older.
func (r *revisionRow) storedAt(at time.Time) {
	if made := r.CreatedAt; !made.Equal(at) {
		r.SwipeAt, r.CreatedAt = &made, at
	}
}

// swipeText is a swipe with one of its texts.
type swipeText struct {
	chat.Swipe                `db:"Deleted=is_deleted -MemoryIDs -UsedProfile -Play"`
	ConversationID, MessageID string
	Position                  int
}

// fillSwipes gives messages of the user their texts, in few statements. References to files that
// the user may not read now are gone.
func (t *messageTx) fillSwipes(items []*chat.Message) error {
	_, err := t.readSwipes(items, math.MaxInt)
	return err
}

// swipeJSON is about how many bytes a swipe takes on a page beside its texts.
const swipeJSON = 256

// readSwipes is fillSwipes that stops when the texts exceed most bytes. It returns the bytes
// that it has read.
func (t *messageTx) readSwipes(items []*chat.Message, most int) (size int, err error) {
	if len(items) == 0 {
		return 0, nil
	}
	byID, ids := make(map[string]*chat.Message, len(items)), make([]string, len(items))
	for i, m := range items {
		m.Swipes = []chat.Swipe{}
		byID[m.ID], ids[i] = m, m.ID
	}
	rows := make([]*swipeText, 0, len(items))
	err = sqldb.EachSized(t, func(row *swipeText, n int) error {
		if size += n + swipeJSON; size > most {
			return errTextsTooLong
		}
		text := *row
		text.ConversationID = byID[row.MessageID].ConversationID
		rows = append(rows, &text)
		return nil
	}, "SELECT r.message_id, r.position, "+swipeColumns+" FROM revisions r WHERE r.user_id = ? AND r.message_id IN (?) AND r.is_shown", t.userID, ids)
	if errors.Is(err, errTextsTooLong) {
		return size, nil
	}
	if err == nil {
		err = t.texts.fillRecalled(rows)
	}
	if err != nil {
		return 0, err
	}
	// Not in SQL, where texts would be sorted too.
	slices.SortStableFunc(rows, func(a, b *swipeText) int { return cmp.Compare(a.Position, b.Position) })
	var cited []*cite.Reference
	for _, r := range rows {
		m := byID[r.MessageID]
		m.Swipes = append(m.Swipes, r.Swipe)
		cited = appendCited(cited, r.Citations)
	}
	return size, t.knowledge.markGone(cited)
}

func (t *messageTx) NearTexts() { t.near = true }

// sizedSwipe is a swipe without texts, and the bytes of these.
type sizedSwipe struct {
	chat.Swipe `db:"Deleted=is_deleted -Play"`
	Bytes      int
}

// selectSized reads no texts, which SQLite keeps behind the other columns.
var selectSized = "SELECT r.swipe_id AS id, r.rev, r.id AS revision_id, r.is_deleted, r.generation_id, COALESCE(r.swipe_at, r.created_at) AS created_at, " +
	sizeOf([]string{"text", "reasoning", "wish", "blocks", "tools", "citations"}, "r.") + " AS bytes" +
	" FROM revisions r WHERE r.user_id = ? AND r.message_id = ? AND r.is_shown ORDER BY r.position"

// readNear is readSwipes that omits the texts of swipes far from one of m, which has the revision, or else
// that m shows.
func (t *messageTx) readNear(m *chat.Message, revisionID string) (size int, err error) {
	swipes, err := sqldb.All[sizedSwipe](t, selectSized, t.userID, m.ID)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(swipes, func(s sizedSwipe) bool { return s.RevisionID == revisionID })
	if at < 0 {
		at = m.SwipeIndex
	}
	near := chat.Near(at, len(swipes), func(i int) int { return swipes[i].Bytes + swipeJSON })
	m.Swipes = make([]chat.Swipe, len(swipes))
	var ids []string
	for i, s := range swipes {
		m.Swipes[i], m.Swipes[i].Omitted = s.Swipe, !near[i]
		if size += swipeJSON; near[i] {
			ids, size = append(ids, s.RevisionID), size+s.Bytes
		}
	}
	if len(ids) == 0 {
		return size, nil
	}
	texts, err := t.textsOf(ids)
	if err != nil {
		return 0, err
	}
	var cited []*cite.Reference
	for i := range m.Swipes {
		if s := texts[m.Swipes[i].RevisionID]; s != nil {
			m.Swipes[i] = s.Swipe
			cited = appendCited(cited, s.Citations)
		}
	}
	return size, t.knowledge.markGone(cited)
}

// readPage is readSwipes of as much of a message as a page has.
func (t *messageTx) readPage(m *chat.Message, revisionID string) (size int, err error) {
	if t.near {
		return t.readNear(m, revisionID)
	}
	return t.readSwipes([]*chat.Message{m}, math.MaxInt)
}

var errTextsTooLong = errors.New("store: the texts exceed a page")

// swipeColumns are the columns of a swipe with the text of a revision r.
const swipeColumns = "r.swipe_id AS id, r.rev, r.id AS revision_id, r.is_deleted, COALESCE(r.swipe_at, r.created_at) AS created_at," + revisionTexts

// revisionTexts are the columns of a revision r that a swipe shows.
const revisionTexts = " r.text, r.reasoning, r.blocks, r.model, r.requested_model, r.finish, r.usage, r.generation_id, r.wish, r.play_id, r.citations, r.tools"

func appendCited(cited []*cite.Reference, c *cite.Citations) []*cite.Reference {
	if c != nil {
		for i := range c.References {
			cited = append(cited, &c.References[i])
		}
	}
	return cited
}

// textsOf returns the texts of those of some revisions that are there.
func (t *messageTx) textsOf(revisionIDs []string) (map[string]*swipeText, error) {
	texts := make(map[string]*swipeText, len(revisionIDs))
	if len(revisionIDs) == 0 {
		return texts, nil
	}
	err := sqldb.Each(t, func(r *swipeText) error {
		text := *r
		texts[r.RevisionID] = &text
		return nil
	}, "SELECT m.conversation_id, r.message_id, "+swipeColumns+" FROM revisions r JOIN messages m ON m.user_id = r.user_id AND m.id = r.message_id"+
		" WHERE r.user_id = ? AND r.id IN (?)", t.userID, revisionIDs)
	if err != nil {
		return nil, err
	}
	return texts, t.texts.fillRecalled(slices.Collect(maps.Values(texts)))
}

const selectRevisions = "SELECT id, message_id, swipe_id, rev, text, created_at FROM revisions WHERE user_id = ?"

func (t *messageTx) Revision(id string) (*chat.Revision, error) {
	return sqldb.Get[chat.Revision](t, "revision", selectRevisions+" AND id = ?", t.userID, id)
}

func (t *messageTx) Revisions(messageID string) ([]*chat.Revision, error) {
	if _, err := t.Message(messageID); err != nil {
		return nil, err
	}
	return sqldb.Map(t, func(r *chat.Revision) *chat.Revision { return r },
		selectRevisions+" AND message_id = ? ORDER BY created_at, id", t.userID, messageID)
}
