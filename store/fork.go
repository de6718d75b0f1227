package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/store/sqldb"
)

// A fork is one path: its copies are chain 0 and have the depths of their originals.

// pathCopy begins a statement that copies messages of a path: line is what they are
// in the fork. It trusts the states of the version for what a message showed and
// whether it was deleted; other swipes are copied as they are now. See copyArgs.
const pathCopy = pieces + `, line AS (
	SELECT m.id, m.user_id, m.seq, m.depth, fork.id AS fork_id, fork.mark AS fork_mark, fork.now, COALESCE(o.rev, m.rev) AS rev, COALESCE(o.status, m.status) AS status,
		COALESCE(o.is_deleted, FALSE) AS is_deleted,
		COALESCE(r.swipe_id, '') AS swipe_id, COALESCE(r.id, '') AS revision_id, r.position
	FROM (SELECT COALESCE(?, '') AS id, COALESCE(?, '') AS mark, CAST(? AS BIGINT) AS now) fork
	CROSS JOIN path CROSS JOIN messages m ` + stateThen + `
	LEFT JOIN revisions r ON r.id = COALESCE(o.revision_id, ` + shownText + `) AND r.message_id = m.id AND r.user_id = m.user_id
	WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = path.chain AND m.depth <= path.depth AND m.depth > ? AND m.depth <= ?
		AND ` + thereThen + `
) `

