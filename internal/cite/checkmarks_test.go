package cite

import (
	"reflect"
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/offline"
)

func TestMarksOfTheModelAreChecked(t *testing.T) {
	auto := MarkOptions{Auto: DefaultReferences("")}
	for name, c := range map[string]struct {
		reply, want string
		refs        []string // URLs
	}{
		"all forms become one": {"The tower stands 38.5 metres above the high-water mark[1]. 灯会一共要点亮三千六百盏油灯【2】。",
			"The tower stands 38.5 metres above the high-water mark[^1]. 灯会一共要点亮三千六百盏油灯[^2]。", []string{"halden", "yunxi"}},
		"numbers follow the text": {"灯会一共要点亮三千六百盏油灯。[^2] The light was automated in March 1987 [1].",
			"灯会一共要点亮三千六百盏油灯。[^1] The light was automated in March 1987[^2].", []string{"yunxi", "halden"}},
		"a group keeps what is supported": {"The light was automated in March 1987 [1, 2].",
			"The light was automated in March 1987[^1].", []string{"halden"}},
		"two in a row": {"The light was automated in March 1987.[2][1]",
			"The light was automated in March 1987.[^1]", []string{"halden"}},
		"unknown numbers go": {"The light was automated in March 1987[1][7][^123].",
			"The light was automated in March 1987[^1].", []string{"halden"}},
		"a wrong number loses its mark": {"The light was automated in March 1999[1]. It was built from 1,120 blocks of grey granite[1].",
			"The light was automated in March 1999. It was built from 1,120 blocks of grey granite[^1].", []string{"halden"}},
		"nothing supported: marks are added": {"The weather is nice today[1]. It was built from 1,120 blocks of grey granite.",
			"The weather is nice today. It was built from 1,120 blocks of grey granite[^1].", []string{"halden"}},
		"a mark that was wrong does not come back": {"The light was not automated in March 1987[1].", "The light was not automated in March 1987.", nil},
		"nothing written: marks are added": {"It was built from 1,120 blocks of grey granite.",
			"It was built from 1,120 blocks of grey granite[^1].", []string{"halden"}},
		"nothing to cite: nothing added": {"I am so happy to see you today![2]", "I am so happy to see you today!", nil},
		"definitions go": {"It was built from 1,120 blocks of grey granite[^1].\n\n[^1]: Halden Point, https://halden.test\n[2]: x\n",
			"It was built from 1,120 blocks of grey granite[^1].", []string{"halden"}},
		"text in brackets stays": {"It was built from 1,120 blocks of grey granite[1]. In [2024], x[1], [0, 1], arr_a[1], [1](http://a.test) and `a[1]`.\n```\n[1]\n```",
			"It was built from 1,120 blocks of grey granite[^1]. In [2024], x[1], [0, 1], arr_a[1], [1](http://a.test) and `a[1]`.\n```\n[1]\n```", []string{"halden"}},
		"a mark at the start is for what follows": {"[1] The light was automated in March 1987.",
			"[^1] The light was automated in March 1987.", []string{"halden"}},
		"marks of tools": {"The light was automated in March 1987【1†source】.", "The light was automated in March 1987[^1].", []string{"halden"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, emb := range []llm.Embedder{nil, offline.Embedder{}} {
				got := CheckMarks(t.Context(), emb, c.reply, pages(), auto)
				if got.Answer != c.want {
					t.Fatalf("got.Answer is %q, want %q", got.Answer, c.want)
				}
				checkNumbers(t, got)
				var urls []string
				for _, ref := range got.References {
					urls = append(urls, hostname(ref.URL)[:len(hostname(ref.URL))-len(".test")])
				}
				if !reflect.DeepEqual(urls, c.refs) {
					t.Fatalf("urls is %q, want %q", urls, c.refs)
				}
			}
		})
	}
}

func TestPairOfSentencesIsQuotedForOneThatSaysBoth(t *testing.T) {
	got := CheckMarks(t.Context(), nil, "The tower stands 38.5 metres high and was built from 1,120 blocks of granite[1].", pages(), MarkOptions{})
	if got.References[0].ExactQuote != "The tower stands 38.5 metres above the high-water mark. It was built from 1,120 blocks of grey granite." {
		t.Fatalf("got.References[0].ExactQuote is %q, want %q", got.References[0].ExactQuote, "The tower stands 38.5 metres above the high-water mark. It was built from 1,120 blocks of grey granite.")
	}
}

func TestFactsSupportAcrossLanguages(t *testing.T) {
	got := CheckMarks(t.Context(), nil, "哈尔登灯塔在1987年改成了自动[1]。塔高99米[1]。", pages(), MarkOptions{})
	if got.Answer != "哈尔登灯塔在1987年改成了自动[^1]。塔高99米。" {
		t.Fatalf("got.Answer is %q, want %q", got.Answer, "哈尔登灯塔在1987年改成了自动[^1]。塔高99米。")
	}
	if !strings.Contains(got.References[0].ExactQuote, "March 1987") {
		t.Fatalf("got.References[0].ExactQuote is %q, want it with %q", got.References[0].ExactQuote, "March 1987")
	}
}

func TestNoSourcesLeaveBracketsAlone(t *testing.T) {
	if got, want := CheckMarks(t.Context(), nil, "See [1] and[^2].", nil, MarkOptions{}), (Cited{Answer: "See [1] and."}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}
