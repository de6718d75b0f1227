package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"nodest/chat/archive"
)

func (h *house) save(chat, description string) string {
	h.t.Helper()
	return member(h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"`+description+`"}`).wants(h.t, 201), "id")
}

// A save point is what was, whatever comes after it; and what comes after it is
// not lost by going back.
func TestThereAndBackAgain(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")
	before := h.texts(chat)
	save := h.save(chat, "at sea")
	h.rest("PATCH", "/messages/"+said, `{"text":"Where to?"}`).wants(t, 200)
	h.rest("DELETE", "/messages/"+replied, "").wants(t, 200)
	h.says(chat, "To the hills?", "Yes.")
	h.rest("PATCH", "/conversations/"+chat, `{"settings":{"temperature":1}}`).wants(t, 200)
	after := h.texts(chat)

	got := h.rest("POST", "/saves/"+save+"/restore", "").wants(t, 200)
	h.shows(chat, before...)
	if got["head"] != replied || member(got, "conversation.headId") != replied {
		t.Errorf("head: %v", got)
	}
	if settings := got["conversation"].(map[string]any)["settings"].(map[string]any); len(settings) != 0 {
		t.Errorf("settings: %v", settings)
	}
	back := member(got, "before.id")
	if back == "" || got["before"].(map[string]any)["automatic"] != true {
		t.Fatalf("no save point of what was shown: %v", got)
	}
	h.rest("POST", "/saves/"+back+"/restore", "").wants(t, 200)
	h.shows(chat, after...)

	if items := h.rest("GET", "/conversations/"+chat+"/saves", "").wants(t, 200)["items"].([]any); len(items) != 1 {
		t.Errorf("made by the user: %v", items)
	}
	h.rest("DELETE", "/saves/"+save, "").wants(t, 204)
	h.rest("POST", "/saves/"+save+"/restore", "").refuses(t, 404, "not_found")
	h.shows(chat, after...)
}

// A save point is the document that the app knows.
func TestASavePointIsTheAppsDocument(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	_, replied := h.says(chat, "Where are we?", "At sea.")
	made := h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"at sea","previewText":"sea","thumbnail":"data:image/png;base64,AA=="}`).wants(t, 201)
	for name, want := range map[string]any{
		"conversationId": chat, "description": "at sea", "previewText": "sea", "thumbnail": "data:image/png;base64,AA==",
		"messageCount": 3.0, "headId": replied, "messages": nil, "nodestChatHistory": nil,
	} {
		if made[name] != want {
			t.Errorf("%s: %v, want %v", name, made[name], want)
		}
	}
	whole := h.rest("GET", "/saves/"+member(made, "id"), "").wants(t, 200)
	var said []string
	for _, m := range whole["messages"].([]any) {
		said = append(said, member(m.(map[string]any), "sender")+": "+member(m.(map[string]any), "text"))
	}
	if want := "[bot: Hello, traveller. user: Where are we? bot: At sea.]"; fmt.Sprint(said) != want {
		t.Errorf("messages %v", said)
	}
	history := whole["nodestChatHistory"].(map[string]any)
	if parts := history["parts"].([]any); len(parts) != 3 || parts[0].(map[string]any)["is_first_mes"] != true || history["identifier"] != "chatHistory" {
		t.Errorf("history: %v", history)
	}
	h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"On","reply":false}`).wants(t, 200)
	prompt := string(h.rest("POST", "/saves/"+member(made, "id")+"/prompt", `{"text":"And then?"}`).body)
	if !strings.Contains(prompt, "At sea.") || !strings.Contains(prompt, "And then?") || strings.Contains(prompt, `"content":"On"`) {
		t.Errorf("the prompt of then: %s", prompt)
	}
}

func TestSavePointsAsFiles(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	h.says(chat, "Where are we?", "At sea.")
	file := h.rest("GET", "/saves/"+h.save(chat, "at sea")+"/export", "")
	file.wants(t, 200)
	other := h.chat()
	for i, a := range []*restAnswer{
		h.rest("POST", "/conversations/"+other+"/saves/import", string(file.body)),
		h.upload("POST", "/conversations/"+other+"/saves/import", "save.json", file.body),
	} {
		got := a.wants(t, 201)["save"].(map[string]any)
		if got["conversationId"] != other || got["description"] != "at sea" || got["importedAt"] == nil {
			t.Errorf("%d: %v", i, got)
		}
		h.shows(other, "Hello, traveller.") // until it is restored
		if i == 1 {
			h.rest("POST", "/saves/"+member(got, "id")+"/restore", "").wants(t, 200)
			h.shows(other, "Hello, traveller.", "Where are we?", "At sea.")
		}
	}
	key := "Idempotency-Key: import"
	first := h.rest("POST", "/conversations/"+other+"/saves/import", string(file.body), key).wants(t, 201)
	again := h.rest("POST", "/conversations/"+other+"/saves/import", string(file.body), key)
	if again.wants(t, 201)["id"] != first["id"] || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %v %s", again.header, again.body)
	}
	h.rest("POST", "/conversations/"+other+"/saves/import", string(file.body)+" ", key).refuses(t, 422, "key_reused")
}

// What is damaged, of another kind or of the future is refused, and nothing of it
// is stored.
func TestFilesThatCannotBeImported(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	h.says(chat, "Where are we?", "At sea.")
	character := member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId")
	saved := h.rest("GET", "/saves/"+h.save(chat, "at sea")+"/export", "").body
	archive := h.rest("GET", "/conversations/"+chat+"/export?format=json", "").body
	newer := func(file []byte) []byte {
		var doc map[string]any
		h.must(json.Unmarshal(file, &doc))
		doc["formatVersion"] = 999
		b, err := json.Marshal(doc)
		h.must(err)
		return b
	}
	saves, conversations := "/conversations/"+chat+"/saves/import", "/conversations/import"
	state := func() string {
		return string(h.rest("GET", "/conversations", "").body) + string(h.rest("GET", "/conversations/"+chat+"/saves?automatic=true", "").body) +
			string(h.rest("GET", "/conversations/"+chat+"/branches", "").body)
	}
	before := state()
	for _, c := range []struct {
		name, path string
		data       []byte
		code       string
	}{
		{"half a save point", saves, saved[:len(saved)/2], "invalid_import"},
		{"a save point without messages", saves, []byte(`{"id":"save_1","description":"x"}`), "invalid_import"},
		{"messages that are none", saves, bytes.Replace(saved, []byte(`"messages":[`), []byte(`"messages":[7,`), 1), "invalid_import"},
		{"an array", saves, []byte(`[]`), "invalid_import"},
		{"nothing", saves, nil, "invalid_import"},
		{"a picture", saves, onePixel, "invalid_import"},
		{"a save point of the future", saves, newer(saved), "newer_version"},
		{"an archive as a save point", saves, archive, "invalid_import"},
		{"half an archive", conversations, archive[:len(archive)/2], "invalid_import"},
		{"an archive of nothing", conversations, []byte(`{"format":"nodest.conversation","formatVersion":1}`), "invalid_import"},
		{"an archive of the future", conversations, newer(archive), "newer_version"},
		{"a save point as a conversation", conversations, saved, "invalid_import"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.upload("POST", c.path, "a.json", c.data, "characterId="+character).refuses(t, 422, c.code)
			if c.path == saves && c.data != nil {
				h.rest("POST", c.path, string(c.data)).refuses(t, 422, c.code)
			}
			if after := state(); after != before {
				t.Errorf("something was stored:\n%s\n%s", before, after)
			}
		})
	}
	h.rest("POST", saves, "x", "Content-Type: text/plain").refuses(t, 415, "unsupported_media_type")
	h.rest("GET", "/conversations/"+chat+"/export?format=xml", "").refuses(t, 400, "invalid_field", "format")
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("a bad file is no error of ours:\n%s", h.log.String())
	}
}

// An archive has all branches, and is known by what stands in it, wherever that is.
func TestAConversationAsAFile(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	said, replied := h.says(chat, "Where are we?", "At sea.")
	h.rest("PATCH", "/messages/"+said, `{"text":"Who are you?","mode":"branch"}`).wants(t, 200)
	character := member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId")
	file := h.rest("GET", "/conversations/"+chat+"/export?format=json", "")
	file.wants(t, 200)
	var members map[string]json.RawMessage
	h.must(json.Unmarshal(file.body, &members))
	sorted, err := json.Marshal(members)
	h.must(err)
	for name, data := range map[string][]byte{"as it was written": file.body, "in other order": sorted} {
		t.Run(name, func(t *testing.T) {
			copied := h.upload("POST", "/conversations/import", "chat.json", data, "characterId="+character)
			id := member(copied.wants(t, 201), "id")
			if id == chat || copied.header.Get("ETag") == "" {
				t.Errorf("%v %s", copied.header, copied.body)
			}
			h.shows(id, "Hello, traveller.", "Who are you?")
			for _, item := range h.rest("GET", "/conversations/"+id+"/branches", "").wants(t, 200)["items"].([]any) {
				if head := item.(map[string]any); member(head, "head.text") == "At sea." {
					h.rest("PUT", "/conversations/"+id+"/head", `{"messageId":"`+member(head, "head.id")+`"}`).wants(t, 200)
				}
			}
			h.shows(id, "Hello, traveller.", "Where are we?", "At sea.")
		})
	}
	h.shows(chat, "Hello, traveller.", "Who are you?")
	log := h.rest("GET", "/conversations/"+chat+"/export", "")
	if log.header.Get("Content-Type") != "application/jsonl; charset=utf-8" || strings.Contains(string(log.body), "At sea.") {
		t.Errorf("the log of what is shown: %s", log.body)
	}
	h.rest("GET", "/messages/"+replied, "").wants(t, 200)
}

func TestWhatIsAnArchive(t *testing.T) {
	for data, want := range map[string]bool{
		`{"format":"nodest.conversation"`:                                                  true, // the rest is for those who read it
		`{"a":{"format":"x"},"b":[[{}],1,null],"c":"}","format":"nodest.conversation"}`:    true,
		" \n{\"format\" : \"nodest.conversation\"}":                                        true,
		"\ufeff" + `{"format":"nodest.conversation"}`:                                      true,
		`{"format":"nodest.save"}`:                                                         false,
		`{"a":{"format":"nodest.conversation"}}`:                                           false,
		`["format","nodest.conversation"]`:                                                 false,
		`{"mes":"format nodest.conversation"}` + "\n" + `{"format":"nodest.conversation"}`: false,
		`{"a":[1,{"b":`: false,
		`{"a" 1}`:       false,
		`{1:2}`:         false,
		``:              false,
		"\x89PNG":       false,
	} {
		if got := archive.IsArchive([]byte(data)); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
}

// Two restores at once are done one after the other: what is shown is one of the
// two, whole, and everything that was shown can be shown again.
func TestTwoRestoresAtOnce(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	shown := map[string]string{} // by save point
	note := func(description string) {
		save := h.save(chat, description)
		shown[save] = fmt.Sprint(h.texts(chat))
	}
	note("the beginning")
	h.says(chat, "Where are we?", "At sea.")
	note("at sea")
	h.says(chat, "Since when?", "For years.")
	now := fmt.Sprint(h.texts(chat))
	for round := range 5 {
		var all sync.WaitGroup
		for save := range shown {
			all.Go(func() { h.rest("POST", "/saves/"+save+"/restore", "").wants(t, 200) })
		}
		all.Wait()
		got, either := fmt.Sprint(h.texts(chat)), false
		for _, want := range shown {
			either = either || got == want
		}
		if !either {
			t.Errorf("round %d: it shows %s", round, got)
		}
	}
	kept := false
	for _, item := range h.rest("GET", "/conversations/"+chat+"/saves?automatic=true&limit=200", "").wants(t, 200)["items"].([]any) {
		h.rest("POST", "/saves/"+member(item.(map[string]any), "id")+"/restore", "").wants(t, 200)
		kept = kept || fmt.Sprint(h.texts(chat)) == now
	}
	if !kept {
		t.Errorf("what was shown before cannot be shown again: %s", now)
	}
}
