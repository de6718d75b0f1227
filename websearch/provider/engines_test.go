package provider

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/provider/providertest"
)

func searxngFor(t *testing.T, h http.Handler) Provider {
	return one(t, Config{Names: []string{"searxng"}, BaseURL: "http://searx.test:8080/sub/search/", Client: engine(h)})
}

func duckFor(t *testing.T, h http.Handler) Provider {
	return one(t, Config{Names: []string{"duckduckgo"}, Client: engine(h)})
}

func jinaFor(t *testing.T, h http.Handler) Provider {
	return one(t, Config{Names: []string{"jina"}, JinaKeys: []llm.Key{keyOne}, Client: engine(h)})
}

func TestSearXNGSendsTheQueryAndReadsTheResults(t *testing.T) {
	for name, c := range map[string]struct {
		q      Query
		params string
	}{
		"defaults":     {question, "q=old+bookshops&format=json&categories=general&language=all&safesearch=1"},
		"all settings": {Query{Text: "书店", Fresh: "qdr:m", Lang: "zh", Country: "TW", Safe: SafeOff, Hosts: []string{"a.test"}, Location: "台北"}, "q=书店+台北+site:a.test&format=json&categories=general&language=zh-TW&safesearch=0&time_range=month"},
		"one country":  {Query{Text: "x", Fresh: "qdr:h", Lang: "EN_gb", Country: "us", Safe: SafeStrict}, "q=x&format=json&categories=general&language=en-US&safesearch=2&time_range=day"},
	} {
		t.Run(name, func(t *testing.T) {
			p := searxngFor(t, answers(t, func(t *testing.T, r *http.Request) {
				wantParams(t, r.URL.Query(), c.params)
				if r.Host != "searx.test:8080" || r.URL.Path != "/sub/search" {
					t.Errorf("request to %s%s", r.Host, r.URL.Path)
				}
			}, reply{body: fixture(t, "searxng.json")}))
			res, err := search(t, p, c.q)
			if err != nil {
				t.Fatal(err)
			}
			wantResults(t, res.Results, []Result{
				{pages[0].Title, pages[0].URL, "How to sort a vector<int> of books.", time.Date(2026, 1, 15, 8, 30, 0, 0, time.UTC)},
				pages[1],
			})
		})
	}
}

func TestSearXNGReportsEachKindOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		reply   reply
		code    fault.Code
		status  int
		message string
	}{
		"JSON is not enabled": {reply{status: 403, body: "<html>Forbidden"}, fault.UpstreamBadAnswer, 403, "SearXNG does not allow answers in JSON (HTTP 403); add json to search.formats in its settings.yml"},
		"needs a password":    {reply{status: 401}, fault.UpstreamBadAnswer, 401, "SearXNG rejected the request: HTTP 401 Unauthorized"},
		"limiter":             {reply{status: 429, body: "Too Many Requests"}, fault.UpstreamRate, 429, "SearXNG reports too many requests"},
		"broken":              {reply{status: 500, body: "<html>"}, fault.UpstreamDown, 500, "SearXNG is not available"},
		"no engine answered":  {reply{body: fixture(t, "searxng_silent.json")}, fault.UpstreamDown, 0, "SearXNG: none of its engines answered: google CAPTCHA, brave Suspended: too many requests"},
		"another server":      {reply{body: "<html>Welcome"}, fault.UpstreamBadAnswer, 0, "SearXNG: the answer is not JSON; check the base URL"},
		"wrong path":          {reply{status: 404, body: "<html>"}, fault.UpstreamBadAnswer, 404, "SearXNG rejected the request: HTTP 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := search(t, searxngFor(t, answers(t, nil, c.reply)), question)
			wantFailure(t, err, c.code, c.status, c.message)
		})
	}
}

