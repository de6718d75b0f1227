package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"nodest/op"
)

// TestAWriteRepeatedFiveTimesIsDoneOnce sends every write command five times with the
// same key, over two WebSockets at once and over REST: it takes effect once, and all
// get the same result (see withoutForgotten).
func TestAWriteRepeatedFiveTimesIsDoneOnce(t *testing.T) {
	h := newTestServer(t, nil)
	one, _ := h.connect(map[string]any{"deviceId": "d-1"})
	two, _ := h.connect(map[string]any{"deviceId": "d-2"})
	character, chat := h.newCharacter(), h.newChat()
	greeting := h.head(chat)
	sent := one.ok("chat.send", "first", map[string]any{"conversationId": chat, "text": "Hi"})
	messageID, reply := field[string](t, sent, "userMessage.id"), field[string](t, sent, "message.id")
	one.event("gen.done", field[string](t, sent, "generationId"))
	save := field[string](t, one.ok("save.create", "saved", map[string]any{"conversationId": chat, "description": "here"}), "id")
	one.ok("message.delete", "second", map[string]any{"messageId": messageID, "scope": "after"})
	one.ok("message.restore", "third", map[string]any{"messageId": messageID})
	memories, long := "/characters/"+character+"/memories", h.newChat()
	bees, hens := h.addMemory(memories, "Mia keeps bees.", ""), h.addMemory(memories, "Mia keeps hens.", "")
	summary := h.makeSummary(long)
	of := func(id string, more ...any) map[string]any {
		data := map[string]any{"characterId": character, "memoryId": id}
		for i := 0; i < len(more); i += 2 {
			data[more[i].(string)] = more[i+1]
		}
		return data
	}

	for i, c := range []struct {
		command string
		data    map[string]any
		method  string
		path    string
		body    map[string]any
		starts  int // generations
	}{
		{"chat.create", map[string]any{"characterId": character}, "POST", "/conversations", map[string]any{"characterId": character}, 0},
		{"chat.update", map[string]any{"conversationId": chat, "title": "T"}, "PATCH", "/conversations/" + chat, map[string]any{"title": "T"}, 0},
		{"chat.send", map[string]any{"conversationId": chat, "text": "Once", "reply": false}, "POST", "/conversations/" + chat + "/messages", map[string]any{"text": "Once", "reply": false}, 0},
		{"chat.send", map[string]any{"conversationId": chat, "text": "And answer"}, "POST", "/conversations/" + chat + "/messages", map[string]any{"text": "And answer"}, 1},
		{"gen.regenerate", map[string]any{"messageId": reply}, "POST", "/messages/" + reply + "/regenerate", nil, 1},
		{"gen.continue", map[string]any{"messageId": reply}, "POST", "/messages/" + reply + "/continue", nil, 1},
		{"gen.impersonate", map[string]any{"conversationId": chat}, "POST", "/conversations/" + chat + "/impersonate", nil, 1},
		{"message.edit", map[string]any{"messageId": messageID, "text": "Edited"}, "PATCH", "/messages/" + messageID, map[string]any{"text": "Edited"}, 0},
		{"message.edit", map[string]any{"messageId": messageID, "text": "Beside", "mode": "branch"}, "PATCH", "/messages/" + messageID, map[string]any{"text": "Beside", "mode": "branch"}, 0},
		{"message.edit", map[string]any{"messageId": messageID, "text": "Answer", "regenerate": true}, "PATCH", "/messages/" + messageID, map[string]any{"text": "Answer", "regenerate": true}, 1},
		{"chat.fork", map[string]any{"conversationId": chat}, "POST", "/conversations/" + chat + "/fork", nil, 0},
		{"save.create", map[string]any{"conversationId": chat, "description": "D"}, "POST", "/conversations/" + chat + "/saves", map[string]any{"description": "D"}, 0},
		{"save.restore", map[string]any{"saveId": save}, "POST", "/saves/" + save + "/restore", nil, 0},
		{"save.delete", map[string]any{"saveId": save}, "DELETE", "/saves/" + save, nil, 0},
		{"memory.create", map[string]any{"characterId": character, "text": "Mia sails."}, "POST", memories, map[string]any{"text": "Mia sails."}, 0},
		{"memory.edit", of(bees, "text", "Mia kept bees."), "PATCH", memories + "/" + bees, map[string]any{"text": "Mia kept bees."}, 0},
		{"memory.pin", of(bees, "pinned", true), "PATCH", memories + "/" + bees, map[string]any{"pinned": true}, 0},
		{"memory.delete", of(hens), "DELETE", memories + "/" + hens, nil, 0},
		{"memory.restore", of(hens), "POST", memories + "/" + hens + "/restore", nil, 0},
		{"memory.delete", of(hens, "purge", true), "DELETE", memories + "/" + hens + "?purge=true", nil, 0},
		{"memory.forget", map[string]any{"characterId": character, "ids": []string{bees}}, "POST", memories + "/forget", map[string]any{"ids": []string{bees}}, 0},
		{"summary.create", map[string]any{"conversationId": long}, "POST", "/conversations/" + long + "/summaries", nil, 0},
		{"summary.delete", map[string]any{"conversationId": long, "summaryId": summary}, "DELETE", "/conversations/" + long + "/summaries/" + summary, nil, 0},
		{"message.swipe", map[string]any{"messageId": reply, "swipe": "prev"}, "POST", "/messages/" + reply + "/swipe", map[string]any{"swipe": "prev"}, 0},
		{"message.delete", map[string]any{"messageId": reply, "scope": "one"}, "DELETE", "/messages/" + reply + "?scope=one", nil, 0},
		{"message.restore", map[string]any{"messageId": reply}, "POST", "/messages/" + reply + "/restore", nil, 0},
		{"chat.head", map[string]any{"conversationId": chat, "messageId": greeting}, "PUT", "/conversations/" + chat + "/head", map[string]any{"messageId": greeting}, 0},
		{"chat.reset", map[string]any{"conversationId": chat}, "POST", "/conversations/" + chat + "/reset", nil, 0},
		{"chat.delete", map[string]any{"conversationId": chat}, "DELETE", "/conversations/" + chat, nil, 0},
	} {
		t.Run(fmt.Sprint(c.command, " ", i), func(t *testing.T) {
			key := fmt.Sprint("five-", i)
			before := h.seq()
			answers := make([]*frame, 4)
			var all sync.WaitGroup
			for n := range answers {
				p := []*wsClient{one, two}[n%2]
				all.Go(func() { answers[n] = p.answer(p.send(c.command, key, c.data)) })
			}
			all.Wait()
			fresh := 0
			for _, f := range answers {
				if !*f.OK {
					t.Fatalf("%+v", f.Error)
				}
				if !f.Replay {
					fresh++
				}
				if withoutForgotten(c.command, f.Data) != withoutForgotten(c.command, answers[0].Data) {
					t.Errorf("two answers:\n%s\n%s", f.Data, answers[0].Data)
				}
			}
			if fresh != 1 {
				t.Errorf("%d of 4 answers are not replays", fresh)
			}
			body := ""
			if c.body != nil {
				b, err := json.Marshal(c.body)
				h.must(err)
				body = string(b)
			}
			a := h.rest(c.method, c.path, body, "Idempotency-Key: "+key, "Prefer: respond-async")
			if a.status >= 300 || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("REST: %d %s", a.status, a.body)
			}
			if gen := field[string](t, answers[0], "generationId"); gen != "" {
				if _, err := h.engine.Wait(context.Background(), h.user.ID, gen); err != nil {
					t.Error(err)
				}
			}
			generations := map[string]bool{}
			events, err := h.db.Events(context.Background(), h.user.ID, before, 1000)
			h.must(err)
			for _, e := range events {
				if e.Type == "gen.started" {
					generations[e.GenerationID] = true
				}
			}
			if len(generations) != c.starts {
				t.Errorf("%d generations, want %d", len(generations), c.starts)
			}
		})
	}
}

