package dream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/memory"
	"nodest/memory/lang"
)

// Do is how a run changes a line.
type Do string

const (
	Add    Do = "add"
	Modify Do = "change"
	Remove Do = "remove"
)

// Update is one change that a run proposes.
type Update struct {
	Path  string
	Do    Do
	Line  string // id; of Modify and Remove
	Text  string // new text; only with Add and Modify
	Notes []int  // places in Basis.Notes that say so
}

// Note is a statement about a part of a chat, found by a reflection.
type Note struct {
	Text     string
	Kind     lang.Kind
	Evidence []memory.Evidence
	At       time.Time // when it was said last; zero = not known
}

// Why a change is not made.
const (
	reasonPath      = "no such document, or its name is not allowed"
	reasonLocked    = "the user has locked the document"
	reasonUser      = "the user wrote this line"
	reasonLine      = "no such line"
	reasonShape     = "not one line of plain text"
	reasonKnown     = "a line says this already"
	reasonForgotten = "the user asked to forget it"
	reasonFull      = "the document has no room"
	reasonFloor     = "the document would fall below 60 % of its best version of 30 days"
	reasonEvidence  = "nothing that was said supports it"
	reasonTooMany   = "too many changes in one run"
)

// reasonMany refuses a document that roomFor has no room for.
var reasonMany = fmt.Sprintf("there are %d documents besides the default ones already", MaxOthers)

// Limits of one run.
const (
	longestLine = 500 // code points
	mostUpdates = 100
	floorShare  = 0.6 // share of its best version that a document keeps
	floorTime   = 30 * 24 * time.Hour
)

// Change is what became of an update.
type Change struct {
	Path     string            `json:"path"`
	Do       Do                `json:"do"`
	LineID   string            `json:"lineId,omitempty"`
	Before   string            `json:"before,omitempty"`
	After    string            `json:"after,omitempty"`
	Evidence []memory.Evidence `json:"evidence"`
	Refused  string            `json:"refused,omitempty"` // why it was not made; "" = it was
}

// Basis is the input of Apply.
type Basis struct {
	Documents  []*Document    // the documents of the memory, the archive included
	Best       map[string]int // BestSizes of them
	Notes      []Note
	Names      lang.Names
	Tombstones []memory.Tombstone
	Day        string // is written in front of new lines; "" = nothing is
	RunID      string
	Now        time.Time
}

// Plan is what a run does.
type Plan struct {
	Documents []*Document // that are new or changed, with their new lines
	Changes   []Change    // also those that were refused
}

// BestSizes returns the size that each document had at its best in the last 30 days, since the user
// last wrote it: what they removed is no loss. versions are all of the memory.
func BestSizes(versions []Version, now time.Time) map[string]int {
	best := map[string]int{}
	byPath := map[string][]Version{}
	for _, v := range versions {
		byPath[v.Path] = append(byPath[v.Path], v)
	}
	for path, all := range byPath {
		slices.SortFunc(all, func(a, b Version) int { return cmp.Compare(b.Version, a.Version) })
		for _, v := range all { // the newest first
			best[path] = max(best[path], v.Size)
			if v.Author == ByUser || now.Sub(v.At) >= floorTime { // the older ones were not in force
				break
			}
		}
	}
	return best
}

// Apply turns updates into new versions. It trusts none: a line of the user and a locked document
// stay as they are; a line must say what notes say, and nothing that a line or a tombstone says
// already; removals stop where a document would fall below its floor. Lines that go are in the
// archive. It is a pure function.
func Apply(b Basis, updates []Update) Plan {
	a := &applying{Basis: b, documents: map[string]*Document{}, changed: map[string]bool{}}
	for _, d := range b.Documents {
		a.documents[d.Path] = d.clone()
	}
	for i, u := range updates {
		if u.Do != Remove {
			a.try(u, i)
		}
	}
	for i, u := range updates { // last, so that what was added counts for the floor
		if u.Do == Remove {
			a.try(u, i)
		}
	}
	a.fileAway()
	p := Plan{Changes: a.changes}
	for _, path := range slices.Sorted(maps.Keys(a.changed)) {
		d := a.documents[path]
		d.Author, d.RunID = ByDream, b.RunID
		p.Documents = append(p.Documents, d)
	}
	return p
}

