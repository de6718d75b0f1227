package cite

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// checkChunks checks the positions of chunks in all units.
func checkChunks(t testing.TB, text string, chunks []Chunk) {
	t.Helper()
	runes := []rune(text)
	units := utf16.Encode(runes)
	valid := strings.ToValidUTF8(text, "�") == text
	for _, c := range chunks {
		if got := text[c.Bytes[0]:c.Bytes[1]]; got != c.Text {
			t.Fatalf("text[c.Bytes[0]:c.Bytes[1]] is %q, want %q", got, c.Text)
		}
		if valid {
			if !utf8.ValidString(c.Text) {
				t.Fatal("utf8.ValidString(c.Text) is false, want true")
			}
			if got := string(runes[c.Points[0]:c.Points[1]]); got != c.Text {
				t.Fatalf("string(runes[c.Points[0]:c.Points[1]]) is %q, want %q", got, c.Text)
			}
			if got := string(utf16.Decode(units[c.Units[0]:c.Units[1]])); got != c.Text {
				t.Fatalf("got %q, want %q", got, c.Text)
			}
		}
	}
}

var anyMark = regexp.MustCompile(`\[\^(\d{1,3})\]`)

// checkCited checks what holds for every answer with marks.
func checkCited(t testing.TB, answer string, sources []Source, got Cited) {
	t.Helper()
	if found, want := StripMarks(got.Answer), StripMarks(answer); found != want {
		t.Fatalf("StripMarks(got.Answer) is %q, want %q", found, want)
	}
	checkNumbers(t, got)
	checkReferences(t, StripMarks(answer), sources, got.References)
	if utf8.ValidString(answer) {
		if !utf8.ValidString(got.Answer) {
			t.Fatal("utf8.ValidString(got.Answer) is false, want true")
		}
	}
}

// checkNumbers checks that each mark has one reference and each reference a mark, from 1 up in
// the order of the text.
func checkNumbers(t testing.TB, got Cited) {
	t.Helper()
	in := linesOf(got.Answer)
	safe := protected(got.Answer, in)
	seen := 0
	for _, m := range anyMark.FindAllStringSubmatchIndex(got.Answer, -1) {
		if touches(safe, m[0], m[1]) {
			continue
		}
		n, _ := strconv.Atoi(got.Answer[m[2]:m[3]])
		if n > seen+1 {
			t.Fatalf("%s: n is %d, want at most %d", got.Answer, n, seen+1)
		}
		seen = max(seen, n)
	}
	if len(got.References) != seen {
		t.Fatalf("%s: got.References has %d, want %d: %+v", got.Answer, len(got.References), seen, got.References)
	}
	for i, ref := range got.References {
		if want := i + 1; ref.Marker != want {
			t.Fatalf("ref.Marker is %d, want %d", ref.Marker, want)
		}
	}
}

func checkReferences(t testing.TB, clean string, sources []Source, refs []Reference) {
	t.Helper()
	for _, ref := range refs {
		checkChunks(t, clean, []Chunk{{ref.AnswerChunk, ref.AnswerBytes, ref.AnswerUnits, *ref.AnswerChunkPosition}})
		if ref.ExactQuote == "" {
			t.Fatalf("ref.ExactQuote is %q, want more", ref.ExactQuote)
		}
		if !slices.ContainsFunc(sources, func(s Source) bool {
			return s.URL == ref.URL && slices.ContainsFunc(s.Chunks, func(c Chunk) bool { return strings.Contains(c.Text, ref.ExactQuote) })
		}) {
			t.Fatalf("%q is in no source", ref.ExactQuote)
		}
	}
}
