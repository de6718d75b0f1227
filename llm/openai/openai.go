// Package openai talks to every server with the chat completions interface of OpenAI: OpenRouter,
// OpenAI itself, Ollama, llama.cpp, vLLM, LM Studio and the like. It is one thin client on
// net/http, because what matters here (errors in the middle of a stream, streams that just stop,
// OpenRouter's routing and cost) falls outside the generic SDKs.
//
// A stream is whole when the server named a finish reason or sent [DONE]; comment lines are
// skipped, an error member ends the reply with an error, and a model's reasoning never becomes part
// of the text. Client is an llm.Provider; Embedder makes an llm.Embedder of it.
package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// The names of the flavours. Any other name is a compatible server, too.
const (
	OpenAI     = "openai"     // any compatible server
	OpenRouter = "openrouter" // tells the cost, and is told which app asks and whom to route to
	Jina       = "jina"       // makes embeddings only
)

// Options tune a Client. The zero value talks to OpenAI.
type Options struct {
	Name string // OpenAI (default), OpenRouter, Jina, or the name of another server, which needs a BaseURL

	// BaseURL is where the interface lives, for example http://127.0.0.1:11434/v1; paths such as
	// /chat/completions are appended. An address that already ends in /chat/completions is used
	// exactly as it is. A query is kept. The default is the public service of the flavour.
	BaseURL string

	Private bool // errors, which all users see, do not name the address

	Model string // for requests that name none; default: one of the server's own list, with OpenRouter openrouter/auto

	Routing Routing // OpenRouter only

	Transport http.RoundTripper // default: one of its own
}

// Routing tells OpenRouter which models and providers may answer, in its own words. What
// is empty is left to the OpenRouter account.
type Routing struct {
	Backups        []string `json:"-"`              // models to use when the first one cannot answer
	Sort           string   `json:"sort,omitempty"` // order of providers: price, latency or throughput
	Ignore         []string `json:"ignore,omitempty"`
	DataCollection string   `json:"data_collection,omitempty"` // deny: no providers that keep prompts; or allow
}

// Client is one server with its keys. It is safe for concurrent use.
type Client struct {
	opts Options
	chat string  // address of the chat completions
	base url.URL // the base of all other addresses
	http *http.Client
	keys *llm.Keys

	noJSON     sync.Map // models whose server refuses response_format
	noSampling sync.Map // models whose server refuses members of sampling
	noBegun    sync.Map // models whose server refuses the beginning of a reply
	models     llm.ModelList
	def        llm.Default
}

var _ llm.Provider = (*Client)(nil)

// New returns a client that uses keys, which may be empty for a local server. It fails with
// fault.Invalid when an option cannot be used; the network is not touched.
func New(keys []llm.Key, opts Options) (*Client, error) {
	if !slices.Contains([]string{"", OpenAI, OpenRouter, Jina}, opts.Name) && opts.BaseURL == "" {
		return nil, fault.InvalidField("baseUrl", "required", "required")
	}
	opts = opts.withDefaults()
	c := &Client{opts: opts, keys: llm.NewKeys(opts.Name, keys)}
	if err := c.setAddress(opts.BaseURL); err != nil {
		return nil, err
	}
	c.http = llm.HTTPClient(opts.Transport)
	c.def = llm.Default{Named: opts.Model, Choose: choose, Aliases: aliasesOf(opts.Name), Fetch: c.Models}
	return c, nil
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, OpenAI)
	switch o.Name {
	case OpenRouter:
		o.BaseURL = cmp.Or(o.BaseURL, "https://openrouter.ai/api/v1")
	case Jina:
		o.BaseURL = cmp.Or(o.BaseURL, "https://api.jina.ai/v1")
	}
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.openai.com/v1")
	if o.Transport == nil {
		o.Transport = llm.Transport()
	}
	return o
}

const chatPath = "/chat/completions"

// setAddress does not quote the address in its errors: it may hold a password.
func (c *Client) setAddress(base string) error {
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fault.InvalidField("baseUrl", "format", "must be an http or https URL")
	case u.User != nil:
		return fault.InvalidField("baseUrl", "format", "must not contain a user name or password; set the API key instead")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	c.base = *u
	c.base.Path = strings.TrimSuffix(u.Path, chatPath)
	c.chat = c.address(chatPath)
	return nil
}

func (c *Client) address(path string) string {
	u := c.base
	u.Path += path
	return u.String()
}

// Name is the flavour.
func (c *Client) Name() string { return c.opts.Name }

// DefaultModel answers requests that name no model: one of the server's own list; see choose.
func (c *Client) DefaultModel(ctx context.Context) string { return c.def.Model(ctx) }

// NextModel takes the place of a default that the server does not know.
func (c *Client) NextModel(ctx context.Context, model string) string { return c.def.Next(ctx, model) }

// Close closes idle connections. Running streams continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Stream asks for a reply; see llm.Generator.
func (c *Client) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return c.keys.Stream(ctx, req, c.stream)
}

