package cite

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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
	if err := json.Unmarshal(sharedtest.Read(t, "golden/deepresearch/_embedder.json"), &f); err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cases {
		if got := append([]string{}, hashTokens(c.Text)...); !reflect.DeepEqual(got, c.Tokens) {
			t.Fatalf("%s: got %q, want %q", c.Text, got, c.Tokens)
		}
		got := map[string]float32{}
		for i, x := range hashVector(c.Text) {
			if x != 0 {
				got[strconv.Itoa(i)] = x
			}
		}
		if !reflect.DeepEqual(got, c.Nonzero) {
			t.Fatalf("%s: got is %+v, want %+v", c.Text, got, c.Nonzero)
		}
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
			if err == nil {
				t.Fatal("got no error, want one")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkChunks(t, in.Text, chunks)
		if v.Bug == "splits-surrogate-pair" {
			joined := ""
			for _, c := range chunks {
				if got := c.Units[1] - c.Units[0]; got > o.Size+1 {
					t.Fatalf("c.Units[1]-c.Units[0] is %d, want at most %d", got, o.Size+1)
				}
				joined += c.Text
			}
			if !strings.HasPrefix(in.Text, joined) {
				t.Fatal("strings.HasPrefix(in.Text, joined) is false, want true")
			}
			if got := Len16(joined); got < Len16(in.Text)-o.Size {
				t.Fatalf("Len16(joined) is %d, want at least %d", got, Len16(in.Text)-o.Size)
			}
			return
		}
		if v.Bug != "" {
			t.Fatalf("v.Bug is %q, want none", v.Bug)
		}
		if len(chunks) != len(want.Chunks) {
			t.Fatalf("chunks has %d, want %d: %+v", len(chunks), len(want.Chunks), chunks)
		}
		for i, c := range chunks {
			if c.Text != want.Chunks[i] {
				t.Fatalf("c.Text is %q, want %q", c.Text, want.Chunks[i])
			}
			if !reflect.DeepEqual(c.Units, want.Positions[i]) {
				t.Fatalf("c.Units is %+v, want %+v", c.Units, want.Positions[i])
			}
			if !reflect.DeepEqual(c.Bytes, want.PositionsBytes[i]) {
				t.Fatalf("c.Bytes is %+v, want %+v", c.Bytes, want.PositionsBytes[i])
			}
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
			if got[0].Index != 0 {
				t.Fatalf("got[0].Index is %d, want %d", got[0].Index, 0)
			}
			if got[0].Score <= 4*got[1].Score {
				t.Fatalf("got[0].Score is %v, want more than %v", got[0].Score, 4*got[1].Score)
			}
		case "accented letters split words": // "café" is one word, and "caf na ve r sum" has none
			if want := ([]Ranked{{2, 1. / 3}, {0, 0}, {1, 0}}); !reflect.DeepEqual(got, want) {
				t.Fatalf("got is %+v, want %+v", got, want)
			}
		case "kelvin sign and dotted I fold through lower-casing":
			if want := ([]Ranked{{0, 0.5}, {1, 0.5}}); !reflect.DeepEqual(got, want) {
				t.Fatalf("got is %+v, want %+v", got, want)
			}
		default:
			if v.Bug != "" {
				t.Fatalf("v.Bug is %q, want none", v.Bug)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got is %+v, want %+v", got, want)
			}
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
		if !utf8.ValidString(got.Text) {
			t.Fatal("utf8.ValidString(got.Text) is false, want true")
		}
		for _, c := range got.Snippets {
			if want := in.LongContext[c.Bytes[0]:c.Bytes[1]]; c.Text != want {
				t.Fatalf("c.Text is %q, want %q", c.Text, want)
			}
		}
		switch v.Name {
		case "symbol-only chunk is skipped and shifts every later snippet":
			// Recorded at 150 and 2,400: four chunks of 150 units were left out before them.
			if got.Snippets[0].Units[0] != 750 {
				t.Fatalf("got.Snippets[0].Units[0] is %d, want %d", got.Snippets[0].Units[0], 750)
			}
			if got.Snippets[1].Units[0] != 3000 {
				t.Fatalf("got.Snippets[1].Units[0] is %d, want %d", got.Snippets[1].Units[0], 3000)
			}
		case "31k page, 5 snippets, 9 minutes fact", "12,000 units: windowing starts":
			// Not tagged, but recorded with exhausted-windows-repeat-start: their last snippets
			// are the start of the page, which the first ones overlap or were already.
			requireSame(t, withoutRepeatedStart(want.Text, in.LongContext), got.Text)
		case "second snippet falls back to offset 0 when all windows overlap":
			// Tagged, but the start is a free window here.
			requireSame(t, want.Text, got.Text)
			if got.Snippets[1].Bytes[1] > got.Snippets[0].Bytes[0] {
				t.Fatalf("got.Snippets[1].Bytes[1] is %d, want at most %d", got.Snippets[1].Bytes[1], got.Snippets[0].Bytes[0])
			}
		default:
			if v.Bug != "" {
				t.Fatalf("v.Bug is %q, want none", v.Bug)
			}
			requireSame(t, want.Text, got.Text)
		}
		if got, expected := append([]int{}, emb.calls...), append([]int{}, want.EmbeddingCalls...); !reflect.DeepEqual(got, expected) {
			t.Fatalf("append([]int{}, emb.calls...) is %+v, want %+v", got, expected)
		}
	})
}

