package nodesttest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/internal/stream"
	"nodest/store"
	"nodest/store/storetest"
)

// TakeEventTypes returns the types of the durable events since the last call.
func (s *Fixture) TakeEventTypes() []string {
	types := strings.Fields(s.Events.Types())
	s.Events.Clear()
	return types
}

// EventLog records every published event, in order.
type EventLog struct {
	mu          sync.Mutex
	list        []*stream.Event
	AfterCommit func([]*stream.Event) // called after each commit, before the writer continues; nil = none
}

// Committed records the events of a commit; a store calls it.
func (e *EventLog) Committed(_ string, events []*stream.Event) {
	e.add(events...)
	if e.AfterCommit != nil {
		e.AfterCommit(events)
	}
}

// Transient records an event that is not stored; the engine calls it.
func (e *EventLog) Transient(ev *stream.Event) { e.add(ev) }

func (e *EventLog) add(events ...*stream.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, events...)
}

// compare checks that Ann's log repeats the events as they were published. References of
// replies are left out: files that they name are not there in these tests, so later they are
// marked as gone.
func (e *EventLog) compare(t *testing.T, db *store.DB) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	published := slices.DeleteFunc(slices.Clone(e.list), func(ev *stream.Event) bool { return ev.Type == "gen.references" })
	storetest.CompareLog(t, db, Ann, published)
}

// OfGeneration returns the events of a generation and its messages so far, in order.
func (e *EventLog) OfGeneration(generationID string) []*stream.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []*stream.Event
	for _, ev := range e.list {
		if ev.GenerationID == generationID {
			list = append(list, ev)
		}
	}
	return list
}

// TypesOf returns the types of the stored events of a generation.
func (e *EventLog) TypesOf(generationID string) string {
	var types []string
	for _, ev := range e.OfGeneration(generationID) {
		if ev.Durable() {
			types = append(types, ev.Type)
		}
	}
	return strings.Join(types, " ")
}

// Deltas joins the text deltas of a part and checks that each starts where the
// previous one ended.
func (e *EventLog) Deltas(t *testing.T, generationID, part string, start int) string {
	t.Helper()
	var text strings.Builder
	at := start
	for _, ev := range e.OfGeneration(generationID) {
		if ev.Type == "gen.rewind" && part == "text" {
			text.Reset()
			at = ev.Off
		}
		if ev.Type != "gen.delta" {
			continue
		}
		d := ev.Delta()
		if d.Part != part {
			continue
		}
		if ev.Off != at {
			t.Fatalf("a delta begins at %d, the text before ends at %d", ev.Off, at)
		}
		text.WriteString(d.Text)
		at += len([]rune(d.Text))
	}
	return text.String()
}

// All returns the events so far, in order.
func (e *EventLog) All() []*stream.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// LastTypes returns the types of the newest events.
func (e *EventLog) LastTypes(n int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, ev := range e.list[max(0, len(e.list)-n):] {
		types = append(types, ev.Type)
	}
	return strings.Join(types, " ")
}

// Clear removes the events recorded so far.
func (e *EventLog) Clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}

// Types returns the types of the recorded durable events.
func (e *EventLog) Types() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, ev := range e.list {
		if ev.Durable() {
			types = append(types, ev.Type)
		}
	}
	return strings.Join(types, " ")
}

// Data returns the data of the first event of a type.
func (e *EventLog) Data(kind string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.list {
		if ev.Type == kind {
			return string(ev.Data)
		}
	}
	return ""
}
