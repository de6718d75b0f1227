package op

import (
	"encoding/json"
	"time"

	"nodest/internal/fault"
	"nodest/internal/stream"
)

// Time is RFC 3339 in UTC with milliseconds.
type Time time.Time

const timeFormat = "2006-01-02T15:04:05.000Z"

func (t Time) String() string { return time.Time(t).UTC().Format(timeFormat) }

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timeFormat), nil
}

// OptionalTime is t on the wire; nil stays nil.
func OptionalTime(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	w := Time(*t)
	return &w
}

// Failure is an error as clients see it, in answers and in events.
type Failure struct {
	Code         fault.Code     `json:"code"`
	Status       int            `json:"status"`
	Title        string         `json:"title"`
	Detail       string         `json:"detail"`
	Retry        string         `json:"retry"`
	RetryAfterMs *int64         `json:"retryAfterMs"`
	Errors       []fault.Field  `json:"errors,omitempty"`
	Details      map[string]any `json:"details,omitempty"`
}

// FailureOf is e on the wire, without a request id; nil stays nil.
func FailureOf(e *fault.Error) *Failure {
	if e == nil {
		return nil
	}
	w := &Failure{
		Code: e.Code, Status: fault.Status(e.Code), Title: fault.Title(e.Code), Detail: e.Message,
		Retry: e.Retry(), Errors: e.Fields, Details: e.Details,
	}
	if e.RetryAfter > 0 {
		w.RetryAfterMs = new(max(e.RetryAfter.Milliseconds(), 1))
	}
	return w
}

// Event makes an event of the user. data is what its type carries besides the
// ids, nil for nothing.
func Event(userID, kind, by string, data any) *stream.Event {
	ev := &stream.Event{UserID: userID, Type: kind, By: by, Data: json.RawMessage("{}")}
	if data != nil {
		b, err := json.Marshal(data)
		if err != nil { // a document that is not JSON, which no transport lets in
			b = []byte("{}")
		}
		ev.Data = b
	}
	return ev
}
