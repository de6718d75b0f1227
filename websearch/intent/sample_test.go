package intent

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestSampleDecisions prints how many messages of a folder of conversations and questions
// are searches:
//
//	SAMPLE_INTENT=../../../shared/data go test ./websearch/intent -run SampleDecisions -v -count 1
//
// Lines of friends (LoCoMo) and of users with a companion (MemoryBank) are nearly all chat;
// questions of reading tests are about the world, though some lean on the text that they were
// asked about. The rules have no fitted numbers, but mistakes that this test showed were
// mended, so its figures are better than those of new texts; for these see testdata/later.txt.
func TestSampleDecisions(t *testing.T) {
	dir := os.Getenv("SAMPLE_INTENT")
	if dir == "" {
		t.Skip("SAMPLE_INTENT names no folder of conversations and questions")
	}
	for _, name := range []string{"locomo/dev.json", "memorybank/dev_en.json", "memorybank/dev_zh.json", "xquad/queries.jsonl", "cmrc/queries.jsonl"} {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		all, seed, reasons := 0, 0, map[Reason]int{}
		for lines := json.NewDecoder(file); ; {
			var line struct{ T, X, Question string }
			if err := lines.Decode(&line); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if line.T != "" && line.T != "turn" {
				continue
			}
			text := line.X + line.Question
			d := Better(text, Options{})
			all++
			reasons[d.Reason]++
			if Seed(text) {
				seed++
			}
			if d.Search == (line.T == "turn") && (line.T == "turn" || all%5 == 0) {
				t.Logf("%s: %s", d.Reason, text)
			}
		}
		t.Logf("%s: %d texts, Seed %d searches, Better %d: %v", name, all, seed, reasons[Order]+reasons[Fresh]+reasons[Fact], reasons)
	}
}
