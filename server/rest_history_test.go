package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
)

// texts returns the visible messages of a conversation, oldest first.
func (h *testServer) texts(chat string) []string {
	h.t.Helper()
	items := h.rest("GET", "/conversations/"+chat+"/messages?limit=200", "").wants(h.t, 200)["items"].([]any)
	texts := make([]string, len(items))
	for i, m := range items {
		texts[i] = m.(map[string]any)["text"].(string)
	}
	return texts
}

// shows checks the visible messages of a conversation.
func (h *testServer) shows(chat string, want ...string) {
	h.t.Helper()
	if got := h.texts(chat); fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("it shows %q, want %q", got, want)
	}
}

// turn sends a message, lets the model answer with reply, and returns the ids of both
// messages.
func (h *testServer) turn(chat, text, reply string) (messageID, replyID string) {
	h.t.Helper()
	h.model.enqueue(&script{pieces: []string{reply}})
	sent := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`"}`).wants(h.t, 200)
	return stringAt(sent, "userMessage.id"), stringAt(sent, "message.id")
}

// stringAt returns the string at a path such as "message.id", "" if there is none.
func stringAt(answer map[string]any, path string) string {
	var v any = answer
	for _, name := range strings.Split(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	text, _ := v.(string)
	return text
}

// An edit that asks for a reply answers like a sent message: after the reply, as an
// event stream, or at once.
func TestAnEditIsAnsweredLikeAMessage(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")

	h.model.enqueue(&script{pieces: []string{"In the ", "hills."}})
	done := h.rest("PATCH", "/messages/"+messageID, `{"text":"Where are we now?","regenerate":true}`).wants(t, 200)
	if stringAt(done, "message.id") != messageID || stringAt(done, "message.text") != "Where are we now?" {
		t.Errorf("message: %v", done["message"])
	}
	if stringAt(done, "reply.id") != replyID || stringAt(done, "reply.text") != "In the hills." || stringAt(done, "reply.status") != "complete" {
		t.Errorf("reply: %v", done["reply"])
	}
	if stringAt(done, "promptId") == "" || done["usage"] == nil || done["generationId"] == nil {
		t.Errorf("answer: %v", done)
	}

	h.model.enqueue(&script{pieces: []string{"I am Alice."}})
	events := h.openStream("PATCH", "/messages/"+messageID, `{"text":"Who are you?","mode":"branch","regenerate":true}`).remaining()
	var kinds []string
	for _, e := range events {
		if e.Seq > 0 && e.Ev != "gen.context" {
			kinds = append(kinds, e.Ev+" "+field[string](t, &e.frame, "message.role"))
		}
	}
	want := "[message.created user message.created assistant gen.started  message.updated assistant gen.done ]"
	if fmt.Sprint(kinds) != want {
		t.Errorf("events %v\nwant   %s", kinds, want)
	}
	h.shows(chat, "Hello, traveller.", "Who are you?", "I am Alice.")

	s := h.model.enqueue(&script{pieces: []string{"…"}, hangs: true})
	started := h.rest("PATCH", "/messages/"+messageID, `{"text":"Why?","mode":"branch","regenerate":true}`, "Prefer: respond-async").wants(t, 202)
	if stringAt(started, "reply.status") != "pending" || stringAt(started, "message.text") != "Why?" {
		t.Errorf("answer: %v", started)
	}
	await(t, s.requested, "the request to the model")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"Busy?","mode":"branch"}`).refuses(t, 409, "busy")
	h.rest("POST", "/generations/"+stringAt(started, "generationId")+"/cancel", "").wants(t, 200)
}

func TestAnEditWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")
	edited := h.rest("PATCH", "/messages/"+replyID, `{"text":"In the hills.","mode":"branch"}`).wants(t, 200)
	if stringAt(edited, "message.role") != "assistant" || edited["reply"] != nil || edited["generationId"] != nil {
		t.Errorf("an edited reply: %v", edited)
	}
	h.shows(chat, "Hello, traveller.", "Where are we?", "In the hills.")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"Where?"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where?", "In the hills.")
	h.rest("PATCH", "/messages/"+replyID, `{"text":"x","regenerate":true}`).refuses(t, 400, "invalid_field", "regenerate")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"x","mode":"beside"}`).refuses(t, 400, "invalid_field", "mode")

	branches := h.rest("GET", "/conversations/"+chat+"/branches", "").wants(t, 200)["items"].([]any)
	if len(branches) != 2 {
		t.Fatalf("branches: %v", branches)
	}
	for i, want := range []struct {
		text  string
		shown bool
	}{{"In the hills.", true}, {"At sea.", false}} {
		b := branches[i].(map[string]any)
		if stringAt(b, "head.text") != want.text || b["shown"] != want.shown || b["messageCount"] != 3.0 {
			t.Errorf("branch %d: %v", i, b)
		}
	}
	h.rest("PUT", "/conversations/"+chat+"/head", `{"messageId":"`+replyID+`"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where?", "At sea.")
}

// Regenerating a reply that was already answered starts a new branch; if that fails,
// nothing changes.
func TestRegeneratingInTheMiddle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	_, first := h.turn(chat, "Where are we?", "At sea.")
	h.turn(chat, "Since when?", "For years.")
	before := h.texts(chat)

	h.model.enqueue(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	h.rest("POST", "/messages/"+first+"/regenerate", "").refuses(t, 503, "upstream_unavailable")
	h.shows(chat, before...)
	if n := len(h.rest("GET", "/conversations/"+chat+"/branches", "").wants(t, 200)["items"].([]any)); n != 1 {
		t.Errorf("%d branches after a failure", n)
	}

	s := h.model.enqueue(&script{hangs: true})
	started := h.rest("POST", "/messages/"+first+"/regenerate", "", "Prefer: respond-async").wants(t, 202)
	await(t, s.requested, "the request to the model")
	generation, newReply := stringAt(started, "generationId"), stringAt(started, "message.id")
	h.rest("DELETE", "/messages/"+newReply, "").refuses(t, 409, "busy")
	h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"now"}`).refuses(t, 409, "busy")
	h.rest("POST", "/generations/"+generation+"/cancel", "").wants(t, 200)
	_, err := h.engine.Wait(t.Context(), h.user.ID, generation)
	h.must(err)
	events := h.openStream("GET", "/generations/"+generation, "").remaining()
	if len(events) != 2 || events[0].Ev != "message.deleted" || events[1].Ev != "gen.done" {
		t.Errorf("the end of a reply that stayed empty: %v", events)
	}
	h.rest("GET", "/messages/"+newReply, "").refuses(t, 404, "not_found")
	h.shows(chat, before...)

	s = h.model.enqueue(&script{hangs: true})
	waiting := make(chan *restResponse, 1)
	go func() { waiting <- h.rest("POST", "/messages/"+first+"/regenerate", "") }()
	await(t, s.requested, "the request to the model")
	running, err := h.engine.Active(t.Context(), h.user.ID)
	for h.must(err); len(running) == 0; h.must(err) { // the model is asked while the reply is stored
		running, err = h.engine.Active(t.Context(), h.user.ID)
	}
	h.rest("POST", "/generations/"+running[0].Generation.ID+"/cancel", "").wants(t, 200)
	if empty := await(t, waiting, "the answer").wants(t, 200); empty["message"] != nil || empty["generationId"] != running[0].Generation.ID {
		t.Errorf("the answer of a reply that stayed empty: %v", empty)
	}
	h.shows(chat, before...)

	h.model.enqueue(&script{pieces: []string{"In the hills."}})
	done := h.rest("POST", "/messages/"+first+"/regenerate", `{"wish":"on land"}`).wants(t, 200)
	if stringAt(done, "message.id") == first || stringAt(done, "message.text") != "In the hills." {
		t.Errorf("answer: %v", done)
	}
	if swipe := done["message"].(map[string]any)["swipes"].([]any)[0].(map[string]any); swipe["wish"] != "on land" {
		t.Errorf("swipe: %v", swipe)
	}
	h.shows(chat, "Hello, traveller.", "Where are we?", "In the hills.")
}

