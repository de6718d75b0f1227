package cite

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/offline"
)

// longPage has a fact in the middle of text about other things.
func longPage(fact string, paragraphs int) string {
	var b strings.Builder
	b.WriteString("# A page\n\n")
	for i := range paragraphs {
		if i == paragraphs/2 {
			b.WriteString("## The fact\n\n" + fact + "\n\n")
		}
		fmt.Fprintf(&b, "Paragraph %d is about the garden fence, the kettle and the minutes of the last meeting. %s\n\n", i, strings.Repeat("Nobody else would. ", i%7))
	}
	return b.String()
}

func TestPassagesFindNumbersAndNames(t *testing.T) {
	for _, c := range []struct{ question, fact string }{
		{"How many cycles did Aurora-3 reach?", "Velkron Labs said that its Aurora-3 cell reached 1,450 cycles while keeping 91 percent."},
		{"末班车几点从云溪北站开出？", "从省城坐高铁到云溪北站需要五十二分钟，末班车是晚上九点二十分。"},
		{"error code 0x80070057", "The installer stops with 0x80070057 when the disk is full."},
	} {
		page := longPage(c.fact, 80)
		for _, emb := range []llm.Embedder{nil, offline.Embedder{}, &recorded{kind: "fail"}} {
			got := Passages(t.Context(), emb, c.question, page, PassageOptions{})
			if len(got) == 0 {
				t.Fatalf("got is %+v, want more", got)
			}
			all := ""
			for i, p := range got {
				checkChunks(t, page, []Chunk{p.Chunk})
				if got := Len16(p.Text); got > 2*600+2 {
					t.Fatalf("Len16(p.Text) is %d, want at most %d", got, 2*600+2)
				}
				if i > 0 {
					if p.Bytes[0] <= got[i-1].Bytes[1] {
						t.Fatalf("p.Bytes[0] is %d, want more than %d", p.Bytes[0], got[i-1].Bytes[1])
					}
				}
				all += p.Text + "\n"
			}
			if !strings.Contains(all, "## The fact\n\n"+c.fact) {
				t.Fatalf("all is %q, want it with %q", all, "## The fact\n\n"+c.fact)
			}
		}
	}
}

func TestPassagesOfAPageWithoutTheWordsAreItsStart(t *testing.T) {
	page := longPage("Nothing.", 30)
	got := Passages(t.Context(), nil, "zebra?", page, PassageOptions{})
	if got[0].Bytes[0] != 0 {
		t.Fatalf("got[0].Bytes[0] is %d, want %d", got[0].Bytes[0], 0)
	}
	if len(got) != 1 {
		t.Fatalf("neighbours are one passage: got has %d, want %d: %+v", len(got), 1, got)
	}
	if got := Passages(t.Context(), nil, "zebra?", " \n\n ", PassageOptions{}); len(got) != 0 {
		t.Fatalf("got %+v, want none", got)
	}
}

func TestPassagesCutLongParagraphsBetweenSentences(t *testing.T) {
	page := strings.Repeat("这是一个很长的段落，里面没有任何换行。", 100) + "末班车是晚上九点。" + strings.Repeat("🙂", 2000)
	got := Passages(t.Context(), nil, "末班车", page, PassageOptions{Count: 1})
	if len(got) != 1 {
		t.Fatalf("got has %d, want %d: %+v", len(got), 1, got)
	}
	if !strings.Contains(got[0].Text, "末班车是晚上九点。") {
		t.Fatalf("got[0].Text is %q, want it with %q", got[0].Text, "末班车是晚上九点。")
	}
	if !strings.HasPrefix(got[0].Text, "这是") {
		t.Fatal(`want strings.HasPrefix(got[0].Text, "这是")`)
	}
}

// late counts what is embedded as the chunks of one text.
type late struct {
	offline.Embedder
	chunks, texts int
}

func (l *late) EmbedChunks(ctx context.Context, chunks []string) (llm.Embeddings, error) {
	l.chunks += len(chunks)
	l.texts++
	return l.Embed(ctx, llm.Passage, chunks)
}

