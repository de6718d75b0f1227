package cite

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"nodest/internal/sharedtest"
	"nodest/llm"
)

// hashTokens are the tokens of the recorded embedder "hash256".
func hashTokens(text string) []string {
	var out []string
	word, before := "", rune(0)
	end := func() {
		if word != "" {
			out = append(out, word)
		}
		word = ""
	}
	for _, r := range text {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		dense := 0x3400 <= r && r <= 0x9FFF || 0x3040 <= r && r <= 0x30FF || 0xAC00 <= r && r <= 0xD7AF
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			word += string(r)
			before = 0
			continue
		case dense:
			end()
			out = append(out, string(r))
			if before != 0 {
				out = append(out, string(before)+string(r))
			}
			before = r
			continue
		}
		end()
		before = 0
	}
	end()
	return out
}

func hashVector(text string) []float32 {
	v := make([]float32, 256)
	for _, token := range hashTokens(text) {
		h := fnv.New32a()
		h.Write([]byte(token))
		v[h.Sum32()%256]++
	}
	return v
}

// recorded is an embedder of the golden vectors.
type recorded struct {
	kind     string // hash256, fail, empty, explicit
	explicit map[string][]float32
	calls    []int // texts per call
}

func (e *recorded) ModelID() string { return e.kind }
func (e *recorded) Dim() int        { return 256 }

func (e *recorded) Embed(_ context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	e.calls = append(e.calls, len(texts))
	var out llm.Embeddings
	for _, text := range texts {
		switch e.kind {
		case "fail":
			return llm.Embeddings{}, errors.New("no embeddings today")
		case "explicit":
			out.Vectors = append(out.Vectors, e.explicit[text])
		case "hash256":
			out.Vectors = append(out.Vectors, hashVector(text))
		}
	}
	return out, nil
}

func TestGoldenEmbedder(t *testing.T) {
	var f struct {
		Cases []struct {
			Text    string
			Tokens  []string
			Nonzero map[string]float32
		}
	}
	require.NoError(t, json.Unmarshal(sharedtest.Read(t, "golden/deepresearch/_embedder.json"), &f))
	for _, c := range f.Cases {
		require.Equal(t, c.Tokens, append([]string{}, hashTokens(c.Text)...), c.Text)
		got := map[string]float32{}
		for i, x := range hashVector(c.Text) {
			if x != 0 {
				got[strconv.Itoa(i)] = x
			}
		}
		require.Equal(t, c.Nonzero, got, c.Text)
	}
	t.Logf("_embedder.json: %d passed, 0 failed, 0 skipped", len(f.Cases))
}

