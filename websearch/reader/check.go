package reader

import (
	"strings"
	"unicode"

	"nodest/internal/lexicon"
)

var (
	challenge = data.Rule("challenge") // the page asks whether its visitor is a human, or refuses
	paywall   = data.Rule("paywall")
	consent   = data.Rule("consent")
	missing   = data.Rule("missing")
)

// shown has the parts of a page that a visitor sees first, and the content that is kept.
type shown struct {
	title, h1  string
	visible    string   // all text that is not hidden
	paragraphs []string // paragraphs of visible
	content    string   // the text that was kept
	linkShare  float64  // share of content, 0 to 1
	links      []string // the texts of the links in content
	scripts    bool     // the page has scripts
}

const longProse = 5000 // units; so much normal text is never a wall

// check returns the outcome of a page that was fetched.
func check(s shown) (Outcome, Kind) {
	size := units(s.content)
	if spam(s) {
		return Spam, ""
	}
	if size > longProse {
		return OK, ""
	}
	top := s.title + "\n" + s.h1
	switch all := units(s.visible); {
	case all == 0, s.scripts && all < 40 && s.h1 == "":
		return Empty, ""
	case missing.MatchString(top) && size < 600:
		return NotFound, ""
	case challenge.MatchString(top+"\n"+cut(s.visible, 600)) && !hasProse(s.paragraphs, challenge):
		return Blocked, KindChallenge
	case paywall.MatchString(s.visible) && all < 1200:
		return Blocked, KindPaywall
	case consent.MatchString(top+"\n"+s.visible) && onlyConsent(s):
		return Blocked, KindConsent
	case size == 0:
		return Empty, ""
	}
	return OK, ""
}

// hasProse reports whether a paragraph of more than 400 units is free of words.
func hasProse(paragraphs []string, words *lexicon.Rule) bool {
	for _, p := range paragraphs {
		if units(p) > 400 && !words.MatchString(p) {
			return true
		}
	}
	return false
}

// onlyConsent reports whether nothing of a page is left but words about consent.
func onlyConsent(s shown) bool {
	rest := 0
	for _, p := range s.paragraphs {
		if !consent.MatchString(p) && p != s.h1 && p != s.title {
			rest += weight(p)
		}
	}
	return rest < 80
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
		if paywall.MatchString(p) {
			break
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, "\n\n")
}
