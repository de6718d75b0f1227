package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/jsonlimit"
	"nodest/internal/op"
)

// Limits of the contents of a file.
const (
	maxLoaded      = 200_000 // messages of an archive
	maxLoadedMarks = 10_000  // save points, and rewinds
	maxSaved       = 10_000  // messages of a save point or a history of the app
	maxSavedValues = 2_000_000
	maxDepth       = 10_000
)

// Each element of these lists takes a few hundred bytes in memory, however short it is in the
// file.
var (
	archiveLimits = jsonlimit.Limits{Depth: maxDepth, Deep: fault.InvalidImport, Values: 10_000_000, Lists: map[string]int{
		"messages": maxLoaded, "texts": 2 * maxLoaded, "swipes": 2 * maxLoaded, "states": 4 * maxLoaded, "saves": maxLoadedMarks,
		"rewinds": maxLoadedMarks, "summaries": maxLoadedMarks, "": 2 * maxLoaded,
	}}
	// A file has the messages of its save point two or three times.
	saveLimits = jsonlimit.Limits{Depth: maxDepth, Deep: fault.InvalidImport, Values: maxSavedValues, Lists: map[string]int{
		"messages": 2 * maxSaved, "parts": 4 * maxSaved, "texts": 20 * maxSaved, "swipes": 20 * maxSaved,
		"states": 4 * maxSaved, "": 20 * maxSaved,
	}}
)

// readFile decodes a file of a format. A file without a format is accepted if optional.
func readFile(data []byte, want string, optional bool, limits jsonlimit.Limits, into any) error {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	format, version, _ := card.FormatOf(data)
	if format != "" || !optional {
		if err := checkFormat(want, format, version); err != nil {
			return err
		}
	}
	if err := jsonlimit.Check(data, limits); err != nil {
		return err
	}
	return decodeError("", json.Unmarshal(data, into))
}

// IsArchive reports whether a file has the format of an archive of a conversation. It
// does not check the content.
func IsArchive(data []byte) bool {
	format, _, _ := card.FormatOf(data)
	return format == archiveFormat
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

// decodeError is the refusal for an error of encoding/json at path; nil for nil.
func decodeError(path string, err error) error {
	var wrong *json.UnmarshalTypeError
	var broken *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		for member := range strings.SplitSeq(wrong.Field, ".") {
			if member != "" && !unicode.IsUpper(rune(member[0])) { // those are embedded types of ours
				path = at(path, member)
			}
		}
		return damaged(path, "must be %s", op.TypeName(wrong.Type.Kind().String()))
	case errors.As(err, &broken):
		return fault.Wrap(err, fault.InvalidImport, "the file is damaged at byte %d", broken.Offset).With("offset", broken.Offset)
	}
	return fault.Wrap(err, fault.InvalidImport, "the file is damaged")
}

// at is the path of a member; that of the value itself for "".
func at(path, member string) string { return strings.Trim(path+"."+member, ".") }

// damaged refuses a file because of the value at path; "" = the whole file.
func damaged(path, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if path == "" {
		return fault.New(fault.InvalidImport, "the file %s", detail)
	}
	err := fault.New(fault.InvalidImport, "%s: %s", path, detail).With("path", path)
	err.Fields = []fault.Field{{Field: path, Code: "document", Detail: detail}}
	return err
}

// damagedBy refuses a file because err refused a field of the value at path.
func damagedBy(path string, err error) error {
	e := fault.Public(err)
	if e.Code != fault.Invalid || len(e.Fields) == 0 {
		return err
	}
	return damaged(at(path, e.Fields[0].Field), "%s", e.Fields[0].Detail)
}
