package provider

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

func braveFor(t *testing.T, h http.Handler, keys ...llm.Key) Provider {
	if len(keys) == 0 {
		keys = []llm.Key{keyOne}
	}
	return one(t, Config{Names: []string{"brave"}, BraveKeys: keys, Client: engine(h), Now: time.Now})
}

func TestBraveSendsTheQueryAndReadsTheResults(t *testing.T) {
	for name, c := range map[string]struct {
		q      Query
		params string
	}{
		"defaults": {question, "q=old+bookshops&count=10&country=ALL&safesearch=moderate&text_decorations=false&result_filter=web"},
		"all settings": {
			Query{Text: "书店", Count: 50, Fresh: "qdr:w", Lang: "zh-CN", Country: "cn", Safe: SafeStrict, Hosts: []string{"a.test", "B.test", "no host"}, Location: "上海"},
			"q=书店+上海+site:a.test+OR+site:b.test&count=20&country=CN&search_lang=zh-hans&safesearch=strict&text_decorations=false&result_filter=web&freshness=pw",
		},
		"an hour is a day":               {Query{Text: "x", Fresh: "qdr:h"}, "q=x&count=10&country=ALL&safesearch=moderate&text_decorations=false&result_filter=web&freshness=pd"},
		"unknown settings are left out":  {Query{Text: "x", Fresh: "qdr:z", Lang: "tlh", Country: "XX", Safe: "maybe"}, "q=x&count=10&country=ALL&safesearch=moderate&text_decorations=false&result_filter=web"},
		"Japanese has a name of its own": {Query{Text: "x", Lang: "ja", Safe: SafeOff}, "q=x&count=10&country=ALL&search_lang=jp&safesearch=off&text_decorations=false&result_filter=web"},
		"traditional Chinese":            {Query{Text: "x", Lang: "zh-Hant"}, "q=x&count=10&country=ALL&search_lang=zh-hant&safesearch=moderate&text_decorations=false&result_filter=web"},
	} {
		t.Run(name, func(t *testing.T) {
			s := answers(t, func(t *testing.T, r *http.Request) {
				wantParams(t, r.URL.Query(), c.params)
				if r.URL.Path != "/res/v1/web/search" || r.URL.Host != "api.search.brave.com" || r.Header.Get("X-Subscription-Token") != keyOne.Reveal() {
					t.Errorf("request to %s%s with key %q", r.URL.Host, r.URL.Path, r.Header.Get("X-Subscription-Token"))
				}
			}, reply{body: fixture(t, "brave_web.json")})
			p := one(t, Config{Names: []string{"brave"}, BraveKeys: []llm.Key{keyOne}, Client: engine(s)})
			res, err := search(t, p, c.q)
			if err != nil {
				t.Fatal(err)
			}
			wantResults(t, res.Results, []Result{
				{pages[0].Title, pages[0].URL, pages[0].Description, time.Date(2026, 1, 15, 8, 30, 0, 0, time.UTC)},
				{pages[1].Title, pages[1].URL, pages[1].Description, noon.Add(-3 * day)},
				{"No date", "http://nodate.test/a?b=c#d", "", time.Time{}},
			})
		})
	}
}

func TestBraveFindsPlacesWithTheirDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paths []string
		s := answers(t, func(t *testing.T, r *http.Request) {
			paths = append(paths, r.URL.Path)
			if len(paths) == 1 {
				wantParams(t, r.URL.Query(), "q=old+bookshops&count=10&country=ALL&safesearch=moderate&text_decorations=false&result_filter=locations,web")
			} else {
				wantParams(t, r.URL.Query(), "ids=loc4A%3D%3D&ids=loc4B%3D%3D")
			}
		}, reply{body: fixture(t, "brave_web.json")}, reply{body: fixture(t, "brave_pois.json")}, reply{body: fixture(t, "brave_descriptions.json")})
		start := time.Now()
		res, err := search(t, braveFor(t, s), Query{Text: question.Text, Place: true})
		if err != nil {
			t.Fatal(err)
		}
		want := []Place{
			{"Old Shop", "Main St 1, 10115 Berlin", "+49 30 1", 4.8, 120, "$$", "### Overview Books and tea."},
			{"旧书店", "人民路1号, 上海", "123", 4.5, 10, "¥¥", ""},
		}
		if !slices.Equal(res.Places, want) {
			t.Errorf("places %v, want %v", res.Places, want)
		}
		if len(res.Results) != 3 {
			t.Errorf("%d pages beside the places", len(res.Results))
		}
		if want := []string{"/res/v1/web/search", "/res/v1/local/pois", "/res/v1/local/descriptions"}; !slices.Equal(paths, want) {
			t.Errorf("paths %q", paths)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("three requests of one key took %v", took)
		}
	})
}

