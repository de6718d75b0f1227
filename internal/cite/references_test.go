package cite

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"nodest/internal/cite/claim"
	"nodest/llm"
	"nodest/llm/offline"
)

// near is an embedder for which two texts are as similar as its table says; others are not.
type near map[string][]float32

func (n near) ModelID() string { return "near" }
func (n near) Dim() int        { return 4 }

func (n near) Embed(_ context.Context, _ llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	var out llm.Embeddings
	for _, text := range texts {
		v := n[text]
		if v == nil {
			v = make([]float32, 4)
		}
		out.Vectors = append(out.Vectors, v)
	}
	return out, nil
}

// seed is the example of the original document, with the scores it gives.
func seed() (string, near, []Source) {
	ai, ml := "人工智能（AI）是计算机科学的一个分支，致力于创建能够执行通常需要人类智能的任务的系统", "机器学习是人工智能的核心技术之一，通过算法让计算机从数据中学习"
	return "人工智能是计算机科学的一个分支。机器学习是AI的重要组成部分。", near{
			"人工智能是计算机科学的一个分支。": {1, 0, 0, 0}, ai: {0.85, 0.526783, 0, 0},
			"机器学习是AI的重要组成部分。": {0, 0, 1, 0}, ml: {0, 0, 0.78, 0.625780},
		}, []Source{
			{URL: "https://example.com/ai-definition", Title: "人工智能基础概念", Chunks: []Chunk{{Text: ai}}},
			{URL: "https://example.com/machine-learning", Title: "机器学习简介", Chunks: []Chunk{{Text: ml}}},
		}
}

func TestSeedExampleComesOutAsWritten(t *testing.T) {
	answer, emb, sources := seed()
	got := BuildReferences(t.Context(), emb, answer, sources, DefaultReferences(BySentence))
	if got.Answer != "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分[^2]。" {
		t.Fatalf("got.Answer is %q, want %q", got.Answer, "人工智能是计算机科学的一个分支[^1]。机器学习是AI的重要组成部分[^2]。")
	}
	if len(got.References) != 2 {
		t.Fatalf("got.References has %d, want %d: %+v", len(got.References), 2, got.References)
	}
	for i, score := range []float64{0.85, 0.78} {
		if got.References[i].ExactQuote != sources[i].Chunks[0].Text {
			t.Fatalf("got.References[i].ExactQuote is %q, want %q", got.References[i].ExactQuote, sources[i].Chunks[0].Text)
		}
		if is := got.References[i].RelevanceScore; math.Abs(is-score) > 1e-6 {
			t.Fatalf("got.References[i].RelevanceScore is %v, want %v", is, score)
		}
	}
	if found, want := NewReport(got, sources), (Report{Sentences: 2, Marked: 2, Marks: 2, Supported: 2, Unsourced: []string{}}); !reflect.DeepEqual(found, want) {
		t.Fatalf("NewReport(got, sources) is %+v, want %+v", found, want)
	}

	data, err := json.Marshal(got.References[1])
	if err != nil {
		t.Fatal(err)
	}
	var is, want any
	if err := json.Unmarshal([]byte(`{"exactQuote":"机器学习是人工智能的核心技术之一，通过算法让计算机从数据中学习","url":"https://example.com/machine-learning",
		"title":"机器学习简介","relevanceScore":0.78,"answerChunk":"机器学习是AI的重要组成部分。","answerChunkPosition":[16,31],"kind":"web","marker":2,"auto":true}`), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.Replace(string(data), jsonNumber(got.References[1].RelevanceScore), "0.78", 1)), &is); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(is, want) {
		t.Fatalf("got %v, want %v", is, want)
	}
}

func jsonNumber(x float64) string {
	data, _ := json.Marshal(x)
	return string(data)
}

const (
	towerPage = "# Halden Point\n\nThe tower stands 38.5 metres above the high-water mark. It was built from 1,120 blocks of grey granite. " +
		"The light was automated in March 1987, and the last resident keeper, Ida Molvig, moved to the village.\n\n" +
		"Keeper Ansel Brandt kept a weather diary for thirty years, and climatologists still use his wind readings as a baseline."
	festivalPage = "云溪镇灯会始于清乾隆三十二年，最初是为了纪念修建石堤的七位工匠。沿河两岸一共要点亮三千六百盏油灯。\n\n灯会的压轴节目叫作“龙过桥”，由四十八名青年抬着一条长六十六米的布龙。"
)

func pages() []Source {
	return []Source{
		{URL: "https://halden.test/history", Title: "Halden Point Lighthouse", Evidence: EvidencePage, Chunks: lines(towerPage, 1)},
		{URL: "https://yunxi.test/deng", Title: "云溪镇灯会", Evidence: EvidencePage, Chunks: lines(festivalPage, 1)},
	}
}

