package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/transform"
)

// Visible makes a text safe to show in a terminal. Cards, models, pages and file names are
// written by strangers: control characters in them could move the cursor, change the title or
// the clipboard, or let a text read backwards, so they are shown as \u and four digits, as
// JSON writes them. Line breaks and tabs stay.
func Visible(text string) string {
	shown, _, _ := transform.String(showing{}, text) // never fails
	return shown
}

// steers reports whether a character controls the terminal, or the direction of the text after
// it, instead of being shown.
func steers(c rune) bool {
	return c != '\n' && c != '\t' && unicode.IsControl(c) || c >= '\u202a' && c <= '\u202e' || c >= '\u2066' && c <= '\u2069'
}

// showing is visible for a stream.
type showing struct{ transform.NopResetter }

// Transform implements transform.Transformer.
func (showing) Transform(dst, src []byte, atEOF bool) (written, read int, err error) {
	for read < len(src) {
		rest := src[read:]
		if !atEOF && (!utf8.FullRune(rest) || string(rest) == "\r") { // \r may belong to a \n
			return written, read, transform.ErrShortSrc
		}
		c, size := utf8.DecodeRune(rest) // a byte that is no UTF-8 becomes U+FFFD
		shown := string(c)
		if steers(c) && !bytes.HasPrefix(rest, []byte("\r\n")) {
			shown = fmt.Sprintf(`\u%04x`, c)
		}
		if len(dst) < written+len(shown) {
			return written, read, transform.ErrShortDst
		}
		written += copy(dst[written:], shown)
		read += size
	}
	return written, read, nil
}

// visibleWriter writes texts with visible. It is safe for concurrent use.
type visibleWriter struct {
	mu  sync.Mutex
	out *transform.Writer
}

func NewVisibleWriter(out io.Writer) *visibleWriter {
	return &visibleWriter{out: transform.NewWriter(out, showing{})}
}

func (w *visibleWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// Flush writes what is pending, such as the beginning of a character; nothing more follows.
func (w *visibleWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Close()
}

// IsTerminal reports whether output goes to a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
