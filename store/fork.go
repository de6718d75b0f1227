package store

import (
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"nodest/chat"
	"nodest/store/sqldb"
)

// A fork is one path: its copies are chain 0 and have the depths of their originals.

// pathCopy begins a statement about copies of messages of a path: line is what they are
// in the fork. It trusts the states of the version for what a message showed and
// whether it was deleted; other swipes are copied as they are now. See copyArgs.
const pathCopy = pieces + `, line AS (
	SELECT m.id, m.user_id, m.seq, m.depth, fork.id AS fork_id, fork.now, COALESCE(o.rev, m.rev) AS rev, COALESCE(o.status, m.status) AS status,
		COALESCE(o.is_deleted, FALSE) AS is_deleted, COALESCE(o.is_hidden, m.is_hidden) AS is_hidden,
		r.swipe_id, r.id AS revision_id, r.position
	FROM (SELECT ? AS id, CAST(? AS BIGINT) AS now) fork
	CROSS JOIN path CROSS JOIN messages m ` + stateThen + `
	LEFT JOIN revisions r ON r.id = ` + textThen + ` AND r.message_id = m.id AND r.user_id = m.user_id
	WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = path.chain AND m.depth <= path.depth AND m.depth > ? AND m.depth <= ?
		AND ` + thereThen + `
) `

func (t archiveTx) copyArgs(from chat.ForkSource, forkID string, after, to int64) []any {
	return []any{t.userID, from.MessageID, sqldb.ID(forkID), t.Now(), from.Version, t.userID, from.ConversationID, after, to, from.Version}
}

// forkBytes is how many bytes of texts CopyPath copies at most, but one text at least. With the
// texts that its caller allows, it bounds how long a piece holds the writer of SQLite.
const forkBytes = 1 << 20

// forkPlace is a text of a path: that of the swipe at a position of the message at a depth.
type forkPlace struct{ Depth, Position int64 }

// wholeMessage is the position behind all swipes of a message; noText that of a message without one.
const wholeMessage, noText = math.MaxInt32, -1

// forkText is a text that is to be copied, with its bytes.
type forkText struct {
	forkPlace
	Bytes int64
}

// forkedTo is the place of the last text that a fork has.
func (t archiveTx) forkedTo(forkID string) (at forkPlace, err error) {
	return sqldb.Value[forkPlace](t, `SELECT m.depth, COALESCE((SELECT MAX(r.position) FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id), ?) AS position
		FROM messages m WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = 0 ORDER BY m.depth DESC LIMIT 1`, noText, t.userID, forkID)
}

// forkPiece returns where a piece ends that begins after a place of a path: it has at most some
// texts, and forkBytes of them. A message without a text counts as one. An end with
// the depth 0 means that nothing is left.
func (t archiveTx) forkPiece(from chat.ForkSource, after forkPlace, texts int) (to forkPlace, err error) {
	deepest, err := t.forkReach(from, after, texts)
	if err != nil {
		return to, err
	}
	n, bytes := 0, int64(0)
	err = sqldb.Each(t, func(s *forkText) error {
		if bytes += s.Bytes; n == texts || bytes > forkBytes && n > 0 {
			if s.Depth > to.Depth {
				to.Position = wholeMessage
			}
			return errPieceEnds
		}
		to = s.forkPlace
		n++
		return nil
	}, pieces+"SELECT m.depth, COALESCE(r.position, ?) AS position, "+sizeOf(countedTables["revisions"].bytes, "r.")+" AS bytes"+leftToFork+
		"LEFT JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.is_shown WHERE "+ofFork+" AND m.depth <= ?"+
		" AND (m.depth > ? OR r.position > ?) ORDER BY m.depth, r.position",
		t.userID, from.MessageID, noText, t.userID, from.ConversationID, after.Depth, deepest, after.Depth, after.Position)
	switch {
	case errors.Is(err, errPieceEnds):
		err = nil
	case n > 0:
		to.Position = wholeMessage
	}
	return to, err
}