func TestNothingFoundIsNoFailure(t *testing.T) {
	for name, p := range map[string]Provider{
		"searxng":    searxngFor(t, answers(t, nil, reply{body: `{"results":[],"unresponsive_engines":[]}`})),
		"brave":      one(t, Config{Names: []string{"brave"}, BraveKeys: []llm.Key{keyOne}, Client: engine(answers(t, nil, reply{body: `{"type":"search"}`}))}),
		"duckduckgo": duckFor(t, answers(t, nil, reply{body: fixture(t, "duckduckgo_none.html")})),
		"jina":       jinaFor(t, answers(t, nil, reply{status: 422, body: fixture(t, "jina_none.json")})),
	} {
		if res, err := search(t, p, question); err != nil || len(res.Results) != 0 {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
}

func TestTheFakeSearXNGIsOne(t *testing.T) {
	var fake providertest.Server
	fake.Answer("old bookshops", providertest.Result{Title: "A", URL: "https://a.test/", Content: "b", Date: "2026-01-15T00:00:00"})
	p := one(t, Config{Names: []string{"searxng"}, BaseURL: "http://searx.test", Client: engine(&fake)})
	res, err := search(t, p, Query{Text: "Old Bookshops", Fresh: "qdr:y", Lang: "en", Country: "US", Hosts: nil})
	if err != nil {
		t.Fatal(err)
	}
	wantResults(t, res.Results, []Result{{"A", "https://a.test/", "b", time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)}})
	if res, err = search(t, p, Query{Text: "something else"}); err != nil || len(res.Results) != 0 {
		t.Errorf("%v, %v", res, err)
	}
	fake.Fail(providertest.Fault{Status: 503})
	if _, err = search(t, p, question); !fault.Is(err, fault.UpstreamDown) {
		t.Errorf("error %v", err)
	}
	fake.Fail(providertest.Fault{Body: "<html>"})
	if _, err = search(t, p, question); !fault.Is(err, fault.UpstreamBadAnswer) {
		t.Errorf("error %v", err)
	}
	if asked := strings.Join(fake.Asked(), "|"); asked != "Old Bookshops|something else|old bookshops|old bookshops" {
		t.Errorf("asked %q", asked)
	}
}

func TestTheFakeSearXNGRefusesWhatARealOneWouldNotUnderstand(t *testing.T) {
	var fake providertest.Server
	client := engine(&fake)
	for address, want := range map[string]int{
		"/search?q=a&format=json":                    200,
		"/search?q=a&format=json&colour=red":         400,
		"/search?q=a&format=json&safesearch=3":       400,
		"/search?q=a&format=json&time_range=century": 400,
		"/search?q=a":         400,
		"/search?format=json": 400,
		"/other":              404,
	} {
		resp, err := client.Get("http://searx.test" + address)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", address, resp.StatusCode, want)
		}
	}
}

func TestASlowAnswerTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fake providertest.Server
		fake.Fail(providertest.Fault{Delay: time.Minute})
		c, err := New(Config{Names: []string{"searxng"}, BaseURL: "http://searx.test", Client: engine(&fake)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		start := time.Now()
		_, err = c.Search(t.Context(), question)
		if !fault.Is(err, fault.UpstreamTimeout) || time.Since(start) != searchLimit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if message := fault.Public(err).Message; message != "web search failed: SearXNG took too long" {
			t.Error(message)
		}
	})
}

func TestDuckDuckGoSendsTheQueryAndReadsTheResults(t *testing.T) {
	for name, c := range map[string]struct {
		q      Query
		params string
	}{
		"defaults are strict": {question, "q=old+bookshops&kl=wt-wt&kp=1"},
		"all settings":        {Query{Text: "书店", Fresh: "qdr:w", Lang: "zh-CN", Country: "CN", Safe: SafeOff, Hosts: []string{"a.test"}}, "q=书店+site:a.test&kl=cn-zh&kp=-2&df=w"},
		"Taiwan":              {Query{Text: "x", Lang: "zh", Country: "TW", Fresh: "qdr:h"}, "q=x&kl=tw-tzh&kp=1&df=d"},
		"Britain":             {Query{Text: "x", Lang: "en", Country: "GB"}, "q=x&kl=uk-en&kp=1"},
		"Japan":               {Query{Text: "x", Lang: "ja", Country: "JP"}, "q=x&kl=jp-jp&kp=1"},
		"no language":         {Query{Text: "x", Country: "DE"}, "q=x&kl=wt-wt&kp=1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := duckFor(t, answers(t, func(t *testing.T, r *http.Request) {
				wantParams(t, r.URL.Query(), c.params)
				if r.URL.Host != "html.duckduckgo.com" || r.URL.Path != "/html/" {
					t.Errorf("request to %s%s", r.URL.Host, r.URL.Path)
				}
			}, reply{body: fixture(t, "duckduckgo.html")}))
			res, err := search(t, p, c.q)
			if err != nil {
				t.Fatal(err)
			}
			wantResults(t, res.Results, []Result{
				{pages[0].Title, "https://books.test/cats?a=1&b=2", pages[0].Description, time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)},
				pages[1],
			})
		})
	}
}

func TestDuckDuckGoReportsEachKindOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		reply   reply
		code    fault.Code
		status  int
		message string
	}{
		"puzzle":             {reply{status: 202, body: fixture(t, "duckduckgo_puzzle.html")}, fault.UpstreamRate, 202, "DuckDuckGo reports too many requests"},
		"puzzle with 200":    {reply{body: fixture(t, "duckduckgo_puzzle.html")}, fault.UpstreamRate, 200, "DuckDuckGo reports too many requests"},
		"forbidden":          {reply{status: 403}, fault.UpstreamRate, 403, "DuckDuckGo reports too many requests"},
		"broken":             {reply{status: 502}, fault.UpstreamDown, 502, "DuckDuckGo is not available"},
		"a page of new form": {reply{body: "<html><body><main>hello</main>"}, fault.UpstreamBadAnswer, 0, "DuckDuckGo: the page has an unknown form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := search(t, duckFor(t, answers(t, nil, c.reply)), question)
			wantFailure(t, err, c.code, c.status, c.message)
		})
	}
}

