package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"nodest/internal/jobs"
	"nodest/store/sqldb"
)

// Maintenance works in small transactions, so that nobody waits long for it.
const (
	maintainAttempts = 5
	maintainBatch    = 500
)

// Upkeep is the job that removes what is too old. Any number of processes may enqueue it,
// about once an hour.
var Upkeep = jobs.Spec{Kind: "store.maintain", Subject: "all", Once: true}

// Maintenance is the kind of the job Upkeep. It removes what Retention.Rules lists, rows that
// belong to nothing any more, and what an import left that ended in the middle. What a save
// point needs stays. It corrects the counters of quotas, and has research go on that has lost its job. It can be
// interrupted.
func (db *DB) Maintenance() jobs.Kind {
	return jobs.Kind{Name: Upkeep.Kind, AtOnce: 1, Attempts: maintainAttempts, Timeout: time.Hour, Run: func(ctx context.Context, j *jobs.Job) error {
		return db.maintain(ctx, j, Removed{})
	}}
}

// Removed counts what one round of maintenance has removed, by what it is.
type Removed map[string]int64

// oldRows removes rows of a table, called c, that are older than life by a condition whose
// argument is a time; the foreign keys remove what belongs to them.
func oldRows(table, key, where string, batch int) remover {
	return func(s *session, life time.Duration) (int64, error) {
		return s.removeSome(table, key, where, batch, s.Now().Add(-life))
	}
}

// oldIDs is oldRows for a table that has no index of the time in the condition: the ids of a user's rows,
// which are older than it, are in the order of time.
func oldIDs(table, where string) remover {
	return func(s *session, life time.Duration) (int64, error) {
		end := s.Now().Add(-life)
		return s.Exec("DELETE FROM "+table+" WHERE (user_id, id) IN (SELECT c.user_id, c.id FROM users u JOIN "+table+
			" c ON c.user_id = u.id AND c.id < ? WHERE "+where+" LIMIT ?)", firstID(end), end, maintainBatch)
	}
}

// firstID is an id that follows all that were made up to a time.
func firstID(after time.Time) string {
	var next uuid.UUID
	binary.BigEndian.PutUint64(next[:], uint64(after.UnixMilli()+1)<<16) //nolint:gosec // not before 1970
	return next.String()
}

// oldWhole removes conversations, characters or resources that were deleted long ago.
func oldWhole(p *parts) remover {
	return func(s *session, life time.Duration) (int64, error) {
		return s.removeWhole(p, "c.deleted_at <= ?", s.Now().Add(-life))
	}
}

// removeSome removes at most batch rows of a table, called c in the condition. Rows of all users with
// the same key go, so a key within a user begins with user_id.
func (s *session) removeSome(table, key, where string, batch int, args ...any) (int64, error) {
	return s.Exec("DELETE FROM "+table+" WHERE ("+key+") IN (SELECT "+key+" FROM "+table+" c WHERE "+where+" LIMIT ?)", append(args, batch)...)
}

// noSaveNeeds is true of a resource c that no save point brings back.
const noSaveNeeds = "NOT EXISTS (SELECT 1 FROM save_resources k WHERE k.user_id = c.user_id AND k.resource_id = c.id)"

func (db *DB) maintain(ctx context.Context, job *jobs.Job, removed Removed) error {
	for _, r := range db.opts.Retention.rules() {
		if err := db.do(ctx, r, job, removed); err != nil {
			return err
		}
	}
	if err := cmp.Or(db.continueResearches(ctx), db.recountOld(ctx)); err != nil {
		return err
	}
	return db.backend.Settle(ctx)
}

// do carries out a rule until nothing is left, one transaction each, as long as the job is
// this process's.
func (db *DB) do(ctx context.Context, r rule, job *jobs.Job, removed Removed) error {
	for {
		n, err := writing(ctx, db, func(s *session) (int64, error) {
			if err := s.noteJob(job, "", removed); err != nil {
				return 0, err
			}
			return r.remove(s, r.life)
		})
		if err != nil || n == 0 {
			return err
		}
		removed[r.what] += n
	}
}

