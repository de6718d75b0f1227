package summary

import (
	"math"
	"strings"
	"time"

	"nodest/framework"
)

// View is path as a prompt shows it, with s in place of the messages it covers. s may
// be nil.
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

// Accept judges an answer as a summary of lines.
func Accept(output string, lines []ChatLine, length int) (string, Verdict) {
	m := materialOf(lines, "")
	return m.accept(output, least(m.messages, m.size, length), length)
}

// Transcript is how a model gets to read lines.
func Transcript(lines []ChatLine, loc *time.Location) string {
	return strings.Join(chunked(blocksOf(lines, loc), math.MaxInt), "")
}

var ExtractSummary = extractSummary
