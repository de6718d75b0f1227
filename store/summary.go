package store

import (
	"math"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
	"nodest/summary"
)

type summaryRow struct {
	bun.BaseModel  `bun:"table:summaries"`
	ID             string `bun:"id,pk"`
	UserID         string
	ConversationID string
	Generation     int
	StartSeq       int64
	EndID          string
	MadeVersion    int64
	HeadSeq        int64
	ViewLength     int
	CreatedAt      int64
	DeletedAt      *int64
}

// summaryTextRow is what a summary says from a version of its conversation on.
type summaryTextRow struct {
	bun.BaseModel `bun:"table:summary_texts"`
	UserID        string `bun:"user_id,pk"`
	SummaryID     string `bun:"summary_id,pk"`
	Version       int64  `bun:"version,pk"`
	Document      document
}

// newest stands for no version in particular.
const newest = math.MaxInt64

func orNewest(version int64) int64 {
	if version == 0 {
		return newest
	}
	return version
}

// InsertSummary stores a summary.
func (t *tx) InsertSummary(k *chat.KeptSummary) error {
	if err := t.writable(); err != nil {
		return err
	}
	var one int
	found, err := t.scan(t.raw("SELECT 1 FROM conversations WHERE user_id = ? AND id = ?", text(t.userID), text(k.ConversationID)), &one)
	if err == nil && !found { // a fork gets its summary before it is shown
		err = fault.New(fault.NotFound, "no such conversation")
	}
	if err != nil {
		return err
	}
	taken, err := t.scan(t.raw("SELECT 1 FROM summaries WHERE user_id = ? AND conversation_id = ? AND generation = ?",
		text(t.userID), text(k.ConversationID), k.Generation), &one)
	if err != nil {
		return err
	}
	if taken {
		return fault.New(fault.Conflict, "the conversation has a summary of generation %d", k.Generation)
	}
	if err := t.insert(t.summaryRow(k)); err != nil {
		return err
	}
	return t.putSummaryText(k.Summary, max(1, k.MadeVersion))
}

func (t *tx) summaryRow(k *chat.KeptSummary) *summaryRow {
	return &summaryRow{
		ID: k.ID, UserID: t.userID, ConversationID: k.ConversationID, Generation: k.Generation,
		StartSeq: k.Range.StartSeq, EndID: k.Range.EndID, MadeVersion: k.MadeVersion,
		HeadSeq: k.HeadSeq, ViewLength: k.ViewLength, CreatedAt: millis(k.At), DeletedAt: millisOrNull(k.DeletedAt),
	}
}

// putSummaryText keeps what a summary says from a version on. Whether it is stale
// is no part of it.
func (t *tx) putSummaryText(s *summary.Summary, version int64) error {
	kept := *s
	kept.Stale = false
	doc, err := encode(&kept)
	if err != nil {
		return err
	}
	_, err = t.exec(t.raw("DELETE FROM summary_texts WHERE user_id = ? AND summary_id = ? AND version = ?",
		text(t.userID), text(s.ID), version))
	if err != nil {
		return err
	}
	return t.insert(&summaryTextRow{UserID: t.userID, SummaryID: s.ID, Version: version, Document: doc})
}

// UpdateSummary stores another text.
func (t *tx) UpdateSummary(version int64, s *summary.Summary) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findSummary(s.ID); err != nil {
		return err
	}
	return t.putSummaryText(s, version)
}

// findSummary returns the row of a summary, deleted or not, of a conversation that
// is not.
func (t *tx) findSummary(id string) (*summaryRow, error) {
	var row summaryRow
	found, err := t.scan(t.raw("SELECT s.* FROM summaries s JOIN conversations c ON c.user_id = s.user_id AND c.id = s.conversation_id"+
		" WHERE s.user_id = ? AND s.id = ? AND c.deleted_at IS NULL", text(t.userID), text(id)), &row)
	if err == nil && !found {
		return nil, fault.New(fault.NotFound, "no such summary")
	}
	return &row, err
}

// Summary returns one as it was at a version.
func (t *tx) Summary(id string, version int64) (*chat.KeptSummary, error) {
	row, err := t.findSummary(id)
	if err != nil {
		return nil, err
	}
	var doc document
	found, err := t.scan(t.raw("SELECT document FROM summary_texts WHERE user_id = ? AND summary_id = ? AND version <= ?"+
		" ORDER BY version DESC LIMIT 1", text(t.userID), text(id), orNewest(version)), &doc)
	if err == nil && !found {
		err = fault.New(fault.NotFound, "no such summary")
	}
	if err != nil {
		return nil, err
	}
	return row.kept(doc)
}

