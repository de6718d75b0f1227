package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/cli"
)

// hostile is what a card, a model or a file name may contain: a cleared screen, a new title, a
// new clipboard (OSC 52), the same with characters of C1, a line that overwrites another, and
// text that reads backwards.
const hostile = "Eve\x1b[2J\x1b]0;owned\a\x1b]52;c;cm0gLXJm\x1b\\\u009b31m\u009d52;c;x\u009c\x7f\rAnn \u202egnp.exe\u2066\u2069"

// steering are the characters of hostile that must not reach a terminal.
const steering = "\x1b\a\r\x7f\u009b\u009c\u009d\u202e\u2066\u2069"

func TestTextsCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	shown := cli.Visible(hostile)
	require.False(t, strings.ContainsAny(shown, steering), "%q", shown)
	require.Contains(t, shown, `Eve\u001b[2J`)
	require.Contains(t, shown, `\u202egnp.exe`)
	for _, plain := range []string{"", "two\nlines\tand a tab\n", "Windows\r\n", "茶 é 👩‍👩‍👧 שלום مرحبا"} {
		require.Equal(t, plain, cli.Visible(plain))
	}
	require.Equal(t, "a�b", cli.Visible("a\x9bb"), "a byte that is no UTF-8 could be a control character elsewhere")

	var back string
	require.NoError(t, json.Unmarshal([]byte(cli.Visible("\"\u009b茶\u202e\"")), &back))
	require.Equal(t, "\u009b茶\u202e", back, "JSON that is escaped is the same JSON")
}

func TestTextsInPiecesCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"the end\n", "\r", "茶"[:2], ""} {
		text := hostile + "茶👩‍👩‍👧\r\n" + end
		for _, size := range []int{1, 2, 3, 5, 1000} {
			var out strings.Builder
			w := cli.NewVisibleWriter(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				written, err := w.Write([]byte(rest[:n]))
				require.NoError(t, err)
				require.Equal(t, n, written)
				rest = rest[n:]
			}
			require.NoError(t, w.Flush())
			require.Equal(t, cli.Visible(text), out.String(), "in pieces of %d bytes", size)
		}
	}
}

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
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "card.json")
	require.NoError(t, os.WriteFile(file, card, 0o600))
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
	require.Contains(t, shown.String(), `Hello Eve\u001b[2J`)
	require.False(t, strings.ContainsAny(shown.String(), steering), "%q", shown.String())

	exported := run("", "export", "Mallory", "--spec", "v2")
	var same struct {
		Data struct {
			FirstMes string `json:"first_mes"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(exported), &same))
	require.Equal(t, "Hello "+hostile, same.Data.FirstMes, "files are as they are")

	odd := filepath.Join(t.TempDir(), "Mallory\x1b[2J\r\n\x7f\u009b.json")
	require.NoError(t, os.WriteFile(odd, card, 0o600))
	require.Contains(t, run("", "import", odd), "Mallory", "the name of the file does not matter")
}
