package stream_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"nodest/internal/stream"
)

func TestTheLogKeepsEventsAsTheyAre(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(7)
	events := []*stream.Event{
		{Type: "message.created", ConversationID: "c", MessageID: "m", By: "server"},
		{Type: "message.created", ConversationID: "c", MessageID: "n", GenerationID: "g", By: "phone"},
		{Type: "gen.done", ConversationID: "c", MessageID: "n", GenerationID: "g", By: "phone", Data: json.RawMessage("{\"a\":\"<x>\\ty\\nz=&\\u2028\u2028\"}")},
		{Type: "character.created", By: "server", Data: json.RawMessage("{}")},
		{Type: "character.created", By: "server", Logged: json.RawMessage(`{"rev":1}`)},
	}
	for i, e := range events {
		e.UserID, e.Seq, e.At = "u", int64(4+i), at
	}
	lines := packed(t, events...)
	if got, err := stream.Unpack("u", 4, at, lines); err != nil || !reflect.DeepEqual(got, events) {
		t.Errorf("%s: %v", lines, err)
	}
	if got, err := stream.Unpack("u", 1, at, nil); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTheLogHasALineOfJSONForAnEvent(t *testing.T) {
	t.Parallel()
	lines := packed(t,
		&stream.Event{Type: "a", By: "phone", Data: json.RawMessage("{\n\t\"b\": [1,\n\t2]\n}")},
		&stream.Event{Type: "b", MessageID: "m", By: "server", Data: json.RawMessage(`{"text":"long"}`), Logged: json.RawMessage(`{"rev":1}`)})
	want := `{"ev":"a","by":"phone","data":{"b":[1,2]}}` + "\n" + `{"ev":"b","messageId":"m","by":"server","kept":{"rev":1}}` + "\n"
	if string(lines) != want {
		t.Errorf("%s", lines)
	}
}

func TestADamagedLogIsAnError(t *testing.T) {
	t.Parallel()
	lines := packed(t, &stream.Event{Type: "a", By: "server", Data: json.RawMessage(`{"b":1}`)})
	for _, damaged := range [][]byte{lines[:len(lines)-3], bytes.TrimPrefix(lines, []byte("{")), []byte("\x01")} {
		if got, err := stream.Unpack("u", 1, time.Time{}, damaged); err == nil {
			t.Errorf("%q was read as %v", damaged, got)
		}
	}
	if lines, err := stream.Pack([]*stream.Event{{Type: "a", Data: json.RawMessage("{")}}); err == nil {
		t.Errorf("data that is no JSON was stored as %s", lines)
	}
}

func packed(t *testing.T, events ...*stream.Event) []byte {
	t.Helper()
	lines, err := stream.Pack(events)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
