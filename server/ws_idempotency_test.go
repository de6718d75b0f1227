package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
)

// TestAWriteRepeatedFiveTimesIsDoneOnce sends every write command five times with the
// same key to two servers of one database, at once over WebSockets and REST: it takes
// effect once, and all get the same result (see withoutForgotten).
func TestAWriteRepeatedFiveTimesIsDoneOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	other := newTestServerOf(t, parts{beside: h}, nil)
	one, _ := h.connect(map[string]any{"deviceId": "d-1"})
	two, _ := other.connect(map[string]any{"deviceId": "d-2"})
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
		{"chat.send", map[string]any{"conversationId": chat, "text": "And answer", "clientMsgId": "c"}, "POST", "/conversations/" + chat + "/messages", map[string]any{"text": "And answer", "clientMsgId": "c"}, 1},
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
			body := ""
			if c.body != nil {
				b, err := json.Marshal(c.body)
				h.must(err)
				body = string(b)
			}
			answers := make([]*frame, 4)
			overREST := make([]*restResponse, 2)
			var all sync.WaitGroup
			for n := range answers {
				p := []*wsClient{one, two}[n%2]
				all.Go(func() { answers[n] = p.answer(p.send(c.command, key, c.data)) })
			}
			for n := range overREST {
				at := []*testServer{h, other}[n]
				all.Go(func() {
					overREST[n] = at.rest(c.method, c.path, body, "Idempotency-Key: "+key, "Prefer: respond-async")
				})
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
			for _, a := range overREST {
				if a.status >= 300 {
					t.Errorf("REST: %d %s", a.status, a.body)
				}
				if a.header.Get("Idempotency-Replayed") != "true" {
					fresh++
				}
			}
			if fresh != 1 {
				t.Errorf("%d of 6 answers are not replays", fresh)
			}
			if gen := field[string](t, answers[0], "generationId"); gen != "" {
				for _, engine := range []*nodest.Engine{h.engine, other.engine} { // the one that runs it knows when it is done
					if _, err := engine.Wait(context.Background(), h.user.ID, gen); err != nil {
						t.Error(err)
					}
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

// TestAKeyStillInProgress: while the first request with a key still runs, others wait for it
// on both transports.
func TestAKeyStillInProgress(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ctx := context.Background()
	started, release := make(chan struct{}), make(chan struct{})
	call := func() *op.Call { return &op.Call{UserID: h.user.ID, Key: "k"} }
	first := make(chan error, 1)
	go func() {
		_, err := h.server.once(ctx, ctx, call(), func() (any, error) {
			close(started)
			<-release
			return nil, nil
		})
		first <- err
	}()
	await(t, started, "the first call")
	chat := h.newChat()
	p, _ := h.connect(nil)
	id := p.send("chat.update", "k", map[string]any{"conversationId": chat, "title": "x"})
	overREST := make(chan *restResponse, 1)
	go func() { overREST <- h.rest("PATCH", "/conversations/"+chat, `{"title":"x"}`, "Idempotency-Key: k") }()
	close(release)
	f, a := p.answer(id), await(t, overREST, "the answer of the route")
	if !*f.OK || a.status != http.StatusOK || f.Replay == (a.header.Get("Idempotency-Replayed") == "true") {
		t.Errorf("WebSocket: %+v; REST: %d %s", f, a.status, a.body)
	}
	h.must(await(t, first, "the end of the first call"))
}

// A call does not wait forever for another one with its key, nor after its caller has gone.
func TestWaitingForAKeyEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls inflight
		done, err := calls.enter(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := calls.enter(t.Context(), "k"); !fault.Is(err, fault.InProgress) || time.Since(begun) != keyWait {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := calls.enter(gone, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller has gone: %v", err)
		}
		done()
		if done, err = calls.enter(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		done()
	})
}

// A call that fails because the same call was carried out meanwhile in another process gets
// the answer of that.
func TestACallThatLostARaceGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	runs := 0
	result, err := h.server.once(t.Context(), t.Context(), &op.Call{UserID: h.user.ID, Key: "k", Hash: "h"}, func() (any, error) {
		if runs++; runs > 1 {
			return "the first answer", nil
		}
		h.must(h.engine.DeleteConversation(t.Context(), &op.Call{UserID: h.user.ID, Key: "k", Hash: "h"}, chat))
		return nil, fault.New(fault.NotFound, "it is deleted already")
	})
	if result != "the first answer" || err != nil || runs != 2 {
		t.Errorf("%d runs: %v %v", runs, result, err)
	}
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
