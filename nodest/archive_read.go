package nodest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"nodest/fault"
)

// What a file may hold.
const (
	maxLoaded      = 200_000   // messages of an archive; maxImportedMessages of a save point
	maxLoadedMarks = 10_000    // save points, rewinds, summaries
	maxElements    = 3_000_000 // of all arrays: few bytes of a file can ask for much memory
)

// reader reads a file piece by piece, and stops at a piece that is too much before
// it is built.
type reader struct {
	dec      *json.Decoder
	messages int // that it may have
	left     int // elements of arrays that may still come
}

func newReader(data []byte, messages int) *reader {
	return &reader{json.NewDecoder(bytes.NewReader(data)), messages, maxElements}
}

// readFile reads a file that is an archive by itself.
func readFile(data []byte) (*archive, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	format, version, _ := sniff(data)
	if err := checkFormat(archiveFormat, format, version); err != nil {
		return nil, err
	}
	r := newReader(data, maxLoaded)
	a, err := r.archive("")
	if err != nil {
		return nil, err
	}
	return a, r.end()
}

// archive reads the archive that stands at path.
func (r *reader) archive(path string) (*archive, error) {
	a := &archive{}
	err := r.object(path, func(name, path string) (err error) {
		switch name {
		case "character":
			err = r.value(path, &a.Character)
		case "conversation":
			err = r.value(path, &a.Conversation)
		case "messages":
			a.Messages, err = arrayOf[*DumpedMessage](r, path, r.messages)
		case "states":
			a.States, err = arrayOf[*Conversation](r, path, 4*maxLoadedMarks)
		case "rewinds":
			a.Rewinds, err = arrayOf[Rewind](r, path, maxLoadedMarks)
		case "saves":
			a.Saves, err = arrayOf[*Save](r, path, maxLoadedMarks)
		case "summaries":
			a.Summaries, err = arrayOf[*DumpedSummary](r, path, maxLoadedMarks)
		default:
			err = r.value(path, &nothing{})
		}
		return err
	})
	return a, err
}

// object calls member for each member of the object that comes next; it must read
// the value.
func (r *reader) object(path string, member func(name, path string) error) error {
	t, err := r.dec.Token()
	if err != nil {
		return misread(path, err)
	}
	if t != json.Delim('{') {
		return damaged(path, "must be an object")
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return misread(path, err)
		}
		name, _ := t.(string) // the decoder refuses any other name
		if err := member(name, at(path, shortened(name, 64))); err != nil {
			return err
		}
	}
	return r.closed(path)
}

// arrayOf reads an array of at most limit elements; null is an empty one.
func arrayOf[T any](r *reader, path string, limit int) ([]T, error) {
	t, err := r.dec.Token()
	switch {
	case err != nil:
		return nil, misread(path, err)
	case t == nil:
		return nil, nil
	case t != json.Delim('['):
		return nil, damaged(path, "must be an array")
	}
	all := []T{}
	for r.dec.More() {
		if len(all) == limit {
			return nil, fault.New(fault.TooLarge, "%s: more than %d elements", path, limit).With("limit", limit)
		}
		var v T
		if err := r.value(fmt.Sprintf("%s[%d]", path, len(all)), &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, r.closed(path)
}

// closed reads the end of an object or array.
func (r *reader) closed(path string) error {
	if _, err := r.dec.Token(); err != nil {
		return misread(path, err)
	}
	return nil
}

// end makes sure that nothing follows.
func (r *reader) end() error {
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.InvalidImport, "the file is damaged: unexpected data after the JSON value")
	}
	return nil
}

// value reads a value whose arrays do not have too many elements.
func (r *reader) value(path string, into any) error {
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		return misread(path, err)
	}
	if r.left -= elements(raw); r.left < 0 {
		return fault.New(fault.TooLarge, "%s: more than %d elements of arrays in the file", path, maxElements).With("limit", maxElements)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return misread(path, err)
	}
	return nil
}

// elements counts those of all arrays in a JSON value.
func elements(raw []byte) (n int) {
	var open []byte // the brackets around raw[i]
	for i, quoted := 0, false; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '[', c == '{':
			open = append(open, c)
		case c == ']', c == '}':
			open = open[:len(open)-1]
		}
		if !quoted && len(open) > 0 && open[len(open)-1] == '[' && (raw[i] == '[' || raw[i] == ',') {
			n++
		}
	}
	return n
}

// nothing is what is kept of values that nobody reads.
type nothing struct{}

func (*nothing) UnmarshalJSON([]byte) error { return nil }

// sniff reads what a file calls itself, wherever that stands in it. history reports
// whether it has a nodestChatHistory, as save points of the NodeST app do.
func sniff(data []byte) (format string, version int64, history bool) {
	r := newReader(data, 0)
	_ = r.object("", func(name, _ string) error { // a damaged file is refused by whoever reads it
		var into any = &nothing{}
		switch name {
		case "format":
			into = &format
		case "formatVersion":
			into = &version
		case "nodestChatHistory":
			history = true
		}
		var wrong *json.UnmarshalTypeError
		if err := r.dec.Decode(into); err != nil && !errors.As(err, &wrong) {
			return err
		}
		if format != "" && version != 0 {
			return io.EOF // that is all that matters of a file of ours
		}
		return nil
	})
	return format, version, history
}

// IsArchive reports whether a file calls itself an archive of a conversation,
// whatever it holds.
func IsArchive(data []byte) bool {
	format, _, _ := sniff(bytes.TrimPrefix(data, []byte("\ufeff")))
	return format == archiveFormat
}

// IsSave reports whether a file is a save point, ours or one of the app, whatever it
// holds.
func IsSave(data []byte) bool {
	format, _, history := sniff(bytes.TrimPrefix(data, []byte("\ufeff")))
	return format == saveFormat || history && format == ""
}

func checkFormat(want, format string, version int64) error {
	switch {
	case format != want:
		return damaged("format", "must be %q", want)
	case version < 1:
		return damaged("formatVersion", "must be a whole number, 1 or more")
	case version > formatVersion:
		err := fault.New(fault.NewerVersion, "the file has format version %d; this server reads up to %d", version, formatVersion)
		err.Fields = []fault.Field{{Field: "formatVersion", Code: "range", Detail: "is newer than this server supports"}}
		return err
	}
	return nil
}

// misread is what went wrong with the JSON of a file.
func misread(path string, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		for member := range strings.SplitSeq(wrong.Field, ".") {
			if member != "" && !unicode.IsUpper(rune(member[0])) { // those are embedded types of ours
				path = at(path, member)
			}
		}
		return damaged(path, "must be %s", typeWord(wrong.Type.Kind().String()))
	}
	var broken *json.SyntaxError
	if errors.As(err, &broken) {
		return fault.Wrap(err, fault.InvalidImport, "the file is damaged at byte %d", broken.Offset).With("offset", broken.Offset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.InvalidImport, "the file is damaged: it ends too early")
	}
	return damaged(path, "not a valid value")
}

// at is the path of a member.
func at(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}

// damaged refuses a file because of what stands at path.
func damaged(path, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	err := fault.New(fault.InvalidImport, "%s: %s", path, detail).With("path", path)
	err.Fields = []fault.Field{{Field: path, Code: "document", Detail: detail}}
	return err
}

// damagedBy refuses a file because a check of ours refused a field of what stands
// at path.
func damagedBy(path string, err error) error {
	e := fault.Public(err)
	if e.Code != fault.Invalid {
		return err
	}
	if len(e.Fields) == 0 {
		return damaged(path, "%s", e.Message)
	}
	return damaged(at(path, e.Fields[0].Field), "%s", e.Fields[0].Detail)
}