// Regenerating the greeting shows the card's greeting again, without a model.
func TestRegeneratingTheGreetingCallsNoModel(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	greeting := h.head(chat)
	h.rest("PATCH", "/messages/"+greeting, `{"text":"Go away."}`).wants(t, 200)
	unused := h.model.enqueue(&script{pieces: []string{"I am a model."}})
	got := h.rest("POST", "/messages/"+greeting+"/regenerate", `{"wish":"be rude"}`).wants(t, 200)
	if stringAt(got, "message.text") != "Hello, traveller." || got["generationId"] != nil {
		t.Errorf("answer: %v", got)
	}
	select {
	case <-unused.requested:
		t.Error("the model was asked")
	default:
	}
	h.shows(chat, "Hello, traveller.")
}

// While a reply is being written, requests that would delete, edit or save it
// are refused as busy.
func TestAMessageBeingWrittenIsBusy(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	save := stringAt(h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"the beginning"}`).wants(t, 201), "id")
	gate := make(chan struct{})
	s := h.model.enqueue(&script{pieces: []string{"one ", "two"}, gate: gate})
	started := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Count"}`, "Prefer: respond-async").wants(t, 202)
	await(t, s.requested, "the request to the model")
	gate <- struct{}{}
	reply := stringAt(started, "message.id")
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/messages/" + reply, ""},
		{"DELETE", "/messages/" + stringAt(started, "userMessage.id") + "?scope=after", ""},
		{"PATCH", "/messages/" + reply, `{"text":"three"}`},
		{"POST", "/messages/" + reply + "/regenerate", ""},
		{"POST", "/conversations/" + chat + "/saves", `{"description":"now"}`},
		{"POST", "/saves/" + save + "/restore", ""},
		{"POST", "/conversations/" + chat + "/reset", ""},
	} {
		p := h.rest(c.method, c.path, c.body).refuses(t, 409, "busy")
		if p.Details["generationId"] != started["generationId"] || p.Retry != "later" {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	gate <- struct{}{}
	await(t, s.ended, "the end of the reply")
	_, err := h.engine.Wait(t.Context(), h.user.ID, stringAt(started, "generationId"))
	h.must(err)
	h.shows(chat, "Hello, traveller.", "Count", "one two")
}

func TestAForkIsIndependent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, _ := h.turn(chat, "Where are we?", "At sea.")
	fork := h.rest("POST", "/conversations/"+chat+"/fork", `{"messageId":"`+messageID+`","title":"Another way"}`)
	id := stringAt(fork.wants(t, 201), "id")
	if fork.header.Get("ETag") == "" || stringAt(fork.object(t), "title") != "Another way" {
		t.Errorf("%v %s", fork.header, fork.body)
	}
	h.turn(id, "Are we lost?", "Yes.")
	h.shows(id, "Hello, traveller.", "Where are we?", "Are we lost?", "Yes.")
	h.shows(chat, "Hello, traveller.", "Where are we?", "At sea.")
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	h.shows(id, "Hello, traveller.", "Where are we?", "Are we lost?", "Yes.")
}

