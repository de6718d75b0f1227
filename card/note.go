package card

import (
	"encoding/json"

	"nodest/fault"
)

// AuthorNote is the view of a NodeST author's note.
type AuthorNote struct {
	Content        string
	Role           string // default "user"
	InjectionDepth int
}

// ParseAuthorNote reads an author's note. ok is false for a missing document: no
// note. A note with empty content is one, as an anchor for world-book entries.
//
// Error: InvalidImport when the document is no JSON object.
func ParseAuthorNote(doc json.RawMessage) (note AuthorNote, ok bool, err error) {
	if absent(doc) {
		return AuthorNote{}, false, nil
	}
	f := fieldsOf(doc)
	if f == nil {
		return AuthorNote{}, false, fault.New(fault.InvalidImport, "an author's note must be a JSON object").With("path", "authorNote")
	}
	return AuthorNote{
		Content:        f.text("content", ""),
		Role:           f.textOr("role", "user"),
		InjectionDepth: f.int("injection_depth", 0),
	}, true, nil
}
