package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/nodest"
)

// told is what a client was told of its conversation.
type told struct {
	messages map[string]*toldMessage
	order    []*toldMessage
	heads    []string // one of them ends the shown branch; which one depends on replies that may not have ended
}

// toldMessage is a message with all that was done to it.
type toldMessage struct {
	id, parent, role string
	greeting         bool
	beside           bool // created for a text beside another reply: it is deleted if it gets none
	written          bool // it has a text for sure
	deletedBy        int  // command; 0 = it is not deleted
	wasDeleted       bool
	acts             []act
}

// byItself is the command that deletes a message that was created for a text and got none.
const byItself = -1

// act is one thing done to a message: a text was asked for, or replaced, or chosen, or
// deleted, or deleted ones were restored.
type act struct {
	generation   string
	edited, text string // swipe
	dropped      string // swipe
	chosen       string // swipe
	undrop       bool
}

func newTold() *told { return &told{messages: map[string]*toldMessage{}} }

func (m *toldMessage) live() bool { return m.deletedBy == 0 }

// sure reports whether it is known that a message exists or is deleted.
func (o *told) sure(m *toldMessage) bool { return !m.beside || m.written || !m.live() }

// add notes a message that was created below one of parents.
func (o *told) add(m *wireMessage, role string, parents ...string) error {
	if m == nil {
		return fmt.Errorf("no message was created")
	}
	parent := ""
	if m.ParentID != nil {
		parent = *m.ParentID
	}
	if o.messages[m.ID] != nil || m.Role != role || !slices.Contains(parents, parent) {
		return fmt.Errorf("a new message of the %s below one of %v is %+v", role, parents, m)
	}
	added := &toldMessage{id: m.ID, parent: parent, role: role, greeting: m.Greeting}
	for _, s := range m.Swipes {
		added.acts = append(added.acts, act{edited: s.ID, text: s.Text})
		added.written = true
	}
	o.messages[m.ID], o.order = added, append(o.order, added)
	return nil
}

// shows notes that a branch is shown that ends in a message.
func (o *told) shows(id string) { o.heads = []string{id} }

// mayShow notes that a message is shown when it is complete.
func (o *told) mayShow(id string) { o.heads = append(o.heads, id) }

// edited notes another text of the shown swipe.
func (m *toldMessage) edited(now *wireMessage, text string) error {
	if now == nil || now.ID != m.id || now.Text != text {
		return fmt.Errorf("message %s edited to %q is %+v", m.id, text, now)
	}
	m.acts, m.written = append(m.acts, act{edited: now.Swipes[now.SwipeIndex].ID, text: text}), true
	return nil
}

func (o *told) children(m *toldMessage) []*toldMessage {
	var children []*toldMessage
	for _, c := range o.order {
		if c.parent == m.id {
			children = append(children, c)
		}
	}
	return children
}

func (o *told) followed(m *toldMessage) bool {
	return slices.ContainsFunc(o.children(m), (*toldMessage).live)
}

// subtree returns a message and those of its descendants that ok accepts.
func (o *told) subtree(first *toldMessage, ok func(*toldMessage) bool) []*toldMessage {
	all := []*toldMessage{first}
	for _, c := range o.children(first) {
		for _, m := range o.subtree(c, ok) {
			if m != c || ok(c) {
				all = append(all, m)
			}
		}
	}
	return all
}

// deleted notes a delete by a command, or a restore (0), of these messages.
func (o *told) deleted(all []*toldMessage, got deletion, by int) error {
	want := map[string]bool{}
	for _, m := range all {
		want[m.id] = true
	}
	for _, id := range got.MessageIDs {
		m := o.messages[id]
		if m == nil || !want[id] && o.sure(m) {
			return fmt.Errorf("%s was deleted or restored unasked, with %v", id, want)
		}
		delete(want, id)
		m.deletedBy, m.wasDeleted = by, true
	}
	for id := range want {
		if o.sure(o.messages[id]) {
			return fmt.Errorf("%s was not deleted or restored, but %v", id, got.MessageIDs)
		}
	}
	o.heads = slices.DeleteFunc(o.heads, func(id string) bool { return o.messages[id] == nil || !o.messages[id].beside })
	o.mayShow(got.HeadID)
	return nil
}