var errPieceEnds = errors.New("store: the piece of a fork ends")

// fewTexts is how many texts of a message are counted before it gets pieces of its own.
const fewTexts = 64

// forkReach returns how deep the next piece can reach, so that only the sizes of those texts are read
// that it may have.
func (t archiveTx) forkReach(from chat.ForkSource, after forkPlace, texts int) (deepest int64, err error) {
	n := 0
	err = sqldb.Each(t, func(m *struct{ Depth, Texts int64 }) error {
		if m.Depth > after.Depth { // one without a text counts too
			m.Texts = max(m.Texts, 1)
		}
		many := m.Texts == fewTexts
		if n > 0 && (n+int(m.Texts) > texts || many) {
			return errPieceEnds
		}
		if n, deepest = n+int(m.Texts), m.Depth; n >= texts || many {
			return errPieceEnds
		}
		return nil
	}, pieces+`SELECT m.depth, (SELECT COUNT(*) FROM (SELECT 1 FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id AND r.is_shown
			AND (m.depth > ? OR r.position > ?) LIMIT ?) few) AS texts`+leftToFork+"WHERE "+ofFork+" ORDER BY m.depth LIMIT ?",
		t.userID, from.MessageID, after.Depth, after.Position, fewTexts, t.userID, from.ConversationID, after.Depth, texts+1)
	if errors.Is(err, errPieceEnds) {
		err = nil
	}
	return deepest, err
}

// leftToFork reads the messages m of a path from a depth on.
const (
	leftToFork = " FROM path CROSS JOIN messages m "
	ofFork     = "m.user_id = ? AND m.conversation_id = ? AND m.chain = path.chain AND m.depth <= path.depth AND m.depth >= ?"
)

// CopyOf keeps the first half of an id, with its time, because messages are searched in the order of
// their ids. The rest of it follows from the fork and the id.
func (t archiveTx) CopyOf(forkID, id string) string {
	made, err := uuid.Parse(id)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(forkID + " " + id))
	copy(made[8:], sum[:8])
	made[8] = made[8]&0x3f | 0x80 // the variant of RFC 9562
	return made.String()
}

// copiesOf returns the ids of messages or of texts that a statement after pathCopy selects, with those of
// their copies, of the copies of their parents or messages, and of their shown texts.
func (t archiveTx) copiesOf(forkID, query string, args []any) (rows sqldb.IDRows, err error) {
	return rows, sqldb.Each(t, func(r *struct{ ID, ParentID, RevisionID string }) error {
		rows = append(rows, []string{r.ID, t.CopyOf(forkID, r.ID), t.CopyOf(forkID, r.ParentID), t.CopyOf(forkID, r.RevisionID)})
		return nil
	}, pathCopy+" "+query, args...)
}

// shownTexts selects the texts r that swipes have in the fork: that of the version in the swipe that was
// chosen, else the shown ones; after a place, up to another one.
const shownTexts = "r.user_id = line.user_id AND r.message_id = line.id" +
	" AND CASE WHEN r.swipe_id = line.swipe_id THEN r.id = line.revision_id ELSE r.is_shown END" +
	" AND (line.depth > ? OR r.position > ?) AND (line.depth < ? OR r.position <= ?)"