func TestChunksOfAPageAreEmbeddedTogetherWhereTheModelCan(t *testing.T) {
	page := longPage("The tower has 201 steps.", 150)
	var emb late
	picked := CherryPick(t.Context(), &emb, "How many steps?", page, PickOptions{})
	if len(picked.Snippets) == 0 {
		t.Fatalf("picked.Snippets is %+v, want more", picked.Snippets)
	}
	if want := (Len16(page) + 299) / 300; emb.chunks != want {
		t.Fatalf("emb.chunks is %d, want %d", emb.chunks, want)
	}
	emb.chunks = 0
	Passages(t.Context(), &emb, "How many steps?", page, PassageOptions{})
	if emb.chunks <= 0 {
		t.Fatalf("emb.chunks is %d, want more than 0", emb.chunks)
	}
	if emb.chunks > maxEmbedded {
		t.Fatalf("emb.chunks is %d, want at most %d", emb.chunks, maxEmbedded)
	}
}

func TestPagesAreReadOneByOneWhereTheModelCan(t *testing.T) {
	answer := "The tower stands 38.5 metres above the high-water mark. 灯会一共要点亮三千六百盏油灯。"
	for name, check := range map[string]func(emb llm.Embedder) []Reference{
		"BuildReferences": func(emb llm.Embedder) []Reference {
			return BuildReferences(t.Context(), emb, answer, pages(), DefaultReferences(BySentence)).References
		},
		"Verify": func(emb llm.Embedder) []Reference {
			return Verify(t.Context(), emb, answer, pages(), VerifyOptions{}).References
		},
	} {
		var emb late
		if refs := check(&emb); len(refs) != 2 {
			t.Fatalf("%s: refs has %d, want %d: %+v", name, len(refs), 2, refs)
		}
		if want := 1 + len(pages()); emb.texts != want {
			t.Fatalf("%s: %d texts were read, want %d: the answer and the pages", name, emb.texts, want)
		}
	}
}

func TestPickWithoutEmbedderComparesWords(t *testing.T) {
	page := longPage("The tower has 201 steps.", 150)
	picked := CherryPick(t.Context(), nil, "How many steps has the tower?", page, PickOptions{SnippetLength: 600, Snippets: 1, ChunkSize: 150})
	if !strings.Contains(picked.Text, "The tower has 201 steps.") {
		t.Fatalf("picked.Text is %q, want it with %q", picked.Text, "The tower has 201 steps.")
	}
}

func TestRegexThatTakesTooLongIsRefused(t *testing.T) {
	_, err := ChunkText(strings.Repeat("a", 40)+"!", ChunkOptions{By: ByRegex, Pattern: `(a+)+$`})
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("got error %v, want one with %q", err, "too long")
	}
	for _, pattern := range []string{"", "(", strings.Repeat("a", 2000)} {
		_, err = ChunkText("text", ChunkOptions{By: ByRegex, Pattern: pattern})
		if err == nil || !strings.Contains(err.Error(), "invalid_field") {
			t.Fatalf("got error %v, want one with %q", err, "invalid_field")
		}
	}
}

func TestRegexSplitsAsJavaScriptDoes(t *testing.T) {
	for _, c := range []struct {
		text, pattern string
		want          []string
	}{
		{"abc", "(?:)", []string{"a", "b", "c"}},
		{"a1b22c", `(\d)+`, []string{"a", "1", "b", "2", "c"}},
		{"a,,b,", ",", []string{"a", "b"}},
		{"🙂-é", "-", []string{"🙂", "é"}},
		{"ab", "x?", []string{"a", "b"}},
	} {
		chunks, err := ChunkText(c.text, ChunkOptions{By: ByRegex, Pattern: c.pattern, MinLength: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, chunk := range chunks {
			got = append(got, chunk.Text)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Fatalf("%s: got is %q, want %q", c.pattern, got, c.want)
		}
		checkChunks(t, c.text, chunks)
	}
}
