package memory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/memory/lang"
)

// A memory file has one JSON record per line.
const (
	fileFormat  = card.FormatMemories
	fileVersion = 1

	recordHeader     = "header"
	recordMemory     = "memory"         // the newest version of a memory
	recordVersion    = "memory_version" // an older one
	recordSuggestion = "suggestion"
)

// Limits of an import.
const (
	maxFileBytes = 32 << 20
	maxFileLines = 50_000
	maxLineBytes = 64 << 10
	maxVersions  = 1000 // versions of one memory: they are stored together
	maxFailed    = 1000 // invalid lines: more mean that it is the wrong file
	maxLeftOut   = 20   // types of lines that are reported

	notImported = "not_imported" // code of a line whose type is left out
)

type headerRecord struct {
	Type        string    `json:"type"`
	Format      string    `json:"format"`
	Version     int       `json:"version"`
	CharacterID string    `json:"characterId"`
	ExportedAt  time.Time `json:"exportedAt"`
}

// IsExport reports whether a file begins with the header of an export, and of which character.
func IsExport(data []byte) (characterID string, ok bool) {
	var h headerRecord
	line, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	ok = json.Unmarshal(line, &h) == nil && h.Format == fileFormat
	return h.CharacterID, ok
}

type memoryRecord struct {
	Type string `json:"type"`
	*Memory
	EndedBy []Evidence `json:"endedBy,omitempty"`
}

type suggestionRecord struct {
	Type string `json:"type"`
	*Suggested
}

