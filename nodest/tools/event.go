package tools

import "nodest/internal/op"

// Event is what clients are told of a call: the data of gen.tool.
type Event struct {
	CallID     string   `json:"callId"`
	Tool       string   `json:"tool"`
	State      string   `json:"state"` // started, finished or failed
	Round      int      `json:"round"`
	Query      string   `json:"query,omitempty"`
	FileIDs    []string `json:"fileIds,omitempty"`
	Hits       *int     `json:"hits,omitempty"` // hits of a search
	Files      []File   `json:"files,omitempty"`
	Chars      *int     `json:"chars,omitempty"` // length of the result, whose text the event lacks
	Ms         *int64   `json:"ms,omitempty"`
	Suppressed bool     `json:"suppressed,omitempty"` // it repeats a search, or is one too many
	Degraded   []string `json:"degraded,omitempty"`
}

// mostTold bounds the lists of gen.tool, toldName the length of a tool's name, toldID that of an
// id that a model has written.
const (
	mostTold = 20
	toldName = 64
	toldID   = 64
)

func (c *plannedCall) started() Event {
	return Event{
		CallID: c.id, Tool: op.Truncate(c.call.Name, toldName), State: "started", Round: c.round,
		Query: op.Truncate(c.query, tracedQuery), FileIDs: c.ids[:min(len(c.ids), mostTold)],
	}
}

func (c *plannedCall) finished() Event {
	d := c.started()
	d.State, d.Chars, d.Ms, d.Suppressed = "finished", &c.chars, new(c.took.Milliseconds()), c.repeat != nil || c.overLimit
	if c.problem != "" {
		d.State = "failed"
	}
	if a := c.answer; a != nil {
		if c.search != nil {
			d.Hits = &a.Hits
		}
		d.Files, d.Degraded = a.Files[:min(len(a.Files), mostTold)], a.Degraded
	}
	return d
}
