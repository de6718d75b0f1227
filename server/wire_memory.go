package server

import (
	"encoding/json"
	"strconv"

	"nodest/chat"
	"nodest/memory"
)

// wireMemory is one version of a memory: the members of memory.Memory, with times in our
// format.
type wireMemory struct {
	memory.Memory
	Evidence   []memory.Evidence `json:"evidence"`
	EventTime  *wireTime         `json:"eventTime,omitempty"`
	LastSeenAt wireTime          `json:"lastSeenAt"`
	LastUsedAt *wireTime         `json:"lastUsedAt,omitempty"`
	CreatedAt  wireTime          `json:"createdAt"`
	UpdatedAt  wireTime          `json:"updatedAt"`
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
		Memory: m, Evidence: orEmpty(m.Evidence), EventTime: (*wireTime)(m.EventTime), LastSeenAt: wireTime(m.LastSeenAt),
		LastUsedAt: (*wireTime)(m.LastUsedAt), CreatedAt: wireTime(m.CreatedAt), UpdatedAt: wireTime(m.UpdatedAt),
	}
}

// wireFound is a unit that was found, and why.
type wireFound struct {
	memory.Found
	Memory  any                `json:"memory,omitempty"`
	Text    string             `json:"text"` // of the fact or of the message
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
	CreatedAt wireTime          `json:"createdAt"`
}

func wireSuggestionOf(s memory.Suggested) wireSuggestion {
	w := wireSuggestion{Suggested: s, Evidence: orEmpty(s.Evidence), CreatedAt: wireTime(s.CreatedAt)}
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
	createdAt, err := json.Marshal(wireTime(w.Summary.At))
	if err != nil {
		return nil, err
	}
	doc = append(doc[:len(doc)-1], `,"createdAt":`...)
	doc = append(doc, createdAt...)
	doc = append(doc, `,"active":`...)
	return append(strconv.AppendBool(doc, w.Active), '}'), nil
}
