package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Skip is the type of an event whose subject is gone for good: clients are told that its seq
// has passed, and nothing else.
const Skip = "skip"

// The log keeps the events of one transaction together, as text: a line for each event with
// its type, conversation, message, generation, cause and data, divided by tabs. "=" stands for
// what the line before has as well. Types, ids and causes contain neither. A string that is
// stored elsewhere is a reference between two marks, which JSON never contains. Other marks stand
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
		data := refer(oneLine(e.Data), e.Texts)
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

// refer replaces texts by references to them, the longest first: one may be a piece of another.
func refer(data json.RawMessage, texts []Text) json.RawMessage {
	texts = slices.Clone(texts)
	slices.SortStableFunc(texts, func(a, b Text) int { return len(b.Value) - len(a.Value) })
	for _, t := range texts {
		if t.Value != "" {
			data = bytes.ReplaceAll(data, quoted(t.Value), []byte(mark+t.Ref+mark))
		}
	}
	return data
}

// quoted is a text as it stands in data.
func quoted(text string) []byte {
	b, _ := json.Marshal(text) // strings have no errors
	return b
}

// Refs are the references in the data of an event from the log, which Fill replaces.
func (e *Event) Refs() []string {
	if !bytes.Contains(e.Data, []byte(mark)) {
		return nil
	}
	var refs []string
	for i, part := range strings.Split(string(e.Data), mark) {
		if i%2 == 1 {
			refs = append(refs, part)
		}
	}
	return refs
}

// Fill puts texts where the data of an event from the log refers to them. It returns false if
// one is missing.
func (e *Event) Fill(texts map[string]string) bool {
	if !bytes.Contains(e.Data, []byte(mark)) {
		return true
	}
	parts := bytes.Split(e.Data, []byte(mark))
	for i := 1; i < len(parts); i += 2 {
		text, ok := texts[string(parts[i])]
		if !ok {
			return false
		}
		parts[i] = quoted(text)
	}
	e.Data = bytes.Join(parts, nil)
	return true
}

// Unpack reads what Pack wrote. The first event has this seq, and data may have references: see
// Event.Fill.
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
		data := strings.TrimSuffix(line, "\n")
		for _, k := range known(e.ConversationID, e.MessageID, e.GenerationID, at) {
			data = strings.ReplaceAll(data, k[0], k[1])
		}
		if data != "" {
			e.Data = json.RawMessage(data)
		}
		events = append(events, e)
		seq++
	}
	return events
}
