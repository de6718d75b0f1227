package card

import (
	"encoding/json"

	"nodest/internal/fault"
)

// AuthorNote is the view of an author's note. One with an empty text is only an anchor
// for world-book entries.
type AuthorNote struct {
	Text  string
	Role  string // "user" (default), "assistant" or "model", "system"
	Depth int

	// In the SillyTavern dialect:
	Position int  // 0 behind the main prompt, 1 in the chat at Depth (default), 2 before the main prompt
	Interval int  // it is in every n-th request, counted by the user's messages; 1 = in each (default), 0 = in none
	Scan     bool // it is searched for keys of world-book entries (allow_wi_scan)
}

// ParseAuthorNote reads an author's note; nil for a missing document.
//
// Error: InvalidImport when the document is no JSON object.
func ParseAuthorNote(doc json.RawMessage) (*AuthorNote, error) {
	if absent(doc) {
		return nil, nil
	}
	f := fieldsOf(doc)
	if f == nil {
		return nil, fault.New(fault.InvalidImport, "an author's note must be a JSON object").With("path", "authorNote")
	}
	return &AuthorNote{
		Text: f.text("content", ""), Role: f.textOr("role", "user"), Depth: f.int("injection_depth", 0),
		Position: f.int("position", 1), Interval: f.int("interval", 1), Scan: f.flag("allow_wi_scan", false),
	}, nil
}
