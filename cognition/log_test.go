package cognition_test

import (
	"encoding/json"
	"testing"
	"time"

	"nodest/cognition"
)

func raws(t *testing.T, texts ...string) (all []json.RawMessage) {
	t.Helper()
	for _, s := range texts {
		all = append(all, json.RawMessage(s))
	}
	return all
}

// equalJSON compares two JSON values; the order of members does not count.
func equalJSON(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		t.Fatalf("not JSON: %s or %s", got, want)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		t.Errorf("the event is\n%s\nwant\n%s", x, y)
	}
}

// The names and the nesting of the format, type by type.
func TestEventsHaveTheMembersOfTheFormat(t *testing.T) {
	t.Parallel()
	goal := "1"
	at := time.Date(2026, 3, 20, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		body cognition.Body
		want string
	}{
		{
			&cognition.Query{Sequence: 42, GoalID: &goal, Query: "q", Response: "r", Sources: []cognition.Source{{ID: "knowledge-a1b2", Task: "t", Content: "c"}}},
			`{"type":"query","sequence":42,"goal_id":"1","query":"q","response":"r","source_ids":["knowledge-a1b2"],
			"sources":[{"id":"knowledge-a1b2","task":"t","content":"c"}],"timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
		{
			&cognition.Evaluation{QuerySequence: 42, KnowledgeID: "knowledge-a1b2", Result: cognition.Result{Status: "helpful", Reason: "x"}, Trigger: cognition.GoalCompletion},
			`{"type":"evaluation","query_sequence":42,"knowledge_id":"knowledge-a1b2","eval_result":{"status":"helpful","reason":"x"},
			"evaluated_at_trigger":"goal_completion","timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
		{
			&cognition.ExtractionPending{ExtractionID: "pending-a1b2c3d4", Sequence: 88, GoalID: &goal, BranchID: "b", Payload: json.RawMessage(`{"task":"t","mine":1}`)},
			`{"type":"extraction_pending","extraction_id":"pending-a1b2c3d4","sequence":88,"goal_id":"1","branch_id":"b","payload":{"task":"t","mine":1},
			"timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
		{
			&cognition.ExtractionReviewed{ExtractionID: "pending-a1b2c3d4", Decision: cognition.Approve},
			`{"type":"extraction_reviewed","extraction_id":"pending-a1b2c3d4","decision":"approve","timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
		{
			&cognition.ExtractionCommitted{ExtractionID: "pending-a1b2c3d4", KnowledgeID: "k"},
			`{"type":"extraction_committed","extraction_id":"pending-a1b2c3d4","knowledge_id":"k","timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
		{
			&cognition.Reflection{SequenceRange: [2]int64{43, 120}, Summary: "s"},
			`{"type":"reflection","sequence_range":[43,120],"summary":"s","timestamp":"2026-03-20T10:00:00.000Z"}`,
		},
	} {
		e := cognition.New("c", c.body)
		e.Stamp(at)
		equalJSON(t, e.Body, c.want)
	}
}

func TestTheContentOfASourceIsCut(t *testing.T) {
	t.Parallel()
	long := ""
	for range 600 {
		long += "港"
	}
	e := cognition.New("c", &cognition.Query{Sequence: 1, Sources: []cognition.Source{{ID: "a", Content: long}}})
	var q cognition.Query
	if err := cognition.Read(e, &q); err != nil || len([]rune(q.Sources[0].Content)) != 500 {
		t.Errorf("%d code points, %v", len([]rune(q.Sources[0].Content)), err)
	}
}

// An entry of the old list is a query with the evaluations of its sources. No time is made up.
func TestOldEntriesAreRead(t *testing.T) {
	t.Parallel()
	events, unplaced := cognition.ReadDocument(nil, raws(t,
		`{"sequence":7,"query":"ferry","source_ids":["a","b"],"eval_result":{"a":{"status":"helpful","reason":"x"},"b":{"status":"unused"}},"mine":[1]}`,
		`{"sequence":9,"query":"rain","knowledge_id":"c","status":"harmful","evaluated_at":"2026-01-02T03:04:05"}`,
		`{"type":"odd","x":1}`,
		`{"note":"nothing"}`,
		`7`,
	))
	want := []string{
		`{"type":"query","sequence":7,"query":"ferry","source_ids":["a","b"],"mine":[1]}`,
		`{"type":"evaluation","query_sequence":7,"knowledge_id":"a","eval_result":{"status":"helpful","reason":"x"}}`,
		`{"type":"evaluation","query_sequence":7,"knowledge_id":"b","eval_result":{"status":"unused"}}`,
		`{"type":"query","sequence":9,"query":"rain","knowledge_id":"c"}`,
		`{"type":"evaluation","query_sequence":9,"knowledge_id":"c","eval_result":{"status":"harmful","reason":""},"timestamp":"2026-01-02T03:04:05"}`,
		`{"type":"odd","x":1}`,
	}
	if len(events) != len(want) || len(unplaced) != 2 {
		t.Fatalf("%d events, %v", len(events), unplaced)
	}
	for i, e := range events {
		equalJSON(t, e.Body, want[i])
		if i != 4 && !e.Timestamp.IsZero() {
			t.Errorf("event %d got the time %s", i, e.Timestamp)
		}
	}
	if unplaced[0] != (cognition.Unplaced{Index: 3, Reason: "neither a type nor a query"}) || unplaced[1].Index != 4 {
		t.Errorf("unplaced: %v", unplaced)
	}
}

// Two events that say the same are one, however they are written.
func TestIdentity(t *testing.T) {
	t.Parallel()
	one := func(s string) string {
		events, _ := cognition.ReadDocument(raws(t, s), nil)
		return string(events[0].Identity())
	}
	for _, same := range [][2]string{
		{`{"type":"odd","x":1,"y":2}`, `{ "y":2, "type":"odd","x":1}`},
		{`{"type":"query","query_id":"q","response":"x"}`, `{"type":"query","query_id":"q","response":""}`},
		{`{"type":"reflection","sequence_range":[1,2]}`, `{"type":"reflection","sequence_range":[1,2],"consumed_at":"x"}`},
		{`{"type":"extraction_committed","extraction_id":"e","knowledge_id":"a"}`, `{"type":"extraction_committed","extraction_id":"e","knowledge_id":"b"}`},
	} {
		if one(same[0]) != one(same[1]) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{`{"type":"odd","x":1}`, `{"type":"odd","x":2}`},
		{`{"type":"odd","x":9007199254740993}`, `{"type":"odd","x":9007199254740992}`},
		{`{"type":"query","sequence":1,"query":"a"}`, `{"type":"query","sequence":1,"query":"b"}`},
		{`{"type":"evaluation","query_id":"q","knowledge_id":"a"}`, `{"type":"evaluation","query_id":"q","knowledge_id":"b"}`},
		{`{"type":"extraction_pending","extraction_id":"e"}`, `{"type":"extraction_reviewed","extraction_id":"e"}`},
	} {
		if one(other[0]) == one(other[1]) {
			t.Errorf("%s and %s are the same", other[0], other[1])
		}
	}
}
