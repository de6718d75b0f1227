package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
)

// exchange is one request on its way through an SDK: what the HTTP layer must know, and
// what it learned that the SDK would lose. It belongs to one goroutine at a time: an SDK
// reads the body in its caller's goroutine.
type exchange struct {
	hide llm.Secrets         // errors must not quote these
	sdk  string              // that reads a stream; "" = the answer is in one piece
	trim func([]byte) []byte // trims such an answer; nil = it is passed on as it is
	body *body
	err  error // the true cause

	text, thought loose.Tail // the reply's text and thought

	heard answer // the content of answers beside their parts, until take
	whole bool   // the end of the stream was read
}

type exchangeKey struct{}

func withExchange(ctx context.Context, key llm.Key) (context.Context, *exchange) {
	x := &exchange{hide: llm.Secrets{Key: key}}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// take returns what was heard since the last time.
func (x *exchange) take() answer {
	a := x.heard
	x.heard = answer{}
	return a
}

// close ends the exchange and its connection, unless the answer was read to its end.
func (x *exchange) close() {
	if x.body != nil {
		_ = x.body.Close()
	}
}

// flows says that text has come.
func (x *exchange) flows() {
	if x.body != nil {
		x.body.paced.Flows()
	}
}

// failure tells why a reply failed. The SDKs' own errors quote prompts, answers
// and addresses, so they are never passed on.
func (x *exchange) failure(ctx context.Context, err error) error {
	var coded *fault.Error
	switch {
	case ctx.Err() != nil:
		return llm.NetworkError(ctx, name, ctx.Err())
	case x.err != nil:
		return x.err
	case errors.As(err, &coded):
		return coded
	case err == nil:
		return llm.CutOff(name, nil)
	}
	return llm.BadAnswer(name, fmt.Errorf("the SDK failed with %T", err), "sent an unreadable response")
}

// noClient reports that an SDK could not be set up.
func noClient(err error) error {
	return fault.Wrap(err, fault.Internal, "could not create the Gemini client")
}

// The bounds of an answer, in bytes.
const (
	streamLimit  = 256 << 20
	eventLimit   = 4 << 20  // bytes of one event of a stream
	answerLimit  = 16 << 20 // that is not streamed
	refusalLimit = 64 << 10
)

// carrier is the HTTP layer below both SDKs.
type carrier struct{ next http.RoundTripper }

// CloseIdleConnections lets http.Client reach the real transport.
func (c *carrier) CloseIdleConnections() {
	if idle, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

// RoundTrip sends the request with its key in the header, and turns every answer
// but 200 into an error. That also keeps generative-ai-go from repeating a request
// that was answered with 503 for as long as the context lives.
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("gemini: a request without an exchange")
	}
	req = req.Clone(ctx)
	q := req.URL.Query()
	q.Del("key")
	req.URL.RawQuery = q.Encode()
	req.Header.Del("X-Goog-Api-Key")
	if !x.hide.Key.IsZero() {
		req.Header.Set("X-Goog-Api-Key", x.hide.Key.Reveal())
	}
	address := req.URL.Scheme + "://" + req.URL.Host
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		x.err = llm.NoAnswer(ctx, name, address, err)
		return nil, x.err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // a missing one is fine
	switch {
	case resp.StatusCode/100 == 3, resp.StatusCode == http.StatusOK && kind == "text/html":
		x.err = llm.WrongAddress(name, address, resp, x.hide)
	case resp.StatusCode != http.StatusOK:
		x.err = x.refusal(resp)
	default:
		x.body = newBody(ctx, x, resp.Body, answerLimit, answerLimit)
		resp.Body = x.body
		switch {
		case x.sdk != "":
			x.body.left, x.body.event = streamLimit, eventLimit
			resp.Body = newCleaner(x, x.body)
		case x.trim != nil:
			b, _ := io.ReadAll(x.body) // x.err tells what failed
			resp.Body = io.NopCloser(bytes.NewReader(x.trim(b)))
		}
		return resp, nil
	}
	_ = resp.Body.Close() // x.err tells what happened
	return nil, x.err
}

// body is an answer on its way to an SDK. It reports an orderly end whatever
// happens and keeps the real reason: genai would write it to the process's log.
type body struct {
	ctx    context.Context
	x      *exchange
	rc     io.ReadCloser
	paced  *llm.Paced
	left   int
	event  int // bytes left for the event that is being read
	ended  bool
	closed bool
}