// oldMessage is a message that was deleted long ago, and that no save point brings back.
const oldMessage = "m.deleted_at <= ? AND NOT EXISTS (SELECT 1 FROM saves k WHERE k.user_id = m.user_id AND k.conversation_id = m.conversation_id)"

// someMessages returns messages of any users, by their users. The statement selects
// the user and the id.
func (s *session) someMessages(query string, args ...any) (map[string][]string, error) {
	type message struct{ UserID, ID string }
	byUser := map[string][]string{}
	note := func(m *message) error { byUser[m.UserID] = append(byUser[m.UserID], m.ID); return nil }
	return byUser, sqldb.Each(s, note, query, args...)
}

// oldTexts removes the texts of messages that were deleted long ago.
func oldTexts(s *session, life time.Duration) (removed int64, err error) {
	messages, err := s.someMessages(`SELECT m.user_id, m.id FROM messages m WHERE `+oldMessage+`
			AND EXISTS (SELECT 1 FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id) LIMIT ?`,
		s.Now().Add(-life), maintainBatch)
	if err != nil {
		return 0, err
	}
	for userID, ids := range messages {
		few, thinned, err := s.withFewTexts(userID, ids)
		if err != nil {
			return 0, err
		}
		if removed += thinned; thinned > 0 {
			continue
		}
		if _, err := s.removeTexts(userID, few, "message_id", few); err != nil {
			return 0, err
		}
		removed += int64(len(few))
	}
	return removed, nil
}

// oldLeaves removes the rows of such messages that have no children: the path from a later
// message to the root must stay. From each leaf it continues with its parent, so that a
// long branch does not take a round per message.
func oldLeaves(s *session, _ time.Duration) (removed int64, err error) {
	leaves, err := s.leaves("", maintainBatch)
	for err == nil && len(leaves) > 0 && removed < maintainBatch {
		above := map[string][]string{}
		for userID, ids := range leaves {
			n, parents, err := s.removeLeaves(userID, ids)
			if err != nil {
				return 0, err
			}
			removed += n
			if len(parents) == 0 {
				continue
			}
			more, err := s.leaves("AND m.user_id = ? AND m.id IN (?)", maintainBatch, userID, parents)
			if err != nil {
				return 0, err
			}
			maps.Copy(above, more)
		}
		leaves = above
	}
	return removed, err
}

// removeLeaves removes messages and returns their parents.
func (s *session) removeLeaves(userID string, ids []string) (removed int64, parents []string, err error) {
	parents, err = sqldb.All[string](s, "SELECT parent_id FROM messages WHERE user_id = ? AND id IN (?) AND parent_id IS NOT NULL", userID, ids)
	if err != nil {
		return 0, nil, err
	}
	removed, err = s.removeMessages(userID, ids)
	return removed, parents, err
}

// removeMessages removes the first of some messages, or of the texts of the first one if it has many, or of
// the runs of deep research that have their words if these are many, and returns the number of rows.
func (s *session) removeMessages(userID string, ids []string) (int64, error) {
	ids, thinned, err := s.withFewTexts(userID, ids)
	if err != nil || thinned > 0 {
		return thinned, err
	}
	if n, err := s.dropResearchesOfMessages(userID, ids); err != nil || n == researchesAtOnce {
		return n, err
	}
	places, err := s.seqsOf(userID, ids)
	plays, failed := s.playsOf(userID, "message_id", ids)
	err = cmp.Or(err, failed,
		s.dropPromptsOfMessages(userID, ids),
		s.forgetWhere(userID, "message_id", ids),
		s.Run("DELETE FROM message_states WHERE (user_id, conversation_id, message_id) IN"+
			" (SELECT user_id, conversation_id, id FROM messages WHERE user_id = ? AND id IN (?))", userID, ids),
	)
	if err != nil {
		return 0, err
	}
	n, err := s.Exec("DELETE FROM messages WHERE user_id = ? AND id IN (?)", userID, ids)
	return n, cmp.Or(err, s.dropPlays(userID, plays), s.dropReplies(userID, ids...), s.dropWordsAt(userID, places))
}

