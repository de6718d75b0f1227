package weburl

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"nodest/internal/sharedtest"
)

// golden runs the cases of one file. run returns the product's result for an input. A case
// with a bug tag passes if it equals improved[name], which is JSON.
func golden(t *testing.T, file string, improved map[string]string, run func(t *testing.T, input json.RawMessage) any) {
	t.Helper()
	sharedtest.Replay(t, "deepresearch/"+file, func(t *testing.T, v sharedtest.Vector[json.RawMessage, json.RawMessage]) {
		want := v.Output
		better, ok := improved[v.Name]
		switch {
		case ok:
			want = json.RawMessage(better)
		case v.Bug == "rerank-not-awaited":
			want = read[struct{ Second json.RawMessage }](t, v.Output).Second
		case v.Bug != "":
			t.Skipf("a bug of the reference (%s) without an improved result here", v.Bug)
		}
		got, err := json.Marshal(run(t, v.Input))
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// same compares JSON; numbers may differ by their last bits, and null is an empty list.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && close12(x, y)
}

func close12(x, y any) bool {
	switch x := x.(type) {
	case float64:
		f, ok := y.(float64)
		return ok && math.Abs(x-f) <= 1e-12
	case []any:
		l, ok := y.([]any)
		return (ok || y == nil) && slices.EqualFunc(x, l, close12)
	case map[string]any:
		m, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, m, close12)
	}
	if l, ok := y.([]any); ok && x == nil {
		return len(l) == 0
	}
	return reflect.DeepEqual(x, y)
}

func read[T any](t *testing.T, input json.RawMessage) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(input, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGoldenNormalizeURL(t *testing.T) {
	improved := map[string]string{
		`https://halden-point.org/page?source=rss&content=full&term=`: `"https://halden-point.org/page?cid=9&content=full&source=rss&term=1"`,
		`https://halden-point.org/100%25/off"`:                        `"https://halden-point.org/100%25/off"`,
		`https://not-example.com.org/page"`:                           `"https://not-example.com.org/page"`,
		`https://docs.site.org/?u=example.com"`:                       `"https://docs.site.org/?u=example.com"`,
		`https://www.google.com.fake.org/x"`:                          `"https://google.com.fake.org/x"`,
		`http://[::1]/x"`:                                             `null`,
		`http://0x7f.1/x"`:                                            `null`,
		// No tag, but web search must not send passwords.
		`https://user:pass@halden-point.org/private"`: `null`,
	}
	golden(t, "normalizeUrl.json", improved, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			URL     string
			Options struct{ RemoveAnchors, RemoveSessionIDs, RemoveUTMParams, RemoveTrackingParams, RemoveXAnalytics *bool }
		}](t, input)
		keep := func(remove *bool) bool { return remove != nil && !*remove }
		got, err := Normalize(in.URL, Options{
			KeepAnchor:     keep(in.Options.RemoveAnchors),
			KeepSessionIDs: keep(in.Options.RemoveSessionIDs),
			KeepUTM:        keep(in.Options.RemoveUTMParams),
			KeepTracking:   keep(in.Options.RemoveTrackingParams),
			KeepXAnalytics: keep(in.Options.RemoveXAnalytics),
		})
		if err != nil {
			return nil
		}
		return got
	})
}

func TestGoldenNormalizeHostName(t *testing.T) {
	golden(t, "normalizeHostName.json", nil, func(t *testing.T, input json.RawMessage) any {
		return NormalizeHostName(read[struct{ Host string }](t, input).Host)
	})
}

func TestGoldenSmartMerge(t *testing.T) {
	golden(t, "smartMergeStrings.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct{ A, B string }](t, input)
		return SmartMerge(in.A, in.B)
	})
}

