package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// The limits of a Brave key that has told none. Once Brave has sent the limits of a key
// (X-RateLimit-Limit), those are used.
const (
	braveGap   = time.Second // between two requests
	braveMonth = 2000        // requests per calendar month, UTC
)

// bravePatience is how long a request waits for its turn, if no key is free.
const bravePatience = 1200 * time.Millisecond

// Counter counts the requests of a key in a month. Add counts one more and returns the
// number so far. key is a hash, month has the form "2006-01".
type Counter interface {
	Add(ctx context.Context, key, month string) (int, error)
}

// brave is the Brave Search API.
type brave struct {
	api
	keys    *llm.Keys
	turns   map[string]*turn // by the hash of a key
	counter Counter
}

func newBrave(a api, keys []llm.Key, counter Counter) *brave {
	b := &brave{api: a, keys: llm.NewKeys(a.name, keys), turns: map[string]*turn{}, counter: counter}
	b.client = withoutRedirects(a.client)
	for _, k := range keys {
		b.turns[hashOf(k)] = &turn{gap: braveGap, month: braveMonth}
	}
	return b
}

func hashOf(k llm.Key) string {
	sum := sha256.Sum256([]byte(k.Reveal()))
	return hex.EncodeToString(sum[:8])
}

type braveAnswer struct {
	Web       struct{ Results json.RawMessage }
	Locations struct {
		Results loose.List[struct{ ID loose.Text }]
	}
}

type braveResult struct {
	Title, URL, Description, Age loose.Text
	PageAge                      loose.Text `json:"page_age"`
}

func (b *brave) Search(ctx context.Context, q Query) (Results, error) {
	params := url.Values{
		"q":                {q.wordsWithLocation()},
		"count":            {strconv.Itoa(q.Count)},
		"country":          {braveCountry(q.Country)},
		"safesearch":       {q.Safe},
		"text_decorations": {"false"},
		"result_filter":    {"web"},
	}
	if lang := braveLang(q); lang != "" {
		params.Set("search_lang", lang)
	}
	if period := q.period(); period != "" {
		params.Set("freshness", map[string]string{"h": "pd", "d": "pd", "w": "pw", "m": "pm", "y": "py"}[period])
	}
	if q.Place {
		params.Set("result_filter", "locations,web") // one request instead of two
	}
	var found braveAnswer
	if err := b.ask(ctx, "/res/v1/web/search", params, q, &found); err != nil {
		return Results{}, err
	}
	list, err := elements[braveResult](b.api, found.Web.Results)
	if err != nil {
		return Results{}, err
	}
	var res Results
	now := b.now()
	for _, r := range list {
		res.Results = add(res.Results, r.Title, r.URL, r.Description, date(string(cmp.Or(r.PageAge, r.Age)), now))
	}
	res.Results = res.Results[:min(len(res.Results), q.Count)]
	var ids []string
	for _, l := range found.Locations.Results {
		if l.ID != "" && len(l.ID) <= maxURL && len(ids) < q.Count {
			ids = append(ids, string(l.ID))
		}
	}
	if q.Place && len(ids) > 0 {
		// Not every plan includes the details. The pages are worth having without them.
		res.Places, _ = b.places(ctx, ids, q)
	}
	return res, nil
}

// ask sends a request with a key whose turn it is and decodes the answer into v. It waits
// for at most bravePatience, and not beyond the deadline of ctx.
func (b *brave) ask(ctx context.Context, path string, params url.Values, q Query, v any) error {
	for waited := time.Duration(0); ; {
		err := b.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
			return b.askWith(ctx, key, path, params, q, v)
		})
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.UpstreamRate || e.RetryAfter <= 0 || waited+e.RetryAfter > bravePatience {
			return err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= e.RetryAfter {
			return err
		}
		waited += e.RetryAfter
		if ended := llm.Sleep(ctx, e.RetryAfter); ended != nil {
			return b.noAnswer(ctx, ended)
		}
	}
}

