package memory

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"nodest/index"
)

// blockTags would begin or end a block of a prompt; the fullwidth forms are what a
// model may take for them.
var blockTags = regexp.MustCompile(`(?i)[<＜](\s*[/／]?\s*(?:mem|websearch|response_guidelines)\b[^<>＜＞]*)[>＞]?`)

// Line is an item as a <mem> block shows it: one line, its tags made harmless, with
// the day at its end where that is known. It never is a line of a block's own.
func Line(text string, day *time.Time) string {
	line := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // they hide tags; joiners shape letters and emoji
			return -1
		}
		return r
	}, text)
	line = blockTags.ReplaceAllString(line, "‹$1›")
	line = tidy(line)
	if day != nil && !day.IsZero() {
		line += day.Format(" (2006-01-02)")
	}
	return line
}

// Visible is what the model sees anyway in the messages of a prompt, so that a
// recalled item would only repeat it. The zero value hides nothing.
type Visible struct {
	revisions map[string]bool
	hashes    map[string]bool
	texts     []map[string]bool // terms of each message
}

// mostTerms of an item that stand in one visible message make it visible.
const mostTerms = 0.95

// VisibleIn reads the messages of the effective history; a summary among them counts
// by its text.
func VisibleIn(messages []Message) Visible {
	v := Visible{revisions: map[string]bool{}, hashes: map[string]bool{}}
	for _, m := range messages {
		if m.RevisionID != "" {
			v.revisions[m.RevisionID] = true
		}
		v.hashes[ContentHash(m.Text)] = true
		terms := map[string]bool{}
		for _, t := range (index.Analyser{}).Terms(m.Text) {
			terms[t] = true
		}
		v.texts = append(v.texts, terms)
	}
	return v
}

// Has reports whether an item is visible already: all the messages of one of its
// sightings are, or its words stand in one message.
func (v Visible) Has(text string, evidence []Evidence) bool {
	shown := func(e Evidence) bool { return v.revisions[e.RevisionID] }
	if len(evidence) > 0 && holds(evidence, shown) || v.hashes[ContentHash(text)] {
		return true
	}
	terms := (index.Analyser{}).Terms(text)
	if len(terms) < 2 {
		return false
	}
	return slices.ContainsFunc(v.texts, func(said map[string]bool) bool {
		n := 0
		for _, t := range terms {
			if said[t] {
				n++
			}
		}
		return float64(n) >= mostTerms*float64(len(terms))
	})
}