// requireSame compares long texts.
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
		if len(emb.calls) > 1 {
			t.Fatalf("len(emb.calls) is %d, want at most %d", len(emb.calls), 1)
		}
		if better, ok := betterReferences[v.Name]; ok {
			better(t, in, got)
			return
		}
		if v.Bug != "list-order-differs-from-marker-order" {
			if v.Bug != "" {
				t.Fatalf("v.Bug is %q, want none", v.Bug)
			}
		}
		if got.Answer != want.Answer {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, want.Answer)
		}
		if len(got.References) != len(want.References) {
			t.Fatalf("got.References has %d, want %d: %+v", len(got.References), len(want.References), got.References)
		}
		for i, ref := range got.References {
			recorded := want.References[want.MarkerOrder[i]]
			if ref.ExactQuote != recorded.ExactQuote {
				t.Fatalf("ref.ExactQuote is %q, want %q", ref.ExactQuote, recorded.ExactQuote)
			}
			if ref.URL != recorded.URL {
				t.Fatalf("ref.URL is %q, want %q", ref.URL, recorded.URL)
			}
			if ref.Title != recorded.Title {
				t.Fatalf("ref.Title is %q, want %q", ref.Title, recorded.Title)
			}
			if ref.AnswerChunk != recorded.AnswerChunk {
				t.Fatalf("ref.AnswerChunk is %q, want %q", ref.AnswerChunk, recorded.AnswerChunk)
			}
			if !reflect.DeepEqual(ref.AnswerUnits, recorded.Units) {
				t.Fatalf("ref.AnswerUnits is %+v, want %+v", ref.AnswerUnits, recorded.Units)
			}
			if !reflect.DeepEqual(ref.AnswerBytes, recorded.Bytes) {
				t.Fatalf("ref.AnswerBytes is %+v, want %+v", ref.AnswerBytes, recorded.Bytes)
			}
			if math.Abs(recorded.RelevanceScore-ref.RelevanceScore) > 1e-12 {
				t.Fatalf("score %v, recorded %v", ref.RelevanceScore, recorded.RelevanceScore)
			}
		}
	})
}

// betterReferences has what the product does in cases with a recorded bug, but for the order of
// the list.
var betterReferences = map[string]func(*testing.T, referencesInput, Cited){
	"short chinese answer gets nothing (seed example text)": func(t *testing.T, in referencesInput, got Cited) {
		if want := in.Answer + "[^1]"; got.Answer != want {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, want)
		} // both sentences are one line
		got = BuildReferences(t.Context(), &recorded{kind: "hash256"}, in.Answer, in.sources(), DefaultReferences(BySentence))
		if got.Answer != "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分。" {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分。")
		}
	},
	"maxRef 0": func(t *testing.T, in referencesInput, got Cited) {
		if want := (Cited{Answer: in.Answer}); !reflect.DeepEqual(got, want) {
			t.Fatalf("got is %+v, want %+v", got, want)
		}
	},
	"empty embeddings (402): nothing found": func(t *testing.T, _ referencesInput, got Cited) {
		if len(got.References) != 4 {
			t.Fatalf("got.References has %d, want %d: %+v", len(got.References), 4, got.References)
		}
	},
	"CRLF answer": func(t *testing.T, in referencesInput, got Cited) {
		if want := strings.NewReplacer("light.\r", "light.[^1]\r", "loads.\r", "loads.[^2]\r").Replace(in.Answer); got.Answer != want {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, want)
		}
	},
	"code block lines": func(t *testing.T, in referencesInput, got Cited) {
		if want := (Cited{Answer: in.Answer}); !reflect.DeepEqual(got, want) {
			t.Fatalf("got is %+v, want %+v", got, want)
		}
	},
	"answer already carries markers": func(t *testing.T, in referencesInput, got Cited) {
		if want := strings.NewReplacer("light[^3].", "light.[^1]", "[^1]", "[^2]").Replace(in.Answer); got.Answer != want {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, want)
		}
	},
	"chinese with jaccard fallback finds nothing": func(t *testing.T, in referencesInput, got Cited) {
		if want := in.Answer + "[^1]"; got.Answer != want {
			t.Fatalf("got.Answer is %q, want %q", got.Answer, want)
		}
		if got.References[0].RelevanceScore != 1. {
			t.Fatalf("got.References[0].RelevanceScore is %v, want %v", got.References[0].RelevanceScore, 1.)
		}
	},
	"explicit vectors: greedy choice starves the second line": func(t *testing.T, _ referencesInput, got Cited) {
		if len(got.References) != 2 {
			t.Fatalf("got.References has %d, want %d: %+v", len(got.References), 2, got.References)
		}
		if !strings.HasPrefix(got.References[0].ExactQuote, "web-two") {
			t.Fatal(`want strings.HasPrefix(got.References[0].ExactQuote, "web-two")`)
		}
		if !strings.HasPrefix(got.References[1].ExactQuote, "web-one") {
			t.Fatal(`want strings.HasPrefix(got.References[1].ExactQuote, "web-one")`)
		}
	},
}