func (h *testServer) seq() int64 {
	h.t.Helper()
	at, _, err := h.db.Position(context.Background(), h.user.ID)
	h.must(err)
	return at.Seq
}

func (h *testServer) head(chat string) string {
	h.t.Helper()
	c, err := h.chats.Conversation(context.Background(), h.user.ID, chat)
	h.must(err)
	return c.HeadID
}

// TestAKeyStillInProgress: while the first request with a key still runs, REST
// answers in_progress, and the WebSocket waits.
func TestAKeyStillInProgress(t *testing.T) {
	h := newTestServer(t, nil)
	ctx := context.Background()
	started, release := make(chan struct{}), make(chan struct{})
	call := func() *op.Call { return &op.Call{UserID: h.user.ID, Key: "k"} }
	first := make(chan error, 1)
	go func() {
		_, err := h.server.once(ctx, call(), false, func() (any, error) {
			close(started)
			<-release
			return nil, nil
		})
		first <- err
	}()
	await(t, started, "the first call")
	chat := h.newChat()
	a := h.rest("PATCH", "/conversations/"+chat, `{"title":"x"}`, "Idempotency-Key: k")
	if a.status != http.StatusConflict || a.object(t)["code"] != "in_progress" || a.object(t)["retry"] != "same" {
		t.Errorf("REST: %d %s", a.status, a.body)
	}
	p, _ := h.connect(nil)
	id := p.send("chat.update", "k", map[string]any{"conversationId": chat, "title": "x"})
	close(release)
	if f := p.answer(id); !*f.OK || f.Replay {
		t.Errorf("WebSocket: %+v", f)
	}
	h.must(await(t, first, "the end of the first call"))
}

// TestMemoryOfIdleConnections prints the memory per idle connection; the target is
// at most 30 KiB for client and server together. NODEST_LONG=1 opens 2,000.
func TestMemoryOfIdleConnections(t *testing.T) {
	n := scaled(2000, 60)
	h := newTestServer(t, func(o *Options) { o.PerDevice, o.PerUser = n, n })
	before, routines := memoryInUse(), runtime.NumGoroutine()
	for i := range n {
		p, _, _ := h.dial(dialOptions{token: h.token, noRead: true})
		p.send("hello", "", map[string]any{"protocol": 1, "deviceId": fmt.Sprint("d-", i)})
		if _, _, err := p.ws.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	after := memoryInUse()
	t.Logf("%d connections: %d bytes and %.1f goroutines each, client included",
		n, (int64(after)-int64(before))/int64(n), float64(runtime.NumGoroutine()-routines)/float64(n))
}

// memoryInUse returns the bytes of heap and stacks in use after garbage collection.
func memoryInUse() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

var textMember = regexp.MustCompile(`"text":"[^"]*"`)

// withoutForgotten removes the texts of forgotten memories, which a replayed result
// does not have.
func withoutForgotten(command string, data []byte) string {
	if command != "memory.forget" {
		return string(data)
	}
	return textMember.ReplaceAllString(string(data), `"text":""`)
}
