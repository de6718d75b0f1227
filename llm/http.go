package llm

import (
	"io"
	"net/http"
	"time"
)

// Transport returns the HTTP transport of one provider that many talk to.
func Transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 256
	t.DisableCompression = true // a compressed stream arrives in lumps
	return t
}

// HTTPClient returns a client that follows no redirect, which would carry the prompt
// and the key to another address.
func HTTPClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Drain reads the few bytes behind a complete answer, so that its connection can be used
// again. A server that does not end its answer is waited for 50 ms.
func Drain(body io.ReadCloser) {
	stop := time.AfterFunc(50*time.Millisecond, func() { _ = body.Close() })
	defer stop.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10) // best effort
}
