package server

import (
	"encoding/json"
	"fmt"
	"strings"
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