type applying struct {
	Basis
	documents map[string]*Document
	changed   map[string]bool
	removed   []Line
	changes   []Change
}

// try carries an update out, or notes why not.
func (a *applying) try(u Update, at int) {
	u.Text = plain(u.Text)
	c := Change{Path: u.Path, Do: u.Do, LineID: u.Line, After: u.Text, Evidence: a.evidence(u.Notes)}
	switch {
	case at >= mostUpdates:
		c.Refused = reasonTooMany
	default:
		c.Refused = a.carryOut(u, &c)
	}
	if c.Refused != reasonSame {
		a.changes = append(a.changes, c)
	}
}

// reasonSame is the reason of an update that changes nothing; it is not told.
const reasonSame = "it is so already"

func (a *applying) carryOut(u Update, c *Change) (refused string) {
	d, refused := a.document(u)
	if refused != "" {
		return refused
	}
	if u.Do == Add {
		return a.add(d, u, c)
	}
	at := d.line(u.Line)
	if at < 0 {
		return reasonLine
	}
	l := &d.Lines[at]
	c.Before = l.Text
	switch {
	case l.Author == ByUser:
		return reasonUser
	case u.Do == Remove:
		return a.remove(d, at, c)
	}
	return a.modify(d, l, u, c)
}

// document returns the document of an update, a new one if it may be made.
func (a *applying) document(u Update) (*Document, string) {
	if checkPath(u.Path) != nil || u.Do != Add && u.Do != Modify && u.Do != Remove {
		return nil, reasonPath
	}
	d := a.documents[u.Path]
	switch {
	case d != nil && d.Locked:
		return nil, reasonLocked
	case d != nil:
		return d, ""
	case u.Do != Add:
		return nil, reasonPath
	case !roomFor(u.Path, a.others()):
		return nil, reasonMany
	}
	return &Document{Path: u.Path}, ""
}

// others are the documents without the archive.
func (a *applying) others() (all []*Document) {
	for path, d := range a.documents {
		if path != Archive {
			all = append(all, d)
		}
	}
	return all
}

func (a *applying) add(d *Document, u Update, c *Change) string {
	if refused := a.refuse(u, "", nil); refused != "" {
		return refused
	}
	text := u.Text
	if a.Day != "" {
		text = a.Day + ": " + text
		a.makeRoom(d, utf8.RuneCountInString(text)+1)
	}
	c.After = text
	if d.Size()+1+utf8.RuneCountInString(text) > MaxText || len(d.Lines) >= maxLines {
		return reasonFull
	}
	l := Line{ID: d.next(), Text: text, Author: ByDream, Evidence: c.Evidence, At: a.Now}
	c.LineID = l.ID
	d.Lines = append(d.Lines, l)
	a.documents[d.Path], a.changed[d.Path] = d, true
	return ""
}

// makeRoom files the oldest lines of a full document away, where no model can say which matter less.
func (a *applying) makeRoom(d *Document, size int) {
	for at := 0; at < len(d.Lines) && d.Size()+size > MaxText; {
		if l := &d.Lines[at]; l.Author == ByUser || a.remove(d, at, &Change{}) != "" {
			at++
		}
	}
}

func (a *applying) modify(d *Document, l *Line, u Update, c *Change) string {
	if lang.ContentHash(u.Text) == lang.ContentHash(l.Text) {
		return reasonSame
	}
	if refused := a.refuse(u, l.Text, l); refused != "" {
		return refused
	}
	size := d.Size() - utf8.RuneCountInString(l.Text) + utf8.RuneCountInString(u.Text)
	switch {
	case size > MaxText:
		return reasonFull
	case a.below(d.Path, size):
		return reasonFloor
	}
	for _, e := range l.Evidence { // it may still say what the old line did
		if len(c.Evidence) < memory.MaxEvidence && !slices.Contains(c.Evidence, e) {
			c.Evidence = append(c.Evidence, e)
		}
	}
	l.Text, l.Evidence, l.At = u.Text, c.Evidence, a.Now
	a.changed[d.Path] = true
	return ""
}

