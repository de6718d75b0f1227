package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/chat"
)

// An answer about a message with many long swipes is stored without those that clients do not get, and reads
// the same.
func TestAStoredChangeReadsLikeTheFirst(t *testing.T) {
	t.Parallel()
	for _, shown := range []int{0, 12, 24} {
		m := &chat.Message{ID: "m", SwipeIndex: shown}
		for i := range 25 {
			m.Swipes = append(m.Swipes, chat.Swipe{ID: fmt.Sprint(i), Rev: 2, GenerationID: "g", Text: strings.Repeat("far ", 10_000), Deleted: i == 3})
		}
		stored, err := json.Marshal((&chat.Changed{Message: m}).Stored())
		if err != nil {
			t.Fatal(err)
		}
		var again chat.Changed
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		if first, second := wire(t, m), wire(t, again.Message); first != second {
			t.Errorf("with swipe %d it reads\n%.2000s\nwant\n%.2000s", shown, second, first)
		}
		if len(stored) > 350_000 {
			t.Errorf("%d bytes are stored of %d", len(stored), 25*40_000)
		}
	}
}

func wire(t *testing.T, m *chat.Message) string {
	t.Helper()
	b, err := json.Marshal(chat.WireMessage(m))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
