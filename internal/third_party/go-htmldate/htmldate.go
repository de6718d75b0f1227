// Package htmldate stands in for github.com/markusmobius/go-htmldate, which
// go-trafilatura imports and which NodeST never lets it call (HtmlDateMode Disabled;
// websearch/reader finds dates itself). The original loads tables of 200 languages when a
// program starts: 0.25 seconds and 50 MB for every command. See
// docs/decisions/0019-reader.md.
package htmldate

import (
	"errors"
	"time"

	"golang.org/x/net/html"
)

// Options has the fields that go-trafilatura sets.
type Options struct {
	UseOriginalDate     bool
	SkipExtensiveSearch bool
	URL                 string
}

// Result is a date that was found.
type Result struct {
	DateTime time.Time
	HasTime  bool
}

// FromDocument finds no date.
func FromDocument(*html.Node, Options) (Result, error) {
	return Result{}, errors.New("htmldate is not part of this program")
}

// IsZero reports whether no date was found.
func (r Result) IsZero() bool { return r.DateTime.IsZero() }
