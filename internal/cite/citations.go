package cite

import (
	"slices"
	"strings"
)

// Citations are the sources of a text.
type Citations struct {
	References []Reference `json:"references"` // in the order of their markers
	Report     *Report     `json:"report,omitempty"`
	Hidden     bool        `json:"hidden,omitempty"`     // the text has no marks
	ResearchID string      `json:"researchId,omitempty"` // the research whose result the text tells
}

// In returns the citations of an edited text: the sources whose marks it still has, or, where
// marks are hidden, whose sentences it still has. What was counted, and the positions in the
// former text, no longer apply.
func (c *Citations) In(text string) *Citations {
	if c == nil {
		return nil
	}
	marks := Marks(text)
	var kept []Reference
	for _, r := range c.References {
		if c.Hidden && strings.Contains(text, r.AnswerChunk) {
			r.AnswerChunkPosition = nil
			kept = append(kept, r)
		} else if slices.Contains(marks, r.Marker) {
			r.AnswerChunk, r.AnswerChunkPosition = "", nil
			kept = append(kept, r)
		}
	}
	if kept == nil {
		return nil
	}
	return &Citations{References: kept, Hidden: c.Hidden, ResearchID: c.ResearchID}
}
