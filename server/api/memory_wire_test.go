package api

import (
	"encoding/json"
	"testing"
	"time"

	"nodest/memory"
)

// A suggestion names the memory that it would change; for a new memory that is null.
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
	}
}
