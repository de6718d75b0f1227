package instance

import (
	"context"

	"nodest/internal/op"
	"nodest/server"
)

// backupState is what owners see of scheduled backups; nil where there are none.
func (r *Instance) backupState(ctx context.Context) (*server.Backups, error) {
	st, err := r.backups.State(ctx)
	if err != nil || st.Folder == "" {
		return nil, err
	}
	b := &server.Backups{Folder: st.Folder, Interval: int64(st.Every.Seconds()), Keep: st.Keep, Running: st.Running}
	if !st.Next.IsZero() {
		at := op.Time(st.Next)
		b.NextAt = &at
	}
	if st.Failed != "" {
		b.Failure = &server.Failure{At: op.Time(st.EndedAt), Reason: st.Failed}
	}
	if g := st.Good; g != nil {
		b.Last = &server.Backup{
			At: op.Time(st.GoodAt), File: g.File, Bytes: g.Bytes, Users: g.Users, Characters: g.Characters,
			Conversations: g.Conversations, Messages: g.Messages, Memories: g.Memories,
		}
	}
	return b, nil
}