func TestJinaSendsTheQueryAndReadsTheResults(t *testing.T) {
	for name, c := range map[string]struct{ q, body string }{
		"defaults": {`{"Text":"old bookshops"}`, `{"q":"old bookshops","num":10}`},
		"all settings": {
			`{"Text":"书店","Count":5,"Fresh":"qdr:d","Lang":"zh","Country":"CN","Hosts":["a.test","b.test"],"Location":"上海"}`,
			`{"q":"书店 site:a.test OR site:b.test","num":5,"tbs":"qdr:d","location":"上海","gl":"cn","hl":"zh-cn"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var q Query
			if err := json.Unmarshal([]byte(c.q), &q); err != nil {
				t.Fatal(err)
			}
			p := jinaFor(t, answers(t, func(t *testing.T, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if string(body) != c.body {
					t.Errorf("body %s, want %s", body, c.body)
				}
				if r.Method != http.MethodPost || r.URL.String() != "https://s.jina.ai/" || r.Header.Get("Authorization") != "Bearer "+keyOne.Reveal() {
					t.Errorf("%s %s with %q", r.Method, r.URL, r.Header)
				}
			}, reply{body: fixture(t, "jina.json")}))
			res, err := search(t, p, q)
			if err != nil {
				t.Fatal(err)
			}
			wantResults(t, withoutDates(res.Results), pages)
			if want := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC); !res.Results[0].Date.Equal(want) {
				t.Errorf("date %v", res.Results[0].Date)
			}
		})
	}
}

func TestJinaUnderstandsTheFormOfDeepResearch(t *testing.T) {
	res, err := search(t, jinaFor(t, answers(t, nil, reply{body: `{"results":[{"title":"Ten shops","snippet":"Ten of them.","url":"https://ten.test/"}],"meta":{"credits":1}}`})), question)
	if err != nil {
		t.Fatal(err)
	}
	wantResults(t, res.Results, pages[1:])
}

func TestJinaReportsEachKindOfFailure(t *testing.T) {
	for name, c := range map[string]struct {
		reply   reply
		code    fault.Code
		status  int
		message string
	}{
		"wrong key":    {reply{status: 401, body: `{"message":"Invalid API key secret-key-one"}`}, fault.UpstreamAuth, 401, "Jina rejected the API key: Invalid API key [key]"},
		"no balance":   {reply{status: 402, body: `{"message":"Account balance not enough to run this query, please recharge."}`}, fault.UpstreamQuota, 402, "Jina reports that the quota is exhausted: Account balance not enough to run this query, please recharge"},
		"too fast":     {reply{status: 429, header: map[string]string{"Retry-After": "5"}}, fault.UpstreamRate, 429, "Jina reports too many requests"},
		"a bad number": {reply{status: 422, body: `{"message":"Validation failed"}`}, fault.UpstreamBadAnswer, 422, "Jina rejected the request: Validation failed"},
		"broken":       {reply{status: 503}, fault.UpstreamDown, 503, "Jina is not available"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := search(t, jinaFor(t, answers(t, nil, c.reply)), question)
			wantFailure(t, err, c.code, c.status, c.message)
		})
	}
}

type refusing struct{ error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.error }

func TestAServerThatDoesNotAnswerIsUnavailable(t *testing.T) {
	client := &http.Client{Transport: refusing{errors.New("secret-key-one went wrong")}}
	for _, name := range []string{"brave", "searxng", "duckduckgo", "jina", "mcp"} {
		cfg := Config{Names: []string{name}, BaseURL: "http://here.test:1", BraveKeys: []llm.Key{keyOne}, JinaKeys: []llm.Key{keyOne}, Client: client}
		_, err := search(t, one(t, cfg), question)
		if !fault.Is(err, fault.UpstreamDown) || !strings.HasSuffix(fault.Public(err).Message, " at http://here.test:1 does not respond: the connection failed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoRedirectTakesAKeyElsewhere(t *testing.T) {
	elsewhere := false
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "evil.test" {
			elsewhere = true
		}
		http.Redirect(w, r, "http://evil.test/", http.StatusTemporaryRedirect)
	})
	for _, name := range []string{"brave", "jina"} {
		cfg := Config{Names: []string{name}, BraveKeys: []llm.Key{keyOne}, JinaKeys: []llm.Key{keyOne}, Client: engine(h)}
		if _, err := search(t, one(t, cfg), question); !fault.Is(err, fault.UpstreamBadAnswer) || elsewhere {
			t.Errorf("%s: %v, went elsewhere: %v", name, err, elsewhere)
		}
	}
}
