package api

import (
	"encoding/json"
	"strconv"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/memory"
)

// wireMemory is one version of a memory: the members of memory.Memory, with times in our format.
type wireMemory struct {
	memory.Memory
	Evidence   []memory.Evidence `json:"evidence"`
	EndedBy    []memory.Evidence `json:"endedBy,omitempty"`
	EventTime  *op.Time          `json:"eventTime,omitempty"`
	LastSeenAt op.Time           `json:"lastSeenAt"`
	LastUsedAt *op.Time          `json:"lastUsedAt,omitempty"`
	CreatedAt  op.Time           `json:"createdAt"`
	UpdatedAt  op.Time           `json:"updatedAt"`
	Shown      *bool             `json:"shown,omitempty"` // in a list
}

// wireListedOf says whether the memory counts, too.
func wireListedOf(m memory.Listed) wireMemory {
	w := wireMemoryOf(m.Memory)
	w.Shown = &m.Shown
	return w
}

func wireMemoryOf(m memory.Memory) wireMemory {
	return wireMemory{
		Memory: m, Evidence: OrEmpty(m.Evidence), EndedBy: m.EndedBy, EventTime: (*op.Time)(m.EventTime), LastSeenAt: op.Time(m.LastSeenAt),
		LastUsedAt: (*op.Time)(m.LastUsedAt), CreatedAt: op.Time(m.CreatedAt), UpdatedAt: op.Time(m.UpdatedAt),
	}
}

// wireFound is a unit that was found, and why.
type wireFound struct {
	memory.Found
	Memory  any                `json:"memory,omitempty"`
	Text    string             `json:"text"` // text of the fact or of the message
	Signals map[string]float64 `json:"signals"`
}

func wireFoundOf(f memory.Found) wireFound {
	w := wireFound{Found: f, Signals: f.Signals}
	if w.Signals == nil {
		w.Signals = map[string]float64{}
	}
	switch {
	case f.Memory != nil:
		w.Memory, w.Text = wireMemoryOf(*f.Memory), f.Memory.Text
	case f.Said != nil:
		w.Text = f.Said.Text
	}
	return w
}

type wireSuggestion struct {
	memory.Suggested
	MemoryID  *string           `json:"memoryId"` // nil = a new one
	Evidence  []memory.Evidence `json:"evidence"`
	CreatedAt op.Time           `json:"createdAt"`
}

func wireSuggestionOf(s memory.Suggested) wireSuggestion {
	w := wireSuggestion{Suggested: s, Evidence: OrEmpty(s.Evidence), CreatedAt: op.Time(s.CreatedAt)}
	if s.MemoryID != "" {
		w.MemoryID = &s.MemoryID
	}
	return w
}

// wireSummary is the NodeST app's summary document with our members, and whether the
// summary is active.
type wireSummary struct{ *chat.SummaryView }

func wireSummaryOf(v *chat.SummaryView) wireSummary { return wireSummary{v} }

// MarshalJSON adds createdAt and active to what the summary writes of itself, an
// object that is never empty.
func (w wireSummary) MarshalJSON() ([]byte, error) {
	doc, err := json.Marshal(w.Summary)
	if err != nil {
		return nil, err
	}
	createdAt, err := json.Marshal(op.Time(w.Summary.At))
	if err != nil {
		return nil, err
	}
	doc = append(doc[:len(doc)-1], `,"createdAt":`...)
	doc = append(doc, createdAt...)
	doc = append(doc, `,"active":`...)
	return append(strconv.AppendBool(doc, w.Active), '}'), nil
}
