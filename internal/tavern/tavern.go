// Package tavern moves the folder of a SillyTavern user in, and back out: an import is a job that
// reads a zip archive which nobody trusts, gives each file to the subject that it belongs to, and
// reports about each file. It makes no documents and chats itself.
package tavern

import (
	"time"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// Import is the import of a folder, and its report.
type Import struct {
	ID             string
	Filename       string
	DryRun         bool // it reads and reports, and adds nothing
	MakeCharacters bool // a chat without its card gets a character of its name
	State          jobs.State
	Error          *jobs.Failure // why it has failed; nil = it has not
	Found          int           // files of the archive
	Done           int           // files that the report has already
	Counts         Counts
	CreatedAt      time.Time
	UpdatedAt      time.Time

	Size int64 // bytes of the archive
}

// Open says that its job has not ended.
func (i *Import) Open() bool { return i.State == jobs.Queued || i.State == jobs.Running }

// Outcome is what became of a file.
type Outcome string

// The outcomes.
const (
	Taken    Outcome = "taken"
	Kept     Outcome = "kept" // it was there already
	NotTaken Outcome = "notTaken"
)

// Count says how many files have which outcome.
type Count struct {
	Taken    int `json:"taken"`
	Kept     int `json:"kept"`
	NotTaken int `json:"notTaken"`
}

func (c *Count) add(o Outcome) {
	switch o {
	case Taken:
		c.Taken++
	case Kept:
		c.Kept++
	case NotTaken:
		c.NotTaken++
	}
}

// Counts are the counts by kind.
type Counts map[folder.Kind]Count

// Sum is the count of all kinds.
func (c Counts) Sum() (all Count) {
	for _, n := range c {
		all.Taken, all.Kept, all.NotTaken = all.Taken+n.Taken, all.Kept+n.Kept, all.NotTaken+n.NotTaken
	}
	return all
}

// File is a file of an import in its report.
type File struct {
	Path       string
	Kind       folder.Kind
	Size       int64 // unpacked, in bytes
	Outcome    Outcome
	ObjectKind string // character, conversation, worldbook, preset, regexscript, persona, template, settings or file; "" = none
	ObjectID   string
	Reason     string // why it was not taken, for people
	Notes      []Note // parts of it that have no effect
}

// Note is something about a file that people should know.
type Note struct {
	Code   string `json:"code"`
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// Filter selects files of a report; the zero value selects all.
type Filter struct {
	Outcome Outcome
	Kind    folder.Kind
}

// reason is why a file is not taken, in words for people.
func reason(err error) string { return fault.Public(err).Message }

// wireImport is the wire format of an import.
type wireImport struct {
	ID             string        `json:"id"`
	Filename       string        `json:"filename"`
	DryRun         bool          `json:"dryRun"`
	MakeCharacters bool          `json:"makeCharacters"`
	State          jobs.State    `json:"state"`
	Error          *jobs.Failure `json:"error,omitempty"`
	Found          int           `json:"found"`
	Done           int           `json:"done"`
	Taken          int           `json:"taken"`
	Kept           int           `json:"kept"`
	NotTaken       int           `json:"notTaken"`
	Counts         Counts        `json:"counts"`
	CreatedAt      op.Time       `json:"createdAt"`
	UpdatedAt      op.Time       `json:"updatedAt"`
}

// Wire returns i in its wire format.
func Wire(i *Import) any {
	sum := i.Counts.Sum()
	return wireImport{
		ID: i.ID, Filename: i.Filename, DryRun: i.DryRun, MakeCharacters: i.MakeCharacters, State: i.State, Error: i.Error,
		Found: i.Found, Done: i.Done, Taken: sum.Taken, Kept: sum.Kept, NotTaken: sum.NotTaken, Counts: i.Counts.all(),
		CreatedAt: op.Time(i.CreatedAt), UpdatedAt: op.Time(i.UpdatedAt),
	}
}

// all is c, never nil.
func (c Counts) all() Counts {
	if c == nil {
		return Counts{}
	}
	return c
}

type wireFile struct {
	Path       string      `json:"path"`
	Kind       folder.Kind `json:"kind"`
	Size       int64       `json:"size"`
	Outcome    Outcome     `json:"outcome"`
	ObjectKind string      `json:"objectKind,omitempty"`
	ObjectID   string      `json:"objectId,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Notes      []Note      `json:"notes"`
}

// WireFile returns f in its wire format.
func WireFile(f *File) any {
	return wireFile{f.Path, f.Kind, f.Size, f.Outcome, f.ObjectKind, f.ObjectID, f.Reason, append([]Note{}, f.Notes...)}
}
