package cite

import (
	"strings"
	"testing"
	"time"
)

// TestHostileTextsTakeLinearTime runs everything on long texts of one repeated piece. Their
// times are only logged: something quadratic would run into the limit of the test.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	pieces := []string{"[^", "[^1]", "[1]", "[1] a. ", "`", "`a", "```\n", "[", "[a](", "](", "(", "*", "。", "a. ", "| ", "|-\n", "|a|\n|-|\n", "“", "一", "1,", "1.", "> ", "\r\n", "\n\n ", "A", "Ab ", "http://", "http://a(", "\xff", "🙂", "[^1]: x\n", "# \n", "【1】", "é", "\u0301"}
	const size = 5_000
	for _, piece := range pieces {
		text := strings.Repeat(piece, size/len(piece))
		started := time.Now()
		sources := []Source{{URL: "https://a.test", Chunks: append(lines(text, 1), Chunk{Text: text})}}
		for _, mode := range []string{ByLine, BySentence} {
			c := BuildReferences(t.Context(), nil, text, sources, ReferenceOptions{Mode: mode, MaxRef: 10, MinChunkLength: 1})
			NewReport(c, sources)
		}
		built := time.Since(started)
		CheckMarks(t.Context(), nil, text, sources, MarkOptions{})
		Verify(t.Context(), nil, text, sources, VerifyOptions{Doubtful: Mark})
		checked := time.Since(started) - built
		CherryPick(t.Context(), nil, "a 1", text, PickOptions{})
		Passages(t.Context(), nil, "a 1", text, PassageOptions{})
		picked := time.Since(started) - built - checked
		for _, by := range []string{ByPunctuation, ByCharacters} {
			_, _ = ChunkText(text, ChunkOptions{By: by, MinLength: 1})
		}
		t.Logf("%-10q built %v, checked %v, picked %v, cut %v", piece, built, checked, picked, time.Since(started)-built-checked-picked)
	}
}
