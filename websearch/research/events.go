package research

import (
	"maps"

	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// The events that end a run, and the one that says that it was removed for good.
const (
	EventDone    = "research.done"
	EventFailed  = "research.failed"
	EventRemoved = "research.removed"
)

// event is an event about a run, with its id.
func (r *Run) event(by, kind string, data map[string]any) *stream.Event {
	all := maps.Clone(data)
	all["researchId"] = r.ID
	ev := op.Event("", kind, by, all)
	ev.ConversationID = r.ConversationID
	return ev
}

// over is the event of a run that has ended with an answer, or was cancelled.
func (r *Run) over(by string) *stream.Event {
	references, found := []cite.Reference{}, 0
	if r.Result != nil {
		references, found = append(references, r.Result.References...), r.Result.FoundURLs
	}
	return r.event(by, EventDone, map[string]any{
		"state": r.State, "references": references, "usage": r.Cost, "readUrls": r.readURLs(), "numUrls": found,
	})
}

// readURLs are the pages that a run has read.
func (r *Run) readURLs() []string {
	if r.Result == nil {
		return []string{}
	}
	return append([]string{}, r.Result.ReadURLs...)
}

// failed is the event of a run that has failed.
func (r *Run) failed() *stream.Event {
	return r.event("server", EventFailed, map[string]any{"error": op.FailureOf(r.Failed())})
}

// Past returns what has happened of a run as events: its steps, and its end.
func (r *Run) Past() (events []*stream.Event) {
	for _, s := range r.Steps {
		events = append(events, r.event("server", "research.step", map[string]any{
			"n": s.N, "member": s.Member, "action": s.Action, "question": s.Question, "gaps": append([]string{}, s.Gaps...),
		}))
	}
	switch {
	case r.FinishedAt == nil:
	case r.State == Failed:
		events = append(events, r.failed())
	default:
		events = append(events, r.over("server"))
	}
	for _, e := range events {
		if e.At = r.CreatedAt; r.FinishedAt != nil {
			e.At = *r.FinishedAt
		}
	}
	return events
}
