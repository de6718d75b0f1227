package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Skip is the type of an event whose subject is gone for good: clients are told that its seq
// has passed, and nothing else.
const Skip = "skip"

// Pack writes the events of one row of the log: a line of JSON for each. UserID, Seq and At are no
// part of it: the events of a row follow each other, and happened at once.
func Pack(events []*Event) ([]byte, error) {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	e.SetEscapeHTML(false) // Data stays as it is
	for _, ev := range events {
		short := Event{Type: ev.Type, ConversationID: ev.ConversationID, MessageID: ev.MessageID, GenerationID: ev.GenerationID, By: ev.By, Logged: ev.Logged}
		if ev.Logged == nil {
			short.Data = ev.Data
		}
		if err := e.Encode(&short); err != nil {
			return nil, fmt.Errorf("stream: pack an event of type %s: %w", ev.Type, err)
		}
	}
	return lines.Bytes(), nil
}

// Unpack reads what Pack wrote. The first event has this seq. An event with Logged has no Data yet.
func Unpack(userID string, seq int64, at time.Time, lines []byte) (events []*Event, err error) {
	for d := json.NewDecoder(bytes.NewReader(lines)); ; seq++ {
		e := &Event{UserID: userID, Seq: seq, At: at}
		switch err := d.Decode(e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("stream: read the log: %w", err)
		}
		events = append(events, e)
	}
}
