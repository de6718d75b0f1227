// Package provider asks search engines: Brave, SearXNG, DuckDuckGo, Jina, and any MCP
// server that offers a search tool. Chain asks them in order until one finds something.
//
// What an engine returns is untrusted. Answers are bounded, texts are reduced to plain
// text, and only http and https addresses are passed on. Nothing is fetched from them
// here. All requests go through the *http.Client in Config.
package provider

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
)

// Provider is one search engine. Search returns at most q.Count results, possibly none,
// or a *fault.Error with one of the upstream_* codes, which names the provider and its
// HTTP status, but neither a key nor the body of an answer. It is safe for concurrent use.
type Provider interface {
	Name() string
	Search(ctx context.Context, q Query) (Results, error)
}

// Query is what to search for. Chain.Search checks and completes it.
type Query struct {
	Text     string   // at most 400 code points are used
	Count    int      // results: 1 to 20, 0 = 10
	Fresh    string   // "qdr:h", "qdr:d", "qdr:w", "qdr:m" or "qdr:y" (past hour to past year); others = any time
	Lang     string   // "zh", "zh-TW", "en"; "" = any
	Country  string   // two letters of ISO 3166; "" = any
	Safe     string   // SafeOff, SafeModerate or SafeStrict; others = moderate
	Hosts    []string // only pages of these hosts, at most 10; empty = all
	Location string   // a place that the results are for: "Berlin"
	Place    bool     // look for places (shops, sights, addresses) too, where the provider can
	For      string   // whose query it is: what is kept of it is not used for others
}

// The values of Query.Safe.
const (
	SafeOff      = "off"
	SafeModerate = "moderate"
	SafeStrict   = "strict"
)

// Result is one page. Title and Description are plain text.
type Result struct {
	Title       string
	URL         string // http or https, without user name and password
	Description string
	Date        time.Time // time of publication, UTC; zero = not known
}

// Place is a shop, a sight or the like. Fields that are not known are empty.
type Place struct {
	Name, Address, Phone string
	Rating               float64
	Ratings              int // that Rating is the mean of
	PriceRange           string
	Description          string
}

// Results is what one provider found.
type Results struct {
	Provider string
	Results  []Result // best first
	Places   []Place  // only for Query.Place
	Cached   bool
	Took     time.Duration
	Failures []Failure // failures of the providers that were asked before
}

// Failure says why a provider did not help. Err has the code not_found if it answered
// without results.
type Failure struct {
	Provider string
	Err      error
}

// Bounds of a query.
const (
	defaultCount = 10
	maxCount     = 20
	maxQuery     = 400 // code points, with the hosts; Brave accepts no more
	maxHosts     = 10
)

// periods are the values of Query.Fresh.
var periods = []string{"qdr:h", "qdr:d", "qdr:w", "qdr:m", "qdr:y"}

var hostName = regexp.MustCompile(`^[\pL\pN](?:[\pL\pN.-]{0,250}[\pL\pN])?$`)

// checked returns q with defaults in place of what is missing or not valid.
func (q Query) checked() (Query, error) {
	q.Text = oneLine(q.Text)
	if q.Text == "" {
		return q, fault.InvalidField("query", "required", "must not be empty")
	}
	if q.Count <= 0 {
		q.Count = defaultCount
	}
	q.Count = min(q.Count, maxCount)
	if !slices.Contains(periods, q.Fresh) {
		q.Fresh = ""
	}
	if q.Safe != SafeOff && q.Safe != SafeStrict {
		q.Safe = SafeModerate
	}
	var hosts []string
	for _, h := range q.Hosts {
		if h = strings.ToLower(strings.TrimSpace(h)); hostName.MatchString(h) && len(hosts) < maxHosts {
			hosts = append(hosts, h)
		}
	}
	if len(q.Hosts) > 0 && len(hosts) == 0 {
		return q, fault.InvalidField("hosts", "invalid", "contains no host name")
	}
	q.Hosts = hosts
	q.Location = first(oneLine(q.Location), 100)
	q.Country = strings.ToUpper(q.Country)
	if !isLetters(q.Country, 2) {
		q.Country = ""
	}
	return q, nil
}

// words is the text to search for, with the hosts as site: operators.
func (q Query) words() string {
	var sites string
	if len(q.Hosts) > 0 {
		sites = " site:" + strings.Join(q.Hosts, " OR site:")
	}
	return first(q.Text, max(maxQuery-utf8.RuneCountInString(sites), maxQuery/4)) + sites
}

// wordsWithLocation is words for providers without a parameter for the location.
func (q Query) wordsWithLocation() string {
	q.Text = oneLine(q.Text + " " + q.Location)
	return q.words()
}

// period is the letter of Fresh: h, d, w, m, y, or "" for any time.
func (q Query) period() string { return strings.TrimPrefix(q.Fresh, "qdr:") }

// language splits Lang into a language in lower case ("zh") and, for Chinese, whether
// the traditional script is meant. It is "" if Lang is not a language tag.
func (q Query) language() (lang string, traditional bool) {
	lang, rest, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(q.Lang, "_", "-")), "-")
	if !isLetters(lang, 2) && !isLetters(lang, 3) {
		return "", false
	}
	switch {
	case lang != "zh":
	case rest != "":
		traditional = strings.HasPrefix(rest, "tw") || strings.HasPrefix(rest, "hk") || strings.HasPrefix(rest, "mo") || strings.HasPrefix(rest, "hant")
	default:
		traditional = q.Country == "TW" || q.Country == "HK" || q.Country == "MO"
	}
	return lang, traditional
}

// isLetters reports whether s consists of n ASCII letters.
func isLetters(s string, n int) bool {
	for _, c := range []byte(s) {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return len(s) == n
}
