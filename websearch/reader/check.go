package reader

import (
	"strings"
	"unicode"
)

// shown has the text of a page that a visitor sees, and what of it is kept.
type shown struct {
	visible   string   // all text that is not hidden
	content   string   // the text that was kept
	linkShare float64  // share of content, 0 to 1
	links     []string // the texts of the links in content
	scripts   bool     // the page has scripts
}

const (
	longProse = 5000 // units; so much normal text is never a wall
	longAside = 400  // weight of content beside that of a page; more is no furniture, whatever its elements are called
)

// check returns the outcome of a page that was fetched.
func check(s shown, v *view) (Outcome, Kind) {
	size := units(s.content)
	if spam(s) {
		return Spam, ""
	}
	if size > longProse || weight(s.content) > 2*v.weight()+longAside {
		return OK, ""
	}
	switch kind := v.wall(); {
	case kind == kindMissing:
		return NotFound, ""
	case kind != "":
		return Blocked, kind
	case s.scripts && v.bare(), size == 0, s.visible == "":
		return Empty, ""
	}
	return OK, ""
}

// spam reports whether a page repeats a few words, or one link, over and over. Numbers
// do not count: a table of results is not spam.
func spam(s shown) bool {
	words := strings.FieldsFunc(strings.ToLower(s.content), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) >= 100 {
		windows, distinct := 0, 0
		for i := 0; i+100 <= len(words); i += 100 {
			seen := map[string]bool{}
			for _, w := range words[i : i+100] {
				seen[w] = true
			}
			windows++
			distinct += len(seen)
		}
		if distinct < 25*windows {
			return true
		}
	}
	if s.linkShare < 0.6 || len(s.links) < 10 {
		return false
	}
	repeated, most := map[string]int{}, 0
	for _, l := range s.links {
		repeated[l]++
		most = max(most, repeated[l])
	}
	return most*4 > len(s.links) && most >= 5
}

// teaser returns the paragraphs of a text before the first one about a subscription.
func teaser(markdown string) string {
	var kept []string
	for p := range strings.SplitSeq(markdown, "\n\n") {
		if paywall.MatchString(fold(p)) {
			break
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, "\n\n")
}
