package server

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"nodest/card"
)

// filesOfEveryKind has a file of every kind, exported from or belonging to the chat.
func (h *testServer) filesOfEveryKind(chat string) map[string][]byte {
	h.t.Helper()
	character := "/characters/" + h.characterOf(chat)
	h.addMemory(character+"/memories", "Mia sails.", "")
	get := func(path string) []byte {
		a := h.rest("GET", path, "")
		a.wants(h.t, 200)
		return a.body
	}
	return map[string][]byte{
		"card.png": get(character + "/export?format=png"), "card.charx": get(character + "/export?format=charx"),
		"nodest.json": get(character + "/export?spec=nodest"), "card.json": get(character + "/export"),
		"worldbook.json":   []byte(`{"entries":{"0":{"key":["tea"],"content":"Tea is green."}}}`),
		"preset.json":      []byte(`{"prompts":[{"identifier":"main","content":"Be brief."}]}`),
		"regexscript.json": []byte(`[{"scriptName":"stars","findRegex":"/\\*/g","placement":[2]}]`),
		"persona.json":     []byte(`{"name":"Mia","description":"Sails."}`),
		"template.json":    []byte("{ \"name\":\"ChatML\",\r\n  \"input_sequence\":\"<|im_start|>user\", \"output_sequence\":\"\" }\n"),
		"log.jsonl":        get("/conversations/" + chat + "/export"), "archive.json": get("/conversations/" + chat + "/export?format=json"),
		"save.json": get("/saves/" + h.createSave(chat, "at sea") + "/export"), "memories.jsonl": get(character + "/memories/export"),
	}
}

