// Package fault gives every failure one of a closed list of codes, so that the
// transports (REST, WebSocket, SSE, command line) can translate an error without
// knowing which package produced it.
//
// The lowest function that understands a failure gives it a code; functions
// above add nothing, or context with %w. An error without a code is ours to
// fix: it becomes Internal and its text reaches only the log.
package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Code says what a caller can do about a failure. Clients see the string; it
// never changes. A new code needs a row in status and a place in the Code schema of
// openapi.yaml.
type Code string

// The codes; status has the meaning of each.
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
	StorageBusy        Code = "storage_busy"
	StorageDown        Code = "storage_unavailable"
	UpstreamAuth       Code = "upstream_auth"
	UpstreamQuota      Code = "upstream_quota"
	UpstreamRate       Code = "upstream_rate_limited"
	UpstreamDown       Code = "upstream_unavailable"
	UpstreamBadAnswer  Code = "upstream_bad_answer"
	UpstreamTimeout    Code = "upstream_timeout"
	ModelNotFound      Code = "model_not_found"
	Blocked            Code = "blocked_by_provider"
	EmptyReply         Code = "empty_reply"
	ContextTooLarge    Code = "context_too_large"
	PageUnreadable     Code = "page_unreadable"
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
	Code       Code           `json:"code"`
	Message    string         `json:"message"`              // English, for people
	Fields     []Field        `json:"fields,omitempty"`     // with invalid_field
	Details    map[string]any `json:"details,omitempty"`    // see server/openapi.yaml, e.g. "current", "provider"
	RetryAfter time.Duration  `json:"retryAfter,omitempty"` // 0 = not known
	cause      error
	said       []string // parts of Message that foreign servers wrote
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

// Quote returns e with what a foreign server says behind its message. It may repeat the prompt, so Error, which
// goes to logs, leaves it out.
func (e *Error) Quote(text string) *Error { return e.quote(": "+text, text) }

// QuoteIn is Quote with the text in parentheses.
func (e *Error) QuoteIn(text string) *Error { return e.quote(" ("+text+")", text) }

func (e *Error) quote(added, text string) *Error {
	e.Message += added
	e.said = append(e.said, text)
	return e
}

// Retell returns an error with the message of another one, which may quote foreign servers.
func Retell(code Code, message string) *Error {
	e := New(code, "%s", message)
	e.said = []string{message}
	return e
}

// Because returns e with a cause.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// Quoting returns e, whose message has those of others in it.
func (e *Error) Quoting(others ...*Error) *Error {
	for _, o := range others {
		e.said = append(e.said, o.said...)
	}
	return e
}

func (e *Error) Error() string {
	s := e.Message
	for _, text := range e.said {
		s = strings.ReplaceAll(s, text, "…")
	}
	s = string(e.Code) + ": " + s
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
		return Wrap(err, UpstreamTimeout, "the request timed out")
	}
	return Wrap(err, Internal, "internal error")
}

// Is reports whether err carries code.
func Is(err error, code Code) bool {
	return err != nil && Public(err).Code == code
}

