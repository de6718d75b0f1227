package websearch

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"syscall"

	"nodest/websearch/reader"
)

// schemes are the addresses to try for one that a person typed. Without a scheme it is tried with
// https, and then with http. An address with https is never read without it: the person asked for a
// page that nobody on the way can change.
func schemes(address string) []string {
	if address = strings.TrimSpace(address); strings.Contains(address, "://") || strings.ContainsAny(address, " \t") {
		return []string{address}
	}
	return []string{"https://" + address, "http://" + address}
}

// refusesHTTPS reports whether a page was not read because its host does not speak TLS. A wrong
// certificate is another matter: somebody may be in between.
func refusesHTTPS(err error) bool {
	var e *reader.Error
	var record tls.RecordHeaderError
	return errors.As(err, &e) && e.Kind == reader.KindRefused || errors.As(err, &record) ||
		errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, syscall.ECONNRESET)
}