func TestPlacesThatThePlanDoesNotIncludeDoNotSpoilThePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answers(t, nil, reply{body: fixture(t, "brave_web.json")}, reply{status: 400, body: `{"error":{"code":"OPTION_NOT_IN_PLAN"}}`})
		res, err := search(t, braveFor(t, s), Query{Text: "x", Place: true})
		if err != nil || len(res.Results) != 3 || len(res.Places) != 0 {
			t.Errorf("%v, %v", res, err)
		}
	})
}

func TestBraveReportsEachKindOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		reply   reply
		code    fault.Code
		status  int
		message string
		after   time.Duration
	}{
		"wrong key with 422": {reply{status: 422, body: fixture(t, "brave_wrong_key.json")}, fault.UpstreamAuth, 422, "Brave rejected the API key: The provided subscription token is invalid", 0},
		"wrong key with 401": {reply{status: 401, body: "no"}, fault.UpstreamAuth, 401, "Brave rejected the API key", 0},
		"too fast":           {reply{status: 429, body: fixture(t, "brave_rate.json"), header: map[string]string{"X-RateLimit-Reset": "7, 1419704"}}, fault.UpstreamRate, 429, "Brave reports too many requests: Request rate limit exceeded for plan", 7 * time.Second},
		"Retry-After counts": {reply{status: 429, header: map[string]string{"Retry-After": "90", "X-RateLimit-Reset": "7, 1419704"}}, fault.UpstreamRate, 429, "Brave reports too many requests", 90 * time.Second},
		"month used up":      {reply{status: 429, body: fixture(t, "brave_quota.json"), header: map[string]string{"X-RateLimit-Reset": "1, 5000"}}, fault.UpstreamQuota, 429, "Brave reports that the quota is exhausted: Request quota limit exceeded for plan", 5000 * time.Second},
		"no money":           {reply{status: 402}, fault.UpstreamQuota, 402, "Brave reports that the quota is exhausted", 0},
		"wrong parameter":    {reply{status: 422, body: `{"error":{"code":"VALIDATION","detail":"Unable to validate request parameter(s)"}}`}, fault.UpstreamBadAnswer, 422, "Brave rejected the request: Unable to validate request parameter(s)", 0},
		"quotes the query":   {reply{status: 400, body: `{"error":{"detail":"q is bad: 'old bookshops'"}}`}, fault.UpstreamBadAnswer, 400, "Brave rejected the request: q is bad…", 0},
		"redirect":           {reply{status: 302, header: map[string]string{"Location": "https://evil.test/"}}, fault.UpstreamBadAnswer, 302, "Brave sent an invalid response: HTTP 302 Found", 0},
		"down":               {reply{status: 503, body: "<html>secret-key-one</html>"}, fault.UpstreamDown, 503, "Brave is not available", 0},
		"not JSON":           {reply{body: "<html>old bookshops</html>"}, fault.UpstreamBadAnswer, 0, "Brave: the answer is not JSON; check the base URL", 0},
		"cut off":            {reply{body: `{"web":{"results":[{"title":"x"`}, fault.UpstreamBadAnswer, 0, "Brave: the answer is not JSON; check the base URL", 0},
		"other form":         {reply{body: `{"web":{"results":"none"}}`}, fault.UpstreamBadAnswer, 0, "Brave: the answer has an unexpected form", 0},
		"too large":          {reply{body: `{"web":"` + strings.Repeat("x", maxBody) + `"}`}, fault.UpstreamBadAnswer, 0, "Brave: the answer is larger than 2 MB", 0},
		"too deep":           {reply{body: strings.Repeat("[", 1<<20)}, fault.UpstreamBadAnswer, 0, "Brave: the answer is not JSON; check the base URL", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := answers(t, nil, c.reply)
				_, err := search(t, braveFor(t, s), question)
				if c.message == "Brave rejected the request: q is bad…" {
					c.message = strings.TrimSuffix(c.message, "…") // a reason ends without it
				}
				wantFailure(t, err, c.code, c.status, c.message)
				if e := fault.Public(err); e.RetryAfter != c.after {
					t.Errorf("retry after %v, want %v", e.RetryAfter, c.after)
				}
				if s.count() != 1 {
					t.Errorf("%d requests", s.count())
				}
			})
		})
	}
}

func TestAKeyWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := braveFor(t, answers(t, nil, reply{body: "{}"}))
		start := time.Now()
		for range 3 {
			if _, err := search(t, p, question); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("three requests took %v", took)
		}
	})
}

func TestASecondKeyNeedsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		p := braveFor(t, answers(t, func(_ *testing.T, r *http.Request) {
			keys = append(keys, r.Header.Get("X-Subscription-Token"))
		}, reply{body: "{}"}), keyOne, keyTwo)
		start := time.Now()
		for range 2 {
			if _, err := search(t, p, question); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 || !slices.Equal(keys, []string{keyOne.Reveal(), keyTwo.Reveal()}) {
			t.Errorf("took %v with %q", took, keys)
		}
	})
}

func TestARejectedKeyIsReplacedByTheNext(t *testing.T) {
	s := answers(t, nil, reply{status: 422, body: fixture(t, "brave_wrong_key.json")}, reply{body: fixture(t, "brave_web.json")})
	res, err := search(t, braveFor(t, s, keyOne, keyTwo), question)
	if err != nil || len(res.Results) != 3 {
		t.Errorf("%v, %v", res, err)
	}
}

func TestNobodyWaitsBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := braveFor(t, answers(t, nil, reply{body: "{}"}))
		if _, err := search(t, p, question); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := p.Search(ctx, question)
		if !fault.Is(err, fault.UpstreamRate) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestManyAtOnceAreToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answers(t, nil, reply{body: "{}"})
		p := braveFor(t, s)
		results := make(chan error, 5)
		for range cap(results) {
			go func() {
				_, err := p.Search(t.Context(), question)
				results <- err
			}()
		}
		refused := 0
		for range cap(results) {
			if err := <-results; fault.Is(err, fault.UpstreamRate) && fault.Public(err).RetryAfter > 0 {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if s.count() != 2 || refused != 3 {
			t.Errorf("%d requests were sent and %d refused in %v", s.count(), refused, bravePatience)
		}
	})
}

func TestAKeyHas2000RequestsAMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answers(t, nil, reply{body: "{}"})
		p := braveFor(t, s)
		b := p.(*brave)
		for range braveMonth {
			_, _ = b.counter.Add(t.Context(), hashOf(keyOne), time.Now().UTC().Format("2006-01"))
		}
		_, err := search(t, p, question)
		wantFailure(t, err, fault.UpstreamQuota, 0, "Brave reports that the quota is exhausted")
		if after := fault.Public(err).RetryAfter; after <= 0 || after > 31*day || s.count() != 0 {
			t.Errorf("retry after %v, %d requests", after, s.count())
		}
		time.Sleep(31 * day) // virtual
		if _, err := search(t, p, question); err != nil {
			t.Errorf("the next month: %v", err)
		}
	})
}

func TestTheLimitsThatBraveSendsReplaceOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := braveFor(t, answers(t, nil, reply{body: "{}", header: map[string]string{"X-RateLimit-Limit": "20, 0"}}))
		b := p.(*brave)
		for range 2 * braveMonth {
			_, _ = b.counter.Add(t.Context(), hashOf(keyOne), time.Now().UTC().Format("2006-01"))
		}
		b.turns[hashOf(keyOne)].learn(http.Header{"X-Ratelimit-Limit": {"20, 0"}})
		start := time.Now()
		for range 3 {
			if _, err := search(t, p, question); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("three requests took %v", took)
		}
	})
}

type brokenCounter struct{}

func (brokenCounter) Add(context.Context, string, string) (int, error) {
	return 0, errors.New("disk")
}

func TestACounterThatFailsIsReported(t *testing.T) {
	p := one(t, Config{Names: []string{"brave"}, BraveKeys: []llm.Key{keyOne}, Counter: brokenCounter{}, Client: engine(nil)})
	if _, err := search(t, p, question); err == nil || err.Error() != "disk" {
		t.Errorf("error %v", err)
	}
}
