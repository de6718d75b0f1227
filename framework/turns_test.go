package framework

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// strictPrompt returns the prompt of the case strict_turns with another lore text.
func strictPrompt(t *testing.T, lore string) *Prompt {
	t.Helper()
	data, err := os.ReadFile("testdata/build/strict_turns.json")
	if err != nil {
		t.Fatal(err)
	}
	var c buildCase
	if err := json.Unmarshal([]byte(strings.Replace(string(data), "LORE", lore, 1)), &c); err != nil {
		t.Fatal(err)
	}
	p, err := Build(t.Context(), c.input(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A comparison tells apart the parts that share a message.
func TestMergedPromptsAreCompared(t *testing.T) {
	p := strictPrompt(t, "LORE")
	if text := p.UserText(); !strings.HasPrefix(text, "question\n\n<mem>") || strings.Contains(text, "POST") {
		t.Errorf("the message that is answered reads %q", text)
	}
	d := Diff(p, strictPrompt(t, "LEGEND"))
	if len(d.Changes) != 1 || d.Changes[0].Source != SourceBook || d.Changes[0].Old != "LORE" || d.Changes[0].New != "LEGEND" {
		t.Errorf("changes: %+v", d.Changes)
	}
}
