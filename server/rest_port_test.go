package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/fault"
	"nodest/nodest"
)

// appsCard is the jsonString of the app.
const appsCard = `{"roleCard":{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide."},"worldBook":{"entries":{}}}`

// ported asks the NodeST interface; body is an object or the text of one.
func (h *house) ported(path string, body any, header ...string) *restAnswer {
	h.t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		h.must(err)
		text = string(b)
	}
	return h.rest("POST", "/nodest/"+path, text, header...)
}

// fails checks an answer that says that it failed, with 200.
func (a *restAnswer) fails(t testing.TB, code string) {
	t.Helper()
	if got := a.wants(t, 200); got["success"] != false || got["code"] != code || member(got, "error") == "" {
		t.Errorf("%s; want %s", a.body, code)
	}
}

type object = map[string]any

// The app's own calls, as it makes them.
func TestTheAppTalks(t *testing.T) {
	h := build(t, nil)
	for name, words := range map[string][3]string{
		"in its words": {"新建角色", "同一角色继续对话", "更新人设"}, "in ours": {"create", "continue", "update"},
	} {
		t.Run(name, func(t *testing.T) {
			key := "character-" + words[0]
			got := h.ported("chat", object{
				"userMessage": "", "conversationId": key, "status": words[0], "jsonString": appsCard, "apiKey": "k-1",
				"onStream": nil, "theme": object{"dark": true}, // what we do not know
			}).wants(t, 200)
			if got["success"] != true || got["response"] != "Hello, traveller." {
				t.Fatalf("create: %v", got)
			}
			conversation := member(got, "conversationId")
			h.shows(conversation, "Hello, traveller.")

			h.voice.lay(&script{pieces: []string{"At ", "sea."}})
			got = h.ported("chat", object{"userMessage": "Where are we?", "conversationId": key, "status": words[1], "useToolCalls": false}).wants(t, 200)
			if got["response"] != "At sea." || got["conversationId"] != conversation || member(got, "messageId") == "" {
				t.Errorf("continue: %v", got)
			}
			h.voice.lay(&script{pieces: []string{"Still."}})
			got = h.ported("chat", object{"userMessage": "And now?", "conversationId": conversation, "status": words[1]}).wants(t, 200)
			if got["response"] != "Still." {
				t.Errorf("continue by our id: %v", got)
			}
			got = h.ported("chat", object{
				"userMessage": "", "conversationId": key, "status": words[2], "customUserName": nil, "characterId": "",
				"jsonString": object{"roleCard": object{"name": "Alicia", "first_mes": "Hi.", "description": "A guide."}}, // not as text
			}).wants(t, 200)
			if got["success"] != true {
				t.Errorf("update: %v", got)
			}
			character := h.rest("GET", "/characters/"+member(got, "characterId"), "").wants(t, 200)
			if character["name"] != "Alicia" {
				t.Errorf("the character is %v", character["name"])
			}
			h.shows(conversation, "Hello, traveller.", "Where are we?", "At sea.", "And now?", "Still.")
		})
	}
}

// Every failure of the work itself is an answer with 200.
func TestTheAppIsToldWhatFailed(t *testing.T) {
	h := build(t, nil)
	h.ported("chat", object{"conversationId": "mine", "status": "create", "jsonString": appsCard}).wants(t, 200)
	talk := func(change object) object {
		o := object{"userMessage": "Hi", "conversationId": "mine", "status": "continue"}
		for name, value := range change {
			o[name] = value
		}
		return o
	}
	for _, c := range []struct {
		name string
		body any
		code string
	}{
		{"an unknown status", talk(object{"status": "再见"}), "invalid_field"},
		{"a conversation that is not there", talk(object{"conversationId": "other"}), "not_found"},
		{"a key of a conversation that is a path", talk(object{"conversationId": "../mine"}), "invalid_field"},
		{"a message that is a number", talk(object{"userMessage": 7}), "invalid_field"},
		{"a truth that is none", talk(object{"useToolCalls": "yes"}), "invalid_field"},
		{"a message that is too long", talk(object{"userMessage": longText}), "too_large"},
		{"documents that are none", talk(object{"status": "create", "jsonString": "{"}), "invalid_field"},
		{"an array", `[1]`, "bad_request"},
		{"a text", `"hello"`, "bad_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.ported("chat", c.body).fails(t, c.code)
		})
	}
	h.voice.lay(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	h.ported("chat", talk(nil)).fails(t, "upstream_unavailable")
	h.ported("chat", talk(nil), "Idempotency-Key: a b").fails(t, "invalid_field")
	h.ported("history", object{"conversationId": "mine", "action": "dance"}).fails(t, "invalid_field")
	h.ported("history", object{"conversationId": "other", "action": "getChatHistory"}).fails(t, "not_found")
	h.ported("history", object{"conversationId": "mine", "action": "editAiMessageByIndex", "index": "one"}).fails(t, "invalid_field")
	h.ported("history", object{"conversationId": "mine", "action": "regenerateFromMessage"}).fails(t, "invalid_field")

	h.server.draining.Store(true)
	h.ported("chat", talk(nil)).fails(t, "shutting_down")
	h.server.draining.Store(false)

	h.ported("chat", `{"status":`).refuses(t, 400, "bad_request")
	h.ported("chat", "").refuses(t, 400, "bad_request")
	h.ported("chat", talk(nil), "Authorization: Bearer wrong").refuses(t, 401, "unauthenticated")
	h.ported("chat", `{"jsonString":"`+strings.Repeat("x", documentBytes)+`"}`).refuses(t, 413, "too_large")
	stranger := "Authorization: Bearer " + h.member("stranger")
	h.ported("chat", talk(nil), stranger).fails(t, "not_found")
	h.ported("history", object{"conversationId": "mine", "action": "getChatHistory"}, stranger).fails(t, "not_found")
}

