package llm

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"nodest/fault"
)

// StatusError reports that a provider answered with an HTTP status other than
// success. retryAfter is what the provider asked for (RetryAfter reads it), 0 if
// nothing. cause is for the log: neither the answer's body nor a key belongs in it. What the
// provider says for itself is added by WithReason.
//
//	401, 403 upstream_auth · 402 upstream_quota · 408 upstream_timeout
//	413 context_too_large · 429 upstream_rate_limited
//	5xx upstream_unavailable · everything else upstream_bad_answer
//
// An adapter that knows more from the provider's own error code says so with
// Upstream (Gemini refuses a wrong key with 400).
func StatusError(provider string, status int, retryAfter time.Duration, cause error) *fault.Error {
	code := fault.UpstreamBadAnswer
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		code = fault.UpstreamAuth
	case status == http.StatusPaymentRequired:
		code = fault.UpstreamQuota
	case status == http.StatusRequestTimeout:
		code = fault.UpstreamTimeout
	case status == http.StatusRequestEntityTooLarge:
		code = fault.ContextTooLarge
	case status == http.StatusTooManyRequests:
		code = fault.UpstreamRate
	case status >= 500:
		code = fault.UpstreamDown
	}
	return Upstream(provider, code, status, cause).After(retryAfter)
}

// Upstream reports a failure of a provider with the code given and the public
// message that belongs to it. status is the HTTP status, 0 if there was none.
func Upstream(provider string, code fault.Code, status int, cause error) *fault.Error {
	what := says(code)
	if code == fault.UpstreamBadAnswer && status >= 400 && status < 500 {
		what = "rejected the request"
	}
	e := fault.Wrap(cause, code, "%s %s", label(provider), what).With("provider", provider)
	if status != 0 {
		_ = e.With("providerStatus", status)
	}
	return e
}

// label is what a provider is called in messages.
func label(provider string) string {
	switch provider {
	case "openai":
		return "OpenAI-compatible server"
	case "openrouter":
		return "OpenRouter"
	case "gemini":
		return "Gemini"
	}
	return provider
}

func says(code fault.Code) string {
	switch code {
	case fault.UpstreamAuth:
		return "rejected the API key"
	case fault.UpstreamQuota:
		return "reports that the quota is exhausted"
	case fault.UpstreamRate:
		return "reports too many requests"
	case fault.UpstreamDown:
		return "is not available"
	case fault.UpstreamTimeout:
		return "took too long"
	case fault.ContextTooLarge:
		return "reports that the prompt is too long for the model"
	case fault.EmptyReply:
		return "returned no text"
	}
	return "sent an invalid response"
}

// NetworkError reports a request that failed below HTTP: no connection, or one
// that broke. If ctx has ended that is the reason given.
func NetworkError(ctx context.Context, provider string, err error) *fault.Error {
	if ended := contextError(ctx, provider); ended != nil {
		return ended
	}
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return Upstream(provider, fault.UpstreamTimeout, 0, err)
	}
	return Upstream(provider, fault.UpstreamDown, 0, err)
}

// contextError returns the error of a request whose context has ended, else nil.
func contextError(ctx context.Context, provider string) *fault.Error {
	switch ctx.Err() {
	case nil:
		return nil
	case context.DeadlineExceeded:
		return Upstream(provider, fault.UpstreamTimeout, 0, context.Cause(ctx))
	}
	var e *fault.Error
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return fault.Wrap(context.Cause(ctx), fault.Cancelled, "cancelled")
}

// BadAnswer reports an answer that breaks the provider's own protocol: an
// unreadable event, an error without a status inside a stream, the wrong number
// of vectors. what is public and must not quote the answer.
func BadAnswer(provider string, cause error, what string) *fault.Error {
	return fault.Wrap(cause, fault.UpstreamBadAnswer, "%s: %s", label(provider), what).With("provider", provider)
}

// CutOff reports a stream that ended before the provider said that it was
// finished.
func CutOff(provider string, cause error) *fault.Error {
	return BadAnswer(provider, cause, "the reply was cut off")
}

// The stages at which a filter can step in.
const (
	StagePrompt = "prompt"
	StageReply  = "reply"
)

// BlockedError reports that a safety filter refused the prompt or stopped the
// reply (stage). reason is the provider's own word for it ("SAFETY"), which is
// shown; it may be empty.
func BlockedError(provider, stage, reason string) *fault.Error {
	e := fault.New(fault.Blocked, "%s blocked the %s", label(provider), stage)
	if reason != "" {
		e.Message += " (" + reason + ")"
	}
	return e.With("provider", provider).With("stage", stage)
}

// RetryAfter reads the header of that name: seconds or an HTTP date. It returns
// 0 for an absent or senseless value.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// ProviderStatus returns the HTTP status that a provider answered with, 0 if err
// tells none.
func ProviderStatus(err error) int {
	var e *fault.Error
	if !errors.As(err, &e) {
		return 0
	}
	status, _ := e.Details["providerStatus"].(int)
	return status
}

// CheckVectors returns an error unless vectors can be used as the answer to n
// texts: their number, their common length (dim, unless that is 0), every value
// finite and no vector of length zero.
func CheckVectors(provider string, vectors [][]float32, n, dim int) error {
	if len(vectors) != n {
		return BadAnswer(provider, nil, "sent "+strconv.Itoa(len(vectors))+" vectors for "+strconv.Itoa(n)+" texts")
	}
	for _, v := range vectors {
		if dim == 0 {
			dim = len(v)
		}
		if len(v) != dim {
			return BadAnswer(provider, nil, "sent a vector of "+strconv.Itoa(len(v))+" numbers where "+strconv.Itoa(dim)+" were expected")
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return BadAnswer(provider, nil, "sent an embedding of zeros only")
		}
	}
	return nil
}
