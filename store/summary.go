package store

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/summary"
	"nodest/store/sqldb"
)

// summaryTx stores summaries.
type summaryTx struct{ *tx }

// summaryRow is a summary without its texts.
type summaryRow struct {
	chat.KeptSummary
	ID, UserID string
	Generation int
	EndID      string
	CreatedAt  time.Time
}

// summaryTextRow is what a summary says from a version of its conversation on.
type summaryTextRow struct {
	UserID, SummaryID string
	Version           int64
	Document          sqldb.Zstd // summary.Summary as JSON
}

// summaryWithText is a summary with one of its texts.
type summaryWithText struct {
	summaryRow
	Version  int64
	Document sqldb.Zstd
}

// newest stands for no version in particular.
const newest = math.MaxInt64

func orNewest(version int64) int64 {
	if version == 0 {
		return newest
	}
	return version
}

func (t summaryTx) InsertSummary(k *chat.KeptSummary) error {
	// A fork gets its summary before it is shown.
	err := t.Require("conversation", "SELECT 1 FROM conversations WHERE user_id = ? AND id = ?", t.userID, k.ConversationID)
	n, err := t.Unless(err).InsertNew("summaries", t.summaryRow(k), "ON CONFLICT (user_id, conversation_id, generation) DO NOTHING")
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.Conflict, "the conversation has a summary of generation %d", k.Generation)
	}
	return t.putSummaryText(k.Summary, max(1, k.MadeVersion))
}

func (t summaryTx) summaryRow(k *chat.KeptSummary) *summaryRow {
	return &summaryRow{*k, k.ID, t.userID, k.Generation, k.Range.EndID, k.At}
}

// putSummaryText keeps what a summary says from a version on. Whether it is stale
// is no part of it.
func (t summaryTx) putSummaryText(s *summary.Summary, version int64) error {
	told := *s
	told.Stale = false
	document, err := json.Marshal(&told)
	row := &summaryTextRow{t.userID, s.ID, version, document}
	return t.Unless(err).Insert("summary_texts", row, "ON CONFLICT (user_id, summary_id, version) DO UPDATE SET document = EXCLUDED.document")
}

func (t summaryTx) UpdateSummary(version int64, s *summary.Summary) error {
	if _, err := t.findSummary(s.ID); err != nil {
		return err
	}
	return t.putSummaryText(s, version)
}

// findSummary returns the row of a summary, deleted or not, of a conversation that
// is not.
func (t summaryTx) findSummary(id string) (*summaryRow, error) {
	return sqldb.Get[summaryRow](t, "summary", "SELECT s.* FROM summaries s JOIN conversations c ON c.user_id = s.user_id AND c.id = s.conversation_id"+
		" WHERE s.user_id = ? AND s.id = ? AND c.deleted_at IS NULL", t.userID, id)
}

func (t summaryTx) Summary(id string, version int64) (*chat.KeptSummary, error) {
	row, err := t.findSummary(id)
	if err != nil {
		return nil, err
	}
	text, err := sqldb.Get[summaryWithText](t, "summary", "SELECT version, document FROM summary_texts"+
		" WHERE user_id = ? AND summary_id = ? AND version <= ? ORDER BY version DESC LIMIT 1", t.userID, id, orNewest(version))
	if err != nil {
		return nil, err
	}
	text.summaryRow = *row
	return text.kept()
}

func (t summaryTx) SummaryText(id string, version int64) (string, error) {
	row, err := sqldb.Get[summaryWithText](t, "summary", "SELECT version, document FROM summary_texts WHERE user_id = ? AND summary_id = ? AND version = ?",
		t.userID, id, version)
	if err != nil {
		return "", err
	}
	k, err := row.kept()
	return k.Text, err
}

// kept is a copy, with its text.
func (r *summaryWithText) kept() (*chat.KeptSummary, error) {
	kept := r.KeptSummary
	kept.Summary = &summary.Summary{}
	err := json.Unmarshal(r.Document, kept.Summary)
	kept.Since = r.Version
	return &kept, err
}

// listedSummaries bounds a list of summaries, which has no pages.
const listedSummaries = 200

