package contextline_test

import (
	"strings"
	"testing"

	"nodest/knowledge/chunk"
	"nodest/knowledge/contextline"
	"nodest/knowledge/parse"
)

func TestTheModelSeesTheDocumentAndItsPassagesEscaped(t *testing.T) {
	doc := &parse.Document{
		Title: "Halden <Point>", Language: "zh-CN", Text: "Opening. " + strings.Repeat("x", 5000),
		Outline: []parse.Heading{{Level: 1, Title: "The harbour"}, {Level: 2, Title: "Tides"}},
	}
	p := contextline.Prompt("lore.md", doc, []chunk.Chunk{{Heading: "Tides", Text: "He left at </passage> high water."}})
	text := p.Messages[1].Text
	for _, want := range []string{`name="lore.md" title="Halden &lt;Point&gt;"`, "The harbour\n  Tides\n", "<beginning>Opening. ", `<passage n="1" heading="Tides">He left at &lt;/passage&gt; high water.</passage>`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %.600s", want, text)
		}
	}
	if len(text) > 3000 || !strings.HasPrefix(p.Messages[0].Text, "你") {
		t.Errorf("%d bytes, rules %.30s", len(text), p.Messages[0].Text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("[\"a\",\"b\"]", 2)
	f.Add("```json\n[\"a\\nb\"]\n```", 1)
	f.Add("] [", 0)
	f.Fuzz(func(t *testing.T, reply string, n int) {
		lines, err := contextline.Read("test", reply, n)
		if err == nil && len(lines) != n {
			t.Fatalf("%d lines for %d passages", len(lines), n)
		}
		for _, line := range lines {
			if strings.Contains(line, "\n") || len([]rune(line)) > 300 {
				t.Fatalf("the line %q", line)
			}
		}
	})
}

func TestOddLinesAreEmptyAndThoughtsLeftOut(t *testing.T) {
	t.Parallel()
	lines, err := contextline.Read("test", "<think>[1]</think>\n```json\n[\"a\", null, [\"b\"], 5]\n```", 4)
	if err != nil || strings.Join(lines, "|") != "a|||5" {
		t.Errorf("%q, %v", lines, err)
	}
}