func (t *tx) copyArgs(from chat.ForkSource, forkID string, after, to int64) []any {
	return []any{t.userID, from.MessageID, forkID, forkMark(forkID), t.Now(), from.Version, t.userID, from.ConversationID, after, to, from.Version}
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
func (t *tx) forkedTo(forkID string) (at forkPlace, err error) {
	return sqldb.Value[forkPlace](t, `SELECT m.depth, COALESCE((SELECT MAX(r.position) FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id), ?) AS position
		FROM messages m WHERE m.user_id = ? AND m.conversation_id = ? AND m.chain = 0 ORDER BY m.depth DESC LIMIT 1`, noText, t.userID, forkID)
}

// forkPiece returns where a piece ends that begins after a place of a path: it has at most some
// texts, and forkBytes of them. A message without a text counts as one. An end with
// the depth 0 means that nothing is left.
func (t *tx) forkPiece(from chat.ForkSource, after forkPlace, texts int) (to forkPlace, err error) {
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
func (t *tx) forkReach(from chat.ForkSource, after forkPlace, texts int) (deepest int64, err error) {
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

// copyOf is the id of a copy, as CopyOf makes it: id is that of a message, or of one
// of its texts, and seq that of the message. SQLite has the bytes of ids, PostgreSQL digits.
func (t *tx) copyOf(id, seq string) string {
	end := "line.fork_mark || substr(CAST(100000000 + " + seq + " AS TEXT), 2)"
	if t.Postgres {
		return "substr(" + id + ", 1, 11) || substr(line.fork_id, 12, 4) || " + sqldb.EndOfID("decode("+end+", 'hex')")
	}
	return "CAST(substr(" + id + ", 1, 8) || substr(line.fork_id, 9, 3) || unhex(" + end + ") AS BLOB)"
}

// CopyOf keeps the time in the id, because messages are searched in the order of
// their ids. The rest of it follows from the fork and the seq.
func (t *tx) CopyOf(forkID, messageID string, seq int64) string {
	return messageID[:min(18, len(messageID))] + forkID[18:26] + forkMark(forkID) + fmt.Sprintf("%08d", seq%100_000_000)
}

// forkMark is what ids of copies have of the time of their fork.
func forkMark(forkID string) string { return forkID[11:13] }

// shownTexts selects the texts r that swipes have in the fork: that of the version in the swipe that was
// chosen, else the shown ones; after a place, up to another one.
const shownTexts = " WHERE r.user_id = line.user_id AND r.message_id = line.id" +
	" AND CASE WHEN r.swipe_id = line.swipe_id THEN r.id = line.revision_id ELSE r.is_shown END" +
	" AND (line.depth > ? OR r.position > ?) AND (line.depth < ? OR r.position <= ?)"

// CopyPath locks the fork, and the source, so that nobody changes texts between two
// statements. The source may be deleted meanwhile. A message comes with its first texts, and may
// get others in later pieces.
func (t *tx) CopyPath(from chat.ForkSource, forkID string, texts int) (copied, length int, err error) {
	fork, err := t.Loading(forkID)
	if err != nil {
		return 0, 0, err
	}
	if _, err := t.Has("SELECT 1 FROM conversations WHERE user_id = ? AND id = ?"+t.ForUpdate(), t.userID, from.ConversationID); err != nil {
		return 0, 0, err
	}
	if err := t.inConversation(from.ConversationID, from.MessageID); err != nil {
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
	to, err := t.forkPiece(from, after, texts)
	if err != nil || to.Depth == 0 {
		return length, length, err
	}
	if err := t.copyLine(from, forkID, after, to); err != nil {
		return 0, 0, err
	}
	t.news(fork.CharacterID).copied = true
	if copied = int(to.Depth); to.Position < wholeMessage {
		copied--
	}
	return copied, length, t.noteCopied(forkID, after, to)
}

// copyLine copies the rows of messages after a place of the path, up to another one. What a fork says
// again has been read where it was said first.
func (t *tx) copyLine(from chat.ForkSource, forkID string, after, to forkPlace) error {
	message, revision := t.copyOf("line.id", "line.seq"), t.copyOf("r.id", "line.seq")
	args := t.copyArgs(from, forkID, after.Depth, to.Depth)
	err := copyRows[messageRow](t, "messages", "m", "line CROSS JOIN messages m WHERE m.user_id = line.user_id AND m.id = line.id", map[string]string{
		"id": message, "conversation_id": "line.fork_id", "client_msg_id": "''", "chain": "0",
		"since":     "CASE WHEN line.is_deleted THEN 0 ELSE 1 END",
		"parent_id": "COALESCE((SELECT " + t.copyOf("p.id", "p.seq") + " FROM messages p WHERE p.user_id = m.user_id AND p.id = m.parent_id), '')",
		"rev":       "line.rev", "status": "line.status", "error": "CASE WHEN line.status = '" + chat.StatusError + "' THEN m.error END",
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
	err = copyRows[lineRow](t, "message_lines", "x", "line CROSS JOIN message_lines x WHERE x.user_id = line.user_id AND x.message_id = line.id",
		map[string]string{"message_id": message}, args)
	if err != nil {
		return err
	}
	err = copyRows[messageStateRow](t, "message_states", "line", "line WHERE line.is_deleted", map[string]string{
		"conversation_id": "line.fork_id", "message_id": message, "version": "1", "previous": "0",
		"revision_id": "CASE WHEN line.revision_id = '' THEN '' ELSE " + t.copyOf("line.revision_id", "line.seq") + " END",
	}, args)
	if err != nil {
		return err
	}
	// The first message may have been copied already, with some of its texts.
	args = append(t.copyArgs(from, forkID, after.Depth-1, to.Depth), after.Depth, after.Position, to.Depth, to.Position)
	err = copyRows[revisionRow](t, "revisions", "r", "line CROSS JOIN revisions r"+shownTexts, map[string]string{
		"id": revision, "message_id": message, "rev": "1", "created_at": "COALESCE(r.swipe_at, r.created_at)", "swipe_at": "NULL",
		"is_shown": "TRUE", "is_deleted": "r.is_deleted AND r.swipe_id <> line.swipe_id",
	}, args)
	if err != nil {
		return err
	}
	// Of what was recalled, a fork knows which units.
	err = copyRows[useRow](t, "memory_uses", "x", "line CROSS JOIN revisions r CROSS JOIN memory_uses x"+shownTexts+
		" AND x.user_id = line.user_id AND x.conversation_id = ? AND x.generation_id = r.generation_id AND x.layer <> '"+string(inProfile)+"' ON CONFLICT DO NOTHING",
		map[string]string{"conversation_id": "line.fork_id", "score": "NULL", "signals": "NULL"}, append(slices.Clip(args), from.ConversationID))
	if err != nil {
		return err
	}
	return copyRows[textRow](t, "memory_texts", "x", "line CROSS JOIN revisions r CROSS JOIN memory_texts x"+shownTexts+
		" AND x.user_id = line.user_id AND x.revision_id = r.id AND NOT x.is_forgotten", map[string]string{
		"revision_id": revision, "conversation_id": "line.fork_id", "is_read": "TRUE", "is_buried": "FALSE", "first_change": "0", "change": "0",
	}, args)
}

// copyRows stores copies of the rows of a type that a statement after pathCopy
// selects under an alias, with other values in some columns.
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
	return t.Run(pathCopy+"INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM "+from, args...)
}
