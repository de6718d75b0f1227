package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/server/api"
)

// appDocuments is the jsonString that the app sends.
const appDocuments = `{"roleCard":{"name":"Alice","first_mes":"Hello, traveller.","description":"A guide."},"worldBook":{"entries":{}}}`

// callApp calls the NodeST app's interface; body is an object or JSON text.
func (h *testServer) callApp(path string, body any, header ...string) *restResponse {
	h.t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		h.must(err)
		text = string(b)
	}
	return h.rest("POST", "/nodest/"+path, text, header...)
}

// failsWith200 checks a response that reports a failure with status 200.
func (a *restResponse) failsWith200(t testing.TB, code string) {
	t.Helper()
	if got := a.wants(t, 200); got["success"] != false || got["code"] != code || stringAt(got, "error") == "" {
		t.Errorf("%s; want %s", a.body, code)
	}
}

type object = map[string]any

// The app can create a chat, continue it and update its character, with the calls
// that it makes itself.
func TestTheAppChats(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for name, words := range map[string][3]string{
		"in Chinese": {"新建角色", "同一角色继续对话", "更新人设"}, "in English": {"create", "continue", "update"},
	} {
		t.Run(name, func(t *testing.T) {
			key := "character-" + words[0]
			got := h.callApp("chat", object{
				"userMessage": "", "conversationId": key, "status": words[0], "jsonString": appDocuments, "apiKey": "k-1",
				"onStream": nil, "theme": object{"dark": true}, // fields that the server does not know
			}).wants(t, 200)
			if got["success"] != true || got["response"] != "Hello, traveller." {
				t.Fatalf("create: %v", got)
			}
			conversation := stringAt(got, "conversationId")
			h.shows(conversation, "Hello, traveller.")

			h.model.enqueue(&script{pieces: []string{"At ", "sea."}})
			got = h.callApp("chat", object{"userMessage": "Where are we?", "conversationId": key, "status": words[1], "useToolCalls": false}).wants(t, 200)
			if got["response"] != "At sea." || got["conversationId"] != conversation || stringAt(got, "messageId") == "" {
				t.Errorf("continue: %v", got)
			}
			h.model.enqueue(&script{pieces: []string{"Still."}})
			got = h.callApp("chat", object{"userMessage": "And now?", "conversationId": conversation, "status": words[1]}).wants(t, 200)
			if got["response"] != "Still." {
				t.Errorf("continue by our id: %v", got)
			}
			got = h.callApp("chat", object{
				"userMessage": "", "conversationId": key, "status": words[2], "customUserName": nil, "characterId": "",
				"jsonString": object{"roleCard": object{"name": "Alicia", "first_mes": "Hi.", "description": "A guide."}}, // an object instead of text
			}).wants(t, 200)
			if got["success"] != true {
				t.Errorf("update: %v", got)
			}
			character := h.rest("GET", "/characters/"+stringAt(got, "characterId"), "").wants(t, 200)
			if character["name"] != "Alicia" {
				t.Errorf("the character is %v", character["name"])
			}
			h.shows(conversation, "Hello, traveller.", "Where are we?", "At sea.", "And now?", "Still.")
		})
	}
}

