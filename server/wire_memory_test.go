package server

import (
	"encoding/json"
	"testing"
	"time"

	"nodest/memory"
)

// A suggestion names the memory that it would change, in the API and in the event;
// for a new memory that is null.
func TestASuggestionNamesItsMemory(t *testing.T) {
	const known, id = "0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002"
	for memoryID, want := range map[string]any{known: known, "": nil} {
		s := memory.Suggested{
			ID: id, State: memory.SuggestionOpen, CreatedAt: time.UnixMilli(1),
			Suggestion: memory.Suggestion{MemoryID: memoryID, Event: memory.EventAdd, Text: "User hates tea", Reason: "r"},
		}
		sent, err := json.Marshal(wireSuggestionOf(s))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatal(err)
		}
		if about, ok := got["memoryId"]; !ok || about != want {
			t.Errorf("memoryId %v, want %v", about, want)
		}
		if err := theContract().validate(got, openapiAt, "components", "schemas", "Suggestion"); err != nil {
			t.Error(err)
		}
		event := map[string]any{
			"ev": "memory.suggestion", "seq": 1, "at": 1, "conversationId": known, "by": "server",
			"data": map[string]any{"suggestionId": id, "memoryId": want, "event": "ADD"},
		}
		if err := theContract().message(event, "event.memory.suggestion"); err != nil {
			t.Error(err)
		}
	}
}
