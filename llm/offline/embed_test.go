package offline_test

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
)

func vectors(t *testing.T, texts ...string) [][]float32 {
	t.Helper()
	got, err := offline.Embedder{}.Embed(t.Context(), llm.Similarity, texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Vectors) != len(texts) {
		t.Fatalf("%d vectors for %d texts", len(got.Vectors), len(texts))
	}
	for i, v := range got.Vectors {
		if len(v) != offline.Dim || math.Abs(cosine(v, v)-1) > 1e-5 {
			t.Errorf("%q: %d numbers, length %v", texts[i], len(v), cosine(v, v))
		}
	}
	return got.Vectors
}

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestNearTextsHaveNearVectors(t *testing.T) {
	for name, c := range map[string]struct{ query, near, far string }{
		"inflection":        {"she was baking breads", "He bakes bread", "The train leaves at noon"},
		"misspelling":       {"the old lighthuose", "a lighthouse by the sea", "a mountain in winter"},
		"word order":        {"the cat chased a dog", "a dog was chased by the cat", "the stock market fell"},
		"Chinese":           {"他喜欢喝乌龙茶", "乌龙茶是我最喜欢的", "明天去北京出差"},
		"Japanese":          {"図書館で古い地図を見つけた", "古い地図は図書館にある", "昨日は雨が降っていた"},
		"mixed":             {"用Python写排序", "Python 排序算法", "Java 网络编程"},
		"compatible forms":  {"ＡＢＣ ｶﾀｶﾅ", "abc カタカナ", "xyz ひらがな"},
		"stop words matter": {"to be or not to be", "be or not", "lighthouse keeper"},
	} {
		t.Run(name, func(t *testing.T) {
			v := vectors(t, c.query, c.near, c.far)
			if near, far := cosine(v[0], v[1]), cosine(v[0], v[2]); near < far+0.15 {
				t.Errorf("near %.2f, far %.2f", near, far)
			}
		})
	}
}

func TestEveryTextHasAVectorOfLengthOne(t *testing.T) {
	for _, text := range []string{"", " \n", "?!", "😀", "a", "茶", "the", "\xff\xfe", strings.Repeat("long text ", 10_000)} {
		if n := cosine(vectors(t, text)[0], vectors(t, text)[0]); math.Abs(n-1) > 1e-5 {
			t.Errorf("length² of %.10q = %v", text, n)
		}
	}
	if v := vectors(t, "?!", "😀"); cosine(v[0], v[1]) > 0.99 {
		t.Error("signs that differ have one vector")
	}
}

// The vectors are kept in databases: a change of any of them needs a new model id.
func TestVectorsNeverChange(t *testing.T) {
	h := fnv.New64a()
	for range 2 { // and do not depend on the order of a map
		h.Reset()
		for _, v := range vectors(t, "She was baking breads", "他喜欢喝乌龙茶", "ＡＢＣ ｶﾀｶﾅ 42", "") {
			for _, x := range v {
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], uint64(int64(math.Round(float64(x)*1e5))))
				_, _ = h.Write(b[:])
			}
		}
		if got, want := h.Sum64(), uint64(0xfd30deff29de5d70); got != want {
			t.Fatalf("fingerprint %#x, want %#x of %s", got, want, offline.EmbeddingModel)
		}
	}
}

func TestEmbedTellsItsSpaceAndObeysItsContext(t *testing.T) {
	var e llm.Embedder = offline.Embedder{}
	got, err := e.Embed(t.Context(), llm.Query, []string{"tea"})
	if err != nil || got.Model != e.ModelID() || got.Dim != e.Dim() || e.Dim() != 512 || got.Usage.PromptTokens != 1 {
		t.Errorf("%s %d %+v %v", got.Model, got.Dim, got.Usage, err)
	}
	if got, err := e.Embed(t.Context(), llm.Query, nil); err != nil || len(got.Vectors) != 0 {
		t.Errorf("nothing: %v %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, llm.Query, []string{"tea"}); !fault.Is(err, fault.Cancelled) {
		t.Errorf("error = %v, want cancelled", err)
	}
}

func FuzzEmbed(f *testing.F) {
	f.Add("baking breads in 2026")
	f.Add("他喜欢喝乌龙茶 and tea")
	f.Add("\xff\u200dｶﾞー'")
	f.Fuzz(func(t *testing.T, text string) {
		if v := vectors(t, text, text); cosine(v[0], v[1]) < 0.999 {
			t.Errorf("%q is not near itself", text)
		}
	})
}

func BenchmarkEmbed(b *testing.B) {
	for name, text := range map[string]string{
		"english800": strings.Repeat("She keeps a lighthouse at the edge of the northern sea. ", 15)[:800],
		"chinese400": strings.Repeat("她在北海的尽头守着一座灯塔，等船回来。", 22),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = offline.Embedder{}.Embed(b.Context(), llm.Passage, []string{text})
			}
		})
	}
}