// The app gets failures of the work itself with status 200.
func TestTheAppGetsFailuresWithStatus200(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.callApp("chat", object{"conversationId": "mine", "status": "create", "jsonString": appDocuments}).wants(t, 200)
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
		{"an unknown conversation", talk(object{"conversationId": "other"}), "not_found"},
		{"a path as conversation id", talk(object{"conversationId": "../mine"}), "invalid_field"},
		{"a number as message", talk(object{"userMessage": 7}), "invalid_field"},
		{"an invalid boolean", talk(object{"useToolCalls": "yes"}), "invalid_field"},
		{"a message that is too long", talk(object{"userMessage": longText}), "too_large"},
		{"invalid documents", talk(object{"status": "create", "jsonString": "{"}), "invalid_field"},
		{"an array", `[1]`, "bad_request"},
		{"plain text", `"hello"`, "bad_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.callApp("chat", c.body).failsWith200(t, c.code)
		})
	}
	h.model.enqueue(&script{fails: fault.New(fault.UpstreamDown, "gone")})
	h.callApp("chat", talk(nil)).failsWith200(t, "upstream_unavailable")
	h.callApp("chat", talk(nil), "Idempotency-Key: a b").failsWith200(t, "invalid_field")
	h.callApp("history", object{"conversationId": "mine", "action": "dance"}).failsWith200(t, "invalid_field")
	h.callApp("history", object{"conversationId": "other", "action": "getChatHistory"}).failsWith200(t, "not_found")
	h.callApp("history", object{"conversationId": "mine", "action": "editAiMessageByIndex", "index": "one"}).failsWith200(t, "invalid_field")
	h.callApp("history", object{"conversationId": "mine", "action": "regenerateFromMessage"}).failsWith200(t, "invalid_field")

	h.server.draining.Store(true)
	h.callApp("chat", talk(nil)).failsWith200(t, "shutting_down")
	h.server.draining.Store(false)

	h.callApp("chat", `{"status":`).refuses(t, 400, "bad_request")
	h.callApp("chat", "").refuses(t, 400, "bad_request")
	h.callApp("chat", talk(nil), "Authorization: Bearer wrong").refuses(t, 401, "unauthenticated")
	h.callApp("chat", `{"jsonString":"`+strings.Repeat("x", api.DocumentBytes)+`"}`).refuses(t, 413, "too_large")
	stranger := "Authorization: Bearer " + h.newMember("stranger")
	h.callApp("chat", talk(nil), stranger).failsWith200(t, "not_found")
	h.callApp("history", object{"conversationId": "mine", "action": "getChatHistory"}, stranger).failsWith200(t, "not_found")
}

// The server's own limits have their HTTP status.
func TestTheAppGetsServerLimitsAsHTTPErrors(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	const running, queued = 2, 4
	for i := range running + queued {
		chat := h.newChat()
		s := h.model.enqueue(&script{hangs: true})
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"Hi"}`, "Prefer: respond-async").wants(t, 202)
		if i < running {
			await(t, s.requested, "the request to the model")
		}
	}
	h.callApp("chat", object{"conversationId": "mine", "status": "create", "jsonString": appDocuments}).wants(t, 200)
	a := h.callApp("chat", object{"userMessage": "Hi", "conversationId": "mine", "status": "continue"})
	a.refuses(t, 429, "too_many_generations")
}

// A request's API key reaches the provider and is neither stored nor logged.
func TestTheAppsKeyIsNotStored(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	const secret = "AIza-secret-of-the-app"
	h.callApp("chat", object{"conversationId": "mine", "status": "create", "jsonString": appDocuments, "apiKey": secret}, "Idempotency-Key: made").wants(t, 200)
	ask := object{"userMessage": "Hi", "conversationId": "mine", "status": "continue", "apiKey": secret}
	first := h.callApp("chat", ask, "Idempotency-Key: asked").wants(t, 200)
	if !slices.Contains(h.model.keys, secret) {
		t.Errorf("the model was chosen with the keys %q", h.model.keys)
	}
	ask["apiKey"] = "another-" + secret // the key does not count as part of the request
	again := h.callApp("chat", ask, "Idempotency-Key: asked")
	if again.wants(t, 200)["response"] != first["response"] || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %v %s", again.header, again.body)
	}
	ask["userMessage"] = "Hello"
	h.callApp("chat", ask, "Idempotency-Key: asked").failsWith200(t, "key_reused")
	h.callApp("history", object{"conversationId": "mine", "action": "regenerateFromMessage", "index": 1, "apiKey": secret}, "Idempotency-Key: more").wants(t, 200)
	h.model.enqueue(&script{fails: fault.New(fault.UpstreamAuth, "the provider refuses the key")})
	h.callApp("chat", ask).failsWith200(t, "upstream_auth")

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
			if strings.Contains(string(r.JSON)+r.Hash, "AIza") {
				t.Errorf("%s is kept with the key: %s", key, r.JSON)
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

// The app edits its history by message index.
func TestTheAppChangesItsHistory(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.callApp("chat", object{"conversationId": "mine", "status": "create", "jsonString": appDocuments}).wants(t, 200)
	for _, text := range []string{"one", "two"} {
		h.model.enqueue(&script{pieces: []string{"reply to " + text}})
		h.callApp("chat", object{"userMessage": text, "conversationId": "mine", "status": "continue"}).wants(t, 200)
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
		got := h.callApp("history", body).wants(t, 200)
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
