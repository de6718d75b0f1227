// Package rerank asks a server which passages answer a question best: Jina, Cohere, and servers
// of one's own that speak as they do (llama.cpp, vLLM, Infinity and others).
package rerank

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// The servers.
const (
	Jina   = "jina"
	Cohere = "cohere"
)

// usual are base URL and model of the servers.
var usual = map[string]struct{ base, model string }{
	Jina:   {"https://api.jina.ai/v1", "jina-reranker-v2-base-multilingual"},
	Cohere: {"https://api.cohere.com/v2", "rerank-v3.5"},
}

// maxAnswer bounds an answer, in bytes. Servers may repeat the passages.
const maxAnswer = 2 << 20

// Config is how to reach a server.
type Config struct {
	Server  string    // Jina or Cohere
	BaseURL string    // "" = that of the service
	Model   string    // "" = the usual one of the service
	Keys    []llm.Key // none = a server of one's own that needs none
	Client  *http.Client
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	server, url, model string
	keys               *llm.Keys
	http               *http.Client
}

// New returns a Client; NotConfigured if the service needs a key and there is none.
func New(c Config) (*Client, error) {
	if c.BaseURL == "" && len(c.Keys) == 0 {
		return nil, fault.New(fault.NotConfigured, "reranking with %s needs a key, or NODEST_RERANK_BASE_URL", c.Server)
	}
	u := usual[c.Server]
	return &Client{
		server: c.Server, url: strings.TrimRight(cmp.Or(c.BaseURL, u.base), "/") + "/rerank", model: cmp.Or(c.Model, u.model),
		keys: llm.NewKeys(c.Server, c.Keys), http: c.Client,
	}, nil
}

type request struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

type answer struct {
	Results loose.List[result] `json:"results"`
}

type result struct {
	Index loose.Number `json:"index"`
	Score loose.Number `json:"relevance_score"`
}

// Order returns the indexes of texts, best first; it may leave some out.
//
// Errors: those of a provider. An answer that names an unknown passage, or one twice, is
// UpstreamBadAnswer. Results without a readable number or score are left out.
func (c *Client) Order(ctx context.Context, query string, texts []string) (order []int, err error) {
	body, err := json.Marshal(request{c.model, query, texts, len(texts)})
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "encoding a question")
	}
	err = c.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		data, err := c.post(ctx, key, body)
		if err != nil {
			return err
		}
		order, err = c.read(data, len(texts))
		return err
	})
	return order, err
}

// post sends a request and returns the body of the answer.
func (c *Client) post(ctx context.Context, key llm.Key, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the base URL of %s is not valid", c.server)
	}
	if !key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.noAnswer(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return nil, llm.Upstream(c.server, codeOf(resp.StatusCode), resp.StatusCode, nil).After(llm.RetryAfter(resp.Header, time.Now()))
	case len(data) > maxAnswer:
		return nil, llm.BadAnswer(c.server, nil, "the answer is larger than "+fault.Size(maxAnswer))
	}
	return data, nil
}

func (c *Client) noAnswer(ctx context.Context, err error) error {
	address := c.url
	if u, parseErr := url.Parse(c.url); parseErr == nil {
		address = u.Scheme + "://" + u.Host
	}
	return llm.NoAnswer(ctx, c.server, address, err)
}

// codeOf is what an HTTP status other than success stands for.
func codeOf(status int) fault.Code {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault.UpstreamAuth
	case status == http.StatusPaymentRequired:
		return fault.UpstreamQuota
	case status == http.StatusTooManyRequests:
		return fault.UpstreamRate
	case status >= http.StatusInternalServerError:
		return fault.UpstreamDown
	}
	return fault.UpstreamBadAnswer
}

// read checks an answer about n texts. Its results may come in any order.
func (c *Client) read(data []byte, n int) (order []int, err error) {
	var a answer
	if loose.Unmarshal(data, &a) != nil {
		return nil, llm.BadAnswer(c.server, nil, "the answer is not a list of results; check the base URL")
	}
	scores := map[int]float64{} // by the index of a passage
	for _, r := range a.Results {
		at, ok := r.Index.Int()
		score := r.Score.Float()
		if !ok || score == nil {
			continue
		}
		if _, twice := scores[at]; twice || at < 0 || at >= n {
			return nil, llm.BadAnswer(c.server, nil, "the answer has results for passages that were not sent")
		}
		scores[at] = *score
		order = append(order, at)
	}
	if n > 0 && len(order) == 0 {
		return nil, llm.BadAnswer(c.server, nil, "the answer has no results")
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(scores[y], scores[x]) })
	return order, nil
}