// The server's own limits are what HTTP has a status for.
func TestTheAppMeetsALimit(t *testing.T) {
	h := build(t, nil)
	const running, queued = 2, 4
	for i := range running + queued {
		chat := h.chat()
		s := h.voice.lay(&script{hangs: true})
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Hi"}`, "Prefer: respond-async").wants(t, 202)
		if i < running {
			awaits(t, s.asked, "the request to the model")
		}
	}
	h.ported("chat", object{"conversationId": "mine", "status": "create", "jsonString": appsCard}).wants(t, 200)
	a := h.ported("chat", object{"userMessage": "Hi", "conversationId": "mine", "status": "continue"})
	a.refuses(t, 429, "too_many_generations")
}

// The key of a request reaches the provider and is in nothing that stays.
func TestTheAppsKeyIsForOneRequest(t *testing.T) {
	h := build(t, nil)
	const secret = "AIza-secret-of-the-app"
	h.ported("chat", object{"conversationId": "mine", "status": "create", "jsonString": appsCard, "apiKey": secret}, "Idempotency-Key: made").wants(t, 200)
	ask := object{"userMessage": "Hi", "conversationId": "mine", "status": "continue", "apiKey": secret}
	first := h.ported("chat", ask, "Idempotency-Key: asked").wants(t, 200)
	if !slices.Contains(h.voice.keys, secret) {
		t.Errorf("the model was chosen with the keys %q", h.voice.keys)
	}
	ask["apiKey"] = "another-" + secret // the key is no part of what was asked
	again := h.ported("chat", ask, "Idempotency-Key: asked")
	if again.wants(t, 200)["response"] != first["response"] || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %v %s", again.header, again.body)
	}
	ask["userMessage"] = "Hello"
	h.ported("chat", ask, "Idempotency-Key: asked").fails(t, "key_reused")
	h.ported("history", object{"conversationId": "mine", "action": "regenerateFromMessage", "index": 1, "apiKey": secret}, "Idempotency-Key: more").wants(t, 200)
	h.voice.lay(&script{fails: fault.New(fault.UpstreamAuth, "the provider refuses the key")})
	h.ported("chat", ask).fails(t, "upstream_auth")

	if strings.Contains(h.log.String(), "AIza") {
		t.Error("the log has the key")
	}
	h.must(h.db.View(t.Context(), h.user.ID, func(tx nodest.Tx) error {
		for _, key := range []string{"made", "asked", "more"} {
			r, err := tx.Key(key)
			if err != nil || r == nil {
				t.Errorf("%s: %v %v", key, r, err)
				continue
			}
			if strings.Contains(string(r.Reply)+r.Hash, "AIza") {
				t.Errorf("%s is kept with the key: %s", key, r.Reply)
			}
		}
		return nil
	}))
	for _, path := range []string{"/sync?since=0&limit=500", "/providers", "/settings"} {
		if a := h.rest("GET", path, ""); strings.Contains(string(a.body), "AIza") {
			t.Errorf("%s shows the key", path)
		}
	}
}

// The index form of the app, over one conversation.
func TestTheAppChangesItsHistory(t *testing.T) {
	h := build(t, nil)
	h.ported("chat", object{"conversationId": "mine", "status": "create", "jsonString": appsCard}).wants(t, 200)
	for _, text := range []string{"one", "two"} {
		h.voice.lay(&script{pieces: []string{"reply to " + text}})
		h.ported("chat", object{"userMessage": text, "conversationId": "mine", "status": "continue"}).wants(t, 200)
	}
	var kept any
	for _, c := range []struct {
		action string
		body   object
		ok     bool
		want   string
	}{
		{"getChatHistory", nil, true, "Hello, traveller.|one|reply to one|two|reply to two"},
		{"editAiMessageByIndex", object{"index": 1, "text": "edited"}, true, "Hello, traveller.|one|edited|two|reply to two"},
		{"editUserMessageByIndex", object{"index": 2, "text": "second"}, true, "Hello, traveller.|one|edited|second|reply to two"},
		{"editAiMessageByIndex", object{"index": 9, "text": "x"}, false, "Hello, traveller.|one|edited|second|reply to two"},
		{"deleteUserMessageByIndex", object{"index": 1}, true, "Hello, traveller.|second|reply to two"},
		{"regenerateFromMessage", object{"index": 1}, true, "Hello, traveller.|second|Yes."},
		{"resetChatHistory", nil, true, "Hello, traveller."},
		{"restoreChatHistory", nil, true, "Hello, traveller.|one|reply to one|two|reply to two"},
		{"deleteAiMessageByIndex", object{"index": 2}, true, "Hello, traveller.|one|reply to one"},
	} {
		body := object{"conversationId": "mine", "action": c.action}
		for name, value := range c.body {
			body[name] = value
		}
		if c.action == "restoreChatHistory" {
			body["history"] = kept
		}
		got := h.ported("history", body).wants(t, 200)
		if got["success"] != true || got["ok"] != c.ok {
			t.Errorf("%s: %v", c.action, got)
		}
		var texts []string
		for _, part := range got["history"].(object)["parts"].([]any) {
			texts = append(texts, part.(object)["parts"].([]any)[0].(object)["text"].(string))
		}
		if strings.Join(texts, "|") != c.want {
			t.Errorf("%s %v: %q, want %s", c.action, c.body, texts, c.want)
		}
		if kept == nil {
			kept = got["history"]
		}
	}
}
