package provider

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/provider/providertest"
)

// engines routes requests to the servers of several providers, by host.
type engines map[string]http.Handler

func (e engines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, h := range e {
		if strings.Contains(r.URL.Host, name) {
			h.ServeHTTP(w, r)
			return
		}
	}
	http.Error(w, "no such engine", http.StatusNotFound)
}

// chainOf asks SearXNG (searx), then DuckDuckGo, then Jina, as far as they are in e.
func chainOf(t *testing.T, e engines) *Chain {
	t.Helper()
	var names []string
	for _, n := range []string{"searx", "duckduckgo", "jina"} {
		if e[n] != nil {
			names = append(names, strings.Replace(n, "searx", "searxng", 1))
		}
	}
	c, err := New(Config{Names: names, BaseURL: "http://searx.test", JinaKeys: []llm.Key{keyOne}, Client: engine(e)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// who returns which provider answered and why those before did not.
func who(res Results) string {
	s := res.Provider
	for _, f := range res.Failures {
		s += ", " + f.Provider + " " + string(fault.Public(f.Err).Code)
	}
	return s
}

func TestTheNextProviderAnswersWhereOneFailsOrFindsNothing(t *testing.T) {
	duck, jinaFound := reply{body: fixture(t, "duckduckgo.html")}, reply{body: fixture(t, "jina.json")}
	for name, c := range map[string]struct {
		searx, duck reply
		want        string
	}{
		"the first answers":          {reply{body: fixture(t, "searxng.json")}, duck, "searxng"},
		"the first fails":            {reply{status: 500}, duck, "duckduckgo, searxng upstream_unavailable"},
		"the first finds nothing":    {reply{body: `{"results":[]}`}, duck, "duckduckgo, searxng not_found"},
		"two do not help":            {reply{status: 403}, reply{status: 202}, "jina, searxng upstream_bad_answer, duckduckgo upstream_rate_limited"},
		"the first takes for ever":   {reply{hang: true}, duck, "duckduckgo, searxng upstream_timeout"},
		"the first two are too slow": {reply{hang: true}, reply{hang: true}, "jina, searxng upstream_timeout, duckduckgo upstream_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chain := chainOf(t, engines{"searx": answers(t, nil, c.searx), "duckduckgo": answers(t, nil, c.duck), "jina": answers(t, nil, jinaFound)})
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				res, err := chain.Search(ctx, question)
				if err != nil || who(res) != c.want || len(res.Results) == 0 || res.Cached {
					t.Errorf("%s, %v; want %s", who(res), err, c.want)
				}
			})
		})
	}
}

func TestIfNobodyFindsAnythingTheAnswerIsEmpty(t *testing.T) {
	c := chainOf(t, engines{"searx": answers(t, nil, reply{status: 500}), "duckduckgo": answers(t, nil, reply{body: fixture(t, "duckduckgo_none.html")})})
	res, err := c.Search(t.Context(), question)
	if err != nil || len(res.Results) != 0 || who(res) != "duckduckgo, searxng upstream_unavailable, duckduckgo not_found" {
		t.Errorf("%s, %v", who(res), err)
	}
}

func TestIfAllFailTheErrorNamesAll(t *testing.T) {
	c := chainOf(t, engines{
		"searx":      answers(t, nil, reply{status: 500}),
		"duckduckgo": answers(t, nil, reply{status: 202, header: map[string]string{"Retry-After": "20"}}),
		"jina":       answers(t, nil, reply{status: 401}),
	})
	_, err := c.Search(t.Context(), question)
	wantFailure(t, err, fault.UpstreamDown, 500, "web search failed: SearXNG is not available; DuckDuckGo reports too many requests; Jina rejected the API key")
	if after := fault.Public(err).RetryAfter; after != 20*time.Second {
		t.Errorf("retry after %v", after)
	}
}

func TestWithoutProvidersSearchIsNotConfigured(t *testing.T) {
	c, err := New(Config{Names: []string{"none"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(t.Context(), question); !fault.Is(err, fault.NotConfigured) {
		t.Errorf("error %v", err)
	}
	if report := c.Check(t.Context()); len(report) != 0 {
		t.Errorf("report %v", report)
	}
}

func TestAProviderThatFailedIsLeftOutForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		reply reply
		pause time.Duration
	}{
		"down":                  {reply{status: 500}, pauseFailed},
		"limited":               {reply{status: 429}, pauseRate},
		"limited, with a time":  {reply{status: 429, header: map[string]string{"Retry-After": "100"}}, 100 * time.Second},
		"limited, for too long": {reply{status: 429, header: map[string]string{"Retry-After": "864000"}}, pauseLongest},
		"no credit":             {reply{status: 402}, pauseQuota},
		"the query was refused": {reply{status: 400}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				searx := answers(t, nil, c.reply)
				chain := chainOf(t, engines{"searx": searx, "duckduckgo": answers(t, nil, reply{body: fixture(t, "duckduckgo.html")})})
				ask := func(text string, requests int) {
					t.Helper()
					if res, err := chain.Search(t.Context(), Query{Text: text}); err != nil || res.Provider != "duckduckgo" || searx.count() != requests {
						t.Errorf("%s, %v: %d requests, want %d", who(res), err, searx.count(), requests)
					}
				}
				ask("one", 1)
				if c.pause > 0 {
					time.Sleep(c.pause - time.Nanosecond) // virtual
					ask("two", 1)
					time.Sleep(time.Nanosecond)
				}
				ask("three", 2)
				if c.pause > 0 && c.pause < 10*time.Second {
					time.Sleep(2*c.pause - time.Nanosecond) // twice as long after the second failure
					ask("four", 2)
				}
			})
		})
	}
}

func TestAProviderThatRecoveredIsAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		searx := answers(t, nil, reply{status: 500}, reply{body: fixture(t, "searxng.json")})
		chain := chainOf(t, engines{"searx": searx})
		_, err := chain.Search(t.Context(), question)
		wantFailure(t, err, fault.UpstreamDown, 500, "web search failed: SearXNG is not available")
		_, err = chain.Search(t.Context(), question)
		wantFailure(t, err, fault.UpstreamDown, 500, "web search failed: SearXNG is not available")
		if after := fault.Public(err).RetryAfter; after != pauseFailed || searx.count() != 1 {
			t.Errorf("retry after %v, %d requests", after, searx.count())
		}
		time.Sleep(pauseFailed) // virtual
		if res, err := chain.Search(t.Context(), question); err != nil || who(res) != "searxng" {
			t.Errorf("%s, %v", who(res), err)
		}
	})
}

func TestTheSameQuestionIsAskedOnceADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fake providertest.Server
		fake.Answer("old bookshops", providertest.Result{Title: "A", URL: "https://a.test/"})
		chain := chainOf(t, engines{"searx": &fake})
		ask := func(q Query, cached bool) {
			t.Helper()
			res, err := chain.Search(t.Context(), q)
			if err != nil || res.Cached != cached || len(res.Results) != 1 || res.Provider != "searxng" {
				t.Errorf("%v, %v; want cached %v", res, err, cached)
			}
		}
		ask(question, false)
		ask(question, true)
		ask(Query{Text: "  old\nbookshops ", Count: 10}, true)
		ask(Query{Text: question.Text, Lang: "en"}, false)
		ask(Query{Text: question.Text, Fresh: "qdr:d"}, false)
		time.Sleep(24 * time.Hour) // virtual
		ask(question, false)
		for range 2 { // a search that finds nothing today may find something later
			if res, err := chain.Search(t.Context(), Query{Text: "nothing"}); err != nil || res.Cached {
				t.Errorf("%v, %v", res, err)
			}
		}
		if n := len(fake.Asked()); n != 6 {
			t.Errorf("%d requests: %q", n, fake.Asked())
		}
	})
}

func TestTheSameQuestionAtTheSameTimeIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fake providertest.Server
		fake.Answer("old bookshops", providertest.Result{Title: "A", URL: "https://a.test/"})
		fake.Fail(providertest.Fault{Delay: 2 * time.Second})
		chain := chainOf(t, engines{"searx": &fake})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan error, 5)
		for i := range cap(results) {
			synctest.Wait() // the impatient one is the first
			go func() {
				ctx := t.Context()
				if i == 0 {
					ctx = impatient
				}
				res, err := chain.Search(ctx, question)
				if err == nil && (len(res.Results) != 1 || res.Took != 2*time.Second) {
					t.Errorf("%v", res)
				}
				results <- err
			}()
		}
		var failed []string
		for range cap(results) {
			if err := <-results; err != nil {
				failed = append(failed, string(fault.Public(err).Code))
			}
		}
		if !slices.Equal(failed, []string{"upstream_timeout"}) {
			t.Errorf("failures %q", failed)
		}
		if n := len(fake.Asked()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestASearchThatNobodyWaitsForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		searx := answers(t, nil, reply{hang: true}, reply{body: fixture(t, "searxng.json")})
		chain := chainOf(t, engines{"searx": searx})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := chain.Search(ctx, question); !fault.Is(err, fault.Cancelled) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if len(chain.flights) != 0 {
			t.Errorf("%d searches are left", len(chain.flights))
		}
		if res, err := chain.Search(t.Context(), question); err != nil || who(res) != "searxng" {
			t.Errorf("%s, %v: a cancelled search is no failure of the provider", who(res), err)
		}
	})
}

func TestCloseEndsWhatIsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := chainOf(t, engines{"searx": answers(t, nil, reply{hang: true})})
		failed := make(chan error)
		go func() {
			_, err := chain.Search(t.Context(), question)
			failed <- err
		}()
		synctest.Wait()
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
		if err := <-failed; !fault.Is(err, fault.Cancelled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestCheckAsksEveryProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := chainOf(t, engines{
			"searx":      answers(t, nil, reply{body: fixture(t, "searxng.json")}),
			"duckduckgo": answers(t, nil, reply{hang: true}),
			"jina":       answers(t, nil, reply{status: 401}),
		})
		start := time.Now()
		report := chain.Check(t.Context())
		if took := time.Since(start); took != checkLimit {
			t.Errorf("took %v", took)
		}
		var got []string
		for _, c := range report {
			line := c.Provider
			if c.Err != nil {
				line += ": " + fault.Public(c.Err).Message
			}
			got = append(got, line)
		}
		if want := []string{"searxng", "duckduckgo: DuckDuckGo took too long", "jina: Jina rejected the API key"}; !slices.Equal(got, want) {
			t.Errorf("report %q", got)
		}
		if report[0].Found != 2 || report[1].Took != checkLimit {
			t.Errorf("%+v", report)
		}
	})
}

func TestTheConfigurationChoosesTheProviders(t *testing.T) {
	keys := []llm.Key{keyOne}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"nothing set":              {Config{}, "duckduckgo=https://html.duckduckgo.com"},
		"keys":                     {Config{BraveKeys: keys, JinaKeys: keys}, "brave=https://api.search.brave.com jina=https://s.jina.ai duckduckgo=https://html.duckduckgo.com"},
		"an address":               {Config{BaseURL: "http://s.test/"}, "searxng=http://s.test duckduckgo=https://html.duckduckgo.com"},
		"an MCP address":           {Config{BaseURL: "http://s.test/mcp"}, "mcp=http://s.test/mcp duckduckgo=https://html.duckduckgo.com"},
		"in the order given":       {Config{Names: []string{" DuckDuckGo", "brave", "", "brave"}, BraveKeys: keys}, "duckduckgo=https://html.duckduckgo.com brave=https://api.search.brave.com"},
		"an override":              {Config{Names: []string{"brave", "duckduckgo"}, BraveKeys: keys, BaseURL: "http://s.test"}, "brave=http://s.test duckduckgo=http://s.test"},
		"the address is SearXNG's": {Config{Names: []string{"brave", "searxng"}, BraveKeys: keys, BaseURL: "http://s.test"}, "brave=https://api.search.brave.com searxng=http://s.test"},
		"none":                     {Config{Names: []string{"none"}, BraveKeys: keys}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Client = engine(nil)
			chain, err := New(c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range chain.links {
				base := ""
				switch p := l.Provider.(type) {
				case *brave:
					base = p.base
				case *jina:
					base = p.base
				case searxng:
					base = p.base
				case duckDuckGo:
					base = p.base
				case *mcpServer:
					base = p.base
				}
				got = append(got, l.Name()+"="+base)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s", s)
			}
		})
	}
}

func TestAWrongConfigurationIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		code    fault.Code
		message string
	}{
		"unknown name": {Config{Names: []string{"goggle"}}, fault.Invalid, `NODEST_SEARCH: unknown provider "goggle"; use brave, searxng, duckduckgo, jina, mcp or none`},
		"no Brave key": {Config{Names: []string{"brave"}}, fault.NotConfigured, "the search provider brave needs BRAVE_API_KEY"},
		"no Jina key":  {Config{Names: []string{"jina"}}, fault.NotConfigured, "the search provider jina needs JINA_API_KEY"},
		"no address":   {Config{Names: []string{"mcp"}}, fault.NotConfigured, "the search provider mcp needs NODEST_SEARCH_BASE_URL"},
		"bad address":  {Config{BaseURL: "ftp://x"}, fault.Invalid, "NODEST_SEARCH_BASE_URL: must be an http or https URL"},
		"two servers":  {Config{Names: []string{"mcp", "searxng"}, BaseURL: "http://x"}, fault.Invalid, "NODEST_SEARCH: searxng and mcp cannot be combined: there is one NODEST_SEARCH_BASE_URL"},
		"none and one": {Config{Names: []string{"none", "brave"}}, fault.Invalid, "NODEST_SEARCH: none cannot be combined with other providers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.cfg)
			if e := fault.Public(err); err == nil || e.Code != c.code || e.Message != c.message {
				t.Errorf("error %v", err)
			}
		})
	}
}

// broken panics over each answer.
type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Search(context.Context, Query) (Results, error) { panic("over an answer") }

func TestAPanicOfAProviderIsAFailure(t *testing.T) {
	c := newChain(time.Now, broken{})
	defer c.Close()
	_, err := c.Search(t.Context(), Query{Text: "x"})
	if public := fault.Public(err); err == nil || strings.Contains(public.Message, "over an answer") {
		t.Errorf("got %v", public)
	}
}
