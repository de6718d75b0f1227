package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	userAgent    = "NodeST/1.0 (reads pages for its users)"
	maxRedirects = 5
	maxWire      = 10 << 20        // bytes of a response as sent
	maxBody      = 20 << 20        // bytes after decompression
	maxHTML      = 3 << 20         // and what is used of a text
	maxPause     = 3 * time.Second // a host that asks for more is not asked again
	maxFresh     = 7 * 24 * time.Hour
)

// response is a page as it came.
type response struct {
	url    *url.URL // after redirects
	status int
	header http.Header
	kind   kind
	body   []byte // decompressed, not decoded
}

// fetch gets a page. A host that asks to wait for at most 3 seconds is asked once more.
func (r *Reader) fetch(ctx context.Context, u *url.URL, o Options, h *hold) (*response, error) {
	for again := true; ; again = false {
		resp, err := r.get(ctx, u, o)
		if err != nil {
			return nil, err
		}
		pause, ok := retryAfter(resp.Header, r.now())
		if later := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable; !later || !ok || !again {
			defer resp.Body.Close()
			return receive(resp, h)
		}
		_ = resp.Body.Close()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

func (r *Reader) get(ctx context.Context, u *url.URL, o Options) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html, text/plain, application/json;q=0.8, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip, br")
	if lang := primary(o.Lang); lang != "" && lang != "en" {
		req.Header.Set("Accept-Language", lang+", en;q=0.5")
	} else {
		req.Header.Set("Accept-Language", "en")
	}
	if o.ETag != "" {
		req.Header.Set("If-None-Match", o.ETag)
	}
	if o.LastModified != "" {
		req.Header.Set("If-Modified-Since", o.LastModified)
	}
	return r.client.Do(req)
}

// retryAfter returns how long a host asks to wait; ok is false if that is not said, or too long.
func retryAfter(h http.Header, now time.Time) (pause time.Duration, ok bool) {
	s := h.Get("Retry-After")
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 1000 {
		pause = time.Duration(n) * time.Second
	} else if t, err := http.ParseTime(s); err == nil {
		pause = max(0, t.Sub(now))
	} else {
		return 0, false
	}
	return pause, pause <= maxPause
}

// receive reads the body of a response that has one of use.
func receive(resp *http.Response, h *hold) (*response, error) {
	got := &response{url: resp.Request.URL, status: resp.StatusCode, header: resp.Header}
	switch s := resp.StatusCode; {
	case s == http.StatusNotModified:
		return got, nil
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusProxyAuthRequired, s == http.StatusUnavailableForLegalReasons:
		return nil, &Error{Outcome: Blocked, Kind: KindDenied}
	case s == http.StatusNotFound, s == http.StatusGone:
		return nil, &Error{Outcome: NotFound}
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return nil, &Error{Outcome: Retry}
	case s == http.StatusNoContent:
		return nil, &Error{Outcome: Empty}
	case s < 200 || s > 299:
		return nil, fmt.Errorf("status %d", s)
	case resp.ContentLength > maxWire:
		return nil, &Error{Outcome: TooLarge}
	}
	body, err := unpacked(resp, h)
	if err != nil {
		return nil, err
	}
	start := make([]byte, 512)
	n, err := io.ReadFull(body, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	start = start[:n]
	got.kind = kindOf(resp.Header.Get("Content-Type"), start)
	limit := maxBody // the start of a long text, document or feed is enough
	switch got.kind {
	case kindNone:
		return nil, &Error{Outcome: Unsupported}
	case kindHTML:
		limit = maxHTML
	}
	got.body, err = collect(io.MultiReader(bytes.NewReader(start), &bounded{body, limit - n}), maxHTML, h)
	got.body = wholeRunes(got.body)
	return got, err
}

// wholeRunes leaves out the part of a character at the end of a text in UTF-8.
func wholeRunes(text []byte) []byte {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) && utf8.Valid(text[:i]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// bounded fails with TooLarge when more than left bytes were read.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, &Error{Outcome: TooLarge}
	}
	return n, err
}

// expires returns until when a response is fresh, at most for a week; zero if it does not say.
func expires(h http.Header, now time.Time) time.Time {
	for part := range strings.SplitSeq(strings.ToLower(h.Get("Cache-Control")), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "no-store", "no-cache":
			return time.Time{}
		case "max-age":
			if s, err := strconv.Atoi(strings.Trim(value, `"`)); err == nil && s > 0 {
				return now.Add(min(time.Duration(min(s, 1<<30))*time.Second, maxFresh))
			}
			return time.Time{}
		}
	}
	if t, err := http.ParseTime(h.Get("Expires")); err == nil && t.After(now) {
		if latest := now.Add(maxFresh); t.After(latest) {
			return latest
		}
		return t
	}
	return time.Time{}
}

// kind is how a body is read.
type kind int

const (
	kindNone kind = iota
	kindHTML
	kindText
	kindMarkdown
	kindJSON
	kindFeed
)

// kindOf decides by the first bytes of a body, and then by the header.
func kindOf(contentType string, start []byte) kind {
	seen, _, _ := strings.Cut(http.DetectContentType(start), ";")
	if !strings.HasPrefix(seen, "text/") {
		return kindNone
	}
	if lower := bytes.ToLower(start); seen == "text/xml" {
		if bytes.Contains(lower, []byte("<html")) {
			return kindHTML
		}
		return kindFeed
	}
	said, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil && said == "", said == "application/octet-stream":
		if seen == "text/html" {
			return kindHTML
		}
		return kindText
	case said == "text/html", said == "application/xhtml+xml":
		return kindHTML
	case said == "text/markdown", said == "text/x-markdown":
		return kindMarkdown
	case said == "application/json", said == "text/json", strings.HasSuffix(said, "+json"):
		return kindJSON
	case said == "text/xml", said == "application/xml", strings.HasSuffix(said, "+xml"):
		return kindFeed
	case said == "text/css", strings.HasSuffix(said, "javascript"):
		return kindNone
	case strings.HasPrefix(said, "text/"):
		return kindText
	}
	return kindNone
}