func TestSentencesGetMarksWhereTheyMayStand(t *testing.T) {
	const said = "The tower stands 38.5 metres above the high-water mark"
	for name, c := range map[string]struct{ answer, want string }{
		"before the full stop":            {said + ".", said + "[^1]."},
		"at the end without one":          {said, said + "[^1]"},
		"before CRLF":                     {said + "\r\nNo.\r\n", said + "[^1]\r\nNo.\r\n"},
		"inside quotation marks and bold": {"He said: “**" + said + ".**”", "He said: “**" + said + "[^1].**”"},
		"in items of a list":              {"* " + said + ".\n* Nothing to see.", "* " + said + "[^1].\n* Nothing to see."},
		"in the last cell of a row":       {"| a | b |\n|---|---|\n| x | " + said + ". |\n", "| a | b |\n|---|---|\n| x | " + said + "[^1]. |\n"},
		"after a link":                    {"[" + said + "](http://x.test/a.b)", "[" + said + "](http://x.test/a.b)[^1]"},
		"after code":                      {"`" + said + ".`", "`" + said + ".`[^1]"},
		"not in a heading":                {"## " + said + ".", "## " + said + "."},
		"not in the head of a table":      {"| " + said + " | b |\n| :-- | --: |\n", "| " + said + " | b |\n| :-- | --: |\n"},
		"not in a block of code":          {"```\n" + said + ".\n```", "```\n" + said + ".\n```"},
		"not in a block that stays open":  {"~~~md\n" + said + ".\n```\n" + said, "~~~md\n" + said + ".\n```\n" + said},
		"not behind an address":           {said + ": https://x.test/a", said + ": https://x.test/a"},
		"instead of older marks":          {said + "[^7][^2].\n\n[^7]: https://old.test", said + "[^1]."},
		"after emoji":                     {"🙂 👩‍🚀 " + said + "!", "🙂 👩‍🚀 " + said + "[^1]!"},
		"once for both sentences":         {said + ". It was built from 1,120 blocks of grey granite.", said + "[^1]. It was built from 1,120 blocks of grey granite[^1]."},
		"not with a wrong number":         {"The tower stands 39.5 metres above the high-water mark.", "The tower stands 39.5 metres above the high-water mark."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, emb := range []llm.Embedder{nil, offline.Embedder{}} {
				got := BuildReferences(t.Context(), emb, c.answer, pages(), DefaultReferences(BySentence))
				if got.Answer != c.want {
					t.Fatalf("got.Answer is %q, want %q", got.Answer, c.want)
				}
				checkCited(t, c.answer, pages(), got)
			}
		})
	}
}

func TestSentenceGetsTwoMarksForFactsOfTwoQuotes(t *testing.T) {
	answer := "The tower stands 38.5 metres above the water, and Ansel Brandt kept a weather diary for 30 years."
	got := BuildReferences(t.Context(), nil, answer, pages(), DefaultReferences(BySentence))
	if want := strings.Replace(answer, "years.", "years[^1][^2].", 1); got.Answer != want {
		t.Fatalf("got.Answer is %q, want %q", got.Answer, want)
	}
	checkCited(t, answer, pages(), got)
	if found := NewReport(got, pages()).Supported; found != 2 {
		t.Fatalf("NewReport(got, pages()).Supported is %d, want %d", found, 2)
	}
}

func TestQuoteIsTheBestSentence(t *testing.T) {
	got := BuildReferences(t.Context(), nil, "灯会一共点亮3600盏油灯。", pages(), DefaultReferences(BySentence))
	if got.Answer != "灯会一共点亮3600盏油灯[^1]。" {
		t.Fatalf("got.Answer is %q, want %q", got.Answer, "灯会一共点亮3600盏油灯[^1]。")
	}
	if got.References[0].ExactQuote != "沿河两岸一共要点亮三千六百盏油灯。" {
		t.Fatalf("got.References[0].ExactQuote is %q, want %q", got.References[0].ExactQuote, "沿河两岸一共要点亮三千六百盏油灯。")
	}
	if got.References[0].Evidence != EvidencePage {
		t.Fatalf("got.References[0].Evidence is %q, want %q", got.References[0].Evidence, EvidencePage)
	}
}

func TestPageWinsAgainstSnippet(t *testing.T) {
	page := pages()[0]
	snippet := page
	snippet.Evidence, snippet.URL = EvidenceSnippet, "https://first.test"
	got := BuildReferences(t.Context(), nil, "The tower stands 38.5 metres above the high-water mark.", []Source{snippet, page}, DefaultReferences(BySentence))
	if got.References[0].URL != page.URL {
		t.Fatalf("got.References[0].URL is %q, want %q", got.References[0].URL, page.URL)
	}
}

