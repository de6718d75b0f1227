package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Two devices see the tree of a conversation change in the same order, whichever
// of them changes it.
func TestTwoDevicesSeeTheSameTree(t *testing.T) {
	h := build(t, nil)
	p, _ := h.phone(map[string]any{"deviceId": "d-one"})
	q, _ := h.phone(map[string]any{"deviceId": "d-two", "batch": true})
	chat := h.chat()
	said, _ := h.says(chat, "Where are we?", "At sea.")
	save := field[string](t, p.ok("save.create", h.key(), map[string]any{"conversationId": chat, "description": "at sea"}), "id")
	q.ok("message.edit", h.key(), map[string]any{"messageId": said, "text": "Where to?"})
	fork := field[string](t, p.ok("chat.fork", h.key(), map[string]any{"conversationId": chat, "title": "Another way"}), "id")
	edited := q.ok("message.edit", h.key(), map[string]any{"messageId": said, "text": "Why?", "mode": "branch", "regenerate": true})
	q.event("gen.done", field[string](t, edited, "generationId"))
	p.ok("save.restore", h.key(), map[string]any{"saveId": save})
	q.ok("chat.reset", h.key(), map[string]any{"conversationId": chat})
	p.ok("save.delete", h.key(), map[string]any{"saveId": save})
	last := h.seq()
	p.reach(last)
	q.reach(last)

	a, b := sequence(p.all()), sequence(q.all())
	if a != b {
		t.Errorf("two devices saw\n%s\n%s", a, b)
	}
	for _, want := range []string{"save.created", "chat.created", "message.created", "gen.done", "save.restored", "chat.updated", "save.deleted"} {
		if !strings.Contains(a, " "+want+" ") {
			t.Errorf("nobody saw %s:\n%s", want, a)
		}
	}
	if f := q.event("save.restored", ""); f.By != "d-one" || f.Conv != chat || field[string](t, f, "save.id") != save || field[string](t, f, "head") == "" {
		t.Errorf("save.restored: %+v %s", f, f.Data)
	}
	told := wait(q, "the fork", func(frames []*frame) *frame {
		at := slices.IndexFunc(frames, func(f *frame) bool { return f.Ev == "chat.created" && f.Conv == fork })
		if at < 0 {
			return nil
		}
		return frames[at]
	})
	if told.By != "d-one" || field[string](t, told, "conversation.title") != "Another way" {
		t.Errorf("chat.created: %+v %s", told, told.Data)
	}
	for _, d := range []*phone{p, q} {
		if got, want := d.seen(t, chat), h.texts(chat); !slices.Equal(got, want) {
			t.Errorf("a device shows %q, the server %q", got, want)
		}
	}
}

// seen is what a device shows of a conversation that it knows from events alone,
// the first of which told of its beginning. A message that follows the end of what
// is shown becomes the end; anything else is told by chat.updated.
func (p *phone) seen(t *testing.T, chat string) []string {
	t.Helper()
	type message struct {
		ID, Text, ParentID string
	}
	messages, gone, head := map[string]message{}, map[string]bool{}, ""
	for _, f := range p.all() {
		if f.Conv != chat || f.Seq == 0 {
			continue
		}
		var data struct {
			Message      message
			MessageIDs   []string
			Conversation struct{ HeadID string }
		}
		if err := json.Unmarshal(f.Data, &data); err != nil {
			t.Fatal(err)
		}
		m := data.Message
		switch f.Ev {
		case "message.created":
			if m.ParentID == head {
				head = m.ID
			}
			messages[m.ID] = m
		case "message.updated":
			messages[m.ID] = m
		case "message.deleted", "message.restored":
			for _, id := range data.MessageIDs {
				gone[id] = f.Ev == "message.deleted"
			}
		case "chat.created", "chat.updated":
			head = data.Conversation.HeadID
		}
	}
	var texts []string
	for id := head; id != ""; id = messages[id].ParentID {
		if !gone[id] {
			texts = append(texts, messages[id].Text)
		}
	}
	slices.Reverse(texts)
	return texts
}

// What a device did while it was away is done when it comes back, unless the
// thing has changed meanwhile: then it is told what it is now, and may say again
// what it means.
func TestAnEditFromBeforeTheTunnel(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, _ := h.says(chat, "Where are we?", "At sea.")
	p, _ := h.phone(map[string]any{"deviceId": "d-one"})
	offline := map[string]any{"messageId": said, "text": "From the tunnel", "ifRev": 1}
	p.ws.NetConn().Close()

	q, _ := h.phone(map[string]any{"deviceId": "d-two"})
	q.ok("message.edit", "two", map[string]any{"messageId": said, "text": "From the hill", "ifRev": 1})
	back, _ := h.phone(map[string]any{"deviceId": "d-one"})
	for range 2 { // a repeated failure is the same one
		f := back.fails("conflict", "message.edit", "one", offline)
		current, _ := f.Error.Details["current"].(map[string]any)
		if current["text"] != "From the hill" || current["rev"] != 2.0 {
			t.Errorf("current: %v", current)
		}
	}
	offline["ifRev"] = 2
	back.ok("message.edit", "one-again", offline)
	h.shows(chat, "Hello, traveller.", "From the tunnel", "At sea.")
	q.reach(h.seq())
	f := q.all()[len(q.all())-1]
	if f.Ev != "message.updated" || f.By != "d-one" || field[string](t, f, "message.text") != "From the tunnel" {
		t.Errorf("the other device sees %+v", f)
	}
}

// Two devices that change the same things at once end with the same things.
func TestTwoDevicesAtOnce(t *testing.T) {
	h := build(t, nil)
	p, _ := h.phone(map[string]any{"deviceId": "d-one"})
	q, _ := h.phone(map[string]any{"deviceId": "d-two"})
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")
	save := h.save(chat, "at sea")
	var all sync.WaitGroup
	for n, d := range []*phone{p, q} {
		all.Go(func() {
			for i := range 8 {
				key := fmt.Sprintf("at-once-%d-%d", n, i)
				switch i % 4 {
				case 0:
					d.ok("message.edit", key, map[string]any{"messageId": said, "text": key})
				case 1:
					d.ok("message.edit", key, map[string]any{"messageId": replied, "text": key, "mode": "branch"})
				case 2:
					d.ok("save.restore", key, map[string]any{"saveId": save})
				case 3:
					d.ok("chat.fork", key, map[string]any{"conversationId": chat, "messageId": replied})
				}
			}
		})
	}
	all.Wait()
	last := h.seq()
	p.reach(last)
	q.reach(last)
	if a, b := sequence(p.all()), sequence(q.all()); a != b {
		t.Errorf("two devices saw\n%s\n%s", a, b)
	}
	for _, d := range []*phone{p, q} {
		if got, want := d.seen(t, chat), h.texts(chat); !slices.Equal(got, want) {
			t.Errorf("a device shows %q, the server %q", got, want)
		}
	}
	if n := len(h.rest("GET", "/conversations", "").wants(t, 200)["items"].([]any)); n != 5 {
		t.Errorf("%d conversations, want this one and 4 forks", n)
	}
}
