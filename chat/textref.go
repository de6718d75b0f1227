package chat

import (
	"fmt"
	"strconv"
	"strings"

	"nodest/stream"
)

// TextRef says where a text stands that an event shows: in a revision, which does not change.
type TextRef struct {
	RevisionID string
	Part       string // "t" = the text, "r" = the reasoning, "b0" = its first block, …
	Size       int    // its first bytes
}

func (r TextRef) text(value string) stream.Text {
	return stream.Text{Ref: fmt.Sprintf("%s %s %d", r.RevisionID, r.Part, len(value)), Value: value}
}

// ParseTextRef reads the Ref of a text of an event. ok is false if it is none of this package.
func ParseTextRef(ref string) (r TextRef, ok bool) {
	n, err := fmt.Sscanf(ref, "%s %s %d", &r.RevisionID, &r.Part, &r.Size)
	return r, n == 3 && err == nil && r.Size >= 0
}

// Of returns the text from its revision; ok is false if it has none there.
func (r TextRef) Of(s *Swipe) (text string, ok bool) {
	switch r.Part {
	case "t":
		text = s.Text
	case "r":
		text = s.Reasoning
	default:
		i, err := strconv.Atoi(strings.TrimPrefix(r.Part, "b"))
		if err != nil || i < 0 || i >= len(s.Blocks) {
			return "", false
		}
		text = s.Blocks[i].Text
	}
	if r.Size > len(text) {
		return "", false
	}
	return text[:r.Size], true
}

// textsOf are the texts of a message that has been stored.
func textsOf(m *Message) []stream.Text {
	var texts []stream.Text
	for i := range m.Swipes {
		s := &m.Swipes[i]
		if s.Deleted || s.RevisionID == "" {
			continue
		}
		texts = append(texts, TextRef{RevisionID: s.RevisionID, Part: "t"}.text(s.Text), TextRef{RevisionID: s.RevisionID, Part: "r"}.text(s.Reasoning))
		for n, b := range s.Blocks {
			texts = append(texts, TextRef{RevisionID: s.RevisionID, Part: "b" + strconv.Itoa(n)}.text(b.Text))
		}
	}
	return texts
}
