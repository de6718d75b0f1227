package reader

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"nodest/internal/outbound"
)

// Outcome is what became of reading a page.
type Outcome string

// The outcomes.
const (
	OK               Outcome = "ok"
	Blocked          Outcome = "blocked" // a wall; Kind says which
	NotFound         Outcome = "not_found"
	Spam             Outcome = "spam"
	Empty            Outcome = "empty" // nothing to read without running scripts
	TooLarge         Outcome = "too_large"
	Timeout          Outcome = "timeout"
	Unsupported      Outcome = "unsupported" // neither HTML nor text, JSON or a feed
	Retry            Outcome = "retry"       // the host asks to come back later
	Failed           Outcome = "error"
	HostError        Outcome = "host_error" // all pages of the host will fail; Kind says why
	RobotsDisallowed Outcome = "robots_disallowed"
	Refused          Outcome = "refused" // by the guard of package outbound
	Busy             Outcome = "busy"    // too many pages are read at once
)

// Kind says more about an outcome.
type Kind string

// The kinds of Blocked and of HostError.
const (
	KindDenied      Kind = "denied" // by the status of the response
	KindChallenge   Kind = "challenge"
	KindPaywall     Kind = "paywall"
	KindConsent     Kind = "consent"
	KindLogin       Kind = "login"
	KindApp         Kind = "app" // the page opens in an app only
	KindAge         Kind = "age"
	KindRegion      Kind = "region"    // closed to the country of the server
	KindScripts     Kind = "scripts"   // nothing to read without running them
	KindUnrelated   Kind = "unrelated" // short, and without a word of what led to it
	KindDNS         Kind = "dns"
	KindRefused     Kind = "refused"
	KindCertificate Kind = "certificate"
)

// Error says why a page could not be read.
type Error struct {
	Outcome Outcome
	Kind    Kind   // for Blocked and HostError, else ""
	URL     string // as given to Read
	Title   string // title of a page behind a paywall
	Teaser  string // the content before a paywall, in Markdown
	cause   error
}

func (e *Error) Error() string {
	s := "cannot read " + e.URL + ": " + string(e.Outcome)
	if e.Kind != "" {
		s += " (" + string(e.Kind) + ")"
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.cause }

// OutcomeOf returns the outcome of a read from its error; nil is OK.
func OutcomeOf(err error) Outcome {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Outcome
	}
	return Failed
}

// failure gives an error of a request its outcome.
func failure(address string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		e.URL = address
		return e
	}
	e = &Error{Outcome: Failed, URL: address, cause: err}
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.Is(err, outbound.ErrRefused):
		e.Outcome = Refused
	case errors.As(err, &dns) && !dns.IsTimeout:
		e.Outcome, e.Kind = HostError, KindDNS
	case errors.As(err, &certificate):
		e.Outcome, e.Kind = HostError, KindCertificate
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Outcome, e.Kind = HostError, KindRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Outcome = Timeout
	}
	return e
}
