package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// searxng is a SearXNG instance, which must have the format json enabled.
type searxng struct{ api }

func newSearXNG(a api) searxng {
	a.base = strings.TrimSuffix(a.base, "/search")
	return searxng{a}
}

type searxngAnswer struct {
	Results      json.RawMessage
	Unresponsive loose.List[loose.List[loose.Text]] `json:"unresponsive_engines"`
}

type searxngResult struct {
	Title, URL, Content, PublishedDate loose.Text
}

func (s searxng) Search(ctx context.Context, q Query) (Results, error) {
	params := url.Values{
		"q":          {q.wordsWithLocation()},
		"format":     {"json"},
		"categories": {"general"},
		"language":   {searxngLanguage(q)},
		"safesearch": {map[string]string{SafeOff: "0", SafeModerate: "1", SafeStrict: "2"}[q.Safe]},
	}
	if period := q.period(); period != "" {
		params.Set("time_range", map[string]string{"h": "day", "d": "day", "w": "week", "m": "month", "y": "year"}[period])
	}
	ans, err := s.get(ctx, "/search", params, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return Results{}, err
	}
	if ans.status != http.StatusOK {
		return Results{}, s.refusal(ans, q)
	}
	var found searxngAnswer
	if err := s.decode(ans, &found); err != nil {
		return Results{}, err
	}
	list, err := elements[searxngResult](s.api, found.Results)
	if err != nil {
		return Results{}, err
	}
	var res Results
	now := s.now()
	for _, r := range list {
		if res.Results = add(res.Results, r.Title, r.URL, r.Content, date(string(r.PublishedDate), now)); len(res.Results) == q.Count {
			break
		}
	}
	if silent := unresponsive(found.Unresponsive); len(res.Results) == 0 && silent != "" {
		e := llm.Upstream(s.name, fault.UpstreamDown, 0, nil)
		e.Message = s.name + ": none of its engines answered"
		return Results{}, e.Quote(silent)
	}
	return res, nil
}

// refusal reports an answer that is not a success. SearXNG says 403 where the format
// json is not enabled, which is the default.
func (s searxng) refusal(ans answer, q Query) error {
	switch ans.status {
	case http.StatusForbidden:
		e := llm.Upstream(s.name, fault.UpstreamBadAnswer, ans.status, nil)
		e.Message = s.name + " does not allow answers in JSON (HTTP 403); add json to search.formats in its settings.yml"
		return e
	case http.StatusUnauthorized: // there is no key that it could reject
		return s.refused(ans, fault.UpstreamBadAnswer, llm.Secrets{Texts: []string{q.Text}})
	}
	return s.refused(ans, "", llm.Secrets{Texts: []string{q.Text}})
}

// unresponsive names engines and their troubles, from pairs such as ["google", "CAPTCHA"].
func unresponsive(engines loose.List[loose.List[loose.Text]]) string {
	var list []string
	for _, e := range engines[:min(len(engines), 5)] {
		words := ""
		for _, word := range e[:min(len(e), 2)] {
			words += " " + string(word)
		}
		list = append(list, cut(oneLine(words), 80))
	}
	return strings.Join(list, ", ")
}

// searxngLanguage returns a language as SearXNG checks it: "en", "en-US" or "all".
func searxngLanguage(q Query) string {
	lang, traditional := q.language()
	switch {
	case lang == "":
		return "all"
	case lang == "zh" && traditional:
		return "zh-TW"
	case lang == "zh":
		return "zh-CN"
	case q.Country != "":
		return lang + "-" + q.Country
	}
	return lang
}
