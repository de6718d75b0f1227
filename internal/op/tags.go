package op

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"nodest/internal/fault"
)

// Limits of the tags that a user gives a thing.
const (
	MaxTags = 20
	MaxTag  = 50 // code points
)

// CheckTags returns tags without blanks around them, and each of them once, whatever its
// case. It is not nil.
func CheckTags(field string, tags []string) ([]string, error) {
	kept := []string{}
	for i, tag := range tags {
		tag = strings.TrimSpace(tag)
		at := fmt.Sprintf("%s[%d]", field, i)
		if tag == "" {
			return nil, fault.InvalidField(at, "required", "must not be blank")
		}
		if err := CheckLine(at, tag, MaxTag); err != nil {
			return nil, err
		}
		kept = addTag(kept, tag)
	}
	if len(kept) > MaxTags {
		return nil, fault.InvalidField(field, "range", "must have at most %d tags", MaxTags)
	}
	return kept, nil
}

// UsableTags are those tags of a file that pass CheckTags.
func UsableTags(found []string) []string {
	kept := []string{}
	for _, tag := range found {
		tag = strings.TrimSpace(tag)
		if tag != "" && CheckLine("", tag, MaxTag) == nil && len(kept) < MaxTags {
			kept = addTag(kept, tag)
		}
	}
	return kept
}

func addTag(tags []string, tag string) []string {
	if hasTag(tags, tag) {
		return tags
	}
	return append(tags, tag)
}

func hasTag(tags []string, tag string) bool {
	folded := fold(tag)
	return slices.ContainsFunc(tags, func(t string) bool { return fold(t) == folded })
}

// fold is a text without differences of case and width.
func fold(s string) string { return cases.Fold().String(norm.NFKC.String(s)) }

// Listing narrows and orders a list of things with a name and tags. The zero value is the
// whole list in its usual order.
type Listing struct {
	Tag   string `json:"tag,omitempty"`  // that each has
	Query string `json:"q,omitempty"`    // part of the name
	Sort  string `json:"sort,omitempty"` // SortCreated or SortUpdated: the newest first
}

// Orders of a Listing.
const (
	SortCreated = "created"
	SortUpdated = "updated"
)

// maxQuery bounds what is searched in names, in code points.
const maxQuery = 200

// Check refuses an order that there is not, and texts that are too long.
func (l Listing) Check() error {
	if l.Sort != "" && l.Sort != SortCreated && l.Sort != SortUpdated {
		return fault.InvalidField("sort", "value", "must be one of %s, %s", SortCreated, SortUpdated)
	}
	if err := CheckLine("tag", l.Tag, MaxTag); err != nil {
		return err
	}
	return CheckLine("q", l.Query, maxQuery)
}

// Match returns what tells whether a thing is on the list; nil = everything is.
func (l Listing) Match() func(name string, tags []string) bool {
	tag, query := fold(strings.TrimSpace(l.Tag)), fold(strings.TrimSpace(l.Query))
	if tag == "" && query == "" {
		return nil
	}
	return func(name string, tags []string) bool {
		return (tag == "" || slices.ContainsFunc(tags, func(t string) bool { return fold(t) == tag })) &&
			(query == "" || strings.Contains(fold(name), query))
	}
}
