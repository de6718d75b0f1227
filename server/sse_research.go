package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/labstack/echo/v4"

	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/internal/stream/outbox"
	"nodest/websearch/research"
)

// researchEvents is GET /research/{id}/events: the steps of a run so far, then what happens, until its end
// or its removal.
func (s *Server) researchEvents(c echo.Context, who *account.Identity) error {
	if s.draining.Load() {
		return fault.New(fault.ShuttingDown, "the server is shutting down").After(time.Second)
	}
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	t := s.newSSE(c, who)
	t.of = c.Param("id")
	t.gone = func() bool { // with its conversation, or with words that it had: no event says that
		_, err := s.Research.Get(ctx, who.User.ID, t.of)
		return fault.Is(err, fault.NotFound)
	}
	t.out.Configure(outbox.Settings{Filter: outbox.Filter{Silent: true, Only: t.isOfRun}})
	remove, err := t.enlist(cancel)
	if err != nil {
		return err
	}
	defer remove()
	at, _, leave, err := s.Hub.Join(ctx, who.User.ID, t.out)
	if err != nil {
		return err
	}
	defer leave()
	run, err := s.Research.Get(ctx, who.User.ID, t.of) // after Join: nothing is missed between both
	if err != nil {
		return err
	}
	t.epoch = at.Epoch
	t.out.Begin(nil, at.Seq, 0) // before the client learns that it is heard: what it starts then must not be missed
	t.start()
	for _, e := range run.Past() {
		if t.Write([]*outbox.Item{{Event: e}}) != nil {
			return nil
		}
	}
	if run.FinishedAt != nil {
		return nil
	}
	t.run(ctx)
	return nil
}

// isOfRun reports whether an event is about the run that the stream follows.
func (t *sse) isOfRun(e *stream.Event) bool {
	if outbox.ClassOf(e.Type) != "research" {
		return false
	}
	var about struct {
		ResearchID string `json:"researchId"`
	}
	return json.Unmarshal(e.Data, &about) == nil && about.ResearchID == t.of
}

// endsRun reports whether an event ends the stream of a run.
func endsRun(kind string) bool {
	return kind == research.EventDone || kind == research.EventFailed || kind == research.EventRemoved
}