// One route takes every kind of file, and files that name what they belong to need no
// more.
func TestImportDetectsEveryKind(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	h.turn(chat, "Where are we?", "At sea.")
	character := h.characterOf(chat)
	files := h.filesOfEveryKind(chat)
	var cover bytes.Buffer
	if err := jpeg.Encode(&cover, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	files["card.jpg"] = append(cover.Bytes(), files["card.charx"]...)
	first := h.upload("POST", "/import", "log.jsonl", files["log.jsonl"], "Idempotency-Key: log").wants(t, 201)
	for _, c := range []struct{ name, kind, at, want string }{
		{"worldbook.json", "resource", "resource.kind", "worldbook"}, {"preset.json", "resource", "resource.kind", "preset"},
		{"regexscript.json", "resource", "resource.kind", "regexscript"}, {"persona.json", "resource", "resource.name", "Mia"}, {"template.json", "resource", "resource.kind", "template"},
		{"log.jsonl", "conversation", "conversation.characterId", character}, {"archive.json", "conversation", "conversation.characterId", character},
		{"save.json", "save", "save.conversationId", chat}, {"memories.jsonl", "memories", "id", character},
		{"card.png", "character", "character.name", "Alice"}, {"card.charx", "character", "character.name", "Alice"},
		{"card.jpg", "character", "character.name", "Alice"}, {"nodest.json", "character", "character.name", "Alice"}, {"card.json", "character", "character.name", "Alice"},
	} {
		got := h.upload("POST", "/import", c.name, files[c.name]).wants(t, 201)
		if got["kind"] != c.kind || stringAt(got, c.at) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	// Now several characters are called Alice. A retry gets its first answer all the same.
	if again := h.upload("POST", "/import", "log.jsonl", files["log.jsonl"], "Idempotency-Key: log").wants(t, 201); again["id"] != first["id"] {
		t.Errorf("the chat was stored twice: %v", again)
	}
	for name, kind := range map[string]string{"log.jsonl": "conversation", "archive.json": "conversation"} {
		p := h.upload("POST", "/import", name, files[name]).refuses(t, 400, "invalid_field", "characterId")
		if p.Details["kind"] != kind || p.Details["name"] != "Alice" {
			t.Errorf("%s: %+v", name, p.Details)
		}
		got := h.upload("POST", "/import", name, files[name], "characterId="+character).wants(t, 201)
		if stringAt(got, "conversation.characterId") != character {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Where a file does not say what it is or what it belongs to, the form can.
func TestImportTakesTheFormsWord(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	bob := "/characters/" + h.rest("POST", "/characters", `{"roleCard":{"name":"Bob","first_mes":"Hi."}}`).wants(t, 201)["id"].(string)
	save := []byte(`{"conversationId":"elsewhere","description":"old","messages":[],"nodestChatHistory":{"identifier":"chatHistory","parts":[]}}`)
	p := h.upload("POST", "/import", "save.json", save).refuses(t, 400, "invalid_field", "conversationId")
	if p.Details["kind"] != "save" {
		t.Errorf("%+v", p.Details)
	}
	got := h.upload("POST", "/import", "save.json", save, "conversationId="+chat).wants(t, 201)
	if stringAt(got, "save.conversationId") != chat {
		t.Errorf("%v", got)
	}
	memories := []byte(`{"type":"header","format":"memory-export","version":1}` + "\n" + `{"text":"Mia sails."}`)
	p = h.upload("POST", "/import", "m.jsonl", memories).refuses(t, 400, "invalid_field", "characterId")
	if p.Details["kind"] != "memories" {
		t.Errorf("%+v", p.Details)
	}
	h.upload("POST", "/import", "m.jsonl", memories, "characterId="+character).wants(t, 201)
	got = h.upload("POST", "/import", "m.jsonl", []byte(`{"text":"Mia rows."}`), "as=memories", "characterId="+bob[len("/characters/"):]).wants(t, 201)
	if len(h.rest("GET", bob+"/memories", "").items(t)) != 1 {
		t.Errorf("%v", got)
	}
	h.upload("POST", "/import", "m.jsonl", []byte(`{"format":"memory-export","version":1,"characterId":"\u0000\ud800"}`)).refuses(t, 400, "invalid_field", "characterId")
	nobodys := []byte(`{"user_name":"Mia","character_name":"unused"}` + "\n" + `{"is_user":true,"name":"Mia","mes":"Hi."}`)
	p = h.upload("POST", "/import", "log.jsonl", nobodys).refuses(t, 400, "invalid_field", "characterId")
	if p.Details["kind"] != "conversation" || p.Details["name"] != nil {
		t.Errorf("%+v", p.Details)
	}
	log := bytes.ReplaceAll([]byte(chatLog), []byte("Alice"), []byte(" BOB "))
	if got := h.upload("POST", "/import", "log.jsonl", log).wants(t, 201); "/characters/"+stringAt(got, "conversation.characterId") != bob {
		t.Errorf("a name in other case: %v", got)
	}
	got = h.upload("POST", "/import", "x.json", []byte(`{"name":"x","first_mes":"","entries":{}}`), "as=worldbook").wants(t, 201)
	if stringAt(got, "resource.kind") != "worldbook" {
		t.Errorf("%v", got)
	}
	h.upload("POST", "/import", "x.json", []byte(`{"name":"x","description":"y"}`), "as=character").wants(t, 201)
	h.upload("POST", "/import", "x.json", []byte(`{}`), "as=song").refuses(t, 400, "invalid_field", "as")
	h.upload("POST", "/import", "x.json", []byte(`{}`), "as=persona").refuses(t, 422, "invalid_import")
	h.upload("POST", "/import", "x.json", []byte(`{`), "as=persona").refuses(t, 422, "invalid_import")
	p = h.upload("POST", "/import", "x.json", []byte(`{"temperature":1}`)).refuses(t, 422, "invalid_import")
	if fmt.Sprint(p.Details["as"]) != fmt.Sprint(card.Kinds) {
		t.Errorf("%+v", p.Details)
	}
	for file, want := range map[string]string{"": "the file is empty", `{"a":`: "invalid JSON: unexpected end of JSON input", "\xff\xfe{\x00}\x00": "the file is UTF-16; save it as UTF-8"} {
		if p := h.upload("POST", "/import", "x.json", []byte(file)).refuses(t, 422, "invalid_import"); p.Detail != want {
			t.Errorf("%q: %s", file, p.Detail)
		}
	}
}

// An imported resource is bound in the transaction that stores it, once, and scripts work
// from then on.
func TestImportBindsResources(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	files := h.filesOfEveryKind(chat)
	for _, name := range []string{"worldbook", "preset", "regexscript", "persona"} {
		path := map[string]string{"worldbook": "/worldbooks", "preset": "/presets", "regexscript": "/regexscripts", "persona": "/personas"}[name]
		h.upload("POST", "/import", name, files[name+".json"], "characterId=nobody").refuses(t, 404, "not_found")
		h.upload("POST", "/import", name, files[name+".json"], "characterId=\xff\x00").refuses(t, 400, "invalid_field", "characterId")
		if items := h.rest("GET", path, "").items(t); len(items) != 0 {
			t.Errorf("stored without the character: %v", items)
		}
		for range 2 {
			got := h.upload("POST", "/import", name, files[name+".json"], "characterId="+character, "Idempotency-Key: "+name).wants(t, 201)
			if ids := fmt.Sprint(got["resource"].(map[string]any)["characterIds"]); ids != "["+character+"]" {
				t.Errorf("%s is bound to %s", name, ids)
			}
			if warned := len(got["warnings"].([]any)) == 1; warned != (name == "regexscript") {
				t.Errorf("%s: %v", name, got["warnings"])
			}
		}
		if items := h.rest("GET", path, "").items(t); len(items) != 1 {
			t.Errorf("%d of %s", len(items), path)
		}
	}
	if on := h.rest("GET", "/settings", "").wants(t, 200)["globalRegexEnabled"]; on != true {
		t.Error("the scripts are off")
	}
	h.upload("POST", "/import", "x", files["preset.json"], "characterId="+character, "Idempotency-Key: worldbook").refuses(t, 422, "key_reused")
	h.upload("POST", "/import", "x", files["worldbook.json"], "Idempotency-Key: worldbook").refuses(t, 422, "key_reused")
	again := h.upload("POST", "/regexscripts/import", "x", files["regexscript.json"], "characterId="+character).wants(t, 201)
	if len(again["warnings"].([]any)) != 0 {
		t.Errorf("they were on: %v", again["warnings"])
	}
}

// The objects of other users are never found: not by id, not by the name in a file.
func TestImportFindsOnlyOnesOwn(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	files := h.filesOfEveryKind(chat)
	h.token = h.newMember("stranger")
	for name, field := range map[string]string{"log.jsonl": "characterId", "archive.json": "characterId", "memories.jsonl": "characterId", "save.json": "conversationId"} {
		h.upload("POST", "/import", name, files[name]).refuses(t, 400, "invalid_field", field)
		h.upload("POST", "/import", name, files[name], "characterId="+character, "conversationId="+chat).refuses(t, 404, "not_found")
	}
	for _, name := range []string{"worldbook.json", "preset.json", "regexscript.json", "persona.json"} {
		h.upload("POST", "/import", name, files[name], "characterId="+character).refuses(t, 404, "not_found")
	}
	for _, path := range []string{"/characters", "/conversations", "/worldbooks", "/presets", "/regexscripts", "/personas"} {
		if items := h.rest("GET", path, "").items(t); len(items) != 0 {
			t.Errorf("%s: %v", path, items)
		}
	}
}

// A chat whose character is not there makes one: with its name, or the one beside its messages. A repeated request
// makes no second one.
func TestAChatMakesItsCharacter(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	log := []byte(`{"user_name":"Mia","character_name":"Wren"}` + "\n" + `{"is_user":false,"name":"Wren","mes":"Hello."}`)
	cai := []byte(`{"info":{"character":{"participant__name":"Robin","greeting":"Chirp.","definition":"Small."}},"histories":{"histories":[{"msgs":[{"text":"Hi.","src":{"is_human":false}}]}]}}`)
	if p := h.upload("POST", "/import", "log.jsonl", log).refuses(t, 400, "invalid_field", "characterId"); p.Details["name"] != "Wren" {
		t.Errorf("%+v", p.Details)
	}
	h.upload("POST", "/import", "log.jsonl", log, "makeCharacter=yes").refuses(t, 400, "invalid_field", "makeCharacter")
	for _, c := range []struct{ file, name, greeting string }{{string(log), "Wren", ""}, {string(cai), "Robin", "Chirp."}} {
		var ids []string
		for range 2 {
			got := h.upload("POST", "/import", "log.jsonl", []byte(c.file), "makeCharacter=true", "Idempotency-Key: "+c.name).wants(t, 201)
			ids = append(ids, got["id"].(string))
			made := h.rest("GET", "/characters/"+stringAt(got, "conversation.characterId"), "").wants(t, 200)
			if made["name"] != c.name || made["dialect"] != "sillytavern" || c.greeting != "" && stringAt(made, "roleCard.data.first_mes") != c.greeting {
				t.Errorf("%v", made)
			}
		}
		if ids[0] != ids[1] {
			t.Errorf("stored twice: %v", ids)
		}
	}
	got := h.upload("POST", "/import", "log.jsonl", log, "makeCharacter=true").wants(t, 201) // she is there now
	if n := len(h.rest("GET", "/characters", "").items(t)); n != 2 {
		t.Errorf("%d characters: %v", n, got)
	}
	nobody := []byte(`{"is_user":true,"name":"Mia","mes":"Hello."}`)
	h.upload("POST", "/import", "log.jsonl", nobody, "makeCharacter=true").refuses(t, 400, "invalid_field", "characterId")
	for file, words := range map[string]string{"\x6f\x00\x01\x02": "a Risu module", `{"power_user":{},"oai_settings":{}}`: "SillyTavern's settings"} {
		if p := h.upload("POST", "/import", "x", []byte(file)).refuses(t, 422, "invalid_import"); !strings.Contains(p.Detail, words) {
			t.Errorf("%s", p.Detail)
		}
	}
}
