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
// what the line before has as well. Types, ids and causes contain neither. What is kept in place of
// the data stands behind a mark, which JSON never contains. Other marks stand
// for the ids of the line, and for the time of the row, within the data.

const (
	same = "="
	mark = "\x01"
)

// known are the marks that stand for what the line or the row has, which Unpack puts in their places;
// store/sqldb uses others.
func known(conversationID, messageID, generationID string, at time.Time) [4][2]string {
	return [...][2]string{
		{"\x11", conversationID}, {"\x12", messageID}, {"\x13", generationID}, {"\x14", at.UTC().Format("2006-01-02T15:04:05.000Z")},
	}
}

// Pack writes events as the log keeps them. Seq, UserID and At are not part of it: those of
// one row follow each other, and happened at once.
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
		data := oneLine(e.Data)
		if e.Kept != nil {
			data = append([]byte(mark), e.Kept...)
		}
		for _, k := range known(e.ConversationID, e.MessageID, e.GenerationID, e.At) {
			if k[1] != "" {
				data = bytes.ReplaceAll(data, []byte(k[1]), []byte(k[0]))
			}
		}
		b.Write(data)
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

// Unpack reads what Pack wrote. The first event has this seq. Of some there is what was kept, and no data.
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
		data, isKept := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark)
		for _, k := range known(e.ConversationID, e.MessageID, e.GenerationID, at) {
			data = strings.ReplaceAll(data, k[0], k[1])
		}
		switch {
		case isKept:
			e.Kept = json.RawMessage(data)
		case data != "":
			e.Data = json.RawMessage(data)
		}
		events = append(events, e)
		seq++
	}
	return events
}
