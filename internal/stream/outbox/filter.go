package outbox

import (
	"maps"
	"slices"
	"strings"

	"nodest/internal/stream"
)

// Filter says which events a connection gets. The zero Filter lets all through.
type Filter struct {
	Want   map[string]bool // classes; nil = all
	Chats  map[string]bool // conversations whose deltas are wanted; nil = all
	except map[string]bool // conversations whose deltas are not wanted, where all are
	Quiet  bool            // no durable events
	Silent bool            // nothing in the place of a durable event that is left out
	Only   func(*stream.Event) bool
}

// MaxSubscribed bounds the list of conversations of one connection.
const MaxSubscribed = 1000

// Classes are the words of hello.want.
var Classes = []string{"deltas", "memory", "knowledge", "research", "circle"}

// ClassOf returns the class of an event type; "" = always sent.
func ClassOf(kind string) string {
	area, _, _ := strings.Cut(kind, ".")
	switch area {
	case "gen":
		switch kind {
		case "gen.delta", "gen.rewind", "gen.block", "gen.stage", "gen.tool", "gen.behind":
			return "deltas"
		}
	case "file", "knowledge":
		return "knowledge"
	case "memory", "research", "circle":
		return area
	}
	return ""
}

func (f *Filter) passes(e *stream.Event) bool {
	if e.Type == stream.Skip || f.Only != nil && !f.Only(e) {
		return false
	}
	if e.Durable() && f.Quiet {
		return false
	}
	class := ClassOf(e.Type)
	if class == "" {
		return true
	}
	if f.Want != nil && !f.Want[class] {
		return false
	}
	if class != "deltas" {
		return true
	}
	if f.Chats == nil {
		return !f.except[e.ConversationID]
	}
	return f.Chats[e.ConversationID]
}

// subscribe adds or removes conversations whose deltas are wanted and returns
// those that were named so far; ok is false, and nothing changes, if there would
// be too many. A Filter that lets all through is narrowed to the named ones by
// adding, and goes without the named ones by removing.
func (f *Filter) subscribe(ids []string, add bool) (named []string, ok bool) {
	if len(f.Chats)+len(f.except)+len(ids) > MaxSubscribed {
		return nil, false
	}
	if f.Chats == nil && add {
		f.Chats, f.except = map[string]bool{}, nil
	}
	if f.Chats == nil && f.except == nil {
		f.except = map[string]bool{}
	}
	for _, id := range ids {
		switch {
		case add:
			f.Chats[id] = true
		case f.Chats != nil:
			delete(f.Chats, id)
		default:
			f.except[id] = true
		}
	}
	return slices.Sorted(maps.Keys(f.Chats)), true
}
