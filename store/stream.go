package store

import (
	"cmp"
	"context"

	"nodest/internal/stream"
	"nodest/store/sqldb"
)

// Position returns the end of the user's log and the oldest seq that is kept.
func (db *DB) Position(ctx context.Context, userID string) (newest stream.Position, oldest int64, err error) {
	err = db.read(ctx, func(s *session) error {
		end, err := sqldb.Get[stream.Position](s, "user", "SELECT epoch, seq FROM streams WHERE user_id = ?", userID)
		if err != nil {
			return err
		}
		newest = *end
		oldest, err = sqldb.Value[int64](s, "SELECT seq FROM events WHERE user_id = ? ORDER BY seq LIMIT 1", userID)
		oldest = cmp.Or(oldest, newest.Seq+1)
		return err
	})
	return newest, oldest, err
}

// Newest returns the newest seq of each user's log.
func (db *DB) Newest(ctx context.Context, userIDs []string) (map[string]int64, error) {
	type end struct {
		UserID string
		Seq    int64
	}
	return glancing(ctx, db, func(s *session) (map[string]int64, error) {
		newest := make(map[string]int64, len(userIDs))
		note := func(e *end) error { newest[e.UserID] = e.Seq; return nil }
		return newest, sqldb.Each(s, note, "SELECT user_id, seq FROM streams WHERE user_id IN (?)", userIDs)
	})
}