func TestGoldenChunkText(t *testing.T) {
	type input struct {
		Text    string
		Options struct {
			Type           string
			Value          any
			MinChunkLength int
		}
	}
	type output struct {
		Error          string
		Chunks         []string
		Positions      []Span `json:"chunk_positions"`
		PositionsBytes []Span `json:"chunk_positions_bytes"`
	}
	sharedtest.Replay(t, "deepresearch/chunkText.json", func(t *testing.T, v sharedtest.Vector[input, output]) {
		in, want := v.Input, v.Output
		o := ChunkOptions{By: in.Options.Type, MinLength: in.Options.MinChunkLength}
		switch value := in.Options.Value.(type) {
		case string:
			o.Pattern = value
			o.Size, _ = strconv.Atoi(value)
		case float64:
			o.Size = int(value)
		}
		chunks, err := ChunkText(in.Text, o)
		if want.Error != "" {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		checkChunks(t, in.Text, chunks)
		if v.Bug == "splits-surrogate-pair" {
			joined := ""
			for _, c := range chunks {
				require.LessOrEqual(t, c.Units[1]-c.Units[0], o.Size+1)
				joined += c.Text
			}
			require.True(t, strings.HasPrefix(in.Text, joined))
			require.GreaterOrEqual(t, Len16(joined), Len16(in.Text)-o.Size)
			return
		}
		require.Empty(t, v.Bug)
		require.Len(t, chunks, len(want.Chunks))
		for i, c := range chunks {
			require.Equal(t, want.Chunks[i], c.Text)
			require.Equal(t, want.Positions[i], c.Units)
			require.Equal(t, want.PositionsBytes[i], c.Bytes)
		}
	})
}

func TestGoldenJaccardRank(t *testing.T) {
	type input struct {
		Query     string
		Documents []string
	}
	sharedtest.Replay(t, "deepresearch/jaccardRank.json", func(t *testing.T, v sharedtest.Vector[input, struct{ Results []Ranked }]) {
		in, want := v.Input, v.Output.Results
		got := JaccardRank(in.Query, in.Documents)
		switch v.Name {
		case "chinese has no tokens (all zero)": // pairs of characters find the right text
			require.Equal(t, 0, got[0].Index)
			require.Greater(t, got[0].Score, 4*got[1].Score)
		case "accented letters split words": // "café" is one word, and "caf na ve r sum" has none
			require.Equal(t, []Ranked{{2, 1. / 3}, {0, 0}, {1, 0}}, got)
		case "kelvin sign and dotted I fold through lower-casing":
			require.Equal(t, []Ranked{{0, 0.5}, {1, 0.5}}, got)
		default:
			require.Empty(t, v.Bug)
			require.Equal(t, want, got)
		}
	})
}

var snippet = regexp.MustCompile(`(?s)<snippet-\d+>\n\n(.*?)\n\n</snippet-\d+>`)

func TestGoldenCherryPick(t *testing.T) {
	type input struct {
		Question, LongContext, Embedder string
		Options                         struct{ SnippetLength, NumSnippets, ChunkSize int }
	}
	type output struct {
		Text           string
		EmbeddingCalls []int
	}
	sharedtest.Replay(t, "deepresearch/cherryPick.json", func(t *testing.T, v sharedtest.Vector[input, output]) {
		in, want := v.Input, v.Output
		emb := &recorded{kind: in.Embedder}
		o := PickOptions{in.Options.SnippetLength, in.Options.NumSnippets, in.Options.ChunkSize}
		got := CherryPick(t.Context(), emb, in.Question, in.LongContext, o)
		require.True(t, utf8.ValidString(got.Text))
		for _, c := range got.Snippets {
			require.Equal(t, in.LongContext[c.Bytes[0]:c.Bytes[1]], c.Text)
		}
		switch v.Name {
		case "symbol-only chunk is skipped and shifts every later snippet":
			// Recorded at 150 and 2,400: four chunks of 150 units were left out before them.
			require.Equal(t, 750, got.Snippets[0].Units[0])
			require.Equal(t, 3000, got.Snippets[1].Units[0])
		case "31k page, 5 snippets, 9 minutes fact", "12,000 units: windowing starts":
			// Not tagged, but recorded with exhausted-windows-repeat-start: their last snippets
			// are the start of the page, which the first ones overlap or were already.
			requireSame(t, withoutRepeatedStart(want.Text, in.LongContext), got.Text)
		case "second snippet falls back to offset 0 when all windows overlap":
			// Tagged, but the start is a free window here.
			requireSame(t, want.Text, got.Text)
			require.LessOrEqual(t, got.Snippets[1].Bytes[1], got.Snippets[0].Bytes[0])
		default:
			require.Empty(t, v.Bug)
			requireSame(t, want.Text, got.Text)
		}
		require.Equal(t, append([]int{}, want.EmbeddingCalls...), append([]int{}, emb.calls...))
	})
}

// requireSame is require.Equal for long texts.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	if want != got {
		at := 0
		for at < min(len(want), len(got)) && want[at] == got[at] {
			at++
		}
		t.Fatalf("texts of %d and %d bytes differ from byte %d on:\nwant %.100q\ngot  %.100q", len(want), len(got), at, want[at:], got[at:])
	}
}

