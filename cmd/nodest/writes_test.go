package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"nodest/internal/cli"
)

// write is one writing command with objects of its own.
type write struct {
	cmd    string
	data   map[string]any
	method string // method of the REST route
	path   string // below /api/v1
	body   map[string]any
	event  string              // that announces the effect
	about  func(f *frame) bool // reports whether an event belongs to this write
	since  int64               // earlier events belong to the preparation
	key    string

	answer json.RawMessage // the first one received
}

// scenario is a conversation with one message and its reply, for one write.
type scenario struct {
	conversation, greeting, userMessage, reply string
}

func newScenario(t *testing.T, c *cli.Client, character string) scenario {
	t.Helper()
	s := scenario{conversation: newConversation(t, c, character)}
	var sent struct{ UserMessage, Message chatMessage }
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+s.conversation+"/messages", map[string]any{"text": "Good evening."}, &sent); err != nil {
		t.Fatal(err)
	}
	s.userMessage, s.reply = sent.UserMessage.ID, sent.Message.ID
	s.greeting = history(t, c, s.conversation)[0].ID
	return s
}

// eachWrite prepares every writing command, each with a scenario of its own.
func eachWrite(t *testing.T, c *cli.Client, character string, round int) []*write {
	t.Helper()
	var all []*write
	add := func(w write) {
		w.key = fmt.Sprintf("key-%d-%d", round, len(all))
		all = append(all, &w)
	}
	in := func(id string) func(*frame) bool { return func(f *frame) bool { return f.Conv == id } }
	on := func(id string) func(*frame) bool { return func(f *frame) bool { return f.Msg == id } }
	titled := fmt.Sprintf("round %d", round)

	s := newScenario(t, c, character)
	add(write{cmd: "chat.send", data: map[string]any{"conversationId": s.conversation, "text": "What now?"},
		method: http.MethodPost, path: "/conversations/" + s.conversation + "/messages", body: map[string]any{"text": "What now?"},
		event: "gen.end", about: in(s.conversation)})
	s = newScenario(t, c, character)
	add(write{cmd: "chat.send", data: map[string]any{"conversationId": s.conversation, "text": "Just so.", "reply": false},
		method: http.MethodPost, path: "/conversations/" + s.conversation + "/messages", body: map[string]any{"text": "Just so.", "reply": false},
		event: "message.created", about: in(s.conversation)})
	s = newScenario(t, c, character)
	add(write{cmd: "gen.regenerate", data: map[string]any{"messageId": s.reply},
		method: http.MethodPost, path: "/messages/" + s.reply + "/regenerate", event: "gen.end", about: on(s.reply)})
	s = newScenario(t, c, character)
	add(write{cmd: "gen.continue", data: map[string]any{"messageId": s.reply},
		method: http.MethodPost, path: "/messages/" + s.reply + "/continue", event: "gen.end", about: on(s.reply)})
	s = newScenario(t, c, character)
	add(write{cmd: "gen.impersonate", data: map[string]any{"conversationId": s.conversation},
		method: http.MethodPost, path: "/conversations/" + s.conversation + "/impersonate", event: "gen.end", about: in(s.conversation)})
	s = newScenario(t, c, character)
	add(write{cmd: "message.edit", data: map[string]any{"messageId": s.userMessage, "text": "Good morning."},
		method: http.MethodPatch, path: "/messages/" + s.userMessage, body: map[string]any{"text": "Good morning."}, event: "message.updated", about: on(s.userMessage)})
	s = newScenario(t, c, character)
	add(write{cmd: "message.swipe", data: map[string]any{"messageId": s.greeting, "swipe": "next"},
		method: http.MethodPost, path: "/messages/" + s.greeting + "/swipe", body: map[string]any{"swipe": "next"}, event: "message.updated", about: on(s.greeting)})
	s = newScenario(t, c, character)
	add(write{cmd: "message.hide", data: map[string]any{"messageId": s.userMessage, "hidden": true},
		method: http.MethodPut, path: "/messages/" + s.userMessage + "/hidden", body: map[string]any{"hidden": true}, event: "message.updated", about: on(s.userMessage)})
	s = newScenario(t, c, character)
	add(write{cmd: "message.delete", data: map[string]any{"messageId": s.reply},
		method: http.MethodDelete, path: "/messages/" + s.reply, event: "message.deleted", about: in(s.conversation)})
	s = newScenario(t, c, character)
	if err := c.Call(t.Context(), http.MethodDelete, "/api/v1/messages/"+s.reply, nil, nil); err != nil {
		t.Fatal(err)
	}
	add(write{cmd: "message.restore", data: map[string]any{"messageId": s.reply},
		method: http.MethodPost, path: "/messages/" + s.reply + "/restore", event: "message.restored", about: in(s.conversation)})
	add(write{cmd: "chat.create", data: map[string]any{"characterId": character, "title": titled},
		method: http.MethodPost, path: "/conversations", body: map[string]any{"characterId": character, "title": titled},
		event: "chat.created", about: func(f *frame) bool { return bytes.Contains(f.Data, []byte(titled)) }})
	s = newScenario(t, c, character)
	add(write{cmd: "chat.update", data: map[string]any{"conversationId": s.conversation, "title": "Renamed"},
		method: http.MethodPatch, path: "/conversations/" + s.conversation, body: map[string]any{"title": "Renamed"}, event: "chat.updated", about: in(s.conversation)})
	s = newScenario(t, c, character)
	add(write{cmd: "chat.head", data: map[string]any{"conversationId": s.conversation, "messageId": s.greeting},
		method: http.MethodPut, path: "/conversations/" + s.conversation + "/head", body: map[string]any{"messageId": s.greeting}, event: "chat.updated", about: in(s.conversation)})
	s = newScenario(t, c, character)
	add(write{cmd: "chat.delete", data: map[string]any{"conversationId": s.conversation},
		method: http.MethodDelete, path: "/conversations/" + s.conversation, event: "chat.deleted", about: in(s.conversation)})

	at := logEnd(t, c)
	for _, w := range all {
		w.since = at
	}
	return all
}

