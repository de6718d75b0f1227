package server

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"nodest/account"
	"nodest/chat"
	"nodest/fault"
	"nodest/stream"
)

// syncPage is a part of the user's log.
type syncPage struct {
	Resumed bool              `json:"resumed"`
	Reason  string            `json:"reason,omitempty"` // why the client must reload
	Epoch   string            `json:"epoch"`
	Seq     int64             `json:"seq"` // go on from here
	More    bool              `json:"more"`
	Events  []json.RawMessage `json:"events"`
}

// sync is GET /sync: the events after a position, for clients without a socket;
// without since a snapshot and the position that it stands for.
func (s *Server) sync(c echo.Context, who *account.Identity) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	q := c.QueryParams()
	if !q.Has("since") {
		return s.snapshot(c, who)
	}
	since, err := strconv.ParseInt(q.Get("since"), 10, 64)
	if err != nil || since < 0 {
		return fault.InvalidField("since", "range", "must be a whole number, 0 or more")
	}
	limit := 500
	if q.Has("limit") {
		if limit, err = strconv.Atoi(q.Get("limit")); err != nil || limit < 1 || limit > 500 {
			return fault.InvalidField("limit", "range", "must be 1 to 500")
		}
	}
	return s.missed(c, who, &stream.Position{Epoch: q.Get("epoch"), Seq: since}, limit)
}

func (s *Server) missed(c echo.Context, who *account.Identity, from *stream.Position, limit int) error {
	ctx := c.Request().Context()
	at, oldest, err := s.Hub.Position(ctx, who.User.ID)
	if err != nil {
		return err
	}
	p := syncPage{Epoch: at.Epoch, Seq: at.Seq, Events: []json.RawMessage{}}
	switch { // no bound on their number: pages are asked for one by one
	case from.Epoch == "" || from.Epoch != at.Epoch || from.Seq > at.Seq:
		p.Reason = "epoch"
	case from.Seq+1 < oldest:
		p.Reason = "too_old"
	}
	if p.Reason != "" {
		return c.JSON(http.StatusOK, p)
	}
	events, err := s.Hub.Since(ctx, who.User.ID, from.Seq, at.Seq, limit)
	if err != nil {
		return err
	}
	p.Resumed, p.Seq = true, from.Seq
	for _, e := range events {
		p.Events = append(p.Events, e.Frame())
		p.Seq = e.Seq
	}
	p.More = p.Seq < at.Seq
	return c.JSON(http.StatusOK, p)
}

func (s *Server) snapshot(c echo.Context, who *account.Identity) error {
	snap, err := s.Engine.Snapshot(c.Request().Context(), who.User.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{
		"conversations":   whole(snap.Conversations, chat.WireConversation).Items,
		"characters":      whole(snap.Characters, wireCharacterHeadOf).Items,
		"settingsVersion": snap.SettingsVersion, "epoch": snap.Epoch, "seq": snap.Seq,
	})
}
