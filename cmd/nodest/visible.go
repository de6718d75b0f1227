package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// visible makes a text safe to show in a terminal. Cards, models, pages and file names are
// written by strangers: control characters in them could move the cursor, change the title or
// the clipboard, or let a text read backwards, so they are shown as \u and four digits, as
// JSON writes them. Line breaks and tabs stay.
func visible(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, c := range text {
		switch {
		case c == '\r' && strings.HasPrefix(text[i+1:], "\n"):
			b.WriteRune(c)
		case steers(c):
			fmt.Fprintf(&b, `\u%04x`, c)
		default: // a byte that is no UTF-8 becomes U+FFFD
			b.WriteRune(c)
		}
	}
	return b.String()
}

// steers reports whether a character controls the terminal, or the direction of the text after
// it, instead of being shown.
func steers(c rune) bool {
	return c != '\n' && c != '\t' && unicode.IsControl(c) || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}

// visibleWriter writes texts with visible. It is safe for concurrent use.
type visibleWriter struct {
	mu      sync.Mutex
	out     io.Writer
	pending []byte // the beginning of a character that was cut off, or \r, which may belong to a \n
}

func (w *visibleWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := slices.Concat(w.pending, b)
	whole := len(text)
	if whole > 0 && text[whole-1] == '\r' {
		whole--
	}
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	w.pending = text[whole:]
	if _, err := io.WriteString(w.out, visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flush writes what is pending; nothing more follows.
func (w *visibleWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.out, visible(string(w.pending)))
	w.pending = nil
	return err
}

// isTerminal reports whether output goes to a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
