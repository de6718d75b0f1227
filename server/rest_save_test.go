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

func (h *testServer) createSave(chat, description string) string {
	h.t.Helper()
	return stringAt(h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"`+description+`"}`).wants(h.t, 201), "id")
}

// Restoring a save point shows the chat as it was then, and what came later can
// still be restored.
func TestRestoringASavePoint(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")
	before := h.texts(chat)
	save := h.createSave(chat, "at sea")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"Where to?"}`).wants(t, 200)
	h.rest("DELETE", "/messages/"+replyID, "").wants(t, 200)
	h.turn(chat, "To the hills?", "Yes.")
	h.rest("PATCH", "/conversations/"+chat, `{"settings":{"temperature":1}}`).wants(t, 200)
	after := h.texts(chat)

	got := h.rest("POST", "/saves/"+save+"/restore", "").wants(t, 200)
	h.shows(chat, before...)
	if got["head"] != replyID || stringAt(got, "conversation.headId") != replyID {
		t.Errorf("head: %v", got)
	}
	if settings := got["conversation"].(map[string]any)["settings"].(map[string]any); len(settings) != 0 {
		t.Errorf("settings: %v", settings)
	}
	back := stringAt(got, "before.id")
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

// A save point has the format that the NodeST app uses.
func TestASavePointIsTheAppsDocument(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	_, replyID := h.turn(chat, "Where are we?", "At sea.")
	made := h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"at sea","previewText":"sea","thumbnail":"data:image/png;base64,AA=="}`).wants(t, 201)
	for name, want := range map[string]any{
		"conversationId": chat, "description": "at sea", "previewText": "sea", "thumbnail": "data:image/png;base64,AA==",
		"messageCount": 3.0, "headId": replyID, "messages": nil, "nodestChatHistory": nil,
	} {
		if made[name] != want {
			t.Errorf("%s: %v, want %v", name, made[name], want)
		}
	}
	whole := h.rest("GET", "/saves/"+stringAt(made, "id"), "").wants(t, 200)
	var messageID []string
	for _, m := range whole["messages"].([]any) {
		messageID = append(messageID, stringAt(m.(map[string]any), "sender")+": "+stringAt(m.(map[string]any), "text"))
	}
	if want := "[bot: Hello, traveller. user: Where are we? bot: At sea.]"; fmt.Sprint(messageID) != want {
		t.Errorf("messages %v", messageID)
	}
	history := whole["nodestChatHistory"].(map[string]any)
	if parts := history["parts"].([]any); len(parts) != 3 || parts[0].(map[string]any)["is_first_mes"] != true || history["identifier"] != "chatHistory" {
		t.Errorf("history: %v", history)
	}
	h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"On","reply":false}`).wants(t, 200)
	prompt := string(h.rest("POST", "/saves/"+stringAt(made, "id")+"/prompt", `{"text":"And then?"}`).body)
	if !strings.Contains(prompt, "At sea.") || !strings.Contains(prompt, "And then?") || strings.Contains(prompt, `"content":"On"`) {
		t.Errorf("the prompt of then: %s", prompt)
	}
}

// The messages of a save point come in pages, like those of its conversation.
func TestASavePointHasPages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	character := h.rest("POST", "/characters/sample", "").wants(t, 201)["character"].(map[string]any)["id"].(string)
	log := `{"chat_metadata":{}}` + strings.Repeat("\n"+`{"is_user":true,"mes":"Hello"}`, 120)
	chat := h.upload("POST", "/conversations/import", "a.jsonl", []byte(log), "characterId="+character).wants(t, 201)["id"].(string)
	path := "/saves/" + h.createSave(chat, "long")
	var sizes []int
	for query := "?limit=50"; ; {
		page := h.rest("GET", path+query, "").wants(t, 200)
		sizes = append(sizes, len(page["messages"].([]any)))
		cursor, more := page["nextCursor"].(string)
		if !more {
			break
		}
		query = "?limit=50&before=" + cursor
	}
	if fmt.Sprint(sizes) != "[50 50 20]" {
		t.Errorf("pages of %v messages", sizes)
	}
	all := h.rest("GET", path, "").wants(t, 200)
	if n := len(all["messages"].([]any)); n != 120 || all["nextCursor"] != nil {
		t.Errorf("%d messages, then %v", n, all["nextCursor"])
	}
}

func TestSavePointExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.turn(chat, "Where are we?", "At sea.")
	file := h.rest("GET", "/saves/"+h.createSave(chat, "at sea")+"/export", "")
	file.wants(t, 200)
	other := h.newChat()
	for i, a := range []*restResponse{
		h.rest("POST", "/conversations/"+other+"/saves/import", string(file.body)),
		h.upload("POST", "/conversations/"+other+"/saves/import", "save.json", file.body),
	} {
		got := a.wants(t, 201)["save"].(map[string]any)
		if got["conversationId"] != other || got["description"] != "at sea" || got["importedAt"] == nil {
			t.Errorf("%d: %v", i, got)
		}
		h.shows(other, "Hello, traveller.") // until it is restored
		if i == 1 {
			h.rest("POST", "/saves/"+stringAt(got, "id")+"/restore", "").wants(t, 200)
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

// A file that is damaged, of another kind or of a newer version is refused, and
// nothing is stored.
func TestFilesThatCannotBeImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.turn(chat, "Where are we?", "At sea.")
	character := h.characterOf(chat)
	saved := h.rest("GET", "/saves/"+h.createSave(chat, "at sea")+"/export", "").body
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
		{"invalid messages", saves, bytes.Replace(saved, []byte(`"messages":[`), []byte(`"messages":[7,`), 1), "invalid_import"},
		{"an array", saves, []byte(`[]`), "invalid_import"},
		{"nothing", saves, nil, "invalid_import"},
		{"a picture", saves, onePixel, "invalid_import"},
		{"a save point of a newer version", saves, newer(saved), "newer_version"},
		{"an archive as a save point", saves, archive, "invalid_import"},
		{"half an archive", conversations, archive[:len(archive)/2], "invalid_import"},
		{"an empty archive", conversations, []byte(`{"format":"nodest.conversation","formatVersion":1}`), "invalid_import"},
		{"an archive of a newer version", conversations, newer(archive), "newer_version"},
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
		t.Errorf("a bad file is not a server error:\n%s", h.log.String())
	}
}

// An archive contains all branches, and is recognized by its format field, in any
// position.
func TestConversationExportAndImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	messageID, replyID := h.turn(chat, "Where are we?", "At sea.")
	h.rest("PATCH", "/messages/"+messageID, `{"text":"Who are you?","mode":"branch"}`).wants(t, 200)
	character := h.characterOf(chat)
	file := h.rest("GET", "/conversations/"+chat+"/export?format=json", "")
	file.wants(t, 200)
	var members map[string]json.RawMessage
	h.must(json.Unmarshal(file.body, &members))
	sorted, err := json.Marshal(members)
	h.must(err)
	for name, data := range map[string][]byte{"in the order it was written": file.body, "in another order": sorted} {
		t.Run(name, func(t *testing.T) {
			copied := h.upload("POST", "/conversations/import", "chat.json", data, "characterId="+character)
			id := stringAt(copied.wants(t, 201), "id")
			if id == chat || copied.header.Get("ETag") == "" {
				t.Errorf("%v %s", copied.header, copied.body)
			}
			h.shows(id, "Hello, traveller.", "Who are you?")
			for _, item := range h.rest("GET", "/conversations/"+id+"/branches", "").wants(t, 200)["items"].([]any) {
				if head := item.(map[string]any); stringAt(head, "head.text") == "At sea." {
					h.rest("PUT", "/conversations/"+id+"/head", `{"messageId":"`+stringAt(head, "head.id")+`"}`).wants(t, 200)
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
	h.rest("GET", "/messages/"+replyID, "").wants(t, 200)
}

func TestArchivesAreRecognized(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{"format":"nodest.conversation"`:                                                  true, // the reader reports what is missing
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

// Concurrent restores take effect one after the other, each as a whole, and every
// earlier state can still be restored.
func TestTwoRestoresAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	shown := map[string]string{} // by id of the save point
	note := func(description string) {
		save := h.createSave(chat, description)
		shown[save] = fmt.Sprint(h.texts(chat))
	}
	note("the beginning")
	h.turn(chat, "Where are we?", "At sea.")
	note("at sea")
	h.turn(chat, "Since when?", "For years.")
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
		h.rest("POST", "/saves/"+stringAt(item.(map[string]any), "id")+"/restore", "").wants(t, 200)
		kept = kept || fmt.Sprint(h.texts(chat)) == now
	}
	if !kept {
		t.Errorf("what was shown before cannot be shown again: %s", now)
	}
}
