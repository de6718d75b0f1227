package server

import (
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"

	"nodest/nodest/app"
	"nodest/server/api"
)

const reactsWell = `{"thoughts":"Good.","action":{"like":true,"comment":"Welcome!"},"emotion":{"type":"positive","intensity":0.8}}`

// reacts asks a character of the app for its reaction to a post of the user.
func (h *testServer) reacts(responder string, header ...string) *restResponse {
	h.t.Helper()
	return h.callApp("circle", object{"type": "post", "responderId": responder, "content": object{"authorId": "user-1", "text": "Ahoy"}}, header...)
}

// succeeds checks the answer to a call of the app that did what was asked.
func (a *restResponse) succeeds(t testing.TB) map[string]any {
	t.Helper()
	got := a.wants(t, 200)
	if got["success"] != true {
		t.Fatalf("%v", got)
	}
	return got
}

// A character has the key that the app gives it when it is made or continued, or that of its
// conversation; our id is accepted, too.
func TestTheAppNamesCharactersByItsOwnKeys(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	made := h.callApp("chat", object{"conversationId": "chat-1", "characterId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	id := stringAt(made, "characterId")
	h.callApp("chat", object{"conversationId": "chat-1", "characterId": "角色 一", "status": "continue", "userMessage": "Hi"}).succeeds(t)
	h.callApp("chat", object{"conversationId": "chat-1", "characterId": "char-3", "status": "update", "jsonString": appDocuments}).succeeds(t)
	h.callApp("chat", object{"conversationId": "chat-2", "characterId": id, "status": "continue", "userMessage": "Hi"}).succeeds(t)
	for _, key := range []string{"char-1", "chat-1", "角色 一", "char-3", "chat-2", id} {
		path := url.PathEscape(key)
		if got := h.rest("GET", "/characters/"+path, "").wants(t, 200); got["id"] != id {
			t.Errorf("%s is %v", key, got["id"])
		}
		h.rest("PUT", "/characters/"+path+"/settings", `{"memory":{"summaryLength":900}}`).wants(t, 200)
		h.rest("GET", "/characters/"+path+"/export", "").wants(t, 200)
		h.rest("POST", "/circle/characters/"+path+"/init", "").wants(t, 200)
		h.model.enqueue(&script{pieces: []string{reactsWell}})
		if got := h.reacts(key).succeeds(t); got["action"].(object)["comment"] != "Welcome!" {
			t.Errorf("%s: %v", key, got)
		}
		post := h.rest("POST", "/circle/posts", string(must(json.Marshal(object{"authorId": key, "text": "By " + key})))).wants(t, 201)
		if post["author"].(object)["id"] != id {
			t.Errorf("%s: the post is %v", key, post)
		}
		if posts := h.rest("GET", "/circle/posts?authorId="+url.QueryEscape(key), "").items(t); len(posts) == 0 {
			t.Errorf("%s: the feed is empty", key)
		}
	}

	for _, user := range []string{"user-1", h.user.ID} {
		a := h.callApp("circle", object{"type": "post", "content": object{"authorId": user, "text": "Ahoy"}})
		a.failsWith200(t, "invalid_field")
		if text := stringAt(a.object(t), "error"); !strings.HasPrefix(text, "responderId: ") {
			t.Errorf("the failure says %q", text)
		}
	}
	for _, key := range []string{"char-9", "%FF", "%00", "..", "a%2Fb"} {
		h.rest("GET", "/characters/"+key+"/settings", "").refuses(t, 404, "not_found")
	}

	other := h.callApp("chat", object{"conversationId": "chat-9", "status": "create", "jsonString": appDocuments}).succeeds(t)
	if got := h.callApp("chat", object{"conversationId": "chat-1", "characterId": "chat-9", "status": "continue", "userMessage": "Hi"}).succeeds(t); got["characterId"] != id {
		t.Errorf("the character of another conversation answers: %v", got)
	}
	h.callApp("chat", object{"conversationId": "chat-10", "characterId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	if got := h.rest("GET", "/characters/char-1", "").wants(t, 200); got["id"] == id || got["id"] == other["characterId"] {
		t.Error("the key has not moved to the new character")
	}
	h.callApp("chat", object{"conversationId": "chat-1", "characterId": "a/b", "status": "continue", "userMessage": "Hi"}).failsWith200(t, "invalid_field")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Keys belong to one user: those of another lead nowhere, and the same key is another character.
func TestAppKeysOfAnotherUserAreNotFound(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	made := h.callApp("chat", object{"conversationId": "chat-1", "characterId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	stranger := "Authorization: Bearer " + h.newMember("stranger")
	for _, key := range []string{"char-1", "chat-1", stringAt(made, "characterId"), stringAt(made, "conversationId")} {
		for what, body := range map[string]object{
			"continue":          {"conversationId": key, "status": "continue", "userMessage": "Hi"},
			"begin":             {"conversationId": "chat-2", "characterId": key, "status": "continue", "userMessage": "Hi"},
			"continue and name": {"conversationId": "chat-1", "characterId": key, "status": "continue", "userMessage": "Hi"},
			"update":            {"conversationId": key, "status": "update", "jsonString": appDocuments},
		} {
			t.Run(what+" "+key, func(t *testing.T) { h.callApp("chat", body, stranger).failsWith200(t, "not_found") })
		}
		h.callApp("history", object{"conversationId": key, "action": "getChatHistory"}, stranger).failsWith200(t, "not_found")
		h.reacts(key, stranger).failsWith200(t, "not_found")
		h.callApp("circle", object{"type": "post", "content": object{"authorId": key, "text": "Ahoy"}}, stranger).failsWith200(t, "not_found")
		h.rest("POST", "/circle/characters/"+key+"/init", "", stranger).refuses(t, 404, "not_found")
		h.rest("POST", "/circle/posts", `{"authorId":"`+key+`","text":"Ahoy"}`, stranger).refuses(t, 404, "not_found")
		for _, path := range []string{"", "/settings", "/export"} {
			h.rest("GET", "/characters/"+key+path, "", stranger).refuses(t, 404, "not_found")
		}
		h.rest("PUT", "/characters/"+key+"/settings", `{}`, stranger).refuses(t, 404, "not_found")
		h.rest("DELETE", "/characters/"+key, "", stranger).refuses(t, 404, "not_found")
	}
	own := h.callApp("chat", object{"conversationId": "chat-1", "characterId": "char-1", "status": "create", "jsonString": appDocuments}, stranger).succeeds(t)
	for header, id := range map[string]any{stranger: own["characterId"], "Authorization: Bearer " + h.token: made["characterId"]} {
		if got := h.rest("GET", "/characters/char-1", "", header).wants(t, 200); got["id"] != id {
			t.Errorf("char-1 is %v, want %v", got["id"], id)
		}
	}
}

// A message begins the conversation that is not there, with the character that it names.
// Without one, the failure says which call has to come first and which field names what is missing.
func TestAFirstMessageOfTheAppBeginsTheConversation(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	say := func(conversation, character string) *restResponse {
		return h.callApp("chat", object{"conversationId": conversation, "characterId": character, "status": "同一角色继续对话", "userMessage": "Hi"})
	}
	for _, c := range []struct{ character, field string }{{"", "conversationId"}, {"char-1", "characterId"}} {
		a := say("chat-1", c.character)
		a.failsWith200(t, "not_found")
		if text := stringAt(a.object(t), "error"); !strings.HasPrefix(text, c.field+": ") || !strings.Contains(text, "/nodest/chat") || !strings.Contains(text, "jsonString") {
			t.Errorf("the failure says %q", text)
		}
	}
	made := h.callApp("chat", object{"conversationId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	begun := say("chat-1", "char-1").succeeds(t)
	if begun["characterId"] != made["characterId"] || begun["conversationId"] == made["conversationId"] {
		t.Errorf("begun %v with %v", begun, made)
	}
	h.shows(stringAt(begun, "conversationId"), "Hello, traveller.", "Hi", "Yes.")
	if again := say("chat-1", "").succeeds(t); again["conversationId"] != begun["conversationId"] {
		t.Errorf("continued in %v", again)
	}

	// The character stays when its conversations go, and its key with it.
	for _, id := range []string{stringAt(begun, "conversationId"), stringAt(made, "conversationId")} {
		h.rest("DELETE", "/conversations/"+id, "").wants(t, 204)
	}
	if fresh := say("char-1", "char-1").succeeds(t); fresh["characterId"] != made["characterId"] {
		t.Errorf("begun again with %v", fresh)
	}
	h.rest("DELETE", "/characters/char-1", "").wants(t, 204)
	say("chat-3", "char-1").failsWith200(t, "not_found")
	h.reacts("char-1").failsWith200(t, "not_found")
}

// beginsOnce checks that one conversation with one message has come of several equal ones.
func (h *testServer) beginsOnce(chats int) {
	h.t.Helper()
	found := h.rest("GET", "/conversations", "").items(h.t)
	if len(found) != chats {
		h.t.Errorf("%d conversations, want %d", len(found), chats)
	}
	got := h.callApp("history", object{"conversationId": "chat-1", "action": "getChatHistory"}).succeeds(h.t)
	if parts := got["history"].(object)["parts"].([]any); len(parts) != 3 {
		h.t.Errorf("the history has %d messages, want the greeting, one message and its reply: %v", len(parts), parts)
	}
}

// The same first message under one idempotency key makes one conversation and one message, however
// often and wherever it arrives.
func TestAFirstMessageThatIsRepeatedBeginsOneConversation(t *testing.T) {
	h := newTestServer(t, nil)
	beside := newTestServerOf(t, parts{beside: h}, nil)
	beside.token = h.token
	h.callApp("chat", object{"conversationId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	first := object{"conversationId": "chat-1", "characterId": "char-1", "status": "continue", "userMessage": "Hi"}
	var all sync.WaitGroup
	for _, s := range []*testServer{h, beside, h, beside, h, beside} {
		all.Go(func() {
			if got := s.callApp("chat", first, "Idempotency-Key: first").succeeds(t); got["response"] != "Yes." {
				t.Errorf("%v", got)
			}
		})
	}
	all.Wait()
	h.beginsOnce(2)
}

// Two processes get the same first message at the same time, without a key: one conversation
// begins, and the message that comes second finds it busy.
func TestFirstMessagesInTwoProcessesBeginOneConversation(t *testing.T) {
	h := newTestServer(t, nil)
	beside := newTestServerOf(t, parts{beside: h}, nil)
	beside.token = h.token
	h.callApp("chat", object{"conversationId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	first := object{"conversationId": "chat-1", "characterId": "char-1", "status": "continue", "userMessage": "Hi"}
	gate := make(chan struct{})
	results := make(chan map[string]any, 2)
	for _, s := range []*testServer{h, beside} {
		s.model.enqueue(&script{pieces: []string{"Yes."}, gate: gate})
		go func() { results <- s.callApp("chat", first).wants(t, 200) }()
	}
	if refused := await(t, results, "the refusal of the second message"); refused["success"] != false || refused["code"] != "busy" {
		t.Errorf("while the first is answered, the second gets %v", refused)
	}
	close(gate)
	if got := await(t, results, "the reply"); got["response"] != "Yes." {
		t.Errorf("%v", got)
	}
	h.beginsOnce(2)
}

// An equal message without a key that comes while the first is being answered gets the same answer.
func TestASecondTapWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.callApp("chat", object{"conversationId": "char-1", "status": "create", "jsonString": appDocuments}).succeeds(t)
	first := app.Request{ConversationID: "chat-1", CharacterID: "char-1", Status: "continue", UserMessage: "Hi"}
	gate := make(chan struct{})
	s := h.model.enqueue(&script{pieces: []string{"Yes."}, gate: gate})
	answered := make(chan map[string]any, 1)
	go func() { answered <- h.callApp("chat", first).wants(t, 200) }()
	await(t, s.requested, "the request to the model")
	// A request says nothing when it begins to wait, so the second one waits here and not behind a socket.
	second := h.server.appCalls.DoChan(h.user.ID+"/"+api.Hash(portChat, must(json.Marshal(first))), func() (any, error) {
		t.Error("the second message is sent")
		return nil, nil
	})
	close(gate)
	got := await(t, answered, "the reply")
	var same map[string]any
	if r := await(t, second, "the reply to the second"); r.Err != nil || json.Unmarshal(must(json.Marshal(r.Val)), &same) != nil || same["messageId"] != got["messageId"] {
		t.Errorf("the second gets %v %v, the first %v", r.Val, r.Err, got)
	}
	h.beginsOnce(2)
}
