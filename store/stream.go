package store

import (
	"context"
	"slices"

	"nodest/fault"
	"nodest/stream"
)

// Position returns the end of the user's log and the oldest seq that is kept.
func (db *DB) Position(ctx context.Context, userID string) (newest stream.Position, oldest int64, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		found, err := s.scan(s.raw("SELECT epoch, seq FROM streams WHERE user_id = ?", text(userID)), &newest.Epoch, &newest.Seq)
		if err != nil {
			return err
		}
		if !found {
			return fault.New(fault.NotFound, "no such user")
		}
		found, err = s.scan(s.raw("SELECT seq FROM events WHERE user_id = ? ORDER BY seq LIMIT 1", text(userID)), &oldest)
		if err == nil && !found {
			oldest = newest.Seq + 1
		}
		return err
	})
	return newest, oldest, err
}

// Events returns the user's events after a position, in order.
func (db *DB) Events(ctx context.Context, userID string, after int64, limit int) (events []*stream.Event, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		var rows []*eventRow
		if _, err := s.scan(s.raw("SELECT * FROM events WHERE user_id = ? AND seq > ? ORDER BY seq LIMIT ?",
			text(userID), after, limit), &rows); err != nil {
			return err
		}
		events = make([]*stream.Event, len(rows))
		for i, r := range rows {
			events[i] = &stream.Event{
				UserID: r.UserID, Seq: r.Seq, Type: r.Type, ConversationID: r.ConversationID, MessageID: r.MessageID,
				GenerationID: r.GenerationID, At: moment(r.At), By: string(r.Device), Data: []byte(r.Data),
			}
		}
		return nil
	})
	return events, err
}

// Newest returns the newest seq of each user's log.
func (db *DB) Newest(ctx context.Context, userIDs []string) (newest map[string]int64, err error) {
	newest = make(map[string]int64, len(userIDs))
	err = db.backend.read(ctx, func(s *session) error {
		for part := range slices.Chunk(userIDs, 500) {
			var rows []struct {
				UserID string
				Seq    int64
			}
			if _, err := s.scan(s.raw("SELECT user_id, seq FROM streams WHERE user_id IN (?)", list(part)), &rows); err != nil {
				return err
			}
			for _, r := range rows {
				newest[r.UserID] = r.Seq
			}
		}
		return nil
	})
	return newest, err
}
