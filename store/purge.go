package store

import (
	"context"
	"time"

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
			return s.removeSome("characters", "user_id, id", "c.user_id = ? AND c.deleted_at IS NOT NULL", 10, userID)
		},
		func(s *session) (int64, error) {
			return s.removeSome("resources", "user_id, id", "c.user_id = ? AND c.deleted_at IS NOT NULL AND "+noSaveNeeds, 10, userID)
		},
	} {
		if err := db.repeat(ctx, remove); err != nil {
			return 0, err
		}
	}
	return 0, db.recount(ctx, userID)
}

// repeat runs remove, each time in a transaction of its own, until it removes nothing.
func (db *DB) repeat(ctx context.Context, remove func(*session) (int64, error)) error {
	for n := int64(1); n > 0; {
		err := db.write(ctx, func(s *session) (err error) {
			n, err = remove(s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endedChat is a condition on conversations c: c is deleted, no import or fork is filling it, no reply
// is being written to it, and no fork is copying from it.
const endedChat = "c.deleted_at IS NOT NULL" +
	" AND NOT EXISTS (SELECT 1 FROM loads l WHERE l.user_id = c.user_id AND l.conversation_id = c.id)" +
	" AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.user_id = c.user_id AND g.conversation_id = c.id AND g.is_open)" +
	" AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.user_id = c.user_id AND j.kind = 'chat.fork' AND j.state IN ('queued', 'running'))"

// purgeChat removes messages of the user's conversation that was deleted first, or that conversation
// if it is empty, and returns the number of rows.
func (s *session) purgeChat(userID string) (int64, error) {
	id, err := sqldb.One[string](s, "SELECT c.id FROM conversations c WHERE c.user_id = ? AND "+endedChat+" ORDER BY c.deleted_at, c.id LIMIT 1", userID)
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
	return s.Exec("DELETE FROM conversations WHERE user_id = ? AND id = ?", userID, *id)
}
