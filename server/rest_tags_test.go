package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// named returns the names of what a list has.
func (h *testServer) named(path string) (names []string) {
	h.t.Helper()
	for _, item := range h.rest("GET", path, "").items(h.t) {
		name, _ := item["name"].(string)
		if name == "" {
			name = stringAt(item, "title")
		}
		names = append(names, name)
	}
	return names
}

func (h *testServer) wantNamed(path string, want ...string) {
	h.t.Helper()
	if got := h.named(path); fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("%s: %q, want %q", path, got, want)
	}
}

func tagsOf(object map[string]any) string { return fmt.Sprint(object["tags"]) }

// A card brings its tags; from then on they are the user's, and the card keeps its own.
func TestTagsOfCharacters(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	const alice = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Alice","tags":["Guide"," guide","two\nlines","",7,"elf"]}}`
	imported := h.upload("POST", "/characters/import", "a.json", []byte(alice)).wants(t, 201)
	character := imported["character"].(map[string]any)
	if got := tagsOf(character); got != "[Guide 7 elf]" {
		t.Errorf("tags of an imported card: %s", got)
	}
	path := "/characters/" + stringAt(character, "id")
	h.rest("POST", "/characters", `{"roleCard":{"name":"Ben","tags":["elf"]},"tags":[]}`).wants(t, 201)
	h.rest("POST", "/characters", `{"roleCard":{"name":"Cora","tags":"Elf, cook"}}`).wants(t, 201)
	h.wantNamed("/characters?tag=ELF", "Cora", "Alice")
	h.wantNamed("/characters?tag=elf&q=LI", "Alice")

	changed := h.rest("PATCH", path, `{"tags":[" Friend ","friend","猫"]}`).wants(t, 200)
	if tagsOf(changed) != "[Friend 猫]" || changed["version"] != 2.0 || !strings.Contains(fmt.Sprint(changed["roleCard"]), "Guide") {
		t.Errorf("changed: %v", changed)
	}
	if got := tagsOf(h.rest("PUT", path, `{"roleCard":{"name":"Alice B","tags":["other"]}}`).wants(t, 200)); got != "[Friend 猫]" {
		t.Errorf("tags after another card: %s", got)
	}
	h.wantNamed("/characters?tag=elf", "Cora")
	h.wantNamed("/characters?sort=updated&limit=1", "Alice B")
	h.wantNamed("/characters?sort=created&limit=1", "Cora")
	exported := h.rest("GET", path+"/export?format=json", "").wants(t, 200)
	if own := exported["data"].(map[string]any)["tags"]; fmt.Sprint(own) != "[other]" {
		t.Errorf("tags of the exported card: %v", own)
	}
	snapshot := h.rest("GET", "/sync", "").wants(t, 200)["characters"].([]any)
	if got := tagsOf(snapshot[len(snapshot)-1].(map[string]any)); got != "[Friend 猫]" {
		t.Errorf("tags in the snapshot: %s", got)
	}
	if got := tagsOf(h.rest("PATCH", path, `{"tags":[]}`).wants(t, 200)); got != "[]" {
		t.Errorf("tags after their removal: %s", got)
	}
	h.rest("PATCH", path, `{"tags":["a","`+strings.Repeat("x", 51)+`"]}`).refuses(t, 400, "invalid_field", "tags[1]")
	h.rest("GET", "/characters?sort=name", "").refuses(t, 400, "invalid_field", "sort")
	h.rest("GET", "/conversations?tag="+strings.Repeat("x", 51), "").refuses(t, 400, "invalid_field", "tag")
	h.token = h.newMember("stranger")
	h.wantNamed("/characters?tag=elf")
	h.rest("PATCH", path, `{"tags":["mine"]}`).refuses(t, 404, "not_found")
}