func (c *Client) stream(ctx context.Context, key llm.Key, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		body := c.body(req)
		resp, err := c.ask(ctx, key, body)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		defer resp.Body.Close()
		s := stream{ctx: ctx, provider: c.opts.Name, hide: llm.Secrets{Key: key, Texts: body.texts()}, yield: yield, tools: len(body.Tools) > 0}
		answer := io.Reader(resp.Body)
		if mediaType(resp) == "text/html" { // also what some servers call an answer
			var isPage bool
			if answer, isPage = webPage(answer); isPage {
				s.fail(c.named(llm.WrongAddress(c.opts.Name, c.shown(), resp, s.hide)))
				return
			}
		}
		s.events(answer)
		if s.done {
			llm.Drain(resp.Body)
		}
	}
}

// longestLead bounds the blanks in front of an answer, in bytes.
const longestLead = 1 << 10

// webPage reports that a body is a web page, or nothing. The body is read from rest.
func webPage(body io.Reader) (rest io.Reader, is bool) {
	in := bufio.NewReader(body)
	for n := 1; n <= longestLead; n++ {
		lead, err := in.Peek(n)
		if err != nil {
			return in, true
		}
		if c := lead[n-1]; c > ' ' {
			return in, c == '<'
		}
	}
	return in, true
}

// ask sends a request. Where a server refuses the beginning of the reply, a member of sampling or JSON, but takes the
// request without it, later requests for this model leave it out.
func (c *Client) ask(ctx context.Context, key llm.Key, body chatRequest) (*http.Response, error) {
	resp, err := c.post(ctx, c.chat, key, body)
	for _, less := range []struct {
		has   bool
		drop  func()
		noted *sync.Map
	}{
		{body.begun, func() { body.Messages = body.Messages[:len(body.Messages)-1] }, &c.noBegun},
		{!body.sampling.isZero(), func() { body.sampling = sampling{} }, &c.noSampling},
		{body.ResponseFormat != nil, func() { body.ResponseFormat = nil }, &c.noJSON},
	} {
		if !less.has || !fault.Is(err, fault.UpstreamBadAnswer) || llm.ProviderStatus(err) < 400 {
			continue
		}
		less.drop()
		if again, refused := c.post(ctx, c.chat, key, body); refused == nil {
			less.noted.Store(body.Model, true)
			return again, nil
		}
	}
	return resp, err
}

// asking is a body of a request; texts are what its errors must not quote.
type asking interface{ texts() []string }

// post sends body and returns an answer with status 200, or the error.
func (c *Client) post(ctx context.Context, address string, key llm.Key, body asking) (*http.Response, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "could not encode the request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, &buf)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "could not create the request")
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(req, llm.Secrets{Key: key, Texts: body.texts()})
}

func (c *Client) do(req *http.Request, s llm.Secrets) (*http.Response, error) {
	req.Header.Set("User-Agent", "nodest")
	if !s.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+s.Key.Reveal())
	}
	if c.opts.Name == OpenRouter {
		req.Header.Set("HTTP-Referer", "https://nodest.local")
		req.Header.Set("X-Title", "NodeST")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // without the address
		}
		return nil, llm.NoAnswer(req.Context(), c.opts.Name, c.shown(), err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		if resp.StatusCode/100 == 3 {
			return nil, c.named(llm.WrongAddress(c.opts.Name, c.shown(), resp, s))
		}
		return nil, c.named(c.refusal(resp, s))
	}
	return resp, nil
}

// shown is the server's address without its query, which may contain a key.
func (c *Client) shown() string {
	if c.opts.Private {
		return "its address"
	}
	u := c.base
	u.RawQuery = ""
	return u.String()
}

// named calls OpenAI itself by its name.
func (c *Client) named(err error) error {
	var e *fault.Error
	if c.base.Hostname() == "api.openai.com" && errors.As(err, &e) {
		e.Message = strings.Replace(e.Message, "OpenAI-compatible server", "OpenAI", 1)
	}
	return err
}

// The bounds of answers that are not streamed, in bytes. A number of a vector takes up to about 25.
const (
	listLimit   = 8 << 20
	vectorLimit = 256 << 10 // for each text
)

// get reads the JSON of a list into out.
func (c *Client) get(ctx context.Context, address string, key llm.Key, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "could not create the request")
	}
	resp, err := c.do(req, llm.Secrets{Key: key})
	if err != nil {
		return err
	}
	return c.decode(ctx, resp, listLimit, out)
}

// decode reads a JSON answer of at most limit bytes into out.
func (c *Client) decode(ctx context.Context, resp *http.Response, limit int64, out any) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return llm.NetworkError(ctx, c.opts.Name, err)
	case int64(len(b)) > limit:
		return llm.BadAnswer(c.opts.Name, nil, "sent too much data")
	case loose.Unmarshal(b, out) == nil:
		return nil
	case mediaType(resp) == "text/html":
		return c.named(llm.WrongAddress(c.opts.Name, c.shown(), resp, llm.Secrets{}))
	}
	return llm.BadAnswer(c.opts.Name, nil, "sent unexpected JSON")
}

func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}
