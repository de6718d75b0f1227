// Package fault gives every failure one of a closed list of codes, so that the
// doors (REST, WebSocket, SSE, command line) can translate an error without
// knowing which package produced it.
//
// The lowest function that understands a failure gives it a code; functions
// above add nothing, or context with %w. An error without a code is ours to
// fix: it becomes Internal and its text reaches only the log.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code says what a caller can do about a failure. Clients see the string; it
// never changes. The list is that of the protocol page; a new code needs a row
// in Status.
type Code string

// The codes. Each constant stands with its meaning in docs/api.md.
const (
	BadRequest         Code = "bad_request"
	UnknownCommand     Code = "unknown_command"
	Invalid            Code = "invalid_field"
	Unauthenticated    Code = "unauthenticated"
	TokenExpired       Code = "token_expired"
	Forbidden          Code = "forbidden"
	NotFound           Code = "not_found"
	Conflict           Code = "conflict"
	Busy               Code = "busy"
	InProgress         Code = "in_progress"
	NotConfigured      Code = "not_configured"
	PreconditionFailed Code = "precondition_failed"
	TooLarge           Code = "too_large"
	UnsupportedMedia   Code = "unsupported_media_type"
	KeyReused          Code = "key_reused"
	UnsupportedCard    Code = "unsupported_card"
	InvalidWorldBook   Code = "invalid_world_book"
	InvalidImport      Code = "invalid_import"
	NewerVersion       Code = "newer_version"
	RateLimited        Code = "rate_limited"
	TooManyGenerations Code = "too_many_generations"
	QuotaExceeded      Code = "quota_exceeded"
	Cancelled          Code = "cancelled"
	Internal           Code = "internal"
	StorageFull        Code = "storage_full"
	UpstreamAuth       Code = "upstream_auth"
	UpstreamQuota      Code = "upstream_quota"
	UpstreamRate       Code = "upstream_rate_limited"
	UpstreamDown       Code = "upstream_unavailable"
	UpstreamBadAnswer  Code = "upstream_bad_answer"
	UpstreamTimeout    Code = "upstream_timeout"
	Blocked            Code = "blocked_by_provider"
	EmptyReply         Code = "empty_reply"
	ContextTooLarge    Code = "context_too_large"
	ShuttingDown       Code = "shutting_down"
)

// Field is one invalid member of a request. Field is its path as the client
// wrote it ("options.temperature"); Code is a word such as "required", "type",
// "range" or "unknown".
type Field struct {
	Field  string `json:"field"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Error is a failure with a code and a message that is safe to show. The cause
// is for the log and for errors.Is and errors.As; it is never sent out.
type Error struct {
	Code       Code
	Message    string         // English, for people
	Fields     []Field        // of invalid_field
	Details    map[string]any // what the table of codes names, e.g. "current", "provider"
	RetryAfter time.Duration  // 0 = not known
	cause      error
}

// New returns an error with a code and a public message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap is New that keeps cause for the log.
func Wrap(cause error, code Code, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.cause = cause
	return e
}

// InvalidField reports one field of a request that cannot be used.
func InvalidField(field, code, format string, args ...any) *Error {
	detail := fmt.Sprintf(format, args...)
	e := New(Invalid, "%s: %s", field, detail)
	e.Fields = []Field{{Field: field, Code: code, Detail: detail}}
	return e
}

// With returns e with a detail added.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// After returns e with the time after which trying again makes sense.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.cause }

// Public reduces err to what a client may see; it is never nil for a non-nil
// err. An error that nobody gave a code becomes Internal with a fixed message,
// unless a context ended.
func Public(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.Code != Internal:
		return e
	case errors.Is(err, context.Canceled):
		return Wrap(err, Cancelled, "cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Wrap(err, UpstreamTimeout, "it took too long")
	}
	return Wrap(err, Internal, "internal error")
}

// Is reports whether err carries code.
func Is(err error, code Code) bool {
	return err != nil && Public(err).Code == code
}

// status is the one table of codes: HTTP status, and title for problem answers.
var status = map[Code]struct {
	http  int
	title string
}{
	BadRequest:         {400, "Bad request"},
	UnknownCommand:     {400, "Unknown command"},
	Invalid:            {400, "Invalid field"},
	Unauthenticated:    {401, "Sign in first"},
	TokenExpired:       {401, "Token expired"},
	Forbidden:          {403, "Not allowed"},
	NotFound:           {404, "Not found"},
	Conflict:           {409, "It has changed meanwhile"},
	Busy:               {409, "A reply is being written"},
	InProgress:         {409, "Still in work"},
	NotConfigured:      {409, "Not set up"},
	PreconditionFailed: {412, "Precondition failed"},
	TooLarge:           {413, "Too large"},
	UnsupportedMedia:   {415, "Unsupported media type"},
	KeyReused:          {422, "Idempotency key used with other content"},
	UnsupportedCard:    {422, "Unsupported card"},
	InvalidWorldBook:   {422, "Invalid world book"},
	InvalidImport:      {422, "Invalid import"},
	NewerVersion:       {422, "Made by a newer version"},
	Blocked:            {422, "Blocked by the provider"},
	ContextTooLarge:    {422, "Context too large"},
	RateLimited:        {429, "Too many requests"},
	TooManyGenerations: {429, "Too many generations"},
	QuotaExceeded:      {429, "Quota exceeded"},
	Cancelled:          {499, "Cancelled"},
	Internal:           {500, "Internal error"},
	UpstreamAuth:       {502, "Provider refused the key"},
	UpstreamQuota:      {502, "Provider quota used up"},
	UpstreamBadAnswer:  {502, "Provider answered badly"},
	EmptyReply:         {502, "Provider answered nothing"},
	UpstreamRate:       {503, "Provider limits requests"},
	UpstreamDown:       {503, "Provider unavailable"},
	ShuttingDown:       {503, "Shutting down"},
	UpstreamTimeout:    {504, "Provider too slow"},
	StorageFull:        {507, "Storage full"},
}

// Status returns the HTTP status of a code.
func Status(c Code) int {
	if row, ok := status[c]; ok {
		return row.http
	}
	return 500
}

// Title returns the short English name of a code.
func Title(c Code) string { return status[c].title }

// Codes returns every code, in no order.
func Codes() []Code {
	all := make([]Code, 0, len(status))
	for c := range status {
		all = append(all, c)
	}
	return all
}

// Retry says whether sending the same thing again can help: "no", "same" (with
// the same idempotency key, at once) or "later".
func Retry(c Code) string {
	switch c {
	case Internal, InProgress, ShuttingDown:
		return "same"
	case Busy, RateLimited, TooManyGenerations, QuotaExceeded, EmptyReply,
		UpstreamQuota, UpstreamRate, UpstreamDown, UpstreamBadAnswer, UpstreamTimeout:
		return "later"
	}
	return "no"
}
