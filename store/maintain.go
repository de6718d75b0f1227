package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"nodest/jobs"
	"nodest/store/sqldb"
)

// How long things are kept.
const (
	eventLife    = 7 * 24 * time.Hour
	eventsKept   = 10_000 // newest events of each user, whatever their age
	deletedLife  = 30 * 24 * time.Hour
	finishedLife = 7 * 24 * time.Hour // of jobs
	promptLife   = 7 * 24 * time.Hour
	webPageLife  = 30 * 24 * time.Hour // since they were read
	autoSaveLife = 30 * 24 * time.Hour // of save points that nobody asked for
	queryLife    = 90 * 24 * time.Hour // of questions to documents
)

// Maintenance works in small transactions, so that nobody waits long for it.
const (
	maintainAttempts = 5
	maintainBatch    = 500
)

// Upkeep is the job that removes what is too old. Any number of processes may enqueue it,
// about once an hour.
var Upkeep = jobs.Spec{Kind: "store.maintain", Subject: "all", Once: true}

// Maintenance is the kind of the job Upkeep. It removes idempotency keys after 48 hours,
// expired tickets, events beyond 7 days and 10,000 of the user, images that no post has
// and uploads that no file came of after a day, prompts and ended jobs after 7 days, deleted rows and automatic save points after
// 30 days, turns and plans of the circle and questions to documents after 90 days, and what an
// import left that ended in the middle. What a save point needs stays. It corrects the counters of
// quotas. It can be interrupted.
func (db *DB) Maintenance() jobs.Kind {
	return jobs.Kind{Name: Upkeep.Kind, AtOnce: 1, Attempts: maintainAttempts, Timeout: time.Hour, Run: func(ctx context.Context, j *jobs.Job) error {
		return db.maintain(ctx, j, Removed{})
	}}
}

// Removed counts what one round of maintenance has removed, by what it is.
type Removed map[string]int64

// A chore removes at most maintainBatch rows; it is done when it removed none.
type chore struct {
	what   string
	remove func(*session) (int64, error)
}

var chores = []chore{
	{"keys", oldRows("call_keys", "user_id, call_key", "c.created_at <= ?", keyLife, maintainBatch)},
	{"tickets", oldRows("tickets", "hash", "c.expires_at <= ?", 0, maintainBatch)},
	{"saves", oldRows("saves", "user_id, id", "c.is_automatic AND c.created_at <= ?", autoSaveLife, maintainBatch)},
	{"loads", oldLoads},
	{"texts", oldTexts}, // of messages that stay
	{"messages", oldLeaves},
	{"messages", messagesOfOldConversations},
	// A conversation that is not empty waits for the next round: what was copied from it was
	// removed in this one.
	{"conversations", oldWhole(&chatParts)},
	{"characters", oldWhole(&characterParts)},
	{"resources", oldWhole(&resourceParts)},
	{"web pages", oldRows("web_pages", "user_id, url", "c.fetched_at <= ?", webPageLife, 10)},
	{"uploads", abandonedUploads},
	{"questions", oldRows("knowledge_queries", "user_id, id", "c.created_at <= ?", queryLife, maintainBatch)},
	{"hosts", oldRows("web_hosts", "user_id, host", "c.until <= ?", 0, maintainBatch)},
	{"prompts", oldRows("prompts", "user_id, id", "c.created_at <= ?", promptLife, maintainBatch)},
	{"parts of prompts", oldRows("prompt_parts", "user_id, conversation_id, hash", "c.used_at <= ?", promptLife+partStep, maintainBatch)},
	{"jobs", oldRows("jobs", "id", "c.state IN ('done', 'failed', 'cancelled') AND c.updated_at <= ?", finishedLife, maintainBatch)},
}

// oldRows removes rows of a table, called c, that are older than life by a condition whose
// argument is a time; the foreign keys remove what belongs to them.
func oldRows(table, key, where string, life time.Duration, batch int) func(*session) (int64, error) {
	return func(s *session) (int64, error) { return s.removeSome(table, key, where, batch, s.Now().Add(-life)) }
}