// verify compares the stored conversation with what was told.
func (w *talker) verify(t *testing.T, tx nodest.Tx) {
	t.Helper()
	stored := map[string]*chat.Message{}
	for queue := []string{""}; len(queue) > 0; queue = queue[1:] {
		children, err := tx.Chats.Children(w.conversation, queue[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range children {
			queue = append(queue, m.ID)
			stored[m.ID] = m
		}
	}
	wantSame(t, "what is stored of "+w.conversation, slices.Collect(maps.Keys(stored)), slices.Collect(maps.Keys(w.messages)))
	last := int64(0)
	for _, m := range w.order {
		s := stored[m.id]
		if got, want := ([]any{s.ParentID, s.Role}), ([]any{m.parent, m.role}); !reflect.DeepEqual(got, want) {
			t.Fatalf("message %s: []any{s.ParentID, s.Role} is %+v, want %+v", m.id, got, want)
		}
		if s.Seq <= last {
			t.Fatalf("the order of message %s: s.Seq is %d, want more than %d", m.id, s.Seq, last)
		}
		last = s.Seq
		texts := m.verifyTexts(t, tx, s)
		if m.beside && m.live() && texts == 0 {
			m.deletedBy = byItself
		}
		if got, want := s.DeletedAt == nil, m.live(); got != want {
			t.Fatalf("message %s, deleted by %d: %+v: s.DeletedAt == nil is %v, want %v", m.id, m.deletedBy, m, got, want)
		}
		if m.role == chat.RoleAssistant {
			if got := ([]string{chat.StatusComplete, chat.StatusCancelled, chat.StatusInterrupted}); !slices.Contains(got, s.Status) {
				t.Fatalf("message %s: got %q, want it with %q", m.id, got, s.Status)
			}
		}
	}
}

// verifyTexts checks that a message has exactly the texts that were asked for or typed, that
// each was continued by what was asked for once, and which one is shown.
func (m *toldMessage) verifyTexts(t *testing.T, tx nodest.Tx, s *chat.Message) int {
	t.Helper()
	texts, dropped, chosen := map[string]string{}, map[string]bool{}, ""
	for _, a := range m.acts {
		switch {
		case a.generation != "":
			g, err := tx.Generation(a.generation)
			if err != nil {
				t.Fatal(err)
			}
			if g.MessageID != m.id {
				t.Fatalf("generation %s: g.MessageID is %q, want %q", g.ID, g.MessageID, m.id)
			}
			before, known := texts[g.SwipeID]
			switch {
			case !g.HasText():
				if g.Status == chat.GenDone {
					t.Fatalf("a generation without a text is done: got %q, want another", g.Status)
				}
			case g.Kind != chat.KindContinue:
				if known {
					t.Fatalf("generation %s replaced a text", g.ID)
				}
				texts[g.SwipeID] = g.Text
				if chosen == "" || g.Status == chat.GenDone || g.Status == chat.GenCancelled {
					chosen = g.SwipeID
				}
			default:
				longer := g.Base + g.Text // the whole text once it is in the message
				if known && !strings.HasPrefix(longer, before) {
					t.Fatalf("generation %s made %q of %q", g.ID, longer, before)
				}
				texts[g.SwipeID] = longer
			}
		case a.edited != "":
			texts[a.edited], chosen = a.text, a.edited
		case a.undrop:
			clear(dropped)
		default:
			chosen = a.chosen
			if a.dropped != "" {
				dropped[a.dropped] = true
			}
		}
	}
	got, gone := map[string]string{}, map[string]bool{}
	for i, v := range s.Swipes {
		if _, ok := got[v.ID]; ok {
			t.Fatalf("message %s has a swipe twice: got is %+v, want it without %q", m.id, got, v.ID)
		}
		got[v.ID] = v.Text
		if v.Deleted {
			gone[v.ID] = true
		}
		if i == s.SwipeIndex {
			if v.ID != chosen {
				t.Fatalf("the swipe of message %s that is shown, after %+v: v.ID is %q, want %q", m.id, m.acts, v.ID, chosen)
			}
		}
	}
	if !reflect.DeepEqual(got, texts) {
		t.Fatalf("the texts of message %s, after %+v: got is %+v, want %+v", m.id, m.acts, got, texts)
	}
	if !reflect.DeepEqual(gone, dropped) {
		t.Fatalf("the deleted swipes of message %s: gone is %+v, want %+v", m.id, gone, dropped)
	}
	return len(texts)
}

// compare compares what REST tells of the conversation with what clients know from events.
func (w *talker) compare(t *testing.T, c *cli.Client, mirrors []*mirror) {
	t.Helper()
	var conv wireChat
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+w.conversation, nil, &conv); err != nil {
		t.Fatal(err)
	}
	if conv.HeadID == nil {
		t.Fatal("conv.HeadID is nil, want a value")
	}
	if !slices.Contains(w.heads, *conv.HeadID) {
		t.Fatalf("the shown branch of %s: w.heads is %q, want it with %q", w.conversation, w.heads, *conv.HeadID)
	}
	for _, r := range mirrors {
		if *r.chats[w.conversation].HeadID != *conv.HeadID {
			t.Fatalf("the shown branch of %s, from events: *r.chats[w.conversation].HeadID is %q, want %q", w.conversation, *r.chats[w.conversation].HeadID, *conv.HeadID)
		}
	}
	for _, m := range w.order {
		var now json.RawMessage
		err := c.Call(t.Context(), http.MethodGet, "/api/v1/messages/"+m.id, nil, &now)
		if (err != nil || !m.live()) && (m.live() || !fault.Is(err, fault.NotFound)) {
			t.Fatalf("message %s, deleted by %d: %v", m.id, m.deletedBy, err)
		}
		for _, r := range mirrors {
			if want := !m.live(); r.chats[w.conversation].deleted[m.id] != want {
				t.Fatalf("message %s is deleted, from events: r.chats[w.conversation].deleted[m.id] is %v, want %v", m.id, r.chats[w.conversation].deleted[m.id], want)
			}
			if m.live() {
				if got, want := withoutRev(t, r.raw[m.id], m), withoutRev(t, now, m); !reflect.DeepEqual(got, want) {
					t.Fatalf("message %s, from REST and from events: withoutRev(t, r.raw[m.id], m) is %+v, want %+v", m.id, got, want)
				}
			}
		}
	}
}

// withoutRev decodes a message. The rev of one that was deleted and restored is in no event.
func withoutRev(t *testing.T, message json.RawMessage, m *toldMessage) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(message, &fields); err != nil {
		t.Fatalf("message %s: %s: %v", m.id, message, err)
	}
	if m.wasDeleted {
		delete(fields, "rev")
	}
	return fields
}
