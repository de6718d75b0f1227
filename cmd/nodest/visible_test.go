package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostile is what a card, a model or a file name may contain: a cleared screen, a new title, a
// new clipboard (OSC 52), the same with characters of C1, a line that overwrites another, and
// text that reads backwards.
const hostile = "Eve\x1b[2J\x1b]0;owned\a\x1b]52;c;cm0gLXJm\x1b\\\u009b31m\u009d52;c;x\u009c\x7f\rAnn \u202egnp.exe\u2066\u2069"

// steering are the characters of hostile that must not reach a terminal.
const steering = "\x1b\a\r\x7f\u009b\u009c\u009d\u202e\u2066\u2069"

func TestCardsAndModelsCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	i := newDatabase(t, "NODEST_LOG_FORMAT=json")
	card, err := json.Marshal(map[string]any{"spec": "chara_card_v2", "spec_version": "2.0", "data": map[string]any{
		"name": "Mallory", "description": "d " + hostile, "personality": hostile, "scenario": hostile, "first_mes": "Hello " + hostile,
		"mes_example": "<START>\n{{char}}: " + hostile, "tags": []string{"tag" + hostile}, "creator": hostile,
		"character_book": map[string]any{"name": "Book " + hostile, "entries": []any{map[string]any{
			"keys": []string{"/(" + hostile + "/"}, "content": hostile, "comment": "Entry " + hostile, "enabled": true, "constant": true, "insertion_order": 1,
		}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "card.json")
	if err := os.WriteFile(file, card, 0o600); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	run := func(in string, args ...string) string {
		out, errOut, err := i.command(t, strings.NewReader(in), args...)
		shown.WriteString(out + errOut)
		exitCode(err, &shown)
		return out
	}
	run("", "import", file, "--local")
	run("", "import", file+hostile, "--local")
	run("", "import", "/dev/null", "--as", hostile)
	run("", "lint", file)
	run("Hello\n/prompt\n/quit\n", "chat", "Mallory")
	for _, kind := range []string{"characters", "books", "chats"} {
		run("", "list", kind)
	}
	run("", "prompt", "Mallory", "--text", hostile)
	run("", "list", hostile)
	if got := shown.String(); !strings.Contains(got, `Hello Eve\u001b[2J`) {
		t.Fatalf("shown.String() is %q, want it with %q", got, `Hello Eve\u001b[2J`)
	}
	if strings.ContainsAny(shown.String(), steering) {
		t.Fatalf("%q", shown.String())
	}

	exported := run("", "export", "Mallory", "--spec", "v2")
	var same struct {
		Data struct {
			FirstMes string `json:"first_mes"`
		}
	}
	if err := json.Unmarshal([]byte(exported), &same); err != nil {
		t.Fatal(err)
	}
	if same.Data.FirstMes != "Hello "+hostile {
		t.Fatalf("files are as they are: same.Data.FirstMes is %q, want %q", same.Data.FirstMes, "Hello "+hostile)
	}

	odd := filepath.Join(t.TempDir(), "Mallory\x1b[2J\r\n\x7f\u009b.json")
	if err := os.WriteFile(odd, card, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("", "import", odd); !strings.Contains(got, "Mallory") {
		t.Fatalf("the name of the file does not matter: got %q, want it with %q", got, "Mallory")
	}
}
