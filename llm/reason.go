package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"nodest/internal/fault"
)

// Secrets are what must not show when a provider quotes it in an error: the key and the
// texts of a request.
type Secrets struct {
	Key   Key
	Texts []string
}

// The bounds of a reason, in code points: its length, how much of a provider's
// message is looked at, the length of a run that counts as a quotation of the
// prompt, and that of a short text that counts when it is quoted whole.
const (
	longestReason = 300
	longestRead   = 2000
	quotedRun     = 24
	quotedWhole   = 6
)

// keyLike finds what looks like a key, also one that the provider has shortened.
var keyLike = regexp.MustCompile(`(?i)\b(?:bearer\s+\S+|(?:sk|pk|gsk|xai|key|rk)-[\w*.\-]{6,}|AIza[\w*.\-]{6,})`)

// Reason makes a provider's own message fit to be shown: one line of bounded length,
// without the key, and cut where it begins to quote the request. It may be empty.
func (s Secrets) Reason(message string) string {
	runes := []rune(oneLine(unescape(message)))
	text := string(runes[:min(len(runes), longestRead)])
	if key := s.Key.Reveal(); len(key) >= shortestSecret {
		text = strings.ReplaceAll(text, key, mask)
	}
	text = keyLike.ReplaceAllString(text, mask)
	if at := s.quoted(text); at >= 0 {
		text = strings.TrimRight(text[:at], " \"'`:{[(") + "…"
	}
	if runes = []rune(text); len(runes) > longestReason {
		text = string(runes[:longestReason-1]) + "…"
	}
	return strings.Trim(text, " .…")
}

// quoted returns where text begins to quote the request, in whatever case; -1 if it does not.
func (s Secrets) quoted(text string) int {
	first := -1
	found := func(at int) {
		if at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	starts := make([]int, 0, len(text))
	for i := range text {
		starts = append(starts, i)
	}
	folded := fold(text)
	runes := []rune(folded) // as many as text has
	for _, t := range s.Texts {
		t = fold(oneLine(t))
		if n := utf8.RuneCountInString(t); n < quotedRun {
			if at := strings.Index(folded, t); n >= quotedWhole && at >= 0 {
				found(starts[utf8.RuneCountInString(folded[:at])])
			}
			continue
		}
		for i := 0; i+quotedRun <= len(runes); i++ {
			if strings.Contains(t, string(runes[i:i+quotedRun])) {
				found(starts[i])
				break
			}
		}
	}
	return first
}

// fold makes lower case of a text, rune by rune.
func fold(s string) string { return strings.Map(unicode.ToLower, s) }

var (
	escapedRunes = regexp.MustCompile(`(?:\\+u[0-9a-fA-F]{4})+`)
	escapedSpace = regexp.MustCompile(`\\+[nrt]`)
	escapedQuote = regexp.MustCompile(`\\+(["'/])`)
)

// unescape undoes the escapes of JSON in a message that quotes a document: a
// quotation of the request must be found in it.
func unescape(s string) string {
	s = escapedRunes.ReplaceAllStringFunc(s, func(escaped string) string {
		var text string
		units := strings.ReplaceAll(strings.ReplaceAll(escaped, `\`, ""), "u", `\u`)
		if json.Unmarshal([]byte(`"`+units+`"`), &text) != nil {
			return escaped
		}
		return text
	})
	return escapedQuote.ReplaceAllString(escapedSpace.ReplaceAllString(s, " "), "$1")
}

// oneLine makes one line of a text, without control characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// shortLine is oneLine with at most n code points.
func shortLine(s string, n int) string {
	s = oneLine(cutTo(s, 4*utf8.UTFMax*n))
	if runes := []rune(s); len(runes) > n {
		s = string(runes[:n-1]) + "…"
	}
	return s
}

// WithReason returns err with a provider's reason behind its message.
func WithReason(err error, reason string) error {
	var e *fault.Error
	if reason != "" && errors.As(err, &e) {
		_ = e.Quote(reason)
	}
	return err
}

// NoAnswer is NetworkError for a request that got no answer from address; the message
// names the address and the cause.
func NoAnswer(ctx context.Context, provider, address string, err error) *fault.Error {
	e := NetworkError(ctx, provider, err)
	if e.Code == fault.UpstreamDown {
		e.Message = label(provider) + " at " + address + " does not respond: " + networkCause(err)
	}
	return e
}

// StatusReason is the reason shown for a refusal that gives none.
func StatusReason(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// WrongAddress reports an answer that no provider gives: a web page, or a redirect. address is
// where the request went. The message names only the host that a redirect points to.
func WrongAddress(provider, address string, resp *http.Response, hide Secrets) *fault.Error {
	said := "sent a web page instead of an answer"
	if resp.StatusCode != http.StatusOK {
		said = fmt.Sprintf("answers with a redirect (HTTP %d)", resp.StatusCode)
		if to, err := resp.Location(); err == nil && to.Host != "" {
			said = fmt.Sprintf("redirects to %s (HTTP %d)", hide.Reason(to.Scheme+"://"+to.Host), resp.StatusCode)
		}
	}
	e := Upstream(provider, fault.UpstreamBadAnswer, resp.StatusCode, nil)
	e.Message = label(provider) + " at " + address + " " + said + "; check the base URL"
	if provider == "openai" {
		e.Message += ", which often ends in /v1"
	}
	return e
}

// networkCause is why a connection failed, in words without addresses.
func networkCause(err error) string {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "host unreachable"
	case errors.As(err, &dns):
		return "no such host"
	case errors.As(err, &certificate), errors.As(err, &authority):
		return "the TLS certificate is not valid"
	case errors.As(err, &record):
		return "the server does not use TLS; use http instead of https"
	}
	return "the connection failed"
}