// CopyPath locks the fork, and the source, so that nobody changes texts between two
// statements. The source may be deleted meanwhile. A message comes with its first texts, and may
// get others in later pieces.
func (t archiveTx) CopyPath(from chat.ForkSource, forkID string, texts int) (copied, length int, err error) {
	fork, err := t.Loading(forkID)
	if err != nil {
		return 0, 0, err
	}
	if _, err := t.Has("SELECT 1 FROM conversations WHERE user_id = ? AND id = ?"+t.ForUpdate(), t.userID, from.ConversationID); err != nil {
		return 0, 0, err
	}
	if err := t.messages.inConversation(from.ConversationID, from.MessageID); err != nil {
		return 0, 0, err
	}
	length, err = sqldb.Value[int](t, "SELECT depth FROM messages WHERE user_id = ? AND id = ?", t.userID, from.MessageID)
	if err != nil {
		return 0, 0, err
	}
	after, err := t.forkedTo(forkID)
	if err != nil {
		return 0, 0, err
	}
	if err := t.copyReflected(from, forkID); err != nil {
		return 0, 0, err
	}
	to, err := t.forkPiece(from, after, texts)
	if err != nil || to.Depth == 0 {
		return length, length, err
	}
	if err := t.copyLine(from, forkID, after, to); err != nil {
		return 0, 0, err
	}
	t.memory.news(fork.CharacterID).copied = true
	if copied = int(to.Depth); to.Position < wholeMessage {
		copied--
	}
	return copied, length, t.noteCopied(forkID, after, to)
}

// copyReflected notes that what a fork says again has been read for knowledge as far as where it was said first.
func (t archiveTx) copyReflected(from chat.ForkSource, forkID string) error {
	read, err := sqldb.Value[int64](t, "SELECT COALESCE(MAX(CASE WHEN m.seq < s.reflected THEN m.seq ELSE s.reflected END), 0) FROM cognition_states s"+
		" JOIN messages m ON m.user_id = s.user_id AND m.id = ? WHERE s.user_id = ? AND s.conversation_id = ?", from.MessageID, t.userID, from.ConversationID)
	if err != nil || read == 0 {
		return err
	}
	return t.Insert("cognition_states", &cognitionStateRow{UserID: t.userID, ConversationID: forkID, Reflected: read}, "ON CONFLICT DO NOTHING")
}

// copyLine copies the rows of messages after a place of the path, up to another one. What a fork says
// again has been read where it was said first.
func (t archiveTx) copyLine(from chat.ForkSource, forkID string, after, to forkPlace) error {
	args := t.copyArgs(from, forkID, after.Depth, to.Depth)
	copies, err := t.copiesOf(forkID, "SELECT m.id, m.parent_id, line.revision_id FROM line CROSS JOIN messages m WHERE m.user_id = line.user_id AND m.id = line.id", args)
	if err != nil {
		return err
	}
	if len(copies) > 0 {
		if err := t.copyMessages(append(args, copies)); err != nil {
			return err
		}
	}
	// The first message may have been copied already, with some of its texts.
	args = t.copyArgs(from, forkID, after.Depth-1, to.Depth)
	places := []any{after.Depth, after.Position, to.Depth, to.Position}
	// Here the third column is not a revision but the Play of the text.
	copies, err = t.copiesOf(forkID, "SELECT r.id, r.message_id AS parent_id, r.play_id AS revision_id FROM line CROSS JOIN revisions r WHERE "+shownTexts, append(slices.Clone(args), places...))
	if err != nil || len(copies) == 0 {
		return err
	}
	args = append(append(args, copies), places...)
	err = copyRows[revisionRow](t.tx, "revisions", "r", "line CROSS JOIN revisions r CROSS JOIN copies WHERE copies.old_id = r.id AND "+shownTexts, map[string]string{
		"id": "copies.new_id", "message_id": "copies.parent_id", "play_id": "copies.revision_id", "rev": "1", "created_at": "COALESCE(r.swipe_at, r.created_at)", "swipe_at": "NULL",
		"is_shown": "TRUE", "is_deleted": "r.is_deleted AND r.swipe_id IS DISTINCT FROM line.swipe_id",
	}, args)
	if err != nil {
		return err
	}
	err = copyRows[playRow](t.tx, "play_states", "x", "line CROSS JOIN revisions r CROSS JOIN play_states x CROSS JOIN copies WHERE copies.old_id = r.id AND "+shownTexts+
		" AND x.user_id = line.user_id AND x.id = r.play_id GROUP BY x.user_id, copies.revision_id, line.fork_id, x.document ON CONFLICT (user_id, id) DO NOTHING",
		map[string]string{"id": "copies.revision_id", "conversation_id": "line.fork_id"}, slices.Clip(args))
	if err != nil {
		return err
	}
	// A fork knows which units were sent, and no scores.
	err = copyRows[useRow](t.tx, "memory_uses", "x", "line CROSS JOIN revisions r CROSS JOIN memory_uses x CROSS JOIN copies WHERE copies.old_id = r.id AND "+shownTexts+
		" AND x.user_id = line.user_id AND x.conversation_id = ? AND x.generation_id = r.generation_id"+
		" AND NOT EXISTS (SELECT 1 FROM memory_uses o WHERE o.user_id = x.user_id AND o.conversation_id = line.fork_id AND o.generation_id = x.generation_id AND o.unit_id = x.unit_id)"+
		" GROUP BY x.user_id, line.fork_id, x.generation_id, x.unit_id, x.rank, x.layer",
		map[string]string{"conversation_id": "line.fork_id", "score": "NULL", "signals": "NULL"}, append(slices.Clip(args), from.ConversationID))
	if err != nil {
		return err
	}
	return copyRows[textRow](t.tx, "memory_texts", "x", "line CROSS JOIN revisions r CROSS JOIN memory_texts x CROSS JOIN copies WHERE copies.old_id = r.id AND "+shownTexts+
		" AND x.user_id = line.user_id AND x.revision_id = r.id AND NOT x.is_forgotten", map[string]string{
		"revision_id": "copies.new_id", "conversation_id": "line.fork_id", "is_read": "TRUE", "is_buried": "FALSE", "first_change": "0", "change": "0",
	}, args)
}