// rest sends the write over REST with the same key and returns the body of the
// response.
func (w *write) rest(t *testing.T, c *cli.Client) json.RawMessage {
	t.Helper()
	var content io.Reader
	if w.body != nil {
		text, err := json.Marshal(w.body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(t.Context(), w.method, c.Base+"/api/v1"+w.path, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Prefer", "respond-async")
	req.Header.Set("Idempotency-Key", w.key)
	res, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 {
		t.Fatalf("%s %s: %s: res.StatusCode is %d, want less than %d", w.method, w.path, text, res.StatusCode, 400)
	}
	return bytes.TrimSpace(text)
}

// wantSameAnswer checks that an answer equals the first one.
func (w *write) wantSameAnswer(t *testing.T, transport string, answer json.RawMessage) {
	t.Helper()
	if len(answer) == 0 { // 204
		return
	}
	if w.answer == nil {
		w.answer = answer
		return
	}
	if !sameJSON(answer, w.answer) {
		t.Fatalf("%s again, %s: got %s, want %s", w.cmd, transport, answer, w.answer)
	}
}

// effects counts the events that announce the write.
func (w *write) effects(log []*frame) int {
	n := 0
	for _, f := range log {
		end := f.Ev == "gen.done" || f.Ev == "gen.failed"
		if f.Seq > w.since && (f.Ev == w.event || w.event == "gen.end" && end) && w.about(f) {
			n++
		}
	}
	return n
}

// TestWritesHappenOnce sends every writing command over one connection, kills the
// server before all are answered, and sends each again four times: twice over new
// connections and twice over REST. All answers are the same, and each command takes
// effect once.
func TestWritesHappenOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		rounds := scaled(t, 1, 20)
		rng := newRand(t)
		inst := newInstallation(t, url, "NODEST_GENERATIONS=16")
		p := inst.start(t)
		character := twoGreetings(t, p.client)
		for round := range rounds {
			all := eachWrite(t, p.client, character, round)
			rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			sendOnce(t, p, all, rng.IntN(len(all)))
			p.kill(t)
			p = inst.start(t)
			sendAgain(t, p.client, all)
			eventually(t, "the effects", func() error { return happenedOnce(wholeLog(t, p.client), all) })
		}
		verifyLog(t, p.client)
		t.Logf("%d rounds of %d commands, each sent five times", rounds, 13)
		p.stop(t)
	})
}

