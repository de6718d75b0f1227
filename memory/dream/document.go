package dream

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/memory"
)

// Limits of the documents of one memory.
const (
	MaxOthers = 4    // documents besides the default ones and the archive
	MaxText   = 8000 // code points of a document
	maxLines  = 400  // lines of a document
)

// Archive is the document that keeps the lines that runs have removed. It is in no prompt, and no
// run reads it.
const Archive = "archive.md"

// Defaults are the documents that runs write, in the order in which a prompt has them.
var Defaults = []string{"user.md", "relationship.md", "threads.md", "self.md"}

var pathForm = regexp.MustCompile(`^[a-z0-9_-]{1,40}\.md$`)

// roomFor reports whether a memory with documents can have another one: the default ones always have room.
func roomFor(path string, documents []*Document) bool {
	if path == Archive || slices.Contains(Defaults, path) {
		return true
	}
	n := 0
	for _, d := range documents {
		if d.Path != Archive && !slices.Contains(Defaults, d.Path) {
			n++
		}
	}
	return n < MaxOthers
}

// Author says who wrote a line or a version.
type Author string

const (
	ByUser  Author = "user"
	ByDream Author = "dream"
)

// Line is one line of a document.
type Line struct {
	ID       string            `json:"id"` // unique in the document for ever
	Text     string            `json:"text"`
	Author   Author            `json:"author"`
	Evidence []memory.Evidence `json:"evidence,omitempty"` // messages that it rests on
	At       time.Time         `json:"at"`                 // when it was written so
	From     string            `json:"from,omitempty"`     // in the archive: the document that it was in
}

// isStructure reports whether a line only orders others: it is blank or a heading.
func (l *Line) isStructure() bool {
	text := strings.TrimSpace(l.Text)
	return text == "" || strings.HasPrefix(text, "#")
}

// Document is a document in one version.
type Document struct {
	Path      string
	Version   int64 // the version of Lines, from 1
	Newest    int64 // the version that is in force
	Locked    bool  // only the user may change it
	Author    Author
	RunID     string // the run that wrote the version; "" = the user did
	Lines     []Line
	Made      int64     // how many lines were ever made: ids count on
	UpdatedAt time.Time // the time of the version
}

// Version is a version of a document without its lines.
type Version struct {
	Path    string
	Version int64
	Author  Author
	RunID   string
	Size    int // code points
	At      time.Time
}

// Text returns the lines as one text.
func (d *Document) Text() string {
	texts := make([]string, len(d.Lines))
	for i := range d.Lines {
		texts[i] = d.Lines[i].Text
	}
	return strings.Join(texts, "\n")
}

// Size is the length of the text in code points.
func (d *Document) Size() int { return sizeOf(d.Lines) }

func sizeOf(lines []Line) int {
	size := max(len(lines)-1, 0)
	for i := range lines {
		size += utf8.RuneCountInString(lines[i].Text)
	}
	return size
}

// line returns the place of a line, -1 if it is not there.
func (d *Document) line(id string) int {
	return slices.IndexFunc(d.Lines, func(l Line) bool { return l.ID == id })
}

// next makes the id of a new line.
func (d *Document) next() string {
	d.Made++
	return lineID(d.Made)
}

func (d *Document) clone() *Document {
	c := *d
	c.Lines = slices.Clone(d.Lines)
	return &c
}

// checkPath refuses the name of a document that cannot be written.
func checkPath(path string) error {
	switch {
	case !pathForm.MatchString(path):
		return fault.InvalidField("path", "format", "must be 1 to 40 of a-z 0-9 _ - and end in .md")
	case path == Archive:
		return fault.InvalidField("path", "value", "%s is written by the system; it can be read and deleted", Archive)
	case path == Profile:
		return fault.InvalidField("path", "value", "%s is made of memories; change those", Profile)
	}
	return nil
}

// NoDocument says that a document, or its version, is not there; 0 = the one in force.
func NoDocument(path string, version int64) error {
	if version == 0 {
		return fault.New(fault.NotFound, "no document %q", path)
	}
	return fault.New(fault.NotFound, "no document %q in this version", path)
}

// ByOrder sorts documents: the profile, the default ones, others by name, the archive.
func ByOrder(documents []*Document) {
	slices.SortFunc(documents, func(a, b *Document) int {
		if p, q := placeOf(a.Path), placeOf(b.Path); p != q {
			return p - q
		}
		return strings.Compare(a.Path, b.Path)
	})
}

func placeOf(path string) int {
	switch path {
	case Profile:
		return -1
	case Archive:
		return len(Defaults) + 1
	}
	if at := slices.Index(Defaults, path); at >= 0 {
		return at
	}
	return len(Defaults)
}
