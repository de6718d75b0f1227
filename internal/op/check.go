package op

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/internal/jsonlimit"
)

// Checks of what clients send. Each returns nil or one fault.Error that names
// the field as the client wrote it.

// CheckVersion compares what a client has seen with what is stored; 0 = any,
// below 0 = it was never stored (version 0).
func CheckVersion(ifVersion, version int64) error {
	if ifVersion != 0 && max(ifVersion, 0) != version {
		return fault.New(fault.PreconditionFailed, "current version is %d, not %d", version, max(ifVersion, 0)).With("version", version)
	}
	return nil
}

// CheckLine refuses a short text that is too long (limit in code points) or
// holds control characters.
func CheckLine(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return fault.InvalidField(field, "encoding", "must be valid UTF-8")
	case utf8.RuneCountInString(text) > limit:
		return fault.InvalidField(field, "range", "must have at most %d characters", limit)
	case strings.ContainsFunc(text, unicode.IsControl):
		return fault.InvalidField(field, "encoding", "must not contain control characters")
	}
	return nil
}

// Truncate is at most limit code points of s.
func Truncate(s string, limit int) string {
	for i := range s {
		if limit--; limit < 0 {
			return s[:i]
		}
	}
	return s
}

// UnknownField says that a request has a member that it must not have.
func UnknownField(field string) error {
	return fault.InvalidField(field, "unknown", "unknown")
}

// IsNull says whether a member is absent or null.
func IsNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// JSONOrNil is raw without surrounding blanks; nil for null.
func JSONOrNil(raw json.RawMessage) json.RawMessage {
	if IsNull(raw) {
		return nil
	}
	return bytes.TrimSpace(raw)
}

// CheckKind refuses a document that does not begin as one of the kinds: '{' for
// an object, '[' for an array. An absent one passes.
func CheckKind(field string, raw json.RawMessage, kinds string) error {
	if IsNull(raw) {
		return nil
	}
	if !json.Valid(raw) {
		return fault.InvalidField(field, "type", "must be valid JSON")
	}
	if strings.IndexByte(kinds, bytes.TrimSpace(raw)[0]) < 0 {
		names := strings.NewReplacer("{", "an object", "[", " or an array").Replace(kinds)
		return fault.InvalidField(field, "type", "must be %s", names)
	}
	return nil
}

// MaxDepth limits the nesting of JSON that a client sends.
const MaxDepth = 32

// CheckLimits refuses JSON from a client that is nested more than MaxDepth levels deep, or
// has more than 1,000,000 values, before anything is built of it.
//
// Errors: BadRequest for the depth; TooLarge.
func CheckLimits(data []byte) error {
	return jsonlimit.Check(data, jsonlimit.Limits{Depth: MaxDepth, Deep: fault.BadRequest, Values: 1_000_000})
}

// DecodeStrict reads raw strictly: unknown members and other types are refused.
func DecodeStrict(field string, raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return decode(field, raw, d, into)
}

// DecodeLenient is DecodeStrict that lets unknown members pass.
func DecodeLenient(field string, raw json.RawMessage, into any) error {
	return decode(field, raw, json.NewDecoder(bytes.NewReader(raw)), into)
}

func decode(field string, raw json.RawMessage, d *json.Decoder, into any) error {
	if IsNull(raw) {
		return fault.InvalidField(field, "type", "must not be null")
	}
	err := CheckLimits(raw)
	switch {
	case fault.Is(err, fault.BadRequest):
		return fault.InvalidField(field, "range", "must not be nested more than %d levels deep", MaxDepth)
	case err != nil:
		return InField(field, err)
	}
	err = d.Decode(into)
	if err == nil {
		if len(bytes.TrimSpace(raw[d.InputOffset():])) > 0 {
			return fault.InvalidField(field, "type", "must be one JSON value")
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fault.InvalidField(joinPath(field, memberPath(wrong.Field)), "type", "must be %s", TypeName(wrong.Type.Kind().String()))
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return UnknownField(joinPath(field, strings.Trim(name, `"`)))
	}
	return fault.InvalidField(field, "type", "must be valid JSON")
}

// memberPath is a path of encoding/json without the names of embedded structs, which no client knows: they alone begin
// with a capital.
func memberPath(path string) string {
	members := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool { return name != "" && 'A' <= name[0] && name[0] <= 'Z' })
	return strings.Join(members, ".")
}

func joinPath(field, member string) string {
	if member == "" {
		return field
	}
	return field + "." + member
}

// TypeName is the JSON name of a Go kind.
func TypeName(kind string) string {
	switch {
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a string"
	case kind == "slice":
		return "an array"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	}
	return "an object"
}

// MustJSON encodes what cannot fail: our own plain values.
func MustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("op: %T cannot be encoded as JSON: %v", v, err)) // a mistake in the program text
	}
	return b
}

// CheckText refuses a message's text that is blank, longer than limit (code
// points), or cannot be stored.
func CheckText(field, text string, limit int) error {
	if strings.TrimSpace(text) == "" {
		return fault.InvalidField(field, "required", "must not be blank")
	}
	return CheckLength(field, text, limit)
}

// CheckLength refuses a text of more than limit code points, and what is no text.
func CheckLength(field, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return fault.InvalidField(field, "encoding", "must be valid UTF-8")
	case strings.ContainsRune(text, 0):
		return fault.InvalidField(field, "encoding", "must not contain the NUL character")
	}
	if n := utf8.RuneCountInString(text); n > limit {
		e := fault.New(fault.TooLarge, "%s: %d characters, limit %d", field, n, limit)
		return e.With("limit", limit).With("length", n)
	}
	return nil
}

// InField gives an error about a document the place where it stood.
func InField(field string, err error) error {
	e := fault.Public(err)
	out := fault.Wrap(err, e.Code, "%s: %s", field, e.Message).Quoting(e)
	out.Details = e.Details
	out.Fields = []fault.Field{{Field: field, Code: "document", Detail: e.Message}}
	return out
}

// clientID is what a client may name things.
var clientID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsClientID reports whether a client may name something so.
func IsClientID(id string) bool { return clientID.MatchString(id) }

// CheckClientID refuses a name by a client that is not 1 to 64 characters of
// A-Z a-z 0-9 _ -; "" = none.
func CheckClientID(field, id string) error {
	if id == "" || IsClientID(id) {
		return nil
	}
	return fault.InvalidField(field, "format", "must have at most 64 characters of A-Z a-z 0-9 _ -")
}

// Days completes and checks the first and the last of some days (2006-01-02): without to they end
// today, and without from they are so many.
func Days(from, to string, today time.Time, days int) (first, last string, err error) {
	end := today
	if to != "" {
		if end, err = time.Parse(time.DateOnly, to); err != nil {
			return "", "", fault.InvalidField("to", "type", "must be a date such as 2026-01-31")
		}
	}
	begin := end.AddDate(0, 0, 1-days)
	if from != "" {
		if begin, err = time.Parse(time.DateOnly, from); err != nil {
			return "", "", fault.InvalidField("from", "type", "must be a date such as 2026-01-31")
		}
	}
	first, last = begin.Format(time.DateOnly), end.Format(time.DateOnly)
	if first > last {
		return "", "", fault.InvalidField("from", "range", "must not be later than to (%s)", last)
	}
	return first, last, nil
}
