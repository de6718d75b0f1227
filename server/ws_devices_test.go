package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Two devices get the changes of a conversation in the same order, whichever of them
// makes a change.
func TestTwoDevicesSeeTheSameTree(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	q, _ := h.connect(map[string]any{"deviceId": "d-two", "batch": true})
	chat := h.newChat()
	messageID, _ := h.turn(chat, "Where are we?", "At sea.")
	save := field[string](t, p.ok("save.create", h.newKey(), map[string]any{"conversationId": chat, "description": "at sea"}), "id")
	q.ok("message.edit", h.newKey(), map[string]any{"messageId": messageID, "text": "Where to?"})
	fork := field[string](t, p.ok("chat.fork", h.newKey(), map[string]any{"conversationId": chat, "title": "Another way"}), "id")
	edited := q.ok("message.edit", h.newKey(), map[string]any{"messageId": messageID, "text": "Why?", "mode": "branch", "regenerate": true})
	q.event("gen.done", field[string](t, edited, "generationId"))
	p.ok("save.restore", h.newKey(), map[string]any{"saveId": save})
	q.ok("chat.reset", h.newKey(), map[string]any{"conversationId": chat})
	p.ok("save.delete", h.newKey(), map[string]any{"saveId": save})
	last := h.seq()
	p.waitSeq(last)
	q.waitSeq(last)

	a, b := sequence(p.all()), sequence(q.all())
	if a != b {
		t.Errorf("two devices saw\n%s\n%s", a, b)
	}
	for _, want := range []string{"save.created", "chat.created", "message.created", "gen.done", "save.restored", "chat.updated", "save.deleted"} {
		if !strings.Contains(a, " "+want+" ") {
			t.Errorf("no device saw %s:\n%s", want, a)
		}
	}
	if f := q.event("save.restored", ""); f.By != "d-one" || f.Conv != chat || field[string](t, f, "save.id") != save || field[string](t, f, "head") == "" {
		t.Errorf("save.restored: %+v %s", f, f.Data)
	}
	created := waitFor(q, "the fork", func(frames []*frame) *frame {
		at := slices.IndexFunc(frames, func(f *frame) bool { return f.Ev == "chat.created" && f.Conv == fork })
		if at < 0 {
			return nil
		}
		return frames[at]
	})
	if created.By != "d-one" || field[string](t, created, "conversation.title") != "Another way" {
		t.Errorf("chat.created: %+v %s", created, created.Data)
	}
	for _, d := range []*wsClient{p, q} {
		if got, want := d.shownTexts(t, chat), h.texts(chat); !slices.Equal(got, want) {
			t.Errorf("a device shows %q, the server %q", got, want)
		}
	}
}

// shownTexts returns what a client shows of a conversation if it follows the events
// alone, from chat.created on. A new message becomes the head if its parent is the
// head; chat.updated announces any other change of the head.
func (p *wsClient) shownTexts(t *testing.T, chat string) []string {
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

// An edit made offline is refused when the device reconnects, if the message has
// changed in the meantime. The error has the current message, so that the device can
// send its edit again.
func TestAnOfflineEditReportsAConflict(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, _ := h.turn(chat, "Where are we?", "At sea.")
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	offline := map[string]any{"messageId": messageID, "text": "Written offline", "ifRev": 1}
	p.ws.NetConn().Close()

	q, _ := h.connect(map[string]any{"deviceId": "d-two"})
	q.ok("message.edit", "two", map[string]any{"messageId": messageID, "text": "Written online", "ifRev": 1})
	back, _ := h.connect(map[string]any{"deviceId": "d-one"})
	for range 2 { // a repetition gets the same error
		f := back.fails("conflict", "message.edit", "one", offline)
		current, _ := f.Error.Details["current"].(map[string]any)
		if current["text"] != "Written online" || current["rev"] != 2.0 {
			t.Errorf("current: %v", current)
		}
	}
	offline["ifRev"] = 2
	back.ok("message.edit", "one-again", offline)
	h.shows(chat, "Hello, traveller.", "Written offline", "At sea.")
	q.waitSeq(h.seq())
	f := q.all()[len(q.all())-1]
	if f.Ev != "message.updated" || f.By != "d-one" || field[string](t, f, "message.text") != "Written offline" {
		t.Errorf("the other device sees %+v", f)
	}
}

// Two devices that change the same conversation at once end up showing the same.
func TestTwoDevicesAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "d-one"})
	q, _ := h.connect(map[string]any{"deviceId": "d-two"})
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")
	save := h.createSave(chat, "at sea")
	var all sync.WaitGroup
	for n, d := range []*wsClient{p, q} {
		all.Go(func() {
			for i := range 8 {
				key := fmt.Sprintf("at-once-%d-%d", n, i)
				switch i % 4 {
				case 0:
					d.ok("message.edit", key, map[string]any{"messageId": messageID, "text": key})
				case 1:
					d.ok("message.edit", key, map[string]any{"messageId": replyID, "text": key, "mode": "branch"})
				case 2:
					d.ok("save.restore", key, map[string]any{"saveId": save})
				case 3:
					d.ok("chat.fork", key, map[string]any{"conversationId": chat, "messageId": replyID})
				}
			}
		})
	}
	all.Wait()
	last := h.seq()
	p.waitSeq(last)
	q.waitSeq(last)
	if a, b := sequence(p.all()), sequence(q.all()); a != b {
		t.Errorf("two devices saw\n%s\n%s", a, b)
	}
	for _, d := range []*wsClient{p, q} {
		if got, want := d.shownTexts(t, chat), h.texts(chat); !slices.Equal(got, want) {
			t.Errorf("a device shows %q, the server %q", got, want)
		}
	}
	if n := len(h.rest("GET", "/conversations", "").wants(t, 200)["items"].([]any)); n != 5 {
		t.Errorf("%d conversations, want this one and 4 forks", n)
	}
}
