package cite

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
			require.NotEmpty(t, got)
			all := ""
			for i, p := range got {
				checkChunks(t, page, []Chunk{p.Chunk})
				require.LessOrEqual(t, Len16(p.Text), 2*600+2)
				if i > 0 {
					require.Greater(t, p.Bytes[0], got[i-1].Bytes[1])
				}
				all += p.Text + "\n"
			}
			require.Contains(t, all, "## The fact\n\n"+c.fact)
		}
	}
}

func TestPassagesOfAPageWithoutTheWordsAreItsStart(t *testing.T) {
	page := longPage("Nothing.", 30)
	got := Passages(t.Context(), nil, "zebra?", page, PassageOptions{})
	require.Equal(t, 0, got[0].Bytes[0])
	require.Len(t, got, 1, "neighbours are one passage")
	require.Empty(t, Passages(t.Context(), nil, "zebra?", " \n\n ", PassageOptions{}))
}

func TestPassagesCutLongParagraphsBetweenSentences(t *testing.T) {
	page := strings.Repeat("这是一个很长的段落，里面没有任何换行。", 100) + "末班车是晚上九点。" + strings.Repeat("🙂", 2000)
	got := Passages(t.Context(), nil, "末班车", page, PassageOptions{Count: 1})
	require.Len(t, got, 1)
	require.Contains(t, got[0].Text, "末班车是晚上九点。")
	require.True(t, strings.HasPrefix(got[0].Text, "这是"))
}

// late counts what is embedded as the chunks of one text.
type late struct {
	offline.Embedder
	chunks int
}

func (l *late) EmbedChunks(ctx context.Context, chunks []string) (llm.Embeddings, error) {
	l.chunks += len(chunks)
	return l.Embed(ctx, llm.Passage, chunks)
}

func TestChunksOfAPageAreEmbeddedTogetherWhereTheModelCan(t *testing.T) {
	page := longPage("The tower has 201 steps.", 150)
	var emb late
	picked := CherryPick(t.Context(), &emb, "How many steps?", page, PickOptions{})
	require.NotEmpty(t, picked.Snippets)
	require.Equal(t, (Len16(page)+299)/300, emb.chunks)
	emb.chunks = 0
	Passages(t.Context(), &emb, "How many steps?", page, PassageOptions{})
	require.Positive(t, emb.chunks)
	require.LessOrEqual(t, emb.chunks, maxEmbedded)
}

func TestPickWithoutEmbedderComparesWords(t *testing.T) {
	page := longPage("The tower has 201 steps.", 150)
	picked := CherryPick(t.Context(), nil, "How many steps has the tower?", page, PickOptions{SnippetLength: 600, Snippets: 1, ChunkSize: 150})
	require.Contains(t, picked.Text, "The tower has 201 steps.")
}

func TestRegexThatTakesTooLongIsRefused(t *testing.T) {
	_, err := ChunkText(strings.Repeat("a", 40)+"!", ChunkOptions{By: ByRegex, Pattern: `(a+)+$`})
	require.ErrorContains(t, err, "too long")
	for _, pattern := range []string{"", "(", strings.Repeat("a", 2000)} {
		_, err = ChunkText("text", ChunkOptions{By: ByRegex, Pattern: pattern})
		require.ErrorContains(t, err, "invalid_field")
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
		require.NoError(t, err)
		var got []string
		for _, chunk := range chunks {
			got = append(got, chunk.Text)
		}
		require.Equal(t, c.want, got, c.pattern)
		checkChunks(t, c.text, chunks)
	}
}