// status is the one table of codes: HTTP status, title for problem answers, and
// meaning for the reference.
var status = map[Code]struct {
	http    int
	title   string
	meaning string
}{
	BadRequest:         {400, "Bad request", "The body is not valid JSON, or the request is malformed."},
	UnknownCommand:     {400, "Unknown command", "The WebSocket command does not exist."},
	Invalid:            {400, "Invalid field", "A member or parameter is missing, unknown, of the wrong type or out of range; errors names it."},
	Unauthenticated:    {401, "Not signed in", "There is no valid token, ticket or session."},
	TokenExpired:       {401, "Token expired", "The token has expired: sign in again."},
	Forbidden:          {403, "Not allowed", "Only an owner may do this, or the request comes from a web origin that is not allowed."},
	NotFound:           {404, "Not found", "The object does not exist or belongs to another user."},
	Conflict:           {409, "Conflict", "The object has changed since the client read it; details.current is its current state."},
	Busy:               {409, "Reply in progress", "A reply is being written in this conversation; details.generationId names it."},
	InProgress:         {409, "Request in progress", "A request with the same idempotency key is still running."},
	NotConfigured:      {409, "Not configured", "No model provider is set up for this."},
	PreconditionFailed: {412, "Precondition failed", "The version in If-Match or ifVersion is not the current one."},
	TooLarge:           {413, "Too large", "The body, file, text or result exceeds a limit; detail names the limit."},
	UnsupportedMedia:   {415, "Unsupported media type", "The content type or file format is not accepted here."},
	KeyReused:          {422, "Idempotency key reused", "The idempotency key was used before with a different request."},
	UnsupportedCard:    {422, "Unsupported card", "The file is not a readable character card."},
	InvalidWorldBook:   {422, "Invalid world book", "The file is not a readable world book."},
	InvalidImport:      {422, "Invalid import", "The file is damaged or of another type; nothing was stored."},
	NewerVersion:       {422, "Made by a newer version", "The file was made by a newer version of NodeST."},
	Blocked:            {422, "Blocked by the provider", "The provider's safety filter blocked the request or the reply."},
	ContextTooLarge:    {422, "Context too large", "The prompt does not fit the model's context even without history; details.parts lists its largest parts."},
	PageUnreadable:     {422, "Page unreadable", "The page cannot be used; details.outcome says why."},
	RateLimited:        {429, "Too many requests", "Too many requests; wait for retryAfterMs."},
	TooManyGenerations: {429, "Too many generations", "The user already has the maximum number of replies in progress."},
	QuotaExceeded:      {429, "Quota exceeded", "A limit of the user is reached: the tokens of today, the money of this month, or what can be stored."},
	Cancelled:          {499, "Cancelled", "The request was cancelled."},
	Internal:           {500, "Internal error", "A server error; search the log for requestId."},
	UpstreamAuth:       {502, "Provider rejected the key", "The model provider rejected the API key."},
	UpstreamQuota:      {502, "Provider quota used up", "The account at the model provider has no credit or quota left."},
	UpstreamBadAnswer:  {502, "Unusable answer from the provider", "The model provider rejected the request or sent an unusable answer; detail gives the reason."},
	ModelNotFound:      {502, "Model not found", "The model provider does not know the model; detail and details.models name some that exist."},
	EmptyReply:         {502, "Empty reply", "The model answered without any text."},
	UpstreamRate:       {503, "Provider rate limit", "The model provider is rate-limiting requests."},
	UpstreamDown:       {503, "Provider unavailable", "The model provider cannot be reached or is failing."},
	StorageBusy:        {503, "Storage busy", "Other work kept the database busy for too long; nothing was stored, or the same key finds what was."},
	StorageDown:        {503, "Storage unavailable", "The database does not answer; nothing was stored, or the same key finds what was."},
	ShuttingDown:       {503, "Shutting down", "The server is stopping; connect again."},
	UpstreamTimeout:    {504, "Provider timed out", "The model provider did not answer in time."},
	StorageFull:        {507, "Storage full", "The server's disk is full; nothing was stored."},
}

// Status returns the HTTP status of a code.
func Status(c Code) int { return cmp.Or(status[c].http, 500) }

// Title returns the short English name of a code.
func Title(c Code) string { return status[c].title }

// Meaning returns a sentence that says when a code is used.
func Meaning(c Code) string { return status[c].meaning }

// Codes returns every code, in no order.
func Codes() []Code { return slices.Collect(maps.Keys(status)) }

// Retry is that of the code, but "no" where a provider has rejected the request
// itself, or something else answers at its address, and where the user has to delete
// something first; and "later" instead of "same" for the stored failure of a reply, which the
// same key finds again.
func (e *Error) Retry() string {
	if Retry(e.Code) == "same" && e.Details["generationId"] != nil {
		return "later"
	}
	if quota := e.Details["quota"]; e.Code == QuotaExceeded && quota != nil && quota != "tokensPerDay" && quota != "usdPerMonth" {
		return "no"
	}
	if e.Code == UpstreamBadAnswer {
		status, _ := e.Details["providerStatus"].(int)
		if read, ok := e.Details["providerStatus"].(float64); ok { // it was stored as JSON
			status = int(read)
		}
		if status > 0 && status < 500 {
			return "no"
		}
	}
	return Retry(e.Code)
}

// Retry says whether sending the same thing again can help: "no", "same" (with
// the same idempotency key, at once) or "later".
func Retry(c Code) string {
	switch c {
	case Internal, InProgress, StorageBusy, StorageDown, ShuttingDown:
		return "same"
	case Busy, RateLimited, TooManyGenerations, QuotaExceeded, EmptyReply,
		UpstreamQuota, UpstreamRate, UpstreamDown, UpstreamBadAnswer, UpstreamTimeout:
		return "later"
	}
	return "no"
}
