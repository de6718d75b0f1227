package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A message with many swipes is shown within bounds, whatever makes them long: their texts, or
// what the model did for them.
func TestAMessageWithManySwipesIsShownWithinBounds(t *testing.T) {
	t.Parallel()
	query, id := strings.Repeat("q", 300), strings.Repeat("1", 26)
	for name, swipe := range map[string]Swipe{
		"texts":    {Text: strings.Repeat("t", 5000)},
		"thoughts": {Reasoning: strings.Repeat("t", 5000)},
		"blocks":   {Blocks: []Block{{Part: "mem", Text: strings.Repeat("t", 5000)}}},
		"searches": {Tools: &ToolTrace{Searches: []ToolSearch{{Query: query}, {Query: query}, {Query: query}, {Query: query}, {Query: query}, {Query: query}, {Query: query}, {Query: query}}}},
		"calls":    {Tools: &ToolTrace{Reads: []string{id, id, id, id}, Calls: make([]ToolUse, 50)}},
	} {
		m := &Message{SwipeIndex: 500}
		for range 1000 {
			m.Swipes = append(m.Swipes, swipe)
		}
		data, err := json.Marshal(WireMessage(m))
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, near := range m.near(500) {
			if near {
				shown++
			}
		}
		if len(data) > 2*swipeBytes || shown < 20 || shown > 200 {
			t.Errorf("%s: %d bytes, %d swipes with their texts", name, len(data), shown)
		}
	}
}

// A swipe that was read without its text is shown as omitted, and so are those behind it.
func TestASwipeWithoutItsTextIsShownAsOmitted(t *testing.T) {
	t.Parallel()
	m := &Message{Swipes: []Swipe{{Text: "a"}, {Text: "b"}, {Omitted: true}, {Text: "d"}}}
	var omitted []bool
	for _, s := range messageOf(m).Swipes {
		omitted = append(omitted, s.Omitted)
	}
	if want := []bool{false, false, true, true}; !slices.Equal(omitted, want) {
		t.Errorf("omitted: %v, want %v", omitted, want)
	}
}