// oldWhole removes conversations, characters or resources that were deleted long ago.
func oldWhole(p *parts) func(*session) (int64, error) {
	return func(s *session) (int64, error) {
		return s.removeWhole(p, "c.deleted_at <= ?", s.Now().Add(-deletedLife))
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
	users, err := db.longLogs(ctx)
	if err != nil {
		return err
	}
	all := slices.Concat(chores, circleChores)
	for _, id := range users {
		all = append(all, chore{"events", func(s *session) (int64, error) { return oldEvents(s, id) }})
	}
	for _, c := range all {
		if err := db.do(ctx, c, job, removed); err != nil {
			return err
		}
	}
	if err := db.recountOld(ctx); err != nil {
		return err
	}
	return db.backend.Settle(ctx)
}

// do repeats a chore until nothing is left, one transaction each, as long as the job is
// this process's.
func (db *DB) do(ctx context.Context, c chore, job *jobs.Job, removed Removed) error {
	for {
		var n int64
		err := db.write(ctx, func(s *session) (err error) {
			if err := s.noteJob(job, "", removed); err != nil {
				return err
			}
			n, err = c.remove(s)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		removed[c.what] += n
	}
}

// longLogs returns the users whose logs may contain events to remove.
func (db *DB) longLogs(ctx context.Context) ([]string, error) {
	return reading(ctx, db, func(s *session) ([]string, error) {
		return sqldb.All[string](s, "SELECT user_id FROM streams WHERE seq > ?", eventsKept)
	})
}

// oldEvents removes from the beginning of the log, so that what is kept has no
// holes.
func oldEvents(s *session, userID string) (int64, error) {
	type logEnds struct{ First, Last int64 }
	log, err := sqldb.One[logEnds](s, "SELECT e.seq AS first, st.seq AS last FROM streams st JOIN events e ON e.user_id = st.user_id"+
		" WHERE st.user_id = ? ORDER BY e.seq LIMIT 1", userID)
	if err != nil || log == nil {
		return 0, err
	}
	// The first event that is young enough ends the batch.
	end := min(log.First+maintainBatch, log.Last-eventsKept+1)
	young, err := sqldb.One[int64](s, "SELECT seq FROM events WHERE user_id = ? AND seq < ? AND at > ? ORDER BY seq LIMIT 1",
		userID, end, s.Now().Add(-eventLife))
	if err != nil {
		return 0, err
	}
	if young != nil {
		end = *young
	}
	return s.Exec("DELETE FROM events WHERE user_id = ? AND seq < ?", userID, end)
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
func oldTexts(s *session) (removed int64, err error) {
	messages, err := s.someMessages(`SELECT m.user_id, m.id FROM messages m WHERE `+oldMessage+`
			AND EXISTS (SELECT 1 FROM swipes s WHERE s.user_id = m.user_id AND s.message_id = m.id) LIMIT ?`,
		s.Now().Add(-deletedLife), maintainBatch)
	if err != nil {
		return 0, err
	}
	for userID, ids := range messages {
		if err := s.forgetMessages(userID, ids); err != nil {
			return 0, err
		}
		for _, table := range []string{"revisions", "swipes"} {
			if _, err := s.Exec("DELETE FROM "+table+" WHERE user_id = ? AND message_id IN (?)", userID, ids); err != nil {
				return 0, err
			}
		}
		removed += int64(len(ids))
	}
	return removed, nil
}

// oldLeaves removes the rows of such messages that have no children: the path from a later
// message to the root must stay. From each leaf it continues with its parent, so that a
// long branch does not take a round per message.
func oldLeaves(s *session) (removed int64, err error) {
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
	parents, err = sqldb.All[string](s, "SELECT parent_id FROM messages WHERE user_id = ? AND id IN (?) AND parent_id <> ''", userID, ids)
	if err != nil {
		return 0, nil, err
	}
	removed, err = s.removeMessages(userID, ids)
	return removed, parents, err
}

func (s *session) removeMessages(userID string, ids []string) (int64, error) {
	if err := s.forgetMessages(userID, ids); err != nil {
		return 0, err
	}
	_, err := s.Exec("DELETE FROM message_states WHERE (user_id, conversation_id, message_id) IN"+
		" (SELECT user_id, conversation_id, id FROM messages WHERE user_id = ? AND id IN (?))", userID, ids)
	if err != nil {
		return 0, err
	}
	return s.Exec("DELETE FROM messages WHERE user_id = ? AND id IN (?)", userID, ids)
}

// leaves returns old messages with nothing below them, by their users.
func (s *session) leaves(which string, limit int, args ...any) (map[string][]string, error) {
	args = append(append([]any{s.Now().Add(-deletedLife)}, args...), limit)
	return s.someMessages(`SELECT m.user_id, m.id FROM messages m WHERE `+oldMessage+` `+which+`
			AND NOT EXISTS (SELECT 1 FROM messages below
				WHERE below.user_id = m.user_id AND below.conversation_id = m.conversation_id AND below.parent_id = m.id)
			AND NOT EXISTS (SELECT 1 FROM conversations c
				WHERE c.user_id = m.user_id AND c.id = m.conversation_id AND c.head_id = m.id) LIMIT ?`, args...)
}

// messagesOfOldConversations empties a conversation in batches before it goes,
// because a foreign key would remove all of it in one transaction.
func messagesOfOldConversations(s *session) (removed int64, err error) {
	messages, err := s.someMessages(`SELECT m.user_id, m.id FROM conversations c CROSS JOIN messages m
		WHERE c.deleted_at <= ? AND m.user_id = c.user_id AND m.conversation_id = c.id LIMIT ?`,
		s.Now().Add(-deletedLife), maintainBatch)
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
