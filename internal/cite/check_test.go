package cite

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// checkChunks checks the positions of chunks in all units.
func checkChunks(t testing.TB, text string, chunks []Chunk) {
	t.Helper()
	runes := []rune(text)
	units := utf16.Encode(runes)
	valid := strings.ToValidUTF8(text, "�") == text
	for _, c := range chunks {
		require.Equal(t, c.Text, text[c.Bytes[0]:c.Bytes[1]])
		if valid {
			require.True(t, utf8.ValidString(c.Text))
			require.Equal(t, c.Text, string(runes[c.Points[0]:c.Points[1]]))
			require.Equal(t, c.Text, string(utf16.Decode(units[c.Units[0]:c.Units[1]])))
		}
	}
}

var anyMark = regexp.MustCompile(`\[\^(\d{1,3})\]`)

// checkCited checks what holds for every answer with marks.
func checkCited(t testing.TB, answer string, sources []Source, got Cited) {
	t.Helper()
	require.Equal(t, StripMarks(answer), StripMarks(got.Answer))
	checkNumbers(t, got)
	checkReferences(t, StripMarks(answer), sources, got.References)
	if utf8.ValidString(answer) {
		require.True(t, utf8.ValidString(got.Answer))
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
		require.LessOrEqual(t, n, seen+1, got.Answer)
		seen = max(seen, n)
	}
	require.Len(t, got.References, seen, got.Answer)
	for i, ref := range got.References {
		require.Equal(t, i+1, ref.Marker)
	}
}

func checkReferences(t testing.TB, clean string, sources []Source, refs []Reference) {
	t.Helper()
	for _, ref := range refs {
		checkChunks(t, clean, []Chunk{{ref.AnswerChunk, ref.AnswerBytes, ref.AnswerUnits, *ref.AnswerChunkPosition}})
		require.NotEmpty(t, ref.ExactQuote)
		require.True(t, slices.ContainsFunc(sources, func(s Source) bool {
			return s.URL == ref.URL && slices.ContainsFunc(s.Chunks, func(c Chunk) bool { return strings.Contains(c.Text, ref.ExactQuote) })
		}), "%q is in no source", ref.ExactQuote)
	}
}