func (a *applying) remove(d *Document, at int, c *Change) string {
	l := d.Lines[at]
	if a.below(d.Path, d.Size()-utf8.RuneCountInString(l.Text)-1) {
		return reasonFloor
	}
	c.Evidence = l.Evidence
	l.From, l.At = d.Path, a.Now
	a.removed = append(a.removed, l)
	d.Lines = slices.Delete(d.Lines, at, at+1)
	a.changed[d.Path] = true
	return ""
}

// below reports whether a document of a size would be under its floor.
func (a *applying) below(path string, size int) bool {
	best := a.Best[path]
	for _, d := range a.Documents {
		if d.Path == path {
			best = max(best, d.Size())
		}
	}
	return float64(size) < floorShare*float64(best)
}

// refuse returns why a text cannot be a line; old is the text that it replaces, of the line but.
func (a *applying) refuse(u Update, old string, but *Line) string {
	switch {
	case u.Text == "" || utf8.RuneCountInString(u.Text) > longestLine || lang.LooksLikeMarkup(u.Text) || strings.HasPrefix(u.Text, "#"):
		return reasonShape
	case a.forgotten(u):
		return reasonForgotten
	case a.known(u.Text, but):
		return reasonKnown
	}
	var sources []lang.Line
	if old != "" {
		sources = append(sources, lang.Line{Text: old})
	}
	said := false
	for _, n := range u.Notes {
		if n >= 0 && n < len(a.Notes) {
			sources, said = append(sources, lang.Line{Text: a.Notes[n].Text}), true
		}
	}
	if !said || lang.Unsupported(u.Text, sources, a.Names) != "" {
		return reasonEvidence
	}
	return ""
}

func (a *applying) forgotten(u Update) bool {
	return memory.IsBuried(a.Tombstones, u.Text, a.evidence(u.Notes))
}

// enoughKnown is the part of the words of a text that another line has when it says nothing new.
const enoughKnown = 0.99

// known reports whether a line of any document says what text does.
func (a *applying) known(text string, but *Line) bool {
	hash, pieces := lang.ContentHash(text), lang.PiecesOf(text)
	day := len("2006-01-02: ")
	for path, d := range a.documents {
		for i := range d.Lines {
			l := &d.Lines[i]
			if path == Archive || l == but || l.isStructure() {
				continue
			}
			if lang.ContentHash(l.Text) == hash || len(l.Text) > day && lang.ContentHash(l.Text[day:]) == hash {
				return true
			}
			if share, weight := lang.SaidIn(l.Text).Share(pieces); weight > 0 && share >= enoughKnown && !lang.Differ(text, l.Text) && !lang.SameSlot(text, l.Text) {
				return true
			}
		}
	}
	return false
}

// evidence joins that of notes.
func (a *applying) evidence(notes []int) []memory.Evidence {
	joined := []memory.Evidence{}
	for _, n := range notes {
		if n < 0 || n >= len(a.Notes) {
			continue
		}
		for _, e := range a.Notes[n].Evidence {
			if e.Sighting = 0; len(joined) < memory.MaxEvidence && !slices.Contains(joined, e) {
				joined = append(joined, e)
			}
		}
	}
	return joined
}

// fileAway puts the lines that were removed into the archive; the oldest there make room.
func (a *applying) fileAway() {
	if len(a.removed) == 0 {
		return
	}
	d := a.documents[Archive]
	if d == nil {
		d = &Document{Path: Archive}
		a.documents[Archive] = d
	}
	for _, l := range a.removed {
		l.ID = d.next()
		d.Lines = append(d.Lines, l)
	}
	for len(d.Lines) > 1 && (d.Size() > MaxText || len(d.Lines) > maxLines) {
		d.Lines = d.Lines[1:]
	}
	a.changed[Archive] = true
}

// plain returns a text of a model as one line: without the mark of a list, and blanks once.
func plain(text string) string {
	text = lang.Tidy(text)
	for _, mark := range []string{"- ", "* ", "• "} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return rest
		}
	}
	return text
}