func (r *summaryRow) kept(doc document) (*chat.KeptSummary, error) {
	k := &chat.KeptSummary{
		Summary: &summary.Summary{}, ConversationID: r.ConversationID, MadeVersion: r.MadeVersion,
		HeadSeq: r.HeadSeq, ViewLength: r.ViewLength, DeletedAt: momentOrNil(r.DeletedAt),
	}
	return k, decode(doc, k.Summary)
}

// Summaries lists those that are not deleted.
func (t *tx) Summaries(conversationID string) ([]*chat.KeptSummary, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	var rows []*struct {
		summaryRow
		Document document
	}
	_, err := t.scan(t.raw(`SELECT s.*, d.document FROM summaries s JOIN summary_texts d ON d.user_id = s.user_id AND d.summary_id = s.id
		WHERE s.user_id = ? AND s.conversation_id = ? AND s.deleted_at IS NULL
			AND d.version = (SELECT MAX(n.version) FROM summary_texts n WHERE n.user_id = s.user_id AND n.summary_id = s.id)
		ORDER BY s.generation DESC`, text(t.userID), text(conversationID)), &rows)
	if err != nil {
		return nil, err
	}
	items := make([]*chat.KeptSummary, len(rows))
	for i, row := range rows {
		if items[i], err = row.kept(row.Document); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// DeleteSummary hides one.
func (t *tx) DeleteSummary(id string, headSeq int64) error {
	if err := t.writable(); err != nil {
		return err
	}
	row, err := t.findSummary(id)
	if err != nil {
		return err
	}
	if row.DeletedAt != nil {
		return fault.New(fault.NotFound, "no such summary")
	}
	_, err = t.exec(t.raw("UPDATE summaries SET deleted_at = ?, head_seq = ? WHERE user_id = ? AND id = ?",
		t.now, headSeq, text(t.userID), text(id)))
	return err
}

// RestoreSummary makes a summary say again what it said at a version.
func (t *tx) RestoreSummary(id string, version, next int64) error {
	if err := t.writable(); err != nil {
		return err
	}
	then, err := t.Summary(id, version)
	if err != nil {
		return err
	}
	now, err := t.Summary(id, 0)
	if err != nil {
		return err
	}
	if _, err := t.exec(t.raw("UPDATE summaries SET deleted_at = NULL WHERE user_id = ? AND id = ?", text(t.userID), text(id))); err != nil {
		return err
	}
	if then.Text == now.Text && then.Method == now.Method {
		return nil
	}
	return t.putSummaryText(then.Summary, next)
}

// LatestGeneration counts deleted summaries too.
func (t *tx) LatestGeneration(conversationID string) (n int, err error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return 0, err
	}
	_, err = t.scan(t.raw("SELECT COALESCE(MAX(generation), 0) FROM summaries WHERE user_id = ? AND conversation_id = ?",
		text(t.userID), text(conversationID)), &n)
	return n, err
}

// LastSummarised looks at all conversations with a character.
func (t *tx) LastSummarised(characterID string) (time.Time, error) {
	var ms int64
	_, err := t.scan(t.raw(`SELECT COALESCE(MAX(s.created_at), 0) FROM conversations c CROSS JOIN summaries s
		WHERE c.user_id = ? AND c.character_id = ? AND s.user_id = c.user_id AND s.conversation_id = c.id`, text(t.userID), text(characterID)), &ms)
	return moment(ms), err
}

// onBranch is a condition on a summary that ends in a message: the branch, path, goes
// through that message.
const onBranch = `EXISTS (SELECT 1 FROM messages m CROSS JOIN path WHERE m.user_id = s.user_id AND m.id = s.end_id AND m.conversation_id = s.conversation_id
			AND path.chain = m.chain AND m.depth <= path.depth)
		AND EXISTS (SELECT 1 FROM messages h WHERE h.user_id = s.user_id AND h.id = ? AND h.conversation_id = s.conversation_id)`

// SummariesOn lists the summaries that end on a branch.
func (t *tx) SummariesOn(conversationID, headID string) ([]chat.SummaryRef, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil || headID == "" {
		return nil, err
	}
	var refs []chat.SummaryRef
	_, err := t.scan(t.raw(pieces+`SELECT s.id, s.deleted_at IS NOT NULL AS deleted, s.head_seq FROM summaries s
		WHERE s.user_id = ? AND s.conversation_id = ? AND `+onBranch+` ORDER BY s.generation DESC`,
		text(t.userID), text(headID), text(t.userID), text(conversationID), text(headID)), &refs)
	return refs, err
}

// Standing reads the messages that got another state since then, and no others.
func (t *tx) Standing(c chat.Covered, headID string, version int64) (chat.Standing, error) {
	if headID == "" {
		return chat.StandsOff, nil
	}
	var one int
	on, err := t.scan(t.raw(pieces+`SELECT 1 FROM (SELECT CAST(? AS TEXT) AS end_id, id AS conversation_id, user_id
			FROM conversations WHERE user_id = ? AND id = ?) s WHERE `+onBranch,
		text(t.userID), text(headID), text(c.EndID), text(t.userID), text(c.ConversationID), text(headID)), &one)
	if err != nil || !on {
		return chat.StandsOff, err
	}
	replaced, err := t.replaced(c.ConversationID, max(c.Since, 1))
	if err != nil {
		return chat.StandsOff, err
	}
	standing := chat.StandsWell
	if c.Since == 0 {
		standing = chat.StandsChanged
	}
	for part := range slices.Chunk(replaced, 200) {
		some, err := t.standing(c, part, orNewest(version))
		if err != nil {
			return chat.StandsOff, err
		}
		standing = min(standing, some)
	}
	return standing, nil
}

// standing compares states that messages had with those that they have at a
// version. Messages that are not covered do not count.
func (t *tx) standing(c chat.Covered, states []replacedState, version int64) (chat.Standing, error) {
	user, conv := text(t.userID), text(c.ConversationID)
	args := []any{user, text(c.EndID)}
	for _, s := range states {
		args = append(args, text(s.MessageID), s.Previous)
	}
	var rows []struct {
		Was, Shows     string
		WasGone, IsOut bool
	}
	_, err := t.scan(t.raw(pieces+", wanted (message_id, version) AS ("+values(2, 2*len(states))+`)
		SELECT s.revision_id AS was, s.is_deleted AS was_gone, n.revision_id AS shows, n.is_deleted AS is_out
		FROM wanted CROSS JOIN messages m CROSS JOIN path CROSS JOIN message_states s CROSS JOIN message_states n
		WHERE m.user_id = ? AND m.id = wanted.message_id AND m.seq >= ? AND path.chain = m.chain AND m.depth <= path.depth
			AND s.user_id = ? AND s.conversation_id = ? AND s.message_id = wanted.message_id AND s.version = wanted.version
			AND n.user_id = s.user_id AND n.conversation_id = s.conversation_id AND n.message_id = s.message_id
			AND n.version = (SELECT MAX(x.version) FROM message_states x
				WHERE x.user_id = s.user_id AND x.conversation_id = s.conversation_id AND x.message_id = s.message_id AND x.version <= ?)`,
		append(args, user, c.StartSeq, user, conv, version)...), &rows)
	if err != nil {
		return chat.StandsOff, err
	}
	standing := chat.StandsWell
	for _, r := range rows {
		switch {
		case r.IsOut && !r.WasGone && r.Was != "":
			return chat.StandsBroken, nil
		case r.IsOut && r.WasGone, r.Was == r.Shows && r.WasGone == r.IsOut:
		default:
			standing = chat.StandsChanged
		}
	}
	return standing, nil
}

// DumpSummaries reads all that a conversation ever had, by generation.
func (t *tx) DumpSummaries(conversationID string) ([]*chat.DumpedSummary, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	var rows []*struct {
		summaryRow
		Version  int64
		Document document
	}
	_, err := t.scan(t.raw(`SELECT s.*, d.version, d.document FROM summaries s JOIN summary_texts d ON d.user_id = s.user_id AND d.summary_id = s.id
		WHERE s.user_id = ? AND s.conversation_id = ? ORDER BY s.generation, d.version`,
		text(t.userID), text(conversationID)), &rows)
	if err != nil {
		return nil, err
	}
	items := []*chat.DumpedSummary{}
	for _, r := range rows {
		k, err := r.kept(r.Document)
		if err != nil {
			return nil, err
		}
		if n := len(items); n == 0 || items[n-1].Newest().ID != k.ID {
			items = append(items, &chat.DumpedSummary{
				MadeVersion: k.MadeVersion, HeadSeq: k.HeadSeq, ViewLength: k.ViewLength, DeletedAt: k.DeletedAt,
			})
		}
		last := items[len(items)-1]
		last.Texts = append(last.Texts, chat.SummaryText{Version: r.Version, Summary: k.Summary})
	}
	return items, nil
}

// LoadSummaries stores summaries of a conversation that was loaded.
func (t *tx) LoadSummaries(conversationID string, items []*chat.DumpedSummary) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return err
	}
	for _, d := range items {
		k := &chat.KeptSummary{
			Summary: d.Newest(), ConversationID: conversationID, MadeVersion: d.MadeVersion,
			HeadSeq: d.HeadSeq, ViewLength: d.ViewLength, DeletedAt: d.DeletedAt,
		}
		if err := t.insert(t.summaryRow(k)); err != nil {
			return err
		}
		for _, said := range d.Texts {
			own := *said.Summary
			own.ID = k.ID // what anybody else's is called is no business of an archive
			if err := t.putSummaryText(&own, said.Version); err != nil {
				return err
			}
		}
	}
	return nil
}