func (b *brave) askWith(ctx context.Context, key llm.Key, path string, params url.Values, q Query, v any) error {
	now := b.now().UTC()
	t := b.turns[hashOf(key)]
	if wait := t.take(now); wait > 0 {
		return llm.Upstream(b.name, fault.UpstreamRate, 0, errors.New("the key has sent a request just now")).After(wait)
	}
	n, err := b.counter.Add(ctx, hashOf(key), now.Format("2006-01"))
	if err != nil {
		return err
	}
	if most := t.perMonth(); most > 0 && n > most {
		next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		return llm.Upstream(b.name, fault.UpstreamQuota, 0, errors.New("the key has sent its requests of this month")).After(next.Sub(now))
	}
	ans, err := b.get(ctx, path, params, http.Header{"X-Subscription-Token": {key.Reveal()}, "Accept": {"application/json"}})
	if err != nil {
		return err
	}
	t.learn(ans.header)
	if ans.status != http.StatusOK {
		return b.refusal(ans, llm.Secrets{Key: key, Texts: []string{q.Text}})
	}
	return b.decode(ans, v)
}

// braveCodes are the error codes of Brave that say more than the status: a wrong key is
// refused with 422, like a wrong parameter.
var braveCodes = map[string]fault.Code{
	"SUBSCRIPTION_TOKEN_INVALID": fault.UpstreamAuth,
	"SUBSCRIPTION_TOKEN_MISSING": fault.UpstreamAuth,
	"SUBSCRIPTION_NOT_FOUND":     fault.UpstreamAuth,
	"RATE_LIMITED":               fault.UpstreamRate,
	"QUOTA_LIMITED":              fault.UpstreamQuota,
}

func (b *brave) refusal(ans answer, hide llm.Secrets) error {
	var said struct{ Error struct{ Code loose.Text } }
	_ = loose.Unmarshal(ans.body, &said) // the status is enough
	e := b.refused(ans, braveCodes[string(said.Error.Code)], hide)
	if e.RetryAfter == 0 {
		second, month := pair(ans.header.Get("X-RateLimit-Reset"))
		switch e.Code {
		case fault.UpstreamRate:
			e.RetryAfter = time.Duration(second) * time.Second
		case fault.UpstreamQuota:
			e.RetryAfter = time.Duration(month) * time.Second
		}
	}
	return e
}

// turn spaces the requests of one key.
type turn struct {
	mu    sync.Mutex
	next  time.Time
	gap   time.Duration
	month int // requests per month, 0 = unlimited
}

// take takes the turn, or returns how long to wait for it.
func (t *turn) take(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.next) {
		return t.next.Sub(now)
	}
	t.next = now.Add(t.gap)
	return 0
}

func (t *turn) perMonth() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.month
}

// learn reads the limits of a key from an answer: "20, 0" means 20 requests per second,
// without a limit per month.
func (t *turn) learn(h http.Header) {
	limit := h.Get("X-RateLimit-Limit")
	second, month := pair(limit)
	if second <= 0 || !strings.Contains(limit, ",") {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gap, t.month = time.Second/time.Duration(min(second, 1000)), month
}

// pair reads two numbers with a comma between them; what is not a number is 0.
func pair(s string) (first, second int) {
	a, b, _ := strings.Cut(s, ",")
	first, _ = strconv.Atoi(strings.TrimSpace(a))
	second, _ = strconv.Atoi(strings.TrimSpace(b))
	return max(first, 0), min(max(second, 0), 1<<31-1)
}

var (
	braveCountries = strings.Fields("AR AU AT BE BR CA CL DK FI FR DE GR HK IN ID IT JP KR MY MX NL NZ NO CN PL PT PH RU SA ZA ES SE CH TW TR GB US")
	braveLanguages = strings.Fields("ar eu bn bg ca hr cs da nl en et fi fr gl de el gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es sv ta te th tr uk vi")
)

// braveCountry and braveLang return the values that Brave knows; it rejects others.
func braveCountry(country string) string {
	if slices.Contains(braveCountries, country) {
		return country
	}
	return "ALL"
}

func braveLang(q Query) string {
	lang, traditional := q.language()
	switch {
	case lang == "zh" && traditional:
		return "zh-hant"
	case lang == "zh":
		return "zh-hans"
	case lang == "ja":
		return "jp"
	case lang == "pt" && (q.Country == "BR" || strings.EqualFold(q.Lang, "pt-BR")):
		return "pt-br"
	case lang == "pt":
		return "pt-pt"
	case slices.Contains(braveLanguages, lang):
		return lang
	}
	return ""
}