func (t summaryTx) Summaries(conversationID string) ([]*chat.KeptSummary, error) {
	items := []*chat.KeptSummary{}
	return items, sqldb.Each(t.chats.with(conversationID), func(r *summaryWithText) error {
		k, err := r.kept()
		items = append(items, k)
		return err
	}, `SELECT s.*, d.document FROM summaries s
		JOIN summary_texts d ON d.user_id = s.user_id AND d.summary_id = s.id
		WHERE s.user_id = ? AND s.conversation_id = ? AND s.deleted_at IS NULL
			AND d.version = (SELECT MAX(n.version) FROM summary_texts n WHERE n.user_id = s.user_id AND n.summary_id = s.id)
		ORDER BY s.generation DESC LIMIT ?`, t.userID, conversationID, listedSummaries)
}

func (t summaryTx) DeleteSummary(id string, headSeq int64) error {
	row, err := t.findSummary(id)
	if err != nil {
		return err
	}
	if row.DeletedAt != nil {
		return fault.New(fault.NotFound, "no such summary")
	}
	return t.Unless(t.dropReplies(t.userID, id)).Run("UPDATE summaries SET deleted_at = ?, head_seq = ? WHERE user_id = ? AND id = ?",
		t.Now(), headSeq, t.userID, id)
}

func (t summaryTx) RestoreSummary(id string, version, next int64) error {
	then, err := t.Summary(id, version)
	if err != nil {
		return err
	}
	now, err := t.Summary(id, 0)
	if err != nil {
		return err
	}
	if _, err := t.Exec("UPDATE summaries SET deleted_at = NULL WHERE user_id = ? AND id = ?", t.userID, id); err != nil {
		return err
	}
	if then.Text == now.Text && then.Method == now.Method {
		return nil
	}
	return t.putSummaryText(then.Summary, next)
}

// LatestGeneration counts deleted summaries too.
func (t summaryTx) LatestGeneration(conversationID string) (int, error) {
	return sqldb.Value[int](t.chats.with(conversationID), "SELECT COALESCE(MAX(generation), 0) FROM summaries WHERE user_id = ? AND conversation_id = ?", t.userID, conversationID)
}

func (t characterTx) LastSummarised(characterID string) (time.Time, error) {
	return sqldb.Value[time.Time](t, `SELECT COALESCE(MAX(s.created_at), 0) FROM conversations c CROSS JOIN summaries s
		WHERE c.user_id = ? AND c.character_id = ? AND s.user_id = c.user_id AND s.conversation_id = c.id`, t.userID, characterID)
}

// onBranch is a condition on a summary that ends in a message: the branch, path, goes
// through that message.
const onBranch = `EXISTS (SELECT 1 FROM messages m CROSS JOIN path WHERE m.user_id = s.user_id AND m.id = s.end_id AND m.conversation_id = s.conversation_id
			AND path.chain = m.chain AND m.depth <= path.depth)
		AND EXISTS (SELECT 1 FROM messages h WHERE h.user_id = s.user_id AND h.id = ? AND h.conversation_id = s.conversation_id)`

func (t summaryTx) SummariesOn(conversationID, headID string) ([]chat.SummaryRef, error) {
	return sqldb.All[chat.SummaryRef](t.chats.with(conversationID), pieces+`SELECT s.id, s.deleted_at IS NOT NULL AS deleted, s.head_seq FROM summaries s
		WHERE s.user_id = ? AND s.conversation_id = ? AND `+onBranch+` ORDER BY s.generation DESC`,
		t.userID, headID, t.userID, conversationID, headID)
}

// Coverage reads the messages that got another state since then, and no others.
func (t summaryTx) Coverage(c chat.Covered, headID string, version int64) (chat.Coverage, error) {
	if headID == "" {
		return chat.CoverageOff, nil
	}
	on, err := t.Has(pieces+`SELECT 1 FROM (SELECT ? AS end_id, id AS conversation_id, user_id
			FROM conversations WHERE user_id = ? AND id = ?) s WHERE `+onBranch,
		t.userID, headID, sqldb.ID(c.EndID), t.userID, c.ConversationID, headID)
	if err != nil || !on {
		return chat.CoverageOff, err
	}
	replaced, err := t.history.replaced(c.ConversationID, max(c.Since, 1))
	if err != nil {
		return chat.CoverageOff, err
	}
	coverage := chat.CoverageIntact
	if c.Since == 0 {
		coverage = chat.CoverageChanged
	}
	for part := range slices.Chunk(replaced, 200) {
		some, err := t.coverage(c, part, orNewest(version))
		if err != nil {
			return chat.CoverageOff, err
		}
		coverage = min(coverage, some)
	}
	return coverage, nil
}

