package store

import (
	"context"
	"strings"
	"time"

	"nodest/chat"
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
	for _, remove := range []func(*session) (int64, error){
		func(s *session) (int64, error) { return s.purgeChat(userID) },
		func(s *session) (int64, error) {
			return s.removeWhole(&characterParts, "c.user_id = ? AND c.deleted_at IS NOT NULL", userID)
		},
		func(s *session) (int64, error) {
			return s.removeWhole(&resourceParts, "c.user_id = ? AND c.deleted_at IS NOT NULL", userID)
		},
	} {
		if err := db.repeat(ctx, remove); err != nil {
			return 0, err
		}
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
	// Of a conversation without messages, which go before.
	chatParts = parts{"conversations", "NOT EXISTS (SELECT 1 FROM messages m WHERE m.user_id = c.user_id AND m.conversation_id = c.id)", "conversation_id", []partTable{
		{"conversation_states", "user_id, conversation_id, version", 500}, {"prompts", "user_id, id", 100}, {"generations", "user_id, id", 500},
		{"memory_uses", "user_id, conversation_id, generation_id, unit_id", 500},
	}}
	// A conversation that may not go yet, such as one that a reply is writing to, keeps its character.
	characterParts = parts{"characters", "NOT EXISTS (SELECT 1 FROM conversations k WHERE k.user_id = c.user_id AND k.character_id = c.id)", "character_id", []partTable{
		{"memory_segment_parts", "user_id, character_id, segment_id, part", 16}, {"memories", "user_id, id", 500}, {"character_versions", "user_id, character_id, version", 4},
	}}
	resourceParts = parts{"resources", noSaveNeeds, "resource_id", []partTable{{"resource_versions", "user_id, resource_id, version", 4}}}
)

// removeWhole removes a conversation, character or resource c that a condition selects, or some of its
// parts if it has many, and returns how many rows. It returns 0 when none is left.
func (s *session) removeWhole(p *parts, where string, args ...any) (int64, error) {
	type key struct{ UserID, ID string }
	c, err := sqldb.One[key](s, "SELECT c.user_id, c.id FROM "+p.of+" c WHERE "+where+" AND "+p.free+" LIMIT 1", args...)
	if err != nil || c == nil {
		return 0, err
	}
	return s.removePieces(p, c.UserID, c.ID)
}

// removePieces is removeWhole for one of which the id is known.
func (s *session) removePieces(p *parts, userID, id string) (int64, error) {
	for _, t := range p.tables {
		n, err := s.removeSome(t.name, t.key, "c.user_id = ? AND c."+p.refer+" = ?", t.atOnce, userID, id)
		if err != nil || n == int64(t.atOnce) {
			return n, err
		}
	}
	if err := s.dropSaid(userID, strings.TrimSuffix(p.refer, "_id"), id); err != nil {
		return 0, err
	}
	return s.Exec("DELETE FROM "+p.of+" WHERE user_id = ? AND id = ?", userID, id)
}

// repeat runs remove, each time in a transaction of its own, until it removes nothing.
func (db *DB) repeat(ctx context.Context, remove func(*session) (int64, error)) error {
	for {
		if n, err := writing(ctx, db, remove); err != nil || n == 0 {
			return err
		}
	}
}

// oldestEnded finds the conversation of a user that was deleted first: no import or fork is filling it,
// no reply is being written to it, and no fork is copying from it. Each transaction that makes room
// begins with this, so it does not read the others. Its arguments are the user, twice.
func (s *session) oldestEnded() string {
	return "SELECT c.id FROM conversations c WHERE c.user_id = ? AND c.deleted_at IS NOT NULL" +
		" AND NOT EXISTS (SELECT 1 FROM loads l WHERE l.user_id = c.user_id AND l.conversation_id = c.id)" +
		" AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.user_id = c.user_id AND g.conversation_id = c.id AND g.is_open)" +
		" AND NOT EXISTS (SELECT 1 FROM jobs WHERE " + s.openOf() + " AND kind = '" + chat.JobFork + "') ORDER BY c.deleted_at, c.id LIMIT 1"
}

// purgeChat removes messages of the user's conversation that was deleted first, or what else it has
// if there are none, and returns the number of rows.
func (s *session) purgeChat(userID string) (int64, error) {
	id, err := sqldb.One[string](s, s.oldestEnded(), userID, userID)
	if err != nil || id == nil {
		return 0, err
	}
	messages, err := sqldb.All[string](s, "SELECT id FROM messages WHERE user_id = ? AND conversation_id = ? LIMIT ?", userID, *id, maintainBatch)
	if err != nil {
		return 0, err
	}
	if len(messages) > 0 {
		return s.removeMessages(userID, messages)
	}
	return s.removePieces(&chatParts, userID, *id)
}
