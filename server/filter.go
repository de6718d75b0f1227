package server

import (
	"strings"

	"nodest/stream"
)

// filter says which events a connection gets. The zero filter lets all through.
type filter struct {
	want   map[string]bool // classes; nil = all
	chats  map[string]bool // conversations whose deltas are wanted; nil = all
	quiet  bool            // no durable events
	silent bool            // nothing in the place of a durable event that is left out
	only   func(*stream.Event) bool
}

// classes are the words of hello.want.
var classes = []string{"deltas", "memory", "knowledge", "research", "circle"}

// classOf returns the class of an event type; "" = always sent. Protocol page,
// section 5.5.
func classOf(kind string) string {
	area, _, _ := strings.Cut(kind, ".")
	switch area {
	case "gen":
		switch kind {
		case "gen.delta", "gen.block", "gen.stage", "gen.tool", "gen.behind":
			return "deltas"
		}
	case "memory", "extraction", "dream":
		return "memory"
	case "file", "knowledge":
		return "knowledge"
	case "research", "circle":
		return area
	}
	return ""
}

func (f *filter) passes(e *stream.Event) bool {
	if f.only != nil && !f.only(e) {
		return false
	}
	if e.Durable() && f.quiet {
		return false
	}
	class := classOf(e.Type)
	if class == "" {
		return true
	}
	if f.want != nil && !f.want[class] {
		return false
	}
	return class != "deltas" || f.chats == nil || f.chats[e.ConversationID]
}
