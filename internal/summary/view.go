package summary

import (
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"nodest/framework"
)

// The lines around a summary in a prompt.
const (
	summaryHead = "--- CONVERSATION SUMMARY (AI-GENERATED, NOT VISIBLE TO USER) ---"
	summaryFoot = "--- END OF SUMMARY ---"
)

// Message is the summary in a prompt, if possible as a system message.
func (s *Summary) Message() framework.Message {
	return framework.Message{Role: framework.RoleSummary, Text: summaryHead + "\n" + StripMarkers(s.Text) + "\n" + summaryFoot}
}

// Overlay returns the part of path that s replaces in a prompt: path[from:to]; empty if from ==
// to.
//
// path is the shown branch from its first message. Of the messages that s covers only the last
// is required, so a long chat need not be read whole. The last three of the branch are never
// replaced, even if the branch became shorter.
func (s *Summary) Overlay(path []ChatLine) (from, to int) {
	from, to, ok := s.span(path)
	if !ok {
		return 0, 0
	}
	return from, max(from, min(to, len(path)-KeepLast))
}

// EffectiveLength is the length of path in a prompt, in UTF-16 units, without marker lines.
func EffectiveLength(path []ChatLine, s *Summary) int {
	from, to := s.Overlay(path)
	n := 0
	for i := range path {
		if i < from || i >= to {
			n += path[i].length()
		}
	}
	if to > from {
		n += utf16Len(s.Text)
	}
	return n
}

// markerLine is a marker as models repeat it, with any dashes and case, anywhere in a line.
var markerLine = regexp.MustCompile(`(?i)[ \t]*[-–—]{2,}[ \t]*(?:CONVERSATION SUMMARY[ \t]*(?:\(AI-GENERATED[^)\n]*\))?|END OF (?:CONVERSATION )?SUMMARY)[ \t]*[-–—]{2,}[ \t]*\n?`)

// StripMarkers removes marker lines from a text, so that nothing else passes for a summary.
func StripMarkers(text string) string { return strings.TrimSpace(withoutMarkers(text)) }

func withoutMarkers(text string) string {
	for {
		clean := markerLine.ReplaceAllString(text, "")
		if clean == text { // the rest of two nested ones must not join into another
			return clean
		}
		text = clean
	}
}

func utf16Len(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }
