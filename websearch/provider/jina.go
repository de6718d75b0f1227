package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// jina is the search of Jina (s.jina.ai).
type jina struct {
	api
	keys *llm.Keys
}

func newJina(a api, keys []llm.Key) *jina {
	a.client = withoutRedirects(a.client)
	return &jina{a, llm.NewKeys(a.name, keys)}
}

type jinaRequest struct {
	Q        string `json:"q"`
	Num      int    `json:"num"`
	Tbs      string `json:"tbs,omitempty"`
	Location string `json:"location,omitempty"`
	GL       string `json:"gl,omitempty"`
	HL       string `json:"hl,omitempty"`
}

type jinaResult struct {
	Title, URL, Link, Snippet, Description, Date loose.Text
}

// jinaAnswer has the results in data; the address that DeepResearch uses (svip.jina.ai)
// has them in results.
type jinaAnswer struct {
	Data, Results json.RawMessage
}

func (j *jina) Search(ctx context.Context, q Query) (Results, error) {
	body, err := json.Marshal(jinaRequest{
		Q: q.words(), Num: q.Count, Tbs: q.Fresh, Location: q.Location,
		GL: strings.ToLower(q.Country), HL: jinaLanguage(q),
	})
	if err != nil {
		return Results{}, fault.Wrap(err, fault.Internal, "encoding the query")
	}
	var found jinaAnswer
	if err := j.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		return j.ask(ctx, key, body, q, &found)
	}); err != nil {
		return Results{}, err
	}
	list, err := elements[jinaResult](j.api, found.Data)
	if err != nil {
		return Results{}, err
	}
	more, err := elements[jinaResult](j.api, found.Results)
	if err != nil {
		return Results{}, err
	}
	var res Results
	now := j.now()
	for _, r := range append(list, more...) {
		res.Results = add(res.Results, r.Title, cmp.Or(r.URL, r.Link), cmp.Or(r.Description, r.Snippet), date(string(r.Date), now))
	}
	res.Results = res.Results[:min(len(res.Results), q.Count)]
	return res, nil
}

func (j *jina) ask(ctx context.Context, key llm.Key, body []byte, q Query, found *jinaAnswer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, j.base+"/", bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "the base URL of %s is not valid", j.name)
	}
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Respond-With", "no-content") // titles and descriptions, not whole pages
	ans, err := j.send(req)
	if err != nil {
		return err
	}
	if ans.status == http.StatusUnprocessableEntity && strings.HasPrefix(said(ans.body), "No search results") {
		return nil
	}
	if ans.status != http.StatusOK {
		return j.refused(ans, "", llm.Secrets{Key: key, Texts: []string{q.Text}})
	}
	return j.decode(ans, found)
}

// jinaLanguage returns a language as Google has them.
func jinaLanguage(q Query) string {
	lang, traditional := q.language()
	switch {
	case lang == "zh" && traditional:
		return "zh-tw"
	case lang == "zh":
		return "zh-cn"
	case len(lang) == 2:
		return lang
	}
	return ""
}
