package weburl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func urls[T any](list []T, of func(T) string) (all []string) {
	for _, v := range list {
		all = append(all, of(v))
	}
	return all
}

func rankedURL(r Ranked) string { return r.URL }

func TestDescriptionsDoNotGrowForever(t *testing.T) {
	var pool Pool
	for i := range 100 {
		pool.Add(Hit{URL: "https://a.org/", Description: strings.Repeat(string(rune('a'+i%26)), 200+i)}, 1, Options{})
	}
	if h := pool.Hits()[0]; len(h.Description) > maxDescription || h.Weight != 100 {
		t.Errorf("%d bytes, weight %v", len(h.Description), h.Weight)
	}
}

func TestMergeIsLinear(t *testing.T) {
	a, b := strings.Repeat("a", 1<<20), strings.Repeat("a", 1<<20-1)+"b"
	if got := SmartMerge(a, b+"c"); len(got) != 1<<20+2 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestVisitedPagesAreKnownByOtherSpellings(t *testing.T) {
	hits := []Hit{{URL: "http://a.org/docs/index.html"}, {URL: "https://a.org/docs?p=2"}, {URL: "https://b.org/docs"}}
	got := Filter{Visited: []string{"https://a.org/docs"}, BadHosts: []string{"WWW.c.org"}}.Apply(hits)
	if want := []string{"https://a.org/docs?p=2", "https://b.org/docs"}; !slices.Equal(urls(got, func(h Hit) string { return h.URL }), want) {
		t.Errorf("got %v", got)
	}
}

func TestSitesShareTheirPlaces(t *testing.T) {
	list := []Ranked{
		{Hit: Hit{URL: "https://news.bbc.co.uk/1"}}, {Hit: Hit{URL: "https://bbc.co.uk/2"}}, {Hit: Hit{URL: "http://news.bbc.co.uk/1/index.html"}}, {Hit: Hit{URL: "https://sport.bbc.co.uk/3"}},
		{Hit: Hit{URL: "https://ann.github.io/"}}, {Hit: Hit{URL: "https://bob.github.io/"}}, {Hit: Hit{URL: "https://eve.github.io/"}},
		{Hit: Hit{URL: "http://8.8.8.8/"}}, {Hit: Hit{URL: "http://9.9.8.8/"}}, {Hit: Hit{URL: "http://1.1.8.8/"}},
	}
	want := []string{"https://news.bbc.co.uk/1", "https://bbc.co.uk/2", "https://ann.github.io/", "https://bob.github.io/", "https://eve.github.io/", "http://8.8.8.8/", "http://9.9.8.8/", "http://1.1.8.8/"}
	if got := urls(KeepPerSite(list, 2), rankedURL); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := KeepPerSite(list[:4], 1); len(got) != 3 {
		t.Errorf("one site: got %v, want each page once", got)
	}
}

func TestPathsOfOtherHostsDoNotCount(t *testing.T) {
	hits := []Hit{{URL: "https://a.org/wiki/x"}, {URL: "https://b.org/wiki/y"}}
	if own := Rank(t.Context(), hits, RankOptions{}); own[0].PathBoost >= Rank(t.Context(), hits, RankOptions{SharedPaths: true})[0].PathBoost {
		t.Errorf("path boost %v", own[0].PathBoost)
	}
}

func TestHitsWithoutAddressAreDropped(t *testing.T) {
	got := Rank(t.Context(), []Hit{{Title: "none"}, {URL: "not a url"}, {URL: "https://a.org/x", Weight: 1}}, RankOptions{})
	if len(got) != 1 || got[0].HostnameBoost != 0.5 {
		t.Errorf("got %+v", got)
	}
}

var lamps = []Hit{
	{URL: "https://a.org/", Title: "Ferry times", Description: "When the ferry leaves the harbour."},
	{URL: "https://b.org/", Title: "灯塔历史", Description: "灯会始于乾隆三十二年，灯塔高三十八米。"},
	{URL: "https://c.org/", Title: "Tower", Description: "The height of the lighthouse is 38.5 metres."},
	{URL: "https://d.org/", Title: "Lighthouses", Description: "A list of lighthouses and lighthouse keepers."},
}

func TestWordsOfTheQuestionRankPages(t *testing.T) {
	for question, want := range map[string]string{"how high is the lighthouse, height in metres?": "https://c.org/", "灯塔有多高": "https://b.org/", "ferry": "https://a.org/"} {
		got := Rank(t.Context(), lamps, RankOptions{Question: question})
		if got[0].URL != want {
			t.Errorf("%s: %v", question, urls(got, rankedURL))
		}
		for _, r := range got {
			if r.RerankBoost < 0 || r.RerankBoost > 0.8 {
				t.Errorf("%s: boost %v of %s", question, r.RerankBoost, r.URL)
			}
		}
	}
	if got := Rank(t.Context(), lamps, RankOptions{Question: "???"}); got[0].URL != lamps[0].URL || got[0].RerankBoost != 0 {
		t.Errorf("a question without words changed the order: %+v", got)
	}
}

func TestRankDoesNotDependOnTheReranker(t *testing.T) {
	want := urls(Rank(t.Context(), lamps, RankOptions{Question: "lighthouse"}), rankedURL)
	for name, rerank := range map[string]Reranker{
		"failed":  func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("down") },
		"too few": func(context.Context, string, []string) ([]float64, error) { return []float64{1}, nil },
		"late": func(ctx context.Context, _ string, _ []string) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			if got := urls(Rank(t.Context(), lamps, RankOptions{Question: "lighthouse", Rerank: rerank}), rankedURL); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
			if d := time.Since(start); name == "late" && d != rerankTime {
				t.Errorf("waited %v", d)
			}
		})
	}
}

func TestAddressesInTextAreFound(t *testing.T) {
	for text, want := range map[string][]string{
		"see (https://en.wiki.org/Lamp_(light)), then https://a.technology/x?y=1!": {"https://en.wiki.org/Lamp_(light)", "https://a.technology/x?y=1"},
		"看https://a.org/灯，还有https://b.org/1。":                                      {"https://a.org/", "https://b.org/1"},
		"https://a.org...":        {"https://a.org"},
		"http://nothing https://": nil,
	} {
		if got := urls(Extract(text), func(h Hit) string { return h.URL }); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", text, got)
		}
	}
	hit := Extract(strings.Repeat("🙂", 40) + "https://a.org/" + strings.Repeat("灯", 60))[0]
	if want := strings.Repeat("🙂", 25) + " ... " + strings.Repeat("灯", 50); hit.Description != want {
		t.Errorf("description %q", hit.Description)
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("see https://a.org/x. and", "and more")
	f.Add("(https://a.org/((())", "灯🙂\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, h := range Extract(a) {
			if !strings.Contains(a, h.URL) {
				t.Errorf("%q is not in %q", h.URL, a)
			}
		}
		if got := SmartMerge(a, b); len(got) > len(a)+len(b) || !strings.Contains(got, a) || !strings.Contains(got, b) {
			t.Errorf("SmartMerge(%q, %q) = %q", a, b, got)
		}
	})
}

func BenchmarkRank(b *testing.B) {
	var hits []Hit
	for i := range 70 {
		h := lamps[i%len(lamps)]
		h.URL += strings.Repeat("folder/", i%5) + string(rune('a'+i%26))
		hits = append(hits, h)
	}
	b.ReportAllocs()
	for b.Loop() {
		Rank(context.Background(), hits, RankOptions{Question: "how high is the lighthouse?"})
	}
}
