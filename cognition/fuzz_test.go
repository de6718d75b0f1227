package cognition_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"nodest/cognition"
)

// Whatever a document says: each of its entries becomes events or is reported, no time is made up, and what was read
// is written so that it is read again as the same.
func FuzzReadDocument(f *testing.F) {
	for _, s := range []string{
		`{"events":[{"type":"query","sequence":42,"goal_id":null,"query":"q","response":"r","source_ids":["a"],"sources":[{"id":"a","task":"t","content":"c"}],"timestamp":"2026-03-20T10:00:00"}]}`,
		`{"events":[{"type":"reflection","sequence_range":[1,2],"summary":"s","consumed_at":"x"},{"type":"odd"},{"type":""},{"type":7},null,[],"x"]}`,
		`{"entries":[{"sequence":7,"query":"ferry","source_ids":["a","b"],"eval_result":{"a":{"status":"helpful"},"b":{"status":"unused"}},"mine":[1]}]}`,
		`{"entries":[{"sequence":9,"query":"rain","knowledge_id":"c","status":"harmful","evaluated_at":"2026-01-02 03:04:05"}]}`,
		`{"entries":[{"query":"x","sources":[{"id":"a"}],"eval_result":[{"source_id":"a","status":"neutral"}]},{"query":"y","knowledge_ids":["a"],"eval_result":"unused"}]}`,
		`{"entries":[{"query":"x","query":"y","status":{},"eval_result":null,"source_ids":[null,1]},{"query":"“灯塔”，在哪？","timestamp":"昨天"}]}`,
		`{"events":[],"entries":[{"query":"x"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var d struct{ Events, Entries []json.RawMessage }
		if json.Unmarshal(file, &d) != nil {
			return
		}
		events, unplaced := cognition.ReadDocument(d.Events, d.Entries)
		entries := len(d.Events)
		if d.Events == nil {
			entries = len(d.Entries)
		}
		if len(events)+len(unplaced) < entries {
			t.Fatalf("%d entries are %d events, and %d are reported", entries, len(events), len(unplaced))
		}
		var written []json.RawMessage
		for _, e := range events {
			if !json.Valid(e.Body) || e.Type == "" || !e.Undated {
				t.Fatalf("an event of type %q: %s", e.Type, e.Body)
			}
			if !e.Timestamp.IsZero() && !bytes.Contains(e.Body, []byte(`"timestamp"`)) {
				t.Errorf("%s got the time %s", e.Body, e.Timestamp)
			}
			written = append(written, e.Body)
		}
		again, lost := cognition.ReadDocument(written, nil)
		if len(lost) > 0 || len(again) != len(events) {
			t.Fatalf("%d of %d events are read again, without %v", len(again), len(events), lost)
		}
		for i, e := range again {
			if !bytes.Equal(e.Identity(), events[i].Identity()) || !e.Timestamp.Equal(events[i].Timestamp) {
				t.Errorf("%s was read, and then %s", events[i].Body, e.Body)
			}
		}
	})
}