func TestGoldenPool(t *testing.T) {
	type entry struct {
		Key   string `json:"key"`
		Value Hit    `json:"value"`
	}
	type result struct {
		Returned []int   `json:"returned"`
		AllURLs  []entry `json:"allURLs"`
	}
	golden(t, "addToAllURLs.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Additions []Hit
			Deltas    []float64
		}](t, input)
		var pool Pool
		var r result
		for i, hit := range in.Additions {
			added := 0
			if pool.Add(hit, in.Deltas[i], Options{}) {
				added = 1
			}
			r.Returned = append(r.Returned, added)
		}
		for _, h := range pool.Hits() {
			r.AllURLs = append(r.AllURLs, entry{h.URL, h})
		}
		return r
	})
}

func TestGoldenFilter(t *testing.T) {
	golden(t, "filterURLs.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Items                                    []Hit
			VisitedURLs, BadHostnames, OnlyHostnames []string
		}](t, input)
		return Filter{in.VisitedURLs, in.BadHostnames, in.OnlyHostnames}.Apply(in.Items)
	})
}

func TestGoldenCountParts(t *testing.T) {
	golden(t, "countUrlParts.json", nil, func(t *testing.T, input json.RawMessage) any {
		c := countParts(read[struct{ Items []Hit }](t, input).Items, true)
		paths := map[string]int{}
		for f, n := range c.paths {
			paths[f.path] = n
		}
		return map[string]any{"hostnameCount": c.hosts, "pathPrefixCount": paths, "totalUrls": c.total}
	})
}

func TestGoldenExtract(t *testing.T) {
	golden(t, "extractUrlsWithDescription.json", nil, func(t *testing.T, input json.RawMessage) any {
		return Extract(read[struct{ Text string }](t, input).Text)
	})
}

func TestGoldenRank(t *testing.T) {
	golden(t, "rankURLs.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Items   []Ranked
			Options struct {
				FreqFactor, HostnameBoostFactor, PathBoostFactor, DecayFactor, RerankFactor, MinBoost, MaxBoost float64
				Question                                                                                        string
				BoostHostnames                                                                                  []string
			}
			Rerank string
		}](t, input)
		hits := make([]Hit, len(in.Items))
		for i, item := range in.Items {
			hits[i] = item.Hit
		}
		o := RankOptions{
			FreqFactor: in.Options.FreqFactor, HostFactor: in.Options.HostnameBoostFactor, PathFactor: in.Options.PathBoostFactor,
			PathDecay: in.Options.DecayFactor, RerankFactor: in.Options.RerankFactor, MinScore: in.Options.MinBoost, MaxScore: in.Options.MaxBoost,
			Question: in.Options.Question, BoostHosts: in.Options.BoostHostnames, SharedPaths: true,
		}
		// Items with a boost stand for a reranker that gave it.
		if slices.ContainsFunc(in.Items, func(r Ranked) bool { return r.RerankBoost > 0 }) {
			o.Question = "any"
			o.Rerank = func(context.Context, string, []string) ([]float64, error) {
				scores := make([]float64, len(in.Items))
				for i, r := range in.Items {
					scores[i] = r.RerankBoost / o.withDefaults().RerankFactor
				}
				return scores, nil
			}
		}
		if in.Rerank != "" {
			o.Rerank = func(_ context.Context, _ string, texts []string) ([]float64, error) {
				scores := make([]float64, len(texts))
				for i := range scores {
					scores[i] = 1 - 0.1*float64(i)
				}
				return scores, nil
			}
		}
		return Rank(t.Context(), hits, o)
	})
}

func TestGoldenKeepPerSite(t *testing.T) {
	golden(t, "keepKPerHostname.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Items []Ranked
			K     int
		}](t, input)
		var hits []Hit
		for _, r := range KeepPerSite(in.Items, in.K) {
			hits = append(hits, r.Hit)
		}
		return hits
	})
}

func TestGoldenSortSelect(t *testing.T) {
	golden(t, "sortSelectURLs.json", nil, func(t *testing.T, input json.RawMessage) any {
		in := read[struct {
			Items   []Ranked
			MaxURLs *int
		}](t, input)
		n := 70
		if in.MaxURLs != nil {
			n = *in.MaxURLs
		}
		return SortSelect(in.Items, n)
	})
}
