package llm

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"nodest/internal/fault"
)

var statusCodes = map[int]fault.Code{
	http.StatusUnauthorized:          fault.UpstreamAuth,
	http.StatusForbidden:             fault.UpstreamAuth,
	http.StatusPaymentRequired:       fault.UpstreamQuota,
	http.StatusRequestTimeout:        fault.UpstreamTimeout,
	http.StatusRequestEntityTooLarge: fault.ContextTooLarge,
	http.StatusTooManyRequests:       fault.UpstreamRate,
}

// StatusError reports that a provider answered with an HTTP status other than success. retryAfter
// is what the provider asked for (RetryAfter reads it), 0 if nothing. cause is for the log: neither
// the answer's body nor a key belongs in it. WithReason adds what the provider itself says.
//
// An adapter that knows more from the provider's own error code says so with
// Upstream (Gemini refuses a wrong key with 400).
func StatusError(provider string, status int, retryAfter time.Duration, cause error) *fault.Error {
	code := cmp.Or(statusCodes[status], fault.UpstreamBadAnswer)
	if status >= 500 {
		code = fault.UpstreamDown
	}
	return Upstream(provider, code, status, cause).After(retryAfter)
}

// Upstream reports a failure of a provider with the code given and the public
// message that belongs to it. status is the HTTP status, 0 if there was none.
func Upstream(provider string, code fault.Code, status int, cause error) *fault.Error {
	what := cmp.Or(says[code], "sent an invalid response")
	if code == fault.UpstreamBadAnswer && status >= 400 && status < 500 {
		what = "rejected the request"
	}
	e := fault.Wrap(cause, code, "%s %s", label(provider), what).With("provider", provider)
	if status != 0 {
		_ = e.With("providerStatus", status)
	}
	return e
}

// labels are what providers are called in messages, where that is not their name.
var labels = map[string]string{"openai": "OpenAI-compatible server", "openrouter": "OpenRouter", "gemini": "Gemini"}

func label(provider string) string { return cmp.Or(labels[provider], provider) }

var says = map[fault.Code]string{
	fault.UpstreamAuth:    "rejected the API key",
	fault.UpstreamQuota:   "reports that the quota is exhausted",
	fault.UpstreamRate:    "reports too many requests",
	fault.UpstreamDown:    "is not available",
	fault.UpstreamTimeout: "took too long",
	fault.ContextTooLarge: "reports that the prompt is too long for the model",
	fault.EmptyReply:      "returned no text",
	fault.ModelNotFound:   "does not know the model",
}

// NetworkError reports a request that failed below HTTP: no connection, or one that
// broke. If ctx has ended, that is the reported reason.
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

// CutOff reports a stream that ended before the provider said that it was finished.
func CutOff(provider string, cause error) *fault.Error {
	return BadAnswer(provider, cause, "the reply was cut off")
}

// The stages at which a filter can step in.
const (
	StagePrompt = "prompt"
	StageReply  = "reply"
)

// BlockedError reports that a safety filter refused the prompt or stopped the reply (stage). reason
// is the provider's own word for it ("SAFETY"), which is shown as one short line; it may be empty.
func BlockedError(provider, stage, reason string) *fault.Error {
	e := fault.New(fault.Blocked, "%s blocked the %s", label(provider), stage)
	if reason = shortLine(reason, longestModel); reason != "" {
		_ = e.QuoteIn(reason)
	}
	return e.With("provider", provider).With("stage", stage)
}

// RetryAfter reads the header of that name: seconds or an HTTP date. It returns 0 if
// the value is missing or invalid.
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

// ProviderStatus returns the HTTP status that a provider answered with, 0 if err tells none.
func ProviderStatus(err error) int {
	var e *fault.Error
	if !errors.As(err, &e) {
		return 0
	}
	status, _ := e.Details["providerStatus"].(int)
	return status
}