// export writes a scope as JSON Lines: a header, the memories with all their versions, oldest
// first, and the suggestions. Vectors are left out, since they can be computed again.
func export(tx Tx, characterID string, w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(headerRecord{recordHeader, fileFormat, fileVersion, characterID, tx.Now()}); err != nil {
		return err
	}
	var roots []string
	err := EachFact(tx, characterID, Filter{Status: AnyStatus}, func(m *Memory) bool {
		if m.Version == 1 {
			roots = append(roots, m.RootID)
		}
		return true
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(roots, PageOfFacts) {
		versions, err := tx.FactVersions(characterID, some...)
		if err != nil {
			return err
		}
		for i := range versions {
			r := memoryRecord{recordMemory, &versions[i], versions[i].EndedBy}
			if i+1 < len(versions) && versions[i+1].RootID == r.RootID {
				r.Type = recordVersion
			}
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
	}
	return exportSuggestions(tx, characterID, enc)
}

func exportSuggestions(tx Tx, characterID string, enc *json.Encoder) error {
	for cursor := ""; ; {
		page, next, err := tx.Suggestions(characterID, "", cursor, PageOfFacts)
		if err != nil {
			return err
		}
		for i := range page {
			if err := enc.Encode(suggestionRecord{recordSuggestion, &page[i]}); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
}

// FailedLine is a line of a file that was not imported.
type FailedLine struct {
	Line   int    `json:"line"` // from 1
	Code   string `json:"code"` // syntax, not_imported, or that of a field: required, type, range, value
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail"`
}

type parsedFile struct {
	Memories []Memory
	Failed   []FailedLine
	LeftOut  []FailedLine // the first line of each type that is not imported
}

// parseImport reads what export writes, and plain lines {"text":…} with the members of a Draft.
// Invalid lines are reported by number, the rest is returned. A file may have 32 MiB and 50,000
// lines of 64 KiB each.
//
// Errors: TooLarge for the file; NewerVersion and InvalidImport for its header, if lines are
// invalid and none is a memory, or if more than 1,000 lines are invalid or belong to one
// memory.
func parseImport(r io.Reader) (*parsedFile, error) {
	lines := &lineReader{r: bufio.NewReaderSize(r, maxLineBytes)}
	beginning, _ := lines.r.Peek(2) // a file may be shorter; what cannot be read fails below
	if err := card.CheckEncoding(beginning, fault.InvalidImport); err != nil {
		return nil, err
	}
	var got parsedFile
	versions := map[string]int{} // by the root
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return got.complete()
		case errors.Is(err, errLineLong):
			got.Failed = append(got.Failed, FailedLine{lines.number, "range", "", "line too long, limit " + fault.Size(maxLineBytes)})
		case err != nil:
			return nil, err
		default:
			m, problem, err := parseLine(line)
			switch {
			case err != nil:
				return nil, err
			case problem != nil:
				problem.Line = lines.number
				got.report(problem)
			case m != nil:
				got.Memories = append(got.Memories, *m)
				if versions[m.RootID]++; m.RootID != "" && versions[m.RootID] > maxVersions {
					return nil, fault.New(fault.InvalidImport, "line %d: a memory can have at most %d versions", lines.number, maxVersions)
				}
			}
		}
		if len(got.Failed) > maxFailed {
			return nil, fault.New(fault.InvalidImport, "more than %d lines are invalid; the first is line %d: %s",
				maxFailed, got.Failed[0].Line, got.Failed[0].Detail)
		}
	}
}

// report keeps an invalid line; of lines that are not imported, the first of each type.
func (p *parsedFile) report(f *FailedLine) {
	if f.Code != notImported {
		p.Failed = append(p.Failed, *f)
		return
	}
	same := func(known FailedLine) bool { return known.Detail == f.Detail }
	if len(p.LeftOut) < maxLeftOut && !slices.ContainsFunc(p.LeftOut, same) {
		p.LeftOut = append(p.LeftOut, *f)
	}
}

// complete fails if all lines are invalid.
func (p *parsedFile) complete() (*parsedFile, error) {
	if len(p.Memories) > 0 || len(p.Failed) == 0 {
		return p, nil
	}
	first, of := p.Failed[0], ""
	if first.Field != "" {
		of = first.Field + ": "
	}
	return nil, fault.New(fault.InvalidImport, "no line of the file is a memory; line %d: %s%s", first.Line, of, first.Detail).
		With("line", first.Line)
}

type lineReader struct {
	r      *bufio.Reader
	number int // number of the line that was read last
	bytes  int
}

var errLineLong = errors.New("the line is too long")

// next returns a line without its end, valid until the next call, and io.EOF after the last.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	long := false
	for first := true; ; first = false {
		part, err := l.r.ReadSlice('\n')
		if l.bytes += len(part); l.bytes > maxFileBytes {
			return nil, fault.New(fault.TooLarge, "memory file too large, limit %s", fault.Size(maxFileBytes))
		}
		if first && len(part) == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		line = part
		break
	}
	if l.number++; l.number > maxFileLines {
		return nil, fault.New(fault.TooLarge, "a memory file can have at most %d lines", maxFileLines)
	}
	if long {
		return nil, errLineLong
	}
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return bytes.TrimSpace(line), nil
}

// fileLine is a line of a file: a memory, or a header, whose version is the file's. Of some members
// it keeps whether they are there, or are no time.
type fileLine struct {
	Type   string `json:"type"`
	Format string `json:"format"`
	Memory
	Text         *string         `json:"text"`
	Importance   *float64        `json:"importance"`
	SeenCount    *int            `json:"seenCount"`
	EndedBy      []Evidence      `json:"endedBy"`
	EventTime    fileTime        `json:"eventTime"`
	LastSeenAt   fileTime        `json:"lastSeenAt"`
	CreatedAt    fileTime        `json:"createdAt"`
	UpdatedAt    fileTime        `json:"updatedAt"`
	LastUsedAt   json.RawMessage `json:"lastUsedAt"`   // not imported
	SupersededBy json.RawMessage `json:"supersededBy"` // not imported
}

// fileTime is a time or a day.
type fileTime struct {
	time.Time
	wrong bool // something else was given
}

// UnmarshalJSON reads RFC 3339 and YYYY-MM-DD. It never fails: wrongTime names the field.
func (t *fileTime) UnmarshalJSON(doc []byte) error {
	if !bytes.Equal(doc, []byte("null")) {
		t.wrong = !t.read(doc)
	}
	return nil
}

func (t *fileTime) read(doc []byte) bool {
	var s string
	if json.Unmarshal(doc, &s) != nil {
		return false
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			t.Time = at
			return lang.IsPlausible(at)
		}
	}
	return false
}

func (l *fileLine) wrongTime() string {
	for _, t := range []struct {
		field string
		time  fileTime
	}{{"eventTime", l.EventTime}, {"lastSeenAt", l.LastSeenAt}, {"createdAt", l.CreatedAt}, {"updatedAt", l.UpdatedAt}} {
		if t.time.wrong {
			return t.field
		}
	}
	return ""
}

// parseLine reads a line: a memory, nothing for an empty line and the header, or what is
// invalid. The error is about the file.
func parseLine(line []byte) (*Memory, *FailedLine, error) {
	if len(line) == 0 {
		return nil, nil, nil
	}
	var l fileLine
	if !utf8.Valid(line) {
		return nil, &FailedLine{Code: "syntax", Detail: "the line is not valid UTF-8"}, nil
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, wrongLine(err), nil
	}
	switch l.Type {
	case recordHeader:
		return nil, nil, l.checkHeader()
	case recordMemory, recordVersion, "":
	default: // settings, suggestions: they belong to the memory that was exported
		return nil, &FailedLine{Code: notImported, Detail: fmt.Sprintf("lines of type %q are not imported", lang.Truncate(l.Type, 40))}, nil
	}
	if l.Text == nil {
		return nil, &FailedLine{Code: "required", Field: "text", Detail: "required"}, nil
	}
	if field := l.wrongTime(); field != "" {
		return nil, &FailedLine{Code: "type", Field: field, Detail: "must be a time such as 2026-03-05T12:00:00Z or 2026-03-05"}, nil
	}
	m := l.memory()
	err := m.Validate()
	if err == nil && m.Status == Deleted {
		err = fault.InvalidField("status", "value", "deleted memories cannot be imported")
	}
	if err == nil && len(m.EndedBy) > MaxEvidence {
		err = fault.InvalidField("endedBy", "range", "must have at most %d entries", MaxEvidence)
	}
	if err != nil {
		f := fault.Public(err).Fields[0]
		return nil, &FailedLine{Code: f.Code, Field: f.Field, Detail: f.Detail}, nil
	}
	return m, nil, nil
}

func wrongLine(err error) *FailedLine {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return &FailedLine{Code: "type", Field: strings.TrimPrefix(wrongType.Field, "Memory."), Detail: "must not be a " + wrongType.Value}
	}
	return &FailedLine{Code: "syntax", Detail: "the line is not a JSON object"}
}