// Forking a long chat answers before the messages are copied; the job that copies
// them is listed.
func TestALongForkIsCopiedInTheBackground(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character := h.characterOf(h.newChat())
	log := strings.Repeat(`{"name":"Mia","is_user":true,"send_date":"2025-03-14T09:00:00.000Z","mes":"On and on.","extra":{}}`+"\n", 5001)
	source := stringAt(h.upload("POST", "/conversations/import", "log.jsonl", []byte(log), "characterId="+character).wants(t, 201), "id")
	fork := h.rest("POST", "/conversations/"+source+"/fork", `{}`).wants(t, 201)
	if fork["copying"] != true {
		t.Errorf("answer = %v", fork)
	}
	listed := h.rest("GET", "/characters/"+character+"/memory/jobs", "").wants(t, 200)["items"].([]any)
	if len(listed) != 1 || stringAt(listed[0].(map[string]any), "kind") != "chat.fork" || stringAt(listed[0].(map[string]any), "subject") != stringAt(fork, "id") {
		t.Errorf("jobs = %v", listed)
	}
}

func TestAResetRestartsTheChat(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	_, replyID := h.turn(chat, "Where are we?", "At sea.")
	a := h.rest("POST", "/conversations/"+chat+"/reset", "")
	if stringAt(a.wants(t, 200), "headId") == replyID || a.header.Get("ETag") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	h.shows(chat, "Hello, traveller.")
	h.rest("PUT", "/conversations/"+chat+"/head", `{"messageId":"`+replyID+`"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where are we?", "At sea.")
}

func TestDeletingTheLastMessageLeavesNoHead(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	greeting := stringAt(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "headId")
	gone := h.rest("DELETE", "/messages/"+greeting, "").wants(t, 200)
	if head, there := gone["headId"]; !there || head != nil {
		t.Errorf("head: %v", gone)
	}
	if got := h.rest("GET", "/conversations/"+chat, "").wants(t, 200); got["headId"] != nil {
		t.Errorf("head: %v", got)
	}
	back := h.rest("POST", "/messages/"+greeting+"/restore", "").wants(t, 200)
	if back["headId"] != greeting {
		t.Errorf("head: %v", back)
	}
}

// A search finds all swipes of one's messages, page by page, and says where the
// match is.
func TestMessageSearch(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where does this road lead, 旅人?", "To the old harbour.")
	h.model.enqueue(&script{pieces: []string{"To the sea road."}})
	h.rest("POST", "/messages/"+replyID+"/regenerate", "").wants(t, 200)
	h.turn(h.newChat(), "The road again", "No road here.")

	find := func(query string) []any {
		t.Helper()
		return h.rest("GET", "/messages/search?"+query, "").wants(t, 200)["items"].([]any)
	}
	if found := find("q=ROAD&conversationId=" + chat); len(found) != 2 {
		t.Errorf("ROAD: %v", found)
	}
	hit := find("q=old+harbour")[0].(map[string]any) // in a swipe that is not shown
	if stringAt(hit, "message.id") != replyID || hit["conversationId"] != chat || stringAt(hit, "conversation.id") != chat || hit["shown"] != true || hit["swipeId"] == "" {
		t.Errorf("hit: %v", hit)
	}
	hit = find("q=" + url.QueryEscape("旅人"))[0].(map[string]any)
	snippet, match := []rune(hit["snippet"].(string)), hit["matches"].([]any)[0].([]any)
	if from, to := int(match[0].(float64)), int(match[1].(float64)); stringAt(hit, "message.id") != messageID || string(snippet[from:to]) != "旅人" {
		t.Errorf("hit: %v", hit)
	}
	seen := map[string]bool{}
	for _, id := range stringsAt(slices.Concat(h.pages("/messages/search?q=road&limit=1")...), "swipeId") {
		seen[id] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d texts hold road, want 4", len(seen))
	}
	h.rest("GET", "/messages/search", "").refuses(t, 400, "invalid_field", "q")
	h.rest("GET", "/messages/search?q=+", "").refuses(t, 400, "invalid_field", "q")
	h.rest("PATCH", "/messages/search", `{"text":"x"}`).refuses(t, 404, "not_found")
}

// A write that expects an older revision is refused with the current message.
func TestAConflictReturnsTheCurrentState(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"Where?","ifRev":1}`).wants(t, 200)
	h.model.enqueue(&script{pieces: []string{"In the hills."}})
	h.rest("POST", "/messages/"+replyID+"/regenerate", "").wants(t, 200)
	for _, c := range []struct{ method, path, body, text string }{
		{"PATCH", "/messages/" + messageID, `{"text":"Late","ifRev":1}`, "Where?"},
		{"PATCH", "/messages/" + messageID, `{"text":"Late","ifRev":1,"mode":"branch"}`, "Where?"},
		{"PATCH", "/messages/" + messageID, `{"text":"Late","ifRev":1,"regenerate":true}`, "Where?"},
		{"PATCH", "/messages/" + messageID, `{"text":"Late","ifRev":1,"mode":"branch","regenerate":true}`, "Where?"},
		{"POST", "/messages/" + replyID + "/swipe", `{"swipe":"prev","ifRev":1}`, "In the hills."},
	} {
		p := h.rest(c.method, c.path, c.body).refuses(t, 409, "conflict")
		current, _ := p.Details["current"].(map[string]any)
		if stringAt(current, "text") != c.text || current["rev"].(float64) < 2 {
			t.Errorf("%s: current %v", c.body, current)
		}
		if err := theContract().validate(p.Details["current"], openapiAt, "components", "schemas", "Message"); err != nil {
			t.Error(err)
		}
	}
	h.shows(chat, "Hello, traveller.", "Where?", "In the hills.")
}