func TestTextOfTheSiteIsNotQuoted(t *testing.T) {
	const banner = "We use cookies to make the pages of this harbour better for every single visitor of the coast."
	var sources []Source
	for _, path := range []string{"a", "b", "c"} {
		sources = append(sources, Source{URL: "https://www.site.test/" + path, Chunks: lines(banner, 1)})
	}
	if got := BuildReferences(t.Context(), nil, banner, sources, DefaultReferences(ByLine)).References; len(got) != 0 {
		t.Fatalf("got %+v, want none", got)
	}
	if got := BuildReferences(t.Context(), nil, banner, sources[:2], DefaultReferences(ByLine)).References; len(got) != 1 {
		t.Fatalf("got %d, want %d: %+v", len(got), 1, got)
	}
}

func TestHostsAreComparedAsHosts(t *testing.T) {
	o := DefaultReferences(BySentence)
	for host, n := range map[string]int{"halden.test": 1, "WWW.halden.test": 1, "en.test": 0, "halden.test.evil.test": 0} {
		o.Hostnames = []string{host}
		if got := BuildReferences(t.Context(), nil, "It was built from 1,120 blocks of grey granite.", pages(), o).References; len(got) != n {
			t.Fatalf("%s: got %d, want %d: %+v", host, len(got), n, got)
		}
	}
}

func TestEndedContextComparesWords(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := BuildReferences(ctx, offline.Embedder{}, "It was built from 1,120 blocks of grey granite.", pages(), DefaultReferences(BySentence))
	if len(got.References) != 1 {
		t.Fatalf("got.References has %d, want %d: %+v", len(got.References), 1, got.References)
	}
}

func TestReportListsWhatNoSourceHas(t *testing.T) {
	got := BuildReferences(t.Context(), nil, "The tower stands 38.5 metres above the high-water mark. It cost Queen Olga 77,000 crowns.", pages(), DefaultReferences(BySentence))
	if found, want := NewReport(got, pages()), (Report{Sentences: 2, Marked: 1, Marks: 1, Supported: 1, Unsourced: []string{"77000", "Queen", "Olga"}}); !reflect.DeepEqual(found, want) {
		t.Fatalf("NewReport(got, pages()) is %+v, want %+v", found, want)
	}
}

func TestImagesGoToTheirSentences(t *testing.T) {
	answer := "The tower is made of grey granite from Skerrow.\n\n灯会的压轴节目叫作龙过桥，要抬一条布龙。"
	images := []Image{
		{URL: "https://x.test/dragon.jpg", PageURL: "https://x.test", Alt: "图", Caption: "龙过桥的布龙"},
		{URL: "https://x.test/logo.png", Alt: "  "},
		{URL: "https://x.test/tower.jpg", Alt: "Tower of grey granite"},
	}
	for _, emb := range []llm.Embedder{nil, offline.Embedder{}} {
		got := ImageReferences(t.Context(), emb, answer, images, 10)
		if len(got) != 2 {
			t.Fatalf("got has %d, want %d: %+v", len(got), 2, got)
		}
		if got[0].URL != "https://x.test/tower.jpg" {
			t.Fatalf("got[0].URL is %q, want %q", got[0].URL, "https://x.test/tower.jpg")
		}
		if got[1].Context != "龙过桥的布龙" {
			t.Fatalf("got[1].Context is %q, want %q", got[1].Context, "龙过桥的布龙")
		}
		if found := string([]rune(answer)[got[1].AnswerChunkPosition[0]:got[1].AnswerChunkPosition[1]]); found != got[1].AnswerChunk {
			t.Fatalf("got %q, want %q", found, got[1].AnswerChunk)
		}
	}
	if got := ImageReferences(t.Context(), nil, answer, images, 0); len(got) != 0 {
		t.Fatalf("got %+v, want none", got)
	}
}

func TestFactsAreFoundInEitherSpelling(t *testing.T) {
	for _, c := range []struct {
		sentence, quote, title string
		missing                int
	}{
		{"It has 1,120 blocks.", "1120 blocks", "", 0},
		{"它有三百一十二位读者，二〇一九年开放。", "2019年有312位读者", "", 0},
		{"一共3.6万盏灯，4.5 million visitors", "36000 and 4,500,000", "", 0},
		{"It takes 9 minutes.", "nine minutes", "", 0},
		{"It takes 9 minutes.", "ninety minutes", "", 1},
		{"三四个人，万一，千万别", "", "", 0},
		{"Then Ida Molvig left with the AI.", "She left with her ai", "The story of Ida Molvig", 0},
		{"他看了《红楼梦》。", "他看了《西游记》。", "", 1},
		{"她说：“你好呀！”", "", "", 0},
		{"The second of May, 38,5 m", "38.5 in May", "", 0},
		{"１２３ and 1.2.3", "123, version 1.2.3", "", 0},
		{"Aurora-3 and w77", "aurora", "", 1},
	} {
		missing := claim.FactsOf(c.sentence).Missing(claim.NewEvidence(c.quote, c.title))
		if got := missing.Count(); got != c.missing {
			t.Fatalf("%s: %v: missing.Count() is %d, want %d", c.sentence, missing, got, c.missing)
		}
	}
}
