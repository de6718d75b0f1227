package server

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/internal/tavern/taverntest"
)

// importFolder imports a folder, waits for its end, and returns the import's id.
func (h *testServer) importFolder(files taverntest.Files, fields ...string) string {
	h.t.Helper()
	id := h.upload("POST", "/sillytavern/imports", "default-user.zip", files.Zip("default-user/"), fields...).wants(h.t, 202)["id"].(string)
	if imp := h.importEnded(id); imp["state"] != "done" {
		h.t.Fatalf("the import has ended as %v", imp)
	}
	return id
}

// importEnded waits for the end of an import.
func (h *testServer) importEnded(id string) map[string]any {
	h.t.Helper()
	for deadline := time.Now().Add(testTimeout); ; {
		imp := h.rest("GET", "/sillytavern/imports/"+id, "").wants(h.t, 200)
		if imp["state"] != "queued" && imp["state"] != "running" {
			return imp
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the import is still %v", imp)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestAFolderIsImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	sprite := []byte("a picture of joy")
	files := taverntest.Files{
		"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "characters/Bo/joy.png": sprite, "secrets.json": {},
		"chats/Bo/one.jsonl": []byte(`{"name":"Bo","is_user":false,"mes":"Hello."}` + "\n"),
	}
	dry := h.rest("GET", "/sillytavern/imports/"+h.importFolder(files, "dryRun=true"), "").wants(t, 200)
	if dry["dryRun"] != true || dry["taken"] != 3.0 || dry["notTaken"] != 1.0 {
		t.Errorf("dry run: %v", dry)
	}
	if n := len(h.rest("GET", "/characters", "").items(t)); n != 0 {
		t.Errorf("a dry run has made %d characters", n)
	}
	id := h.importFolder(files)
	p.event("sillytavern.import", "")
	list := h.rest("GET", "/sillytavern/imports", "").items(t)
	if len(list) != 2 || list[0]["id"] != id || list[0]["found"] != 4.0 || list[0]["taken"] != 3.0 {
		t.Errorf("imports: %v", list)
	}
	refused := h.rest("GET", "/sillytavern/imports/"+id+"/files?outcome=notTaken", "").items(t)
	if len(refused) != 1 || refused[0]["path"] != "secrets.json" || refused[0]["reason"] == nil {
		t.Errorf("not taken: %v", refused)
	}
	first := h.rest("GET", "/sillytavern/imports/"+id+"/files?limit=3", "").wants(t, 200)
	rest := h.rest("GET", "/sillytavern/imports/"+id+"/files?limit=3&cursor="+first["nextCursor"].(string), "").wants(t, 200)
	if len(first["items"].([]any)) != 3 || len(rest["items"].([]any)) != 1 || rest["nextCursor"] != nil {
		t.Errorf("pages: %v, %v", first, rest)
	}
	character := stringAt(h.rest("GET", "/characters", "").items(t)[0], "id")
	kept := h.rest("GET", "/sillytavern/files?kind=sprite&objectId="+character, "").items(t)
	if len(kept) != 1 || kept[0]["path"] != "characters/Bo/joy.png" {
		t.Fatalf("kept: %v", kept)
	}
	at := "/sillytavern/files/" + kept[0]["id"].(string)
	if got := h.rest("GET", at+"/content", ""); got.status != 200 || !bytes.Equal(got.body, sprite) {
		t.Errorf("content: %d %q", got.status, got.body)
	}
	h.rest("DELETE", at, "").wants(t, 204)
	h.rest("GET", at+"/content", "").refuses(t, 404, "not_found")
	h.rest("POST", "/sillytavern/imports/"+id+"/stop", "").refuses(t, 409, "conflict")
	h.rest("DELETE", "/sillytavern/imports/"+id, "").wants(t, 204)
	h.rest("GET", "/sillytavern/imports/"+id, "").refuses(t, 404, "not_found")
	if n := len(h.rest("GET", "/characters", "").items(t)); n != 1 {
		t.Errorf("%d characters after the report was forgotten", n)
	}
}

func TestAFolderThatCannotBeImported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.upload("POST", "/sillytavern/imports", "a.zip", []byte("no zip")).refuses(t, 415, "unsupported_media_type")
	h.upload("POST", "/sillytavern/imports", "a.zip", taverntest.Files{"a.txt": nil}.Zip("")).refuses(t, 422, "invalid_import")
	h.upload("POST", "/sillytavern/imports", "a.zip", nil, "dryRun=perhaps").refuses(t, 400, "invalid_field", "dryRun")
	h.upload("POST", "/sillytavern/imports", "a.zip", nil, "makeCharacters=perhaps").refuses(t, 400, "invalid_field", "makeCharacters")
	id := h.importFolder(taverntest.Files{"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", "")})
	h.rest("GET", "/sillytavern/imports/"+id+"/files?outcome=lost", "").refuses(t, 400, "invalid_field", "outcome")
	h.rest("GET", "/sillytavern/imports/"+id+"/files?kind=spoon", "").refuses(t, 400, "invalid_field", "kind")
	h.rest("GET", "/sillytavern/imports/"+id+"/files?cursor=x", "").refuses(t, 400, "invalid_field", "cursor")
	h.rest("GET", "/sillytavern/files?kind=spoon", "").refuses(t, 400, "invalid_field", "kind")
}

func TestTheSameUploadIsOneImport(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	archive := taverntest.Files{"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", "")}.Zip("")
	first := h.upload("POST", "/sillytavern/imports", "a.zip", archive, "Idempotency-Key: one").wants(t, 202)["id"]
	again := h.upload("POST", "/sillytavern/imports", "a.zip", archive, "Idempotency-Key: one").wants(t, 202)["id"]
	if first != again {
		t.Errorf("%v, then %v", first, again)
	}
}

// In a group's chat each line keeps its speaker, also in what the model is asked.
func TestAGroupKeepsItsSpeakers(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	say := func(name string, user bool, text string) string {
		return fmt.Sprintf(`{"name":%q,"is_user":%v,"mes":%q}`+"\n", name, user, text)
	}
	h.importFolder(taverntest.Files{
		"characters/Bo.png": taverntest.Card("Bo", "{{char}} sings.", ""), "characters/Sera.png": taverntest.Card("Sera", "{{char}} heals.", ""),
		"groups/1.json":        []byte(`{"id":"1","name":"Us","members":["Bo.png","Sera.png"],"chats":["1a"]}`),
		"group chats/1a.jsonl": []byte(`{"chat_metadata":{},"user_name":"unused","character_name":"unused"}` + "\n" + say("Bo", false, "One.") + say("Sera", false, "Two.") + say("Ann", true, "Three.")),
	})
	chat := stringAt(h.rest("GET", "/conversations", "").items(t)[0], "id")
	messages := h.rest("GET", "/conversations/"+chat+"/messages", "").items(t)
	for i, name := range []string{"Bo", "Sera", "Ann"} {
		if messages[i]["name"] != name {
			t.Errorf("message %d is by %v, want %s", i, messages[i]["name"], name)
		}
	}
	prompt := string(h.rest("POST", "/conversations/"+chat+"/prompt", `{"text":"Go on."}`).body)
	for _, want := range []string{"Bo: One.", "Sera: Two.", "Bo sings.", "Sera heals."} {
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt has no %q: %s", want, prompt)
		}
	}
}