// removedTexts is how many texts a transaction removes that removes messages, however few those are.
const removedTexts = 1000

// withFewTexts returns as many of the messages as have removedTexts together, or removes so many
// texts of the first one if it has more: then thinned is their number, and the message stays.
func (s *session) withFewTexts(userID string, ids []string) (few []string, thinned int64, err error) {
	type message struct {
		ID    string
		Texts int
	}
	var first string
	total := 0
	err = sqldb.Each(s, func(m *message) error {
		if first == "" {
			first = m.ID
		}
		if total += m.Texts; total > removedTexts {
			return errEnoughTexts
		}
		few = append(few, m.ID)
		return nil
	}, "SELECT m.id, (SELECT COUNT(*) FROM (SELECT 1 FROM revisions r WHERE r.user_id = m.user_id AND r.message_id = m.id LIMIT ?) bounded) AS texts"+
		" FROM messages m WHERE m.user_id = ? AND m.id IN (?)", removedTexts+1, userID, ids)
	if err != nil && !errors.Is(err, errEnoughTexts) {
		return nil, 0, err
	}
	if len(few) > 0 || first == "" {
		return few, 0, nil
	}
	texts, err := sqldb.All[string](s, "SELECT id FROM revisions WHERE user_id = ? AND message_id = ? LIMIT ?", userID, first, removedTexts)
	if err != nil {
		return nil, 0, err
	}
	thinned, err = s.removeTexts(userID, []string{first}, "id", texts)
	return nil, thinned, err
}

var errEnoughTexts = errors.New("store: the messages have enough texts for one transaction")

// removeTexts removes the texts of messages whose column, id or message_id, has one of some values, or runs of
// deep research that have words of the messages if these are many, and returns the number of rows.
func (s *session) removeTexts(userID string, messages []string, column string, values []string) (int64, error) {
	if n, err := s.dropResearchesOfMessages(userID, messages); err != nil || n == researchesAtOnce {
		return n, err
	}
	if err := cmp.Or(s.dropPromptsOfMessages(userID, messages), s.forgetWhere(userID, column, values)); err != nil {
		return 0, err
	}
	plays, err := s.playsOf(userID, column, values)
	if err != nil {
		return 0, err
	}
	n, err := s.Exec("DELETE FROM revisions WHERE user_id = ? AND "+column+" IN (?)", userID, values)
	places, failed := s.seqsOf(userID, messages)
	return n, cmp.Or(err, failed, s.dropPlays(userID, plays), s.dropReplies(userID, messages...), s.dropWordsAt(userID, places))
}

// leaves returns old messages with nothing below them, by their users.
func (s *session) leaves(which string, limit int, args ...any) (map[string][]string, error) {
	args = append(append([]any{s.Now().Add(-deletedLife)}, args...), limit)
	return s.someMessages(`SELECT m.user_id, m.id FROM messages m WHERE `+oldMessage+` `+which+`
			AND NOT `+strings.ReplaceAll(hasChild, "p.", "m.")+`
			AND NOT EXISTS (SELECT 1 FROM conversations c
				WHERE c.user_id = m.user_id AND c.id = m.conversation_id AND c.head_id = m.id) LIMIT ?`, args...)
}

// messagesOfOldConversations empties a conversation in batches before it goes,
// because a foreign key would remove all of it in one transaction.
func messagesOfOldConversations(s *session, life time.Duration) (removed int64, err error) {
	messages, err := s.someMessages(`SELECT m.user_id, m.id FROM conversations c CROSS JOIN messages m
		WHERE c.deleted_at <= ? AND m.user_id = c.user_id AND m.conversation_id = c.id LIMIT ?`,
		s.Now().Add(-life), maintainBatch)
	if err != nil {
		return 0, err
	}
	for userID, ids := range messages {
		n, err := s.removeMessages(userID, ids)
		if err != nil {
			return 0, err
		}
		removed += n
	}
	return removed, nil
}
