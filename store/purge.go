package store

import (
	"context"
	"strings"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/store/sqldb"
)

// Single deleted messages can be restored for a while. Whole conversations, characters and
// resources cannot: they stay until maintenance removes them, or until their user needs the room.

// purgeBusy is how long a call waits while another one makes room for the same user.
const purgeBusy = 5 * time.Second

// makeRoom removes what a user has deleted for good, the oldest conversation first and in small
// transactions, and corrects the counters. If they were corrected within the last recountPause, it
// does nothing and returns how long it will be until it does. When ctx ends, the next call continues.
func (db *DB) makeRoom(ctx context.Context, userID string) (wait time.Duration, err error) {
	if _, busy := db.purging.LoadOrStore(userID, true); busy {
		return purgeBusy, nil
	}
	defer db.purging.Delete(userID)
	wait, err = reading(ctx, db, func(s *session) (time.Duration, error) {
		last, err := s.countedLast(userID)
		return recountPause - s.Now().Sub(last), err
	})
	if err != nil || wait > 0 {
		return wait, err
	}
	if err := db.PurgeDeleted(ctx, userID); err != nil {
		return 0, err
	}
	return 0, db.recount(ctx, userID)
}

// parts are the tables of which one conversation, character or resource may have many rows, and their keys.
type parts struct {
	of, free string // the table, and when a row c of it may go
	refer    string // the column by which the parts name it
	tables   []partTable
}

type partTable struct {
	name, key string
	atOnce    int // rows that a transaction removes
}

var (
	// chatParts are the parts of a conversation without messages; they are removed before it.
	chatParts = parts{"conversations", "NOT EXISTS (SELECT 1 FROM messages m WHERE m.user_id = c.user_id AND m.conversation_id = c.id)", "conversation_id", []partTable{
		{"conversation_states", "user_id, conversation_id, version", 500}, {"prompts", "user_id, id", 100}, {"generations", "user_id, id", 500},
		{"memory_uses", "user_id, conversation_id, generation_id, unit_id", 500}, {"cognition_sources", "user_id, conversation_id, ordinal, object_id, source", 500},
		{"cognition_events", "user_id, conversation_id, ordinal", 500}, {"research_runs", "user_id, id", 5},
	}}
	// A conversation that may not go yet, such as one that a reply is writing to, keeps its character.
	characterParts = parts{"characters", "NOT EXISTS (SELECT 1 FROM conversations k WHERE k.user_id = c.user_id AND k.character_id = c.id)", "character_id", []partTable{
		{"memory_segment_parts", "user_id, character_id, segment_id, part", 16}, {"memories", "user_id, id", 500}, {"character_versions", "user_id, character_id, version", 4},
	}}
	resourceParts = parts{"resources", noSaveNeeds, "resource_id", []partTable{{"resource_versions", "user_id, resource_id, version", 4}}}
)

// removeWhole removes conversations, characters or resources c of a user that a condition selects, and returns
// how many, or removes some parts of one that has many, and returns how many rows. It returns 0 when none is left.
// It goes through the log of their user once for all of them.
func (s *session) removeWhole(p *parts, where string, args ...any) (int64, error) {
	all, err := sqldb.All[struct{ UserID, ID string }](s, "SELECT c.user_id, c.id FROM "+p.of+" c WHERE "+where+" AND "+p.free+" LIMIT ?", append(args, wholeAtOnce)...)
	var ids []string
	full := 0.0 // share of a transaction
	for _, c := range all {
		if full >= 1 || c.UserID != all[0].UserID {
			break
		}
		for _, t := range p.tables {
			n, err := s.removeSome(t.name, t.key, "c.user_id = ? AND c."+p.refer+" = ?", t.atOnce, c.UserID, c.ID)
			if full += float64(n) / float64(t.atOnce); err != nil || n == int64(t.atOnce) {
				return n, err
			}
		}
		ids = append(ids, c.ID)
	}
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if err := s.dropSaid(all[0].UserID, strings.TrimSuffix(p.refer, "_id"), ids...); err != nil {
		return 0, err
	}
	return s.Exec("DELETE FROM "+p.of+" WHERE user_id = ? AND id IN (?)", all[0].UserID, ids)
}

// wholeAtOnce is how many conversations, characters or resources a transaction removes at most.
const wholeAtOnce = 20

// repeat runs remove, each time in a transaction of its own, until it removes nothing.
func (db *DB) repeat(ctx context.Context, remove func(*session) (int64, error)) error {
	for {
		if n, err := writing(ctx, db, remove); err != nil || n == 0 {
			return err
		}
	}
}

// PurgeChat removes a deleted conversation for good: rights.Store.
func (db *DB) PurgeChat(ctx context.Context, userID, id string) error {
	err := db.repeat(ctx, func(s *session) (int64, error) {
		one, args := s.ended()+" AND c.id = ?", []any{userID, userID, id}
		messages, err := sqldb.All[string](s, "SELECT m.id FROM conversations c JOIN messages m ON m.user_id = c.user_id AND m.conversation_id = c.id WHERE "+one+" LIMIT ?",
			append(args, maintainBatch)...)
		switch {
		case err != nil:
			return 0, err
		case len(messages) > 0:
			return s.removeMessages(userID, messages)
		}
		return s.removeWhole(&chatParts, one, args...)
	})
	if err != nil {
		return err
	}
	left, err := reading(ctx, db, func(s *session) (bool, error) {
		return s.Has("SELECT 1 FROM conversations WHERE user_id = ? AND id = ?", userID, id)
	})
	switch {
	case err != nil:
		return err
	case left:
		return fault.New(fault.Busy, "the chat is deleted, and its words go when nothing copies or fills it any more; try again then").After(time.Minute)
	}
	if err := db.backend.Settle(ctx); err != nil { // the next maintenance does it
		db.opts.Log.WarnContext(ctx, "deleted data may still be in the log of the database", "err", err)
	}
	return nil
}

// ended is a condition on the conversations c of a user that were deleted: no import or fork is filling one,
// no reply is being written to it, and no fork is copying from it. Its arguments are the user, twice.
func (s *session) ended() string {
	return "c.user_id = ? AND c.deleted_at IS NOT NULL" +
		" AND NOT EXISTS (SELECT 1 FROM loads l WHERE l.user_id = c.user_id AND l.conversation_id = c.id)" +
		" AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.user_id = c.user_id AND g.conversation_id = c.id AND g.is_open)" +
		" AND NOT EXISTS (SELECT 1 FROM jobs WHERE " + s.openOf() + " AND kind = '" + chat.JobFork + "')"
}

// purgeChat removes messages of the user's conversation that was deleted first of those that have any, or what
// else deleted conversations have if there are none, and returns the number of rows.
func (s *session) purgeChat(userID string) (int64, error) {
	messages, err := sqldb.All[string](s, "SELECT m.id FROM messages m WHERE m.user_id = ? AND m.conversation_id = (SELECT c.id FROM conversations c WHERE "+s.ended()+
		" AND EXISTS (SELECT 1 FROM messages x WHERE x.user_id = c.user_id AND x.conversation_id = c.id) ORDER BY c.deleted_at, c.id LIMIT 1) LIMIT ?",
		userID, userID, userID, maintainBatch)
	switch {
	case err != nil:
		return 0, err
	case len(messages) > 0:
		return s.removeMessages(userID, messages)
	}
	return s.removeWhole(&chatParts, s.ended(), userID, userID)
}