// copyMessages copies the rows that messages have beside their texts.
func (t archiveTx) copyMessages(args []any) error {
	const ofLine = " CROSS JOIN copies WHERE copies.old_id = line.id AND "
	err := copyRows[messageRow](t.tx, "messages", "m", "line CROSS JOIN messages m"+ofLine+"m.user_id = line.user_id AND m.id = line.id", map[string]string{
		"id": "copies.new_id", "conversation_id": "line.fork_id", "client_msg_key": "''", "chain": "0", "parent_id": "copies.parent_id",
		"since": "CASE WHEN line.is_deleted THEN 0 ELSE 1 END",
		"rev":   "line.rev", "status": "line.status", "is_hidden": "line.is_hidden", "error": "CASE WHEN line.status = '" + chat.StatusError + "' THEN m.error END",
		"deleted_at": "CASE WHEN line.is_deleted THEN COALESCE(m.deleted_at, line.now) END",
		"swipe_index": `COALESCE(line.position,
			CASE WHEN EXISTS (SELECT 1 FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id) THEN -1 ELSE 0 END)`,
	}, args)
	if err != nil {
		return err
	}
	if err := t.Analyze("messages"); err != nil {
		return err
	}
	err = copyRows[lineRow](t.tx, "message_lines", "x", "line CROSS JOIN message_lines x"+ofLine+"x.user_id = line.user_id AND x.message_id = line.id",
		map[string]string{"message_id": "copies.new_id"}, args)
	if err != nil {
		return err
	}
	return copyRows[messageStateRow](t.tx, "message_states", "line", "line"+ofLine+"line.is_deleted", map[string]string{
		"conversation_id": "line.fork_id", "message_id": "copies.new_id", "version": "1", "previous": "0", "revision_id": "copies.revision_id",
	}, args)
}

// copyRows stores copies of the rows of a type that a statement after pathCopy
// and copiesOf selects under an alias, with other values in some columns.
func copyRows[T any](t *tx, table, alias, from string, other map[string]string, args []any) error {
	columns := sqldb.Columns[T]()
	values := make([]string, len(columns))
	for i, column := range columns {
		value, ok := other[column]
		if !ok {
			value = alias + "." + column
		}
		values[i] = value
	}
	return t.Run(pathCopy+", copies (old_id, new_id, parent_id, revision_id) AS MATERIALIZED (?) INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM "+from, args...)
}