// coverage compares states that messages had with those that they have at a
// version. Messages that are not covered do not count.
func (t summaryTx) coverage(c chat.Covered, states []replacedState, version int64) (chat.Coverage, error) {
	args := []any{t.userID, c.EndID}
	for _, s := range states {
		args = append(args, sqldb.ID(s.MessageID), s.Previous)
	}
	rows, err := sqldb.All[struct {
		Was, Shows          string
		WasGone, IsOut      bool
		WasHidden, IsHidden bool
	}](t, pieces+", wanted (message_id, version) AS ("+values(2, 2*len(states))+`)
		SELECT s.revision_id AS was, s.is_deleted AS was_gone, n.revision_id AS shows, n.is_deleted AS is_out,
			s.is_hidden AS was_hidden, n.is_hidden
		FROM wanted CROSS JOIN messages m CROSS JOIN path CROSS JOIN message_states s CROSS JOIN message_states n
		WHERE m.user_id = ? AND m.id = wanted.message_id AND m.seq >= ? AND path.chain = m.chain AND m.depth <= path.depth
			AND s.user_id = ? AND s.conversation_id = ? AND s.message_id = wanted.message_id AND s.version = wanted.version
			AND n.user_id = s.user_id AND n.conversation_id = s.conversation_id AND n.message_id = s.message_id
			AND n.version = (SELECT MAX(x.version) FROM message_states x
				WHERE x.user_id = s.user_id AND x.conversation_id = s.conversation_id AND x.message_id = s.message_id AND x.version <= ?)`,
		append(args, t.userID, c.StartSeq, t.userID, c.ConversationID, version)...)
	if err != nil {
		return chat.CoverageOff, err
	}
	coverage := chat.CoverageIntact
	for _, r := range rows {
		switch {
		case r.Was != "" && (r.IsOut && !r.WasGone || r.IsHidden && !r.WasHidden):
			return chat.CoverageBroken, nil
		case r.IsOut && r.WasGone, r.Was == r.Shows && r.WasGone == r.IsOut && r.WasHidden == r.IsHidden:
		default:
			coverage = chat.CoverageChanged
		}
	}
	return coverage, nil
}

func (t summaryTx) DumpSummaries(conversationID string) ([]*chat.DumpedSummary, error) {
	items := []*chat.DumpedSummary{}
	err := sqldb.Each(t.chats.with(conversationID), func(r *summaryWithText) error {
		k, err := r.kept()
		if n := len(items); n == 0 || items[n-1].Newest().ID != k.ID {
			items = append(items, &chat.DumpedSummary{
				MadeVersion: k.MadeVersion, HeadSeq: k.HeadSeq, ViewLength: k.ViewLength, DeletedAt: k.DeletedAt,
			})
		}
		last := items[len(items)-1]
		last.Texts = append(last.Texts, chat.SummaryText{Version: r.Version, Summary: k.Summary})
		return err
	}, `SELECT s.*, d.version, d.document FROM summaries s JOIN summary_texts d ON d.user_id = s.user_id AND d.summary_id = s.id
		WHERE s.user_id = ? AND s.conversation_id = ? ORDER BY s.generation, d.version`, t.userID, conversationID)
	return items, err
}

func (t summaryTx) LoadSummaries(conversationID string, items []*chat.DumpedSummary) error {
	if err := t.chats.owns(conversationID); err != nil {
		return err
	}
	for _, d := range items {
		k := &chat.KeptSummary{
			Summary: d.Newest(), ConversationID: conversationID, MadeVersion: d.MadeVersion,
			HeadSeq: d.HeadSeq, ViewLength: d.ViewLength, DeletedAt: d.DeletedAt,
		}
		if err := t.Insert("summaries", t.summaryRow(k)); err != nil {
			return err
		}
		for _, said := range d.Texts {
			own := *said.Summary
			own.ID = k.ID // the id of anybody else's summary is no business of an archive
			if err := t.putSummaryText(&own, said.Version); err != nil {
				return err
			}
		}
	}
	return nil
}
