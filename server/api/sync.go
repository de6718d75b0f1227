package api

import (
	"cmp"
	"context"
	"encoding/json"

	"nodest/chat"
	"nodest/internal/op"
)

// syncOperations are for clients without a socket.
var syncOperations = []Operation{
	{Route: "GET /sync", Data: takes(syncLog)},
}

// syncPage is a part of the user's log.
type syncPage struct {
	Resumed bool              `json:"resumed"`
	Reason  string            `json:"reason,omitempty"` // why the client must reload
	Epoch   string            `json:"epoch"`
	Seq     int64             `json:"seq"` // go on from here
	More    bool              `json:"more"`
	Events  []json.RawMessage `json:"events"`
}

type syncData struct {
	Epoch string `json:"epoch,omitempty"`
	Since *int64 `json:"since,omitempty"`
	Limit limit  `json:"limit,omitempty"`
}

// syncLog reads the events after a position, for clients without a socket; without
// since a snapshot and the position that it stands for.
func syncLog(ctx context.Context, c *Call, in syncData) (any, error) {
	if in.Since == nil {
		return snapshot(ctx, c.Services, c.UserID)
	}
	const most = 500
	since, limit := *in.Since, cmp.Or(int(in.Limit), most)
	var wrong op.Checks
	wrong.That(since >= 0, "since", "range", "must not be negative")
	op.Between(&wrong, "limit", &limit, 1, most)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	at, oldest, err := c.Hub.Position(ctx, c.UserID)
	if err != nil {
		return nil, err
	}
	p := syncPage{Epoch: at.Epoch, Seq: at.Seq, Events: []json.RawMessage{}}
	switch { // no bound on their number: pages are asked for one by one
	case in.Epoch == "" || in.Epoch != at.Epoch || since > at.Seq:
		p.Reason = "epoch"
	case since+1 < oldest:
		p.Reason = "too_old"
	}
	if p.Reason != "" {
		return p, nil
	}
	events, err := c.Hub.Since(ctx, c.UserID, since, at.Seq, limit)
	if err != nil {
		return nil, err
	}
	p.Resumed, p.Seq = true, since
	for _, e := range events {
		p.Events = append(p.Events, e.Frame())
		p.Seq = e.Seq
	}
	p.More = p.Seq < at.Seq
	return p, nil
}

func snapshot(ctx context.Context, s *Services, userID string) (any, error) {
	snap, err := s.Engine.Snapshot(ctx, userID)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"conversations":   whole(snap.Conversations, chat.WireConversation).Items,
		"characters":      whole(snap.Characters, wireCharacterHeadOf).Items,
		"settingsVersion": snap.SettingsVersion, "epoch": snap.Epoch, "seq": snap.Seq,
	}, nil
}