func TestTagsOfConversations(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	path := "/conversations/" + e.conversation
	h.rest("PATCH", path, `{"title":"The Harbour","tags":["Sea ","sea","slow burn"]}`).wants(t, 200)
	h.rest("PATCH", path, `{"archived":true}`).wants(t, 200)
	fork := h.rest("POST", path+"/fork", `{"title":"Another harbour"}`).wants(t, 201)
	if got := tagsOf(fork); got != "[Sea slow burn]" {
		t.Errorf("tags of a fork: %s", got)
	}
	h.wantNamed("/conversations?tag=SEA&q=harbour", "Another harbour", "The Harbour")
	h.wantNamed("/conversations?tag=sea&sort=created", "Another harbour", "The Harbour")
	h.wantNamed("/conversations?tag=sea&archived=false", "Another harbour")
	h.wantNamed("/conversations?tag=sea&q=the&archived=true&characterId="+e.character, "The Harbour")
	if got := tagsOf(h.rest("POST", "/saves/"+e.save+"/restore", "").wants(t, 200)["conversation"].(map[string]any)); got != "[Sea slow burn]" {
		t.Errorf("tags after a restore: %s", got)
	}
	snapshot := h.rest("GET", "/sync", "").wants(t, 200)["conversations"].([]any)
	if got := tagsOf(snapshot[0].(map[string]any)); got != "[Sea slow burn]" {
		t.Errorf("tags in the snapshot: %s", got)
	}

	archive := h.rest("GET", path+"/export?format=json", "").body
	again := h.upload("POST", "/conversations/import", "a.json", archive, "characterId="+e.character).wants(t, 201)
	if got := tagsOf(again["conversation"].(map[string]any)); got != "[Sea slow burn]" {
		t.Errorf("tags of an imported archive: %s", got)
	}
	var damaged map[string]any
	h.must(json.Unmarshal(archive, &damaged))
	damaged["conversation"].(map[string]any)["tags"] = []string{"two\nlines"}
	archive, err := json.Marshal(damaged)
	h.must(err)
	h.upload("POST", "/conversations/import", "a.json", archive, "characterId="+e.character).refuses(t, 422, "invalid_import")
	h.token = h.newMember("stranger")
	h.wantNamed("/conversations?tag=sea")
}

// An archived character leaves the lists that ask for those that are not archived. Nothing
// else changes: its documents, its tags and its chats are what they were.
func TestArchiveOfCharacters(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.newFixtures()
	path := "/characters/" + e.character
	h.rest("POST", "/characters", `{"roleCard":{"name":"Ben"}}`).wants(t, 201)
	want := h.rest("PATCH", path, `{"tags":["elf"]}`).wants(t, 200)
	if want["archived"] != false {
		t.Errorf("archived from the beginning: %v", want)
	}
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	archived := h.rest("PATCH", path, `{"archived":true}`).wants(t, 200)
	p.event("character.updated", "")
	want["archived"], want["version"], want["updatedAt"] = true, want["version"].(float64)+1, archived["updatedAt"]
	if fmt.Sprint(archived) != fmt.Sprint(want) {
		t.Errorf("archived: %v, want %v", archived, want)
	}
	h.wantNamed("/characters", "Ben", "Bo", "Alice")
	h.wantNamed("/characters?archived=false", "Ben", "Bo")
	h.wantNamed("/characters?archived=true", "Alice")
	h.wantNamed("/characters?archived=true&tag=elf&q=ALI&sort=updated", "Alice")
	h.wantNamed("/characters?archived=false&tag=elf")

	h.rest("POST", "/conversations/"+e.conversation+"/messages", `{"text":"Are you there?"}`).wants(t, 200)
	h.wantNamed("/conversations?archived=false", "Alice")
	snapshot := h.rest("GET", "/sync", "").wants(t, 200)
	characters := snapshot["characters"].([]any)
	if last := characters[len(characters)-1].(map[string]any); last["archived"] != true || len(snapshot["conversations"].([]any)) != 1 {
		t.Errorf("in the snapshot: %v and %v", last, snapshot["conversations"])
	}

	// Documents that another client stores do not take it back, and it takes nothing from them.
	h.rest("PATCH", path, `{"archived":false,"ifVersion":1}`).refuses(t, 412, "precondition_failed")
	h.rest("PUT", path, `{"roleCard":{"name":"Alicia"}}`).wants(t, 200)
	var both sync.WaitGroup
	for _, change := range []string{`{"archived":%t}`, `{"isCradle":%t}`} {
		both.Go(func() {
			for i := range 10 {
				h.rest("PATCH", path, fmt.Sprintf(change, i%2 == 1)).wants(t, 200)
			}
		})
	}
	both.Wait()
	kept := h.rest("GET", path, "").wants(t, 200)
	if kept["name"] != "Alicia" || kept["archived"] != true || kept["isCradle"] != true || tagsOf(kept) != "[elf]" {
		t.Errorf("after changes at once: %v", kept)
	}

	// A card file is the card, not how a user has filed it.
	file := h.rest("GET", path+"/export?format=json&spec=nodest", "").body
	again := h.upload("POST", "/characters/import", "a.json", file).wants(t, 201)["character"].(map[string]any)
	if again["archived"] != false {
		t.Errorf("imported again: %v", again)
	}
	h.rest("PATCH", path, `{"archived":"yes"}`).refuses(t, 400, "invalid_field", "archived")
	h.rest("GET", "/characters?archived=maybe", "").refuses(t, 400, "invalid_field", "archived")
	h.token = h.newMember("stranger")
	h.wantNamed("/characters?archived=true")
	h.rest("PATCH", path, `{"archived":false}`).refuses(t, 404, "not_found")
}