func newBody(ctx context.Context, x *exchange, rc io.ReadCloser, left, event int) *body {
	return &body{ctx: ctx, x: x, rc: rc, paced: llm.NewPaced(ctx, rc), left: left, event: event}
}

func (b *body) Read(p []byte) (int, error) {
	if b.ended || b.closed {
		return 0, io.EOF
	}
	n, err := b.paced.Read(p)
	b.left -= n
	b.event -= n
	switch {
	case b.left < 0, b.event < 0:
		err = llm.BadAnswer(name, nil, "sent too much data")
		b.x.err = err
	case errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF) && b.ctx.Err() == nil:
		b.x.err = llm.CutOff(name, err)
	case err != nil:
		b.x.err = llm.NetworkError(b.ctx, name, err)
	}
	if err != nil {
		b.ended = true
		return n, io.EOF
	}
	return n, nil
}

// Close closes the connection unless the answer is complete.
func (b *body) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.paced.Close()
	if !b.ended && b.x.whole && b.ctx.Err() == nil {
		llm.Drain(b.rc)
	}
	return b.rc.Close()
}

// wireError is Google's error object.
type wireError struct {
	Code    loose.Number `json:"code"`
	Message loose.Text   `json:"message"`
	Status  loose.Text   `json:"status"`
	Details loose.List[struct {
		Reason     loose.Text `json:"reason"`
		RetryDelay loose.Text `json:"retryDelay"`
		Violations loose.List[struct {
			QuotaID loose.Text `json:"quotaId"`
		}] `json:"violations"`
	}] `json:"details"`
}

// readError reads an error: an object, or a text by itself.
func readError(raw json.RawMessage) (e wireError) {
	if loose.Unmarshal(raw, &e) != nil {
		_ = loose.Unmarshal(raw, &e.Message) // an error without a message gets that of its status
	}
	return e
}

// refusal makes an error of an answer that is not 200. A proxy or a gateway answers
// with a text or a web page: the text is the reason, and else the status.
func (x *exchange) refusal(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, refusalLimit)) // the readable part is enough
	var list loose.List[struct{ Error json.RawMessage }]        // streams are refused with a list
	var e wireError
	if err := loose.Unmarshal(b, &list); err != nil && !strings.HasPrefix(strings.TrimSpace(string(b)), "<") {
		e.Message = loose.Text(b)
	} else if len(list) > 0 {
		e = readError(list[0].Error)
	}
	err := e.fault(resp.StatusCode, llm.RetryAfter(resp.Header, time.Now()))
	reason := x.hide.Reason(string(e.Message))
	return llm.WithReason(err, cmp.Or(reason, llm.StatusReason(resp.StatusCode)))
}

// fault classifies an error.
func (e wireError) fault(status int, wait time.Duration) error {
	cause := fmt.Errorf("the provider's status is %s", plainWord(string(e.Status)))
	message := string(e.Message)
	badKey, daily, delay := e.details()
	wait = cmp.Or(wait, delay)
	switch {
	case llm.SaysEchoRejected(status, message):
		return llm.EchoError(name, status)
	case llm.SaysNoTools(status, message):
		return llm.NoToolsError(name, status)
	case llm.SaysNoModel(status, "", message):
		return llm.Upstream(name, fault.ModelNotFound, status, cause)
	case status == 0:
		return llm.Upstream(name, fault.UpstreamDown, 0, cause)
	case status == http.StatusBadRequest && (badKey || strings.Contains(message, "API key not valid")):
		return llm.Upstream(name, fault.UpstreamAuth, status, cause)
	case status == http.StatusTooManyRequests && daily:
		return llm.Upstream(name, fault.UpstreamQuota, status, cause).After(wait)
	case status == http.StatusBadRequest && strings.Contains(message, "maximum number of tokens"):
		return llm.Upstream(name, fault.ContextTooLarge, status, cause)
	}
	return llm.StatusError(name, status, wait, cause)
}

// details tells whether the key is bad, whether a quota of a day is used up, and when
// to try again; 0 = not said.
func (e wireError) details() (badKey, daily bool, wait time.Duration) {
	for _, d := range e.Details {
		badKey = badKey || strings.HasPrefix(string(d.Reason), "API_KEY_")
		if delay, err := time.ParseDuration(string(d.RetryDelay)); err == nil && delay > 0 && wait == 0 {
			wait = delay
		}
		for _, v := range d.Violations {
			daily = daily || strings.Contains(string(v.QuotaID), "PerDay")
		}
	}
	return badKey, daily, wait
}