func (l *fileLine) checkHeader() error {
	switch {
	case l.Format != fileFormat:
		return fault.New(fault.InvalidImport, "not a memory file (format %q)", lang.Truncate(l.Format, 40))
	case l.Version > fileVersion:
		return fault.New(fault.NewerVersion, "the file has format version %d; this server reads up to %d", l.Version, fileVersion)
	}
	return nil
}

// memory fills in defaults.
func (l *fileLine) memory() *Memory {
	m := l.Memory
	m.Text, m.ContentHash, m.EndedBy, m.Importance, m.SeenCount = *l.Text, lang.ContentHash(*l.Text), l.EndedBy, DefaultImportance, 1
	m.LastSeenAt, m.CreatedAt, m.UpdatedAt = l.LastSeenAt.Time, l.CreatedAt.Time, l.UpdatedAt.Time
	set(&m.Importance, l.Importance)
	set(&m.SeenCount, l.SeenCount)
	if !l.EventTime.IsZero() {
		m.EventTime = &l.EventTime.Time
	}
	fill(&m.Version, 1)
	fill(&m.RootID, m.ID)
	fill(&m.Subject, lang.AboutUser)
	fill(&m.Kind, lang.KindOther)
	fill(&m.Origin, ByImport)
	fill(&m.Status, Active)
	return &m
}

func fill[T comparable](to *T, value T) {
	var none T
	if *to == none {
		*to = value
	}
}