// sendOnce sends every command and waits for some of the answers.
func sendOnce(t *testing.T, p *process, all []*write, answered int) {
	t.Helper()
	first := connectWS(t, p.client, "first")
	ids := map[string]*write{}
	for _, w := range all {
		ids[first.send(w.cmd, w.key, w.data)] = w
	}
	for answered > 0 {
		f, err := first.next()
		if err != nil {
			t.Fatal(err)
		}
		if w := ids[f.ID]; w != nil {
			if !(*f.OK) {
				t.Fatalf("%s: %s", w.cmd, f.Error)
			}
			w.wantSameAnswer(t, "first", f.Data)
			answered--
		}
	}
}

func sendAgain(t *testing.T, c *cli.Client, all []*write) {
	t.Helper()
	transports := []*wsClient{connectWS(t, c, "second"), connectWS(t, c, "third")}
	for i, w := range all {
		over := transports[i%2]
		for range 2 {
			w.wantSameAnswer(t, "REST", w.rest(t, c))
			f, err := over.answer(over.send(w.cmd, w.key, w.data))
			if err != nil {
				t.Fatal(err)
			}
			if !(*f.OK) {
				t.Fatalf("%s: %s", w.cmd, f.Error)
			}
			if !f.Replay {
				t.Fatalf("%s again", w.cmd)
			}
			w.wantSameAnswer(t, "WebSocket", f.Data)
			over = transports[(i+1)%2]
		}
	}
}

func happenedOnce(log []*frame, all []*write) error {
	for _, w := range all {
		if n := w.effects(log); n != 1 {
			return fmt.Errorf("%s happened %d times: %w", w.cmd, n, errNotYet)
		}
	}
	return nil
}

// wholeLog reads every event of the user.
func wholeLog(t *testing.T, c *cli.Client) []*frame {
	t.Helper()
	var snapshot struct{ Epoch string }
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &snapshot); err != nil {
		t.Fatal(err)
	}
	var log []*frame
	for {
		after := int64(0)
		if len(log) > 0 {
			after = log[len(log)-1].Seq
		}
		var page struct{ Events []*frame }
		if err := c.Call(t.Context(), http.MethodGet, fmt.Sprintf("/api/v1/sync?epoch=%s&since=%d&limit=500", snapshot.Epoch, after), nil, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 {
			return log
		}
		log = append(log, page.Events...)
	}
}

func logEnd(t *testing.T, c *cli.Client) int64 {
	t.Helper()
	var at struct{ Seq int64 }
	if err := c.Call(t.Context(), http.MethodGet, "/api/v1/sync", nil, &at); err != nil {
		t.Fatal(err)
	}
	return at.Seq
}

// twoGreetings creates a character whose greeting has two swipes.
func twoGreetings(t *testing.T, c *cli.Client) string {
	t.Helper()
	var ch cli.Item
	body := map[string]any{"roleCard": map[string]any{
		"name": "Mira", "first_mes": "Hello, {{user}}.", "description": "A lighthouse keeper.", "alternate_greetings": []string{"You again?"},
	}}
	if err := c.Call(t.Context(), http.MethodPost, "/api/v1/characters", body, &ch); err != nil {
		t.Fatal(err)
	}
	return ch.ID
}
