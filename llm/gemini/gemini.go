// Package gemini is the adapter for Google's Gemini API. One provider uses two SDKs.
//
// generative-ai-go is frozen. It serves the plain turns of the Gemini family, which it
// handles correctly; google.golang.org/genai serves the rest: other models, prompts that end
// with the character's own text, seeds, tools, and embeddings. Transport reports which SDK
// serves a model; Options.Prefer overrides the choice.
//
// The SDKs' defects are fixed below them, in the HTTP layer that both share (carrier): the key
// travels in a header, every refusal becomes one typed error after one request, response sizes are
// limited, and neither SDK sees of an answer what it would stumble over (cleaner, vectorsOf).
package gemini

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	card "github.com/google/generative-ai-go/genai"
	"google.golang.org/api/option"
	"google.golang.org/api/option/internaloption"
	"google.golang.org/genai"
	"google.golang.org/grpc"

	"nodest/internal/fault"
	"nodest/llm"
)

const name = "gemini"

// Options tune a Provider. The zero value talks to Google.
type Options struct {
	BaseURL string // without the version; default https://generativelanguage.googleapis.com

	Model string // for requests that name none; default: gemini-flash-latest, or what Google's list has in its place

	// Prefer is "generative-ai-go" or "genai"; empty chooses by model. The former is
	// used only for models that it serves correctly.
	Prefer string

	HTTP http.RoundTripper // default: one of its own
}

func (o Options) withDefaults() Options {
	o.BaseURL = cmp.Or(o.BaseURL, "https://generativelanguage.googleapis.com")
	if o.HTTP == nil {
		o.HTTP = llm.Transport()
	}
	return o
}

// Provider is Gemini with its keys. It is safe for concurrent use.
type Provider struct {
	opts Options
	base string
	http *http.Client
	keys *llm.Keys

	models llm.ModelList
	def    llm.Default

	// Made on first use: each costs some milliseconds.
	card    func() (*card.Client, error)
	current func() (*genai.Client, error)
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider that uses keys. It fails with fault.Invalid when an
// option cannot be used; the network is not touched.
func New(keys []llm.Key, opts Options) (*Provider, error) {
	opts = opts.withDefaults()
	base, err := baseURL(opts.BaseURL)
	if err != nil {
		return nil, err
	}
	if opts.Prefer != "" && opts.Prefer != cardSDK && opts.Prefer != currentSDK {
		return nil, fault.InvalidField("transport", "unknown", "must be %s or %s", cardSDK, currentSDK)
	}
	p := &Provider{opts: opts, base: base, keys: llm.NewKeys(name, keys)}
	p.http = llm.HTTPClient(&carrier{next: opts.HTTP})
	p.def = llm.Default{Named: opts.Model, Choose: choose, Aliases: aliases, Fetch: p.Models}
	p.card = sync.OnceValues(p.newCard)
	p.current = sync.OnceValues(p.newCurrent)
	return p, nil
}

// baseURL does not quote the address in its errors: it may hold a password.
func baseURL(s string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", fault.InvalidField("baseUrl", "format", "must be an http or https URL without user name and query")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1beta")
	return u.String(), nil
}

// placeholder is the key that SDKs insist on; carrier puts the real one into the header
// of each request.
const placeholder = "set-by-carrier"

// newCard makes a client of generative-ai-go.
//
// That client opens a gRPC connection for cached contents, which we do not use; it would try to
// reach the service in the background forever, because the SDK's Close forgets it. So the
// connection gets a dialer that refuses, and an interceptor that catches a call made for this
// purpose, where gRPC hands out the connection, and closes it. The SDK's validation is skipped
// because it does not expect gRPC options beside an HTTP client.
func (p *Provider) newCard() (*card.Client, error) {
	refuse := func(context.Context, string) (net.Conn, error) { return nil, errUnused }
	var unused *grpc.ClientConn
	catch := func(_ context.Context, _ string, _, _ any, conn *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		unused = conn
		return errUnused
	}
	// The context is not kept: a client lives as long as the provider.
	ctx := context.Background()
	client, err := card.NewClient(ctx,
		option.WithAPIKey(placeholder), option.WithHTTPClient(p.http), option.WithEndpoint(p.base),
		option.WithGRPCDialOption(grpc.WithContextDialer(refuse)),
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(catch)),
		internaloption.SkipDialSettingsValidation())
	if err != nil {
		return nil, err
	}
	if err := client.DeleteCachedContent(ctx, "cachedContents/unused"); unused == nil {
		return nil, fmt.Errorf("no connection was caught: %w", err)
	}
	return client, unused.Close()
}

var errUnused = errors.New("gRPC is not used")

func (p *Provider) newCurrent() (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: placeholder, Backend: genai.BackendGeminiAPI, HTTPClient: p.http,
		HTTPOptions: genai.HTTPOptions{BaseURL: p.base, APIVersion: "v1beta"},
	})
}

