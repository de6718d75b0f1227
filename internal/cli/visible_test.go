package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// hostile is what a card, a model or a file name may contain: a cleared screen, a new title, a
// new clipboard (OSC 52), the same with characters of C1, a line that overwrites another, and
// text that reads backwards.
const hostile = "Eve\x1b[2J\x1b]0;owned\a\x1b]52;c;cm0gLXJm\x1b\\\u009b31m\u009d52;c;x\u009c\x7f\rAnn \u202egnp.exe\u2066\u2069"

// steering are the characters of hostile that must not reach a terminal.
const steering = "\x1b\a\r\x7f\u009b\u009c\u009d\u202e\u2066\u2069"

func TestTextsCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	shown := Visible(hostile)
	if strings.ContainsAny(shown, steering) {
		t.Fatalf("%q", shown)
	}
	if !strings.Contains(shown, `Eve\u001b[2J`) {
		t.Fatalf("shown is %q, want it with %q", shown, `Eve\u001b[2J`)
	}
	if !strings.Contains(shown, `\u202egnp.exe`) {
		t.Fatalf("shown is %q, want it with %q", shown, `\u202egnp.exe`)
	}
	for _, plain := range []string{"", "two\nlines\tand a tab\n", "Windows\r\n", "茶 é 👩‍👩‍👧 שלום مرحبا"} {
		if got := Visible(plain); got != plain {
			t.Fatalf("Visible(plain) is %q, want %q", got, plain)
		}
	}
	if got := Visible("a\x9bb"); got != "a�b" {
		t.Fatalf("a byte that is no UTF-8 could be a control character elsewhere: got %q, want %q", got, "a�b")
	}

	var back string
	if err := json.Unmarshal([]byte(Visible("\"\u009b茶\u202e\"")), &back); err != nil {
		t.Fatal(err)
	}
	if back != "\u009b茶\u202e" {
		t.Fatalf("JSON that is escaped is the same JSON: back is %q, want %q", back, "\u009b茶\u202e")
	}
}

func TestTextsInPiecesCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"the end\n", "\r", "茶"[:2], ""} {
		text := hostile + "茶👩‍👩‍👧\r\n" + end
		for _, size := range []int{1, 2, 3, 5, 1000} {
			var out strings.Builder
			w := NewVisibleWriter(&out)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				written, err := w.Write([]byte(rest[:n]))
				if err != nil {
					t.Fatal(err)
				}
				if written != n {
					t.Fatalf("written is %d, want %d", written, n)
				}
				rest = rest[n:]
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), Visible(text); got != want {
				t.Fatalf("in pieces of %d bytes: out.String() is %q, want %q", size, got, want)
			}
		}
	}
}
