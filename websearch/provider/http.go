package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// maxBody bounds an answer, in bytes.
const maxBody = 2 << 20

// userAgent is how we introduce ourselves.
const userAgent = "Mozilla/5.0 (compatible; NodeST)"

// api sends the requests of one provider.
type api struct {
	name   string
	base   string // without a slash at its end
	client *http.Client
	now    func() time.Time
}

func (a api) Name() string { return a.name }

// withoutRedirects returns a client that does not carry a key to another address.
func withoutRedirects(c *http.Client) *http.Client {
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// answer is an HTTP answer, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request and reads the answer, whatever its status.
func (a api) send(req *http.Request) (answer, error) {
	ctx := req.Context()
	req.Header.Set("User-Agent", userAgent)
	resp, err := a.client.Do(req)
	if err != nil {
		return answer{}, a.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return answer{}, a.noAnswer(ctx, err)
	}
	if len(body) > maxBody {
		return answer{}, llm.BadAnswer(a.name, nil, "the answer is larger than "+fault.Size(maxBody))
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

func (a api) noAnswer(ctx context.Context, err error) error {
	address := a.base
	if u, parseErr := url.Parse(a.base); parseErr == nil {
		address = u.Scheme + "://" + u.Host
	}
	return llm.NoAnswer(ctx, a.name, address, err)
}

// get is send for a GET request.
func (a api) get(ctx context.Context, path string, params url.Values, header http.Header) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path+"?"+params.Encode(), http.NoBody)
	if err != nil {
		return answer{}, fault.Wrap(err, fault.Invalid, "the base URL of %s is not valid", a.name)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	return a.send(req)
}

// decode reads the JSON of an answer into v, as far as it can be read.
func (a api) decode(ans answer, v any) error {
	if err := loose.Unmarshal(ans.body, v); err != nil {
		var shape *json.UnmarshalTypeError
		if errors.As(err, &shape) {
			return a.oddForm()
		}
		return llm.BadAnswer(a.name, nil, "the answer is not JSON; check the base URL")
	}
	return nil
}

func (a api) oddForm() error { return llm.BadAnswer(a.name, nil, "the answer has an unexpected form") }

// elements are those of a list of results that can be read. It is an error if there are some and
// none of them can be: another provider may find something.
func elements[T any](a api, list json.RawMessage) (loose.List[T], error) {
	var all loose.List[T]
	_ = all.UnmarshalJSON(list) // never fails
	if len(all) == 0 && !loose.Empty(list) {
		return nil, a.oddForm()
	}
	return all, nil
}

// codes are the failures that an HTTP status other than success stands for.
var codes = map[int]fault.Code{
	http.StatusUnauthorized:    fault.UpstreamAuth,
	http.StatusForbidden:       fault.UpstreamAuth,
	http.StatusPaymentRequired: fault.UpstreamQuota,
	http.StatusRequestTimeout:  fault.UpstreamTimeout,
	http.StatusTooManyRequests: fault.UpstreamRate,
}

// refused reports an answer with a status other than success. code replaces what the status stands
// for, unless it is empty. The provider's own reason is shown, without the key and the query.
func (a api) refused(ans answer, code fault.Code, hide llm.Secrets) *fault.Error {
	if code == "" {
		code = cmp.Or(codes[ans.status], fault.UpstreamBadAnswer)
		if ans.status >= 500 {
			code = fault.UpstreamDown
		}
	}
	e := llm.Upstream(a.name, code, ans.status, nil).After(llm.RetryAfter(ans.header, a.now()))
	reason := hide.Reason(said(ans.body))
	if reason == "" && code == fault.UpstreamBadAnswer {
		reason = llm.StatusReason(ans.status)
	}
	_ = llm.WithReason(e, reason)
	return e
}

// said is the message of an error in JSON, "" if there is none.
func said(body []byte) string {
	var e struct {
		Message, Detail loose.Text
		Error           json.RawMessage
	}
	if loose.Unmarshal(body, &e) != nil {
		return ""
	}
	var inner struct{ Detail, Message loose.Text }
	var text loose.Text
	_ = loose.Unmarshal(e.Error, &inner) // it may be a text
	_ = loose.Unmarshal(e.Error, &text)
	return string(cmp.Or(inner.Detail, inner.Message, e.Message, e.Detail, text))
}

// labels are what providers are called in messages.
var labels = map[string]string{
	Brave: "Brave", SearXNG: "SearXNG", DuckDuckGo: "DuckDuckGo", Jina: "Jina", MCP: "the MCP server",
}

// labelled returns err with the label of a provider for its name at the beginning of the message.
func labelled(name string, err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	if rest, ok := strings.CutPrefix(e.Message, name); ok {
		e.Message = labels[name] + rest
	}
	return err
}
