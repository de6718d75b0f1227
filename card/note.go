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
	return &AuthorNote{Text: f.text("content", ""), Role: f.textOr("role", "user"), Depth: f.int("injection_depth", 0)}, nil
}
