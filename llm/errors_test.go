package llm_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/llm"
)

func TestStatusError(t *testing.T) {
	for status, code := range map[int]fault.Code{
		400: fault.UpstreamBadAnswer, 401: fault.UpstreamAuth, 402: fault.UpstreamQuota, 403: fault.UpstreamAuth,
		404: fault.UpstreamBadAnswer, 408: fault.UpstreamTimeout, 413: fault.ContextTooLarge, 418: fault.UpstreamBadAnswer,
		429: fault.UpstreamRate, 500: fault.UpstreamDown, 502: fault.UpstreamDown, 503: fault.UpstreamDown, 529: fault.UpstreamDown,
	} {
		err := llm.StatusError("gemini", status, time.Second, errors.New("private"))
		d := fault.Public(err)
		if d.Code != code || d.Details["provider"] != "gemini" || llm.ProviderStatus(err) != status || d.RetryAfter != time.Second {
			t.Errorf("%d: %s %v %v, want %s", status, d.Code, d.Details, d.RetryAfter, code)
		}
	}
}

func TestNetworkError(t *testing.T) {
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code fault.Code
	}{
		"refused":               {t.Context(), errors.New("connection refused"), fault.UpstreamDown},
		"a timeout of the dial": {t.Context(), os.ErrDeadlineExceeded, fault.UpstreamTimeout},
		"our deadline":          {late, context.DeadlineExceeded, fault.UpstreamTimeout},
		"a cancel":              {ended(nil), context.Canceled, fault.Cancelled},
		"a cancel with a code":  {ended(fault.New(fault.ShuttingDown, "bye")), context.Canceled, fault.ShuttingDown},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, llm.NetworkError(c.ctx, "test", c.err), c.code) })
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-3": 0, "soon": 0, "NaN": 0, "Inf": 0, "1e300": 0,
		"7": 7 * time.Second, " 1.5 ": 1500 * time.Millisecond,
		"Sat, 21 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Sat, 21 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := llm.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

func TestVectorsThatCannotBeUsed(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		vectors [][]float32
		n, dim  int
		ok      bool
	}{
		"good":               {[][]float32{{1, 0}, {0, 1}}, 2, 2, true},
		"length not known":   {[][]float32{{1, 0}, {0, 1}}, 2, 0, true},
		"none for none":      {nil, 0, 0, true},
		"one is missing":     {[][]float32{{1, 0}}, 2, 2, false},
		"one too many":       {[][]float32{{1}, {1}}, 1, 1, false},
		"another length":     {[][]float32{{1, 0}}, 1, 3, false},
		"different lengths":  {[][]float32{{1, 0}, {1}}, 2, 0, false},
		"empty vector":       {[][]float32{{}}, 1, 0, false},
		"zero vector":        {[][]float32{{0, 0}}, 1, 2, false},
		"not a number":       {[][]float32{{nan, 1}}, 1, 2, false},
		"an infinite number": {[][]float32{{inf, 1}}, 1, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &llm.Batches{Provider: "test", Length: c.dim, Texts: 9, Bytes: 99, Call: func(context.Context, llm.EmbedTask, []string) ([][]float32, int, error) {
				return c.vectors, 0, nil
			}}
			_, err := b.Embed(t.Context(), llm.Query, make([]string, c.n))
			if c.ok != (err == nil) {
				t.Errorf("error = %v", err)
			}
			if !c.ok {
				wantCode(t, err, fault.UpstreamBadAnswer)
			}
		})
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "four": 1, "fives": 2, "茶": 1, "喝 tea": 2} {
		if got := llm.EstimateTokens(text); got != want {
			t.Errorf("EstimateTokens(%q) = %d, want %d", text, got, want)
		}
	}
}
