package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Skip is the type of an event whose subject is gone for good: clients are told that its seq
// has passed, and nothing else.
const Skip = "skip"

// The log keeps the events of one transaction together, as text: a line for each event with
// its type, conversation, message, generation, cause and data, divided by tabs. "=" stands for
// what the line before has as well. Types, ids and causes contain neither.

const same = "="

// Pack writes events as the log keeps them. Seq, UserID and At are not part of it: those of
// one row follow each other.
func Pack(events []*Event) string {
	var b strings.Builder
	before := [...]string{"", "", "", "", "server"}
	for _, e := range events {
		for i, v := range [...]string{e.Type, e.ConversationID, e.MessageID, e.GenerationID, e.By} {
			if v == before[i] {
				b.WriteString(same)
			} else {
				b.WriteString(v)
			}
			b.WriteByte('\t')
			before[i] = v
		}
		b.Write(oneLine(e.Data))
		b.WriteByte('\n')
	}
	return b.String()
}

// oneLine is JSON without line breaks and tabs, which are only ever between its tokens.
func oneLine(data json.RawMessage) []byte {
	if !bytes.ContainsAny(data, "\t\n") {
		return data
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil
	}
	return b.Bytes()
}

// Unpack reads what Pack wrote. The first event has this seq.
func Unpack(userID string, seq int64, at time.Time, entries string) []*Event {
	events := make([]*Event, 0, strings.Count(entries, "\n"))
	before := [...]string{"", "", "", "", "server"}
	for line := range strings.Lines(entries) {
		for i := range before {
			var v string
			if v, line, _ = strings.Cut(line, "\t"); v != same {
				before[i] = v
			}
		}
		e := &Event{
			UserID: userID, Seq: seq, At: at,
			Type: before[0], ConversationID: before[1], MessageID: before[2], GenerationID: before[3], By: before[4],
		}
		if data := strings.TrimSuffix(line, "\n"); data != "" {
			e.Data = json.RawMessage(data)
		}
		events = append(events, e)
		seq++
	}
	return events
}
