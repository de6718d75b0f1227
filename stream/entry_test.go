package stream_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"nodest/stream"
)

func TestTheLogKeepsEventsAsTheyAre(t *testing.T) {
	at := time.UnixMilli(7)
	events := []*stream.Event{
		{Type: "message.created", ConversationID: "c", MessageID: "m", By: "server"},
		{Type: "message.created", ConversationID: "c", MessageID: "n", GenerationID: "g", By: "phone"},
		{Type: "gen.done", ConversationID: "c", MessageID: "n", GenerationID: "g", By: "phone", Data: json.RawMessage(`{"a":"x\ty\nz=\u2028"}`)},
		{Type: "character.created", By: "server", Data: json.RawMessage("{}")},
		{Type: "character.created", By: "server"},
	}
	for i, e := range events {
		e.UserID, e.Seq, e.At = "u", int64(4+i), at
	}
	if got := stream.Unpack("u", 4, at, stream.Pack(events)); !reflect.DeepEqual(got, events) {
		t.Errorf("%q", stream.Pack(events))
	}
	indented := &stream.Event{Type: "a", By: "server", Data: json.RawMessage("{\n\t\"b\": [1,\n\t2]\n}")}
	if got := stream.Unpack("u", 1, at, stream.Pack([]*stream.Event{indented})); len(got) != 1 || string(got[0].Data) != `{"b":[1,2]}` {
		t.Errorf("%v", got)
	}
	if got := stream.Unpack("u", 1, at, ""); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestTheLogNamesAnIDOnce(t *testing.T) {
	e := &stream.Event{Type: "a", ConversationID: "conversation", MessageID: "message", GenerationID: "generation", By: "server"}
	e.At = time.Date(2026, 9, 21, 13, 33, 20, 7_000_000, time.UTC)
	e.Data = json.RawMessage(`{"id":"message","in":"conversation","by":"generation","at":"2026-09-21T13:33:20.007Z"}`)
	packed := stream.Pack([]*stream.Event{e, e, e})
	if strings.Count(packed, "conversation") != 1 || strings.Count(packed, "2026") != 0 || len(packed) > 180 {
		t.Errorf("%q", packed)
	}
	for _, got := range stream.Unpack("", 0, e.At, packed) {
		if string(got.Data) != string(e.Data) {
			t.Errorf("%s", got.Data)
		}
	}
}
