package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"nodest/fault"
)

// texts is what a conversation shows, oldest first.
func (h *house) texts(chat string) []string {
	h.t.Helper()
	items := h.rest("GET", "/conversations/"+chat+"/messages?limit=200", "").wants(h.t, 200)["items"].([]any)
	texts := make([]string, len(items))
	for i, m := range items {
		texts[i] = m.(map[string]any)["text"].(string)
	}
	return texts
}

// shows checks what a conversation shows.
func (h *house) shows(chat string, want ...string) {
	h.t.Helper()
	if got := h.texts(chat); fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("it shows %q, want %q", got, want)
	}
}

// says sends a message that is answered with reply, and returns the ids of both.
func (h *house) says(chat, text, reply string) (said, replied string) {
	h.t.Helper()
	h.voice.lay(&script{pieces: []string{reply}})
	sent := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`"}`).wants(h.t, 200)
	return member(sent, "userMessage.id"), member(sent, "message.id")
}

// member is a text in an answer; "" where there is none.
func member(answer map[string]any, path string) string {
	var v any = answer
	for _, name := range strings.Split(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	text, _ := v.(string)
	return text
}

// An edit that is answered answers like a message that is sent: at the end, as
// events, or at once.
func TestAnEditIsAnsweredLikeAMessage(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")

	h.voice.lay(&script{pieces: []string{"In the ", "hills."}})
	done := h.rest("PATCH", "/messages/"+said, `{"text":"Where are we now?","regenerate":true}`).wants(t, 200)
	if member(done, "message.id") != said || member(done, "message.text") != "Where are we now?" {
		t.Errorf("message: %v", done["message"])
	}
	if member(done, "reply.id") != replied || member(done, "reply.text") != "In the hills." || member(done, "reply.status") != "complete" {
		t.Errorf("reply: %v", done["reply"])
	}
	if member(done, "promptId") == "" || done["usage"] == nil || done["generationId"] == nil {
		t.Errorf("answer: %v", done)
	}

	h.voice.lay(&script{pieces: []string{"I am Alice."}})
	events := h.listen("PATCH", "/messages/"+said, `{"text":"Who are you?","mode":"branch","regenerate":true}`).rest()
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

	s := h.voice.lay(&script{pieces: []string{"…"}, hangs: true})
	begun := h.rest("PATCH", "/messages/"+said, `{"text":"Why?","mode":"branch","regenerate":true}`, "Prefer: respond-async").wants(t, 202)
	if member(begun, "reply.status") != "pending" || member(begun, "message.text") != "Why?" {
		t.Errorf("answer: %v", begun)
	}
	awaits(t, s.asked, "the request to the model")
	h.rest("PATCH", "/messages/"+said, `{"text":"Busy?","mode":"branch"}`).refuses(t, 409, "busy")
	h.rest("POST", "/generations/"+member(begun, "generationId")+"/cancel", "").wants(t, 200)
}

func TestAnEditWithoutAnAnswer(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")
	edited := h.rest("PATCH", "/messages/"+replied, `{"text":"In the hills.","mode":"branch"}`).wants(t, 200)
	if member(edited, "message.role") != "assistant" || edited["reply"] != nil || edited["generationId"] != nil {
		t.Errorf("a reply said in other words: %v", edited)
	}
	h.shows(chat, "Hello, traveller.", "Where are we?", "In the hills.")
	h.rest("PATCH", "/messages/"+said, `{"text":"Where?"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where?", "In the hills.")
	h.rest("PATCH", "/messages/"+replied, `{"text":"x","regenerate":true}`).refuses(t, 400, "invalid_field", "regenerate")
	h.rest("PATCH", "/messages/"+said, `{"text":"x","mode":"beside"}`).refuses(t, 400, "invalid_field", "mode")

	branches := h.rest("GET", "/conversations/"+chat+"/branches", "").wants(t, 200)["items"].([]any)
	if len(branches) != 2 {
		t.Fatalf("branches: %v", branches)
	}
	for i, want := range []struct {
		text  string
		shown bool
	}{{"In the hills.", true}, {"At sea.", false}} {
		b := branches[i].(map[string]any)
		if member(b, "head.text") != want.text || b["shown"] != want.shown || b["messageCount"] != 3.0 {
			t.Errorf("branch %d: %v", i, b)
		}
	}
	h.rest("PUT", "/conversations/"+chat+"/head", `{"messageId":"`+replied+`"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where?", "At sea.")
}

// A reply that has been answered is written again beside itself; when nothing
// comes of it, nothing has changed.
func TestRegeneratingInTheMiddle(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	_, first := h.says(chat, "Where are we?", "At sea.")
	h.says(chat, "Since when?", "For years.")
	before := h.texts(chat)

	h.voice.lay(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	h.rest("POST", "/messages/"+first+"/regenerate", "").refuses(t, 503, "upstream_unavailable")
	h.shows(chat, before...)
	if n := len(h.rest("GET", "/conversations/"+chat+"/branches", "").wants(t, 200)["items"].([]any)); n != 1 {
		t.Errorf("%d branches after a failure", n)
	}

	s := h.voice.lay(&script{hangs: true})
	begun := h.rest("POST", "/messages/"+first+"/regenerate", "", "Prefer: respond-async").wants(t, 202)
	awaits(t, s.asked, "the request to the model")
	generation, place := member(begun, "generationId"), member(begun, "message.id")
	h.rest("DELETE", "/messages/"+place, "").refuses(t, 409, "busy")
	h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"now"}`).refuses(t, 409, "busy")
	h.rest("POST", "/generations/"+generation+"/cancel", "").wants(t, 200)
	_, err := h.engine.Wait(t.Context(), h.user.ID, generation)
	h.must(err)
	events := h.listen("GET", "/generations/"+generation, "").rest()
	if len(events) != 2 || events[0].Ev != "message.deleted" || events[1].Ev != "gen.done" {
		t.Errorf("the end of a reply that stayed empty: %v", events)
	}
	h.rest("GET", "/messages/"+place, "").refuses(t, 404, "not_found")
	h.shows(chat, before...)

	s = h.voice.lay(&script{hangs: true})
	waiting := make(chan *restAnswer, 1)
	go func() { waiting <- h.rest("POST", "/messages/"+first+"/regenerate", "") }()
	awaits(t, s.asked, "the request to the model")
	running, err := h.engine.Active(t.Context(), h.user.ID)
	h.must(err)
	h.rest("POST", "/generations/"+running[0].Generation.ID+"/cancel", "").wants(t, 200)
	if empty := awaits(t, waiting, "the answer").wants(t, 200); empty["message"] != nil || empty["generationId"] != running[0].Generation.ID {
		t.Errorf("the answer of a reply that stayed empty: %v", empty)
	}
	h.shows(chat, before...)

	h.voice.lay(&script{pieces: []string{"In the hills."}})
	done := h.rest("POST", "/messages/"+first+"/regenerate", `{"wish":"on land"}`).wants(t, 200)
	if member(done, "message.id") == first || member(done, "message.text") != "In the hills." {
		t.Errorf("answer: %v", done)
	}
	if swipe := done["message"].(map[string]any)["swipes"].([]any)[0].(map[string]any); swipe["wish"] != "on land" {
		t.Errorf("swipe: %v", swipe)
	}
	h.shows(chat, "Hello, traveller.", "Where are we?", "In the hills.")
}

// The greeting is the card's: no model is asked for another one.
func TestRegeneratingTheGreetingAsksNobody(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	greeting := h.head(chat)
	h.rest("PATCH", "/messages/"+greeting, `{"text":"Go away."}`).wants(t, 200)
	unused := h.voice.lay(&script{pieces: []string{"I am a model."}})
	got := h.rest("POST", "/messages/"+greeting+"/regenerate", `{"wish":"be rude"}`).wants(t, 200)
	if member(got, "message.text") != "Hello, traveller." || got["generationId"] != nil {
		t.Errorf("answer: %v", got)
	}
	select {
	case <-unused.asked:
		t.Error("the model was asked")
	default:
	}
	h.shows(chat, "Hello, traveller.")
}

// What is being written cannot be deleted or saved.
func TestWhatIsBeingWrittenIsBusy(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	save := member(h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"the beginning"}`).wants(t, 201), "id")
	gate := make(chan struct{})
	s := h.voice.lay(&script{pieces: []string{"one ", "two"}, gate: gate})
	begun := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Count"}`, "Prefer: respond-async").wants(t, 202)
	awaits(t, s.asked, "the request to the model")
	gate <- struct{}{}
	reply := member(begun, "message.id")
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/messages/" + reply, ""},
		{"DELETE", "/messages/" + member(begun, "userMessage.id") + "?scope=after", ""},
		{"PATCH", "/messages/" + reply, `{"text":"three"}`},
		{"POST", "/messages/" + reply + "/regenerate", ""},
		{"POST", "/conversations/" + chat + "/saves", `{"description":"now"}`},
		{"POST", "/saves/" + save + "/restore", ""},
		{"POST", "/conversations/" + chat + "/reset", ""},
	} {
		p := h.rest(c.method, c.path, c.body).refuses(t, 409, "busy")
		if p.Details["generationId"] != begun["generationId"] || p.Retry != "later" {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	gate <- struct{}{}
	awaits(t, s.left, "the end of the reply")
	_, err := h.engine.Wait(t.Context(), h.user.ID, member(begun, "generationId"))
	h.must(err)
	h.shows(chat, "Hello, traveller.", "Count", "one two")
}

func TestAForkGoesItsOwnWay(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, _ := h.says(chat, "Where are we?", "At sea.")
	fork := h.rest("POST", "/conversations/"+chat+"/fork", `{"messageId":"`+said+`","title":"Another way"}`)
	id := member(fork.wants(t, 201), "id")
	if fork.header.Get("ETag") == "" || member(fork.object(t), "title") != "Another way" {
		t.Errorf("%v %s", fork.header, fork.body)
	}
	h.says(id, "Are we lost?", "Yes.")
	h.shows(id, "Hello, traveller.", "Where are we?", "Are we lost?", "Yes.")
	h.shows(chat, "Hello, traveller.", "Where are we?", "At sea.")
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	h.shows(id, "Hello, traveller.", "Where are we?", "Are we lost?", "Yes.")
}

// A long fork is answered before its job has copied it; the job is listed.
func TestALongForkIsAnsweredBeforeItIsThere(t *testing.T) {
	h := build(t, nil)
	character := member(h.rest("GET", "/conversations/"+h.chat(), "").wants(t, 200), "characterId")
	log := strings.Repeat(`{"name":"Mia","is_user":true,"send_date":"2025-03-14T09:00:00.000Z","mes":"On and on.","extra":{}}`+"\n", 5001)
	source := member(h.upload("POST", "/conversations/import", "log.jsonl", []byte(log), "characterId="+character).wants(t, 201), "id")
	fork := h.rest("POST", "/conversations/"+source+"/fork", `{}`).wants(t, 201)
	if fork["copying"] != true {
		t.Errorf("answer = %v", fork)
	}
	listed := h.rest("GET", "/characters/"+character+"/memory/jobs", "").wants(t, 200)["items"].([]any)
	if len(listed) != 1 || member(listed[0].(map[string]any), "kind") != "chat.fork" || member(listed[0].(map[string]any), "subject") != member(fork, "id") {
		t.Errorf("jobs = %v", listed)
	}
}

func TestAResetBeginsAgain(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	_, replied := h.says(chat, "Where are we?", "At sea.")
	a := h.rest("POST", "/conversations/"+chat+"/reset", "")
	if member(a.wants(t, 200), "headId") == replied || a.header.Get("ETag") == "" {
		t.Errorf("%v %s", a.header, a.body)
	}
	h.shows(chat, "Hello, traveller.")
	h.rest("PUT", "/conversations/"+chat+"/head", `{"messageId":"`+replied+`"}`).wants(t, 200)
	h.shows(chat, "Hello, traveller.", "Where are we?", "At sea.")
}

func TestDeletingTheLastMessageLeavesNoHead(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	greeting := member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "headId")
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

// The address of the search is no message's, and what it finds can be opened.
func TestSearchingOnesMessages(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where does this road lead, 旅人?", "To the old harbour.")
	h.voice.lay(&script{pieces: []string{"To the sea road."}})
	h.rest("POST", "/messages/"+replied+"/regenerate", "").wants(t, 200)
	h.says(h.chat(), "The road again", "No road here.")

	find := func(query string) []any {
		t.Helper()
		return h.rest("GET", "/messages/search?"+query, "").wants(t, 200)["items"].([]any)
	}
	if found := find("q=ROAD&conversationId=" + chat); len(found) != 2 {
		t.Errorf("ROAD: %v", found)
	}
	hit := find("q=old+harbour")[0].(map[string]any) // in a swipe that is not shown
	if member(hit, "message.id") != replied || hit["conversationId"] != chat || hit["swipeId"] == "" {
		t.Errorf("hit: %v", hit)
	}
	hit = find("q=" + url.QueryEscape("旅人"))[0].(map[string]any)
	snippet, match := []rune(hit["snippet"].(string)), hit["matches"].([]any)[0].([]any)
	if from, to := int(match[0].(float64)), int(match[1].(float64)); member(hit, "message.id") != said || string(snippet[from:to]) != "旅人" {
		t.Errorf("hit: %v", hit)
	}
	first := h.rest("GET", "/messages/search?q=road&limit=1", "").wants(t, 200)
	seen := map[string]bool{}
	for page := first; ; {
		for _, item := range page["items"].([]any) {
			seen[member(item.(map[string]any), "swipeId")] = true
		}
		next, more := page["nextCursor"].(string)
		if !more {
			break
		}
		page = h.rest("GET", "/messages/search?q=road&limit=1&cursor="+url.QueryEscape(next), "").wants(t, 200)
	}
	if len(seen) != 4 {
		t.Errorf("%d texts hold road, want 4", len(seen))
	}
	h.rest("GET", "/messages/search", "").refuses(t, 400, "invalid_field", "q")
	h.rest("GET", "/messages/search?q=+", "").refuses(t, 400, "invalid_field", "q")
	h.rest("PATCH", "/messages/search", `{"text":"x"}`).refuses(t, 404, "not_found")
}

// A write on what has changed since says what it is now.
func TestAConflictTellsTheStateOfNow(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")
	h.rest("PATCH", "/messages/"+said, `{"text":"Where?","ifRev":1}`).wants(t, 200)
	h.voice.lay(&script{pieces: []string{"In the hills."}})
	h.rest("POST", "/messages/"+replied+"/regenerate", "").wants(t, 200)
	for _, c := range []struct{ method, path, body, text string }{
		{"PATCH", "/messages/" + said, `{"text":"Late","ifRev":1}`, "Where?"},
		{"PATCH", "/messages/" + said, `{"text":"Late","ifRev":1,"mode":"branch"}`, "Where?"},
		{"PATCH", "/messages/" + said, `{"text":"Late","ifRev":1,"regenerate":true}`, "Where?"},
		{"PATCH", "/messages/" + said, `{"text":"Late","ifRev":1,"mode":"branch","regenerate":true}`, "Where?"},
		{"POST", "/messages/" + replied + "/swipe", `{"swipe":"prev","ifRev":1}`, "In the hills."},
	} {
		p := h.rest(c.method, c.path, c.body).refuses(t, 409, "conflict")
		current, _ := p.Details["current"].(map[string]any)
		if member(current, "text") != c.text || current["rev"].(float64) < 2 {
			t.Errorf("%s: current %v", c.body, current)
		}
		if err := theContract().holds(p.Details["current"], openapiAt, "components", "schemas", "Message"); err != nil {
			t.Error(err)
		}
	}
	h.shows(chat, "Hello, traveller.", "Where?", "In the hills.")
}
