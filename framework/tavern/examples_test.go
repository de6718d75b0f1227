package tavern

import (
	"slices"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
)

func TestGoldenExamples(t *testing.T) {
	type message struct{ Role, Content, Name string }
	type output struct {
		Blocks   []string
		Messages [][]message
	}
	type input struct {
		Text string `json:"mes_example"`
	}
	sharedtest.Replay(t, "sillytavern/examples.json", func(t *testing.T, v sharedtest.Vector[input, output]) {
		blocks := exampleBlocks(v.Input.Text)
		if !slices.Equal(blocks, v.Output.Blocks) {
			t.Errorf("blocks %q, want %q", blocks, v.Output.Blocks)
		}
		for i, want := range v.Output.Messages {
			got := []message{}
			for _, l := range exampleLines(blocks[i], "Bob", "Alice") {
				got = append(got, message{"system", l.text, l.name})
			}
			if !slices.Equal(got, want) {
				t.Errorf("block %d: %q, want %q", i, got, want)
			}
		}
	})
}

func FuzzExamples(f *testing.F) {
	f.Add("<START>\nBob: hi\nAlice: hello\n<start>Bob: q", "Bob", "Alice")
	f.Add("Bob: x\r\n\nAlice:", "", "")
	f.Fuzz(func(t *testing.T, text, user, char string) {
		for _, block := range exampleBlocks(text) {
			size := 0
			for _, l := range exampleLines(block, user, char) {
				size += len(l.text)
			}
			if size > len(block) || !strings.HasPrefix(block, startMark) {
				t.Fatalf("block %q has messages of %d bytes", block, size)
			}
		}
	})
}
