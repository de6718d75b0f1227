package memory

import (
	"errors"
	"io"
	"time"

	"nodest/jobs"
)

var errNotBuilt = errors.New("memory: not built yet")

// ---- H3: extraction job and the user's rights

func (s *Service) extractKind() jobs.Kind { return jobs.Kind{Name: JobExtract} }

// Heard enqueues what follows from a text that was stored, in its transaction:
// embedding, and extraction when it is due.
func Heard(tx Tx, characterID, conversationID string) error { return nil }

// Draft is a memory that a user writes, or a change of one (Patch).
type Draft struct {
	Text       string     `json:"text"`
	Subject    Subject    `json:"subject"`    // default user
	Kind       Sort       `json:"kind"`       // default other
	Importance *float64   `json:"importance"` // default 0.5
	EventTime  *time.Time `json:"eventTime"`
	Pinned     bool       `json:"pinned"`
	Locked     bool       `json:"locked"`
}

// Patch changes a memory; nil members stay. A text makes a new version of origin
// user, locked.
type Patch struct {
	Text       *string    `json:"text"`
	Subject    *Subject   `json:"subject"`
	Kind       *Sort      `json:"kind"`
	Importance *float64   `json:"importance"`
	EventTime  *time.Time `json:"eventTime"`
	Pinned     *bool      `json:"pinned"`
	Locked     *bool      `json:"locked"`
}

// The rights of a user, each within a transaction. by is the device for events.

// Create stores a memory of origin user. One with the same words that is active is
// returned as it is, with its count raised; words that were forgotten may come back
// by the user's own hand, which removes nothing else.
func Create(tx Tx, by, characterID string, d Draft) (*Memory, error) { return nil, errNotBuilt }

// Edit changes the newest version of a memory.
func Edit(tx Tx, by, characterID, id string, p Patch) (*Memory, error) { return nil, errNotBuilt }

// Retire hides a memory until Restore.
func Retire(tx Tx, by, characterID, id string) (*Memory, error) { return nil, errNotBuilt }

// Restore makes a retired or superseded version the one that counts again.
func Restore(tx Tx, by, characterID, id string) (*Memory, error) { return nil, errNotBuilt }

// Purge removes a memory with all its versions and everything made of it, and
// leaves a tombstone, so that it is not learned again from the same words or texts.
// For the id of a text (layer exchange) that text is forgotten.
func Purge(tx Tx, by, characterID, id string) error { return errNotBuilt }

// History returns the versions of a memory, oldest first.
func History(tx Tx, characterID, id string) ([]Memory, error) { return nil, errNotBuilt }

// Decide accepts or rejects a suggestion.
func Decide(tx Tx, by, characterID, id, decision string) (*Suggested, error) { return nil, errNotBuilt }

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

// Forgotten is what "forget everything about X" finds, or has removed.
type Forgotten struct {
	DryRun    bool         `json:"dryRun"`
	Memories  []ForgetItem `json:"memories"`
	Truncated bool         `json:"truncated"` // there is more: ask again
}

// ForgetItem is one unit of it.
type ForgetItem struct {
	ID    string  `json:"id"`
	Layer Layer   `json:"layer"`
	Text  string  `json:"text"`
	Score float64 `json:"score"`
}

// PurgeAll removes units by id, facts and texts, and leaves tombstones.
func PurgeAll(tx Tx, by, characterID string, ids []string) error { return errNotBuilt }
