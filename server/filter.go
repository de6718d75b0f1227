package server

import (
	"maps"
	"slices"
	"strings"

	"nodest/stream"
)

// filter says which events a connection gets. The zero filter lets all through.
type filter struct {
	want   map[string]bool // classes; nil = all
	chats  map[string]bool // conversations whose deltas are wanted; nil = all
	except map[string]bool // conversations whose deltas are not wanted, where all are
	quiet  bool            // no durable events
	silent bool            // nothing in the place of a durable event that is left out
	only   func(*stream.Event) bool
}

// classes are the words of hello.want.
var classes = []string{"deltas", "memory", "knowledge", "research", "circle"}

// classOf returns the class of an event type; "" = always sent.
func classOf(kind string) string {
	area, _, _ := strings.Cut(kind, ".")
	switch area {
	case "gen":
		switch kind {
		case "gen.delta", "gen.rewind", "gen.block", "gen.stage", "gen.tool", "gen.behind":
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
	if class != "deltas" {
		return true
	}
	if f.chats == nil {
		return !f.except[e.ConversationID]
	}
	return f.chats[e.ConversationID]
}

// subscribe adds or removes conversations whose deltas are wanted and returns
// those that were named so far; ok is false, and nothing changes, if there would
// be too many. A filter that lets all through is narrowed to the named ones by
// adding, and goes without the named ones by removing.
func (f *filter) subscribe(ids []string, add bool) (named []string, ok bool) {
	if len(f.chats)+len(f.except)+len(ids) > mostSubscribed {
		return nil, false
	}
	if f.chats == nil && add {
		f.chats, f.except = map[string]bool{}, nil
	}
	if f.chats == nil && f.except == nil {
		f.except = map[string]bool{}
	}
	for _, id := range ids {
		switch {
		case add:
			f.chats[id] = true
		case f.chats != nil:
			delete(f.chats, id)
		default:
			f.except[id] = true
		}
	}
	return slices.Sorted(maps.Keys(f.chats)), true
}