// withoutRepeatedStart removes the snippets that are the start of the page.
func withoutRepeatedStart(text, page string) string {
	parts := strings.Split(text, "\n\n<snippet-")
	var kept []string
	for _, p := range parts {
		m := snippet.FindStringSubmatch("<snippet-" + strings.TrimPrefix(p, "<snippet-"))
		if m == nil || !strings.HasPrefix(page, m[1]) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n<snippet-")
}

type referencesInput struct {
	Answer      string
	WebContents []struct {
		URL, Title string
		Chunks     []string
	}
	MinChunkLength, MaxRef int
	MinRelScore            float64
	OnlyHostnames          []string
	Embedder               string
	Embeddings             map[string][]float32
}

func (in *referencesInput) sources() []Source {
	var out []Source
	for _, w := range in.WebContents {
		s := Source{URL: w.URL, Title: w.Title}
		for _, c := range w.Chunks {
			s.Chunks = append(s.Chunks, Chunk{Text: c})
		}
		out = append(out, s)
	}
	return out
}

type referencesOutput struct {
	Answer     string
	References []struct {
		Reference
		Units Span `json:"answerChunkPosition"`
		Bytes Span `json:"answerChunkPositionBytes"`
	}
	MarkerOrder []int
}

func TestGoldenBuildReferences(t *testing.T) {
	sharedtest.Replay(t, "deepresearch/buildReferences.json", func(t *testing.T, v sharedtest.Vector[referencesInput, referencesOutput]) {
		in, want := v.Input, v.Output
		emb := &recorded{kind: in.Embedder, explicit: in.Embeddings}
		o := ReferenceOptions{MinChunkLength: in.MinChunkLength, MaxRef: in.MaxRef, MinRelScore: in.MinRelScore, Hostnames: in.OnlyHostnames}
		got := BuildReferences(t.Context(), emb, in.Answer, in.sources(), o)
		checkCited(t, in.Answer, in.sources(), got)
		require.LessOrEqual(t, len(emb.calls), 1)
		if better, ok := betterReferences[v.Name]; ok {
			better(t, in, got)
			return
		}
		if v.Bug != "list-order-differs-from-marker-order" {
			require.Empty(t, v.Bug)
		}
		require.Equal(t, want.Answer, got.Answer)
		require.Len(t, got.References, len(want.References))
		for i, ref := range got.References {
			recorded := want.References[want.MarkerOrder[i]]
			require.Equal(t, recorded.ExactQuote, ref.ExactQuote)
			require.Equal(t, recorded.URL, ref.URL)
			require.Equal(t, recorded.Title, ref.Title)
			require.Equal(t, recorded.AnswerChunk, ref.AnswerChunk)
			require.Equal(t, recorded.Units, ref.AnswerUnits)
			require.Equal(t, recorded.Bytes, ref.AnswerBytes)
			require.False(t, math.Abs(recorded.RelevanceScore-ref.RelevanceScore) > 1e-12, "score %v, recorded %v", ref.RelevanceScore, recorded.RelevanceScore)
		}
	})
}

// betterReferences has what the product does in cases with a recorded bug, but for the order of
// the list.
var betterReferences = map[string]func(*testing.T, referencesInput, Cited){
	"short chinese answer gets nothing (seed example text)": func(t *testing.T, in referencesInput, got Cited) {
		require.Equal(t, in.Answer+"[^1]", got.Answer) // both sentences are one line
		got = BuildReferences(t.Context(), &recorded{kind: "hash256"}, in.Answer, in.sources(), DefaultReferences(BySentence))
		require.Equal(t, "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分。", got.Answer)
	},
	"maxRef 0": func(t *testing.T, in referencesInput, got Cited) { require.Equal(t, Cited{Answer: in.Answer}, got) },
	"empty embeddings (402): nothing found": func(t *testing.T, _ referencesInput, got Cited) {
		require.Len(t, got.References, 4)
	},
	"CRLF answer": func(t *testing.T, in referencesInput, got Cited) {
		require.Equal(t, strings.NewReplacer("light.\r", "light.[^1]\r", "loads.\r", "loads.[^2]\r").Replace(in.Answer), got.Answer)
	},
	"code block lines": func(t *testing.T, in referencesInput, got Cited) { require.Equal(t, Cited{Answer: in.Answer}, got) },
	"answer already carries markers": func(t *testing.T, in referencesInput, got Cited) {
		require.Equal(t, strings.NewReplacer("light[^3].", "light.[^1]", "[^1]", "[^2]").Replace(in.Answer), got.Answer)
	},
	"chinese with jaccard fallback finds nothing": func(t *testing.T, in referencesInput, got Cited) {
		require.Equal(t, in.Answer+"[^1]", got.Answer)
		require.Equal(t, 1., got.References[0].RelevanceScore)
	},
	"explicit vectors: greedy choice starves the second line": func(t *testing.T, _ referencesInput, got Cited) {
		require.Len(t, got.References, 2)
		require.True(t, strings.HasPrefix(got.References[0].ExactQuote, "web-two"))
		require.True(t, strings.HasPrefix(got.References[1].ExactQuote, "web-one"))
	},
}