// Name is "gemini".
func (p *Provider) Name() string { return name }

// DefaultModel answers requests that name no model: gemini-flash-latest if Google's list has it,
// else the newest stable flash of the list; see choose.
func (p *Provider) DefaultModel(ctx context.Context) string { return p.def.Model(ctx) }

// NextModel takes the place of a default that Google does not know.
func (p *Provider) NextModel(ctx context.Context, model string) string { return p.def.Next(ctx, model) }

// Close closes idle connections. Running streams continue.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Stream asks for a reply; see llm.Generator.
func (p *Provider) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return p.keys.Stream(ctx, req, p.stream)
}

// mostUnsaid is how many parameters a warning names at most.
const mostUnsaid = 20

// answers is a stream of either SDK: each answer, until the first error.
type answers = iter.Seq2[answer, error]

// answer is one streamed answer in neutral form.
type answer struct {
	text, thought string
	usage         *llm.Usage
	finish        string        // as the API spells it; empty = not finished
	block         string        // why the prompt was refused
	parts         []*genai.Part // all of it, where tools were offered
	model         string
}

func (p *Provider) stream(ctx context.Context, key llm.Key, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		pr, err := p.prompt(req)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		ctx, x := withExchange(ctx, key)
		defer x.close()
		x.hide.Texts = append(x.hide.Texts, pr.system)
		for _, c := range pr.contents {
			x.hide.Texts = append(x.hide.Texts, c.text)
		}
		for _, m := range req.Messages {
			if m.Result != nil {
				x.hide.Texts = append(x.hide.Texts, m.Result.Text)
			}
		}
		if len(pr.unsaid) > 0 {
			yield = llm.Warning{Code: "tool_schema", Detail: "the model is not told the types of these parameters of tools: " + strings.Join(pr.unsaid[:min(len(pr.unsaid), mostUnsaid)], ", ")}.With(yield)
		}
		var all answers
		if p.transportFor(pr.model, req) == cardSDK {
			all = p.viaCard(ctx, x, pr)
		} else {
			all = p.viaCurrent(ctx, x, pr)
		}
		p.relay(ctx, x, all, yield)
	}
}

// relay turns answers into chunks and judges how the reply ended.
func (p *Provider) relay(ctx context.Context, x *exchange, all answers, yield func(llm.Chunk, error) bool) {
	var usage *llm.Usage
	var finish, model string
	var wrote bool
	var asked asked
	for a, err := range all {
		if err != nil {
			yield(llm.Chunk{}, x.failure(ctx, err))
			return
		}
		if a.block != "" {
			yield(llm.Chunk{}, llm.BlockedError(name, llm.StagePrompt, a.block))
			return
		}
		if a.usage != nil {
			usage = a.usage // the last one counts
		}
		if err := asked.add(a.parts); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		finish, model = cmp.Or(a.finish, finish), cmp.Or(a.model, model)
		if a.text != "" || a.thought != "" {
			if !yield(llm.Chunk{Text: a.text, Reasoning: a.thought, Usage: a.usage}, nil) {
				return
			}
			wrote = wrote || a.text != ""
			x.flows()
		}
	}
	if isUnknown(finish) && (wrote || len(asked.calls) > 0) {
		finish = "STOP"
	}
	x.end(ctx, llm.Chunk{Last: true, Text: x.text.Rest(), Reasoning: x.thought.Rest(), Usage: usage, Model: model}, finish, asked, yield)
}

// end yields the last chunk of a reply, or why it is none.
func (x *exchange) end(ctx context.Context, last llm.Chunk, finish string, asked asked, yield func(llm.Chunk, error) bool) {
	var bad error
	if last.Finish, bad = judge(finish); bad == nil {
		last.Calls, last.Echo = asked.end()
		yield(last, nil)
		return
	}
	if finish == "" {
		bad = x.failure(ctx, nil)
	}
	if last.Usage == nil || yield(llm.Chunk{Usage: last.Usage}, nil) {
		yield(llm.Chunk{}, bad)
	}
}

// judge translates a finish reason. Whatever is not a normal end is an error.
func judge(reason string) (llm.Finish, error) {
	switch reason {
	case "STOP":
		return llm.FinishStop, nil
	case "MAX_TOKENS":
		return llm.FinishLength, nil
	case "":
		return "", llm.CutOff(name, nil)
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return "", llm.BlockedError(name, llm.StageReply, reason)
	}
	return "", llm.BadAnswer(name, nil, "ended the reply: "+plainWord(reason))
}

// plainWord returns s if it is a word of the protocol, in capitals.
func plainWord(s string) string {
	if len(s) > 48 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
		return "UNKNOWN"
	}
	return s
}
