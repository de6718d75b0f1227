package summary

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"nodest/framework"
)

// The lines that a summary stands between in a prompt.
const (
	summaryHead = "--- CONVERSATION SUMMARY (AI-GENERATED, NOT VISIBLE TO USER) ---"
	summaryFoot = "--- END OF SUMMARY ---"
)

// Message is the summary as a prompt has it: between its marker lines, in the role
// that is a system message where the provider has one.
func (s *Summary) Message() framework.Message {
	text := summaryHead + "\n" + StripMarkers(s.Text) + "\n" + summaryFoot
	return framework.Message{Role: framework.RoleSummary, Text: text}
}

// Overlay returns the part of path that a prompt leaves out because s stands for
// it: path[from:to], to be replaced by s.Message(). from == to: nothing is.
//
// path is the shown branch from its first message on. Of the messages that s
// covers only the last must be there, so a long chat need not be read whole; the
// last three of the branch must be there as well. They stay word for word also
// when the branch became shorter than it was when s was made.
func (s *Summary) Overlay(path []ChatLine) (from, to int) {
	from, to, ok := s.span(path)
	if !ok {
		return 0, 0
	}
	return from, max(from, min(to, len(path)-KeepLast))
}

// View is path as a prompt shows it: with s in the place of what it covers.
// A nil s changes nothing. path is as Overlay wants it.
func View(path []ChatLine, s *Summary) []framework.Message {
	from, to := s.Overlay(path)
	view := make([]framework.Message, 0, len(path)+1-(to-from))
	for i := range path {
		if i == from && to > from {
			view = append(view, s.Message())
		}
		if i >= from && i < to {
			continue
		}
		l := &path[i]
		view = append(view, framework.Message{ID: l.RevisionID, Role: string(l.Role), Name: l.Name, Text: l.Text, Greeting: l.Greeting})
	}
	return view
}

// EffectiveLength is the length of what would be sent of a chat, in UTF-16 units:
// the texts that s does not cover, and its own without the marker lines. path is as
// Overlay wants it.
func EffectiveLength(path []ChatLine, s *Summary) int {
	from, to := s.Overlay(path)
	n := 0
	for i := range path {
		if i < from || i >= to {
			n += utf16Len(path[i].Text)
		}
	}
	if to > from {
		n += utf16Len(s.Text)
	}
	return n
}

// markerLine is a marker as models repeat it: with other dashes, in other cases,
// alone on its line or not.
var markerLine = regexp.MustCompile(`(?i)[ \t]*[-–—]{2,}[ \t]*(?:CONVERSATION SUMMARY[ \t]*(?:\(AI-GENERATED[^)\n]*\))?|END OF (?:CONVERSATION )?SUMMARY)[ \t]*[-–—]{2,}[ \t]*\n?`)

// StripMarkers takes the marker lines of a summary out of a text that a model
// wrote, so that nothing can pass for a summary that is none.
func StripMarkers(text string) string { return strings.TrimSpace(withoutMarkers(text)) }

func withoutMarkers(text string) string {
	for {
		clean := markerLine.ReplaceAllString(text, "")
		if clean == text { // what is left of two nested ones must not join to another
			return clean
		}
		text = clean
	}
}

// utf16Len is the length of s in UTF-16 units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
