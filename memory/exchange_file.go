package memory

import "io"

// Export writes everything of a scope as JSON Lines; the first line is a header.
func Export(tx Tx, characterID string, w io.Writer) error { return errNotBuilt }

// Imported says what became of an import.
type Imported struct {
	Created int          `json:"created"`
	Skipped int          `json:"skipped"` // known already
	Failed  []FailedLine `json:"failed"`
}

// FailedLine is a line of an import that could not be taken.
type FailedLine struct {
	Line   int    `json:"line"` // from 1
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail"`
}

// ParseImport reads what Export writes, and plain lines {"text":…}.
func ParseImport(r io.Reader) (drafts []Memory, failed []FailedLine, err error) {
	return nil, nil, errNotBuilt
}

// Import stores parsed memories, each id and each text once.
func Import(tx Tx, by, characterID string, parsed []Memory) (*Imported, error) {
	return nil, errNotBuilt
}
