package server

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// many is a JSON array of n equal elements.
func many(element string, n int) string {
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}

// cardWith is a card in all forms in which it can be uploaded, by file name.
func cardWith(t *testing.T, doc string) map[string][]byte {
	t.Helper()
	var charx, packed bytes.Buffer
	archive := zip.NewWriter(&charx)
	w, err := archive.Create("card.json")
	if err == nil {
		_, err = w.Write([]byte(doc))
	}
	if err != nil || archive.Close() != nil {
		t.Fatal(err)
	}
	z := zlib.NewWriter(&packed)
	_, _ = z.Write([]byte(base64.StdEncoding.EncodeToString([]byte(doc))))
	_ = z.Close()
	return map[string][]byte{
		"card.json": []byte(doc), "card.charx": charx.Bytes(),
		"card.png":   pngWith(chunk("tEXt", []byte("chara\x00"+base64.StdEncoding.EncodeToString([]byte(doc))))),
		"packed.png": pngWith(chunk("zTXt", append([]byte("chara\x00\x00"), packed.Bytes()...))),
	}
}

// pngWith is a picture of one pixel with other chunks.
func pngWith(chunks ...[]byte) []byte {
	file := []byte("\x89PNG\r\n\x1a\n")
	file = append(file, chunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0})...)
	for _, c := range chunks {
		file = append(file, c...)
	}
	return append(file, chunk("IEND", nil)...)
}

// A document that counts more than it may is refused by every operation that takes it,
// before anything is built of it.
func TestCountsAreBoundedAtEveryDoor(t *testing.T) {
	h := newTestServer(t, nil)
	conv := h.newChat()
	character := "/characters/" + h.characterOf(conv)
	book := "/worldbooks/" + h.rest("POST", "/worldbooks", `{"document":{"entries":{}}}`).wants(t, 201)["id"].(string)
	upload := func(path, name, as string) func([]byte) *restResponse {
		return func(file []byte) *restResponse {
			return h.upload("POST", path, name, file, "as="+as, "characterId="+character[len("/characters/"):], "conversationId="+conv)
		}
	}
	body := func(method, path, form string) func([]byte) *restResponse {
		return func(doc []byte) *restResponse { return h.rest(method, path, fmt.Sprintf(form, doc)) }
	}
	card := func(member string) string {
		return `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Alice",` + member + `}}`
	}
	greetings := card(`"alternate_greetings":` + many(`"Hi"`, 200_000))
	extra := `{"roleCard":{"name":"Alice"},"extraGreetings":` + many(`"Hi"`, 200_000) + `}`
	keys := `{"entries":{"0":{"key":` + many(`"a"`, 300_000) + `,"content":"Tea."}}}`
	values := many("{}", 1_100_000)
	save := `{"format":"nodest.save","formatVersion":1,"messages":[],"nodest":{"conversation":{"version":1},"messages":[%s]}}`
	archive := `{"format":"nodest.conversation","formatVersion":1,"conversation":{"version":1},"messages":%s}`
	type attack struct {
		name string
		file string
		send func([]byte) *restResponse
	}
	attacks := []attack{
		{"swipes of a chat log", `{"chat_metadata":{}}` + "\n" + `{"mes":"Hi","swipes":` + many(`"a"`, 200_000) + "}", upload("/conversations/import", "log.jsonl", "")},
		{"messages of another program's log", `{"type":"risuChat","data":{"message":` + many(`{"data":"Hi"}`, 200_000) + `}}`, upload("/import", "risu.json", "conversation")},
		{"messages of an archive", fmt.Sprintf(archive, many("{}", 400_000)), upload("/conversations/import", "archive.json", "")},
		{"texts of an archive", fmt.Sprintf(archive, `[{"texts":`+many("{}", 190_000)+`},{"texts":`+many("{}", 190_000)+`},{"texts":`+many("{}", 190_000)+`}]`), upload("/import", "archive.json", "")},
		{"texts by another spelling", fmt.Sprintf(archive, `[{"Te\u0078tſ":`+many("{}", 190_000)+`},{"TEXTS":`+many("{}", 190_000)+`},{"texts":`+many("{}", 190_000)+`}]`), upload("/import", "archive.json", "")},
		{"texts of a save point", fmt.Sprintf(save, `{"texts":`+many("{}", 9_000)+`}`+strings.Repeat(`,{"texts":`+many("{}", 9_000)+`}`, 99)), upload("/conversations/"+conv+"/saves/import", "save.json", "")},
		{"references of a save point", fmt.Sprintf(save, `{"texts":[{"citations":{"references":`+many("{}", 9_000)+`}}]}`+strings.Repeat(`,{"texts":[{"citations":{"references":`+many("{}", 9_000)+`}}]}`, 99)), upload("/import", "save.json", "save")},
		{"messages of a history", `{"messages":[],"nodestChatHistory":{"parts":` + many("{}", 300_000) + `}}`, upload("/import", "save.json", "")},
		{"keys of a world book", keys, upload("/worldbooks/import", "book.json", "")},
		{"keys of a world book to lint", keys, upload("/lint", "book.json", "")},
		{"keys of a world book in a body", keys, body("POST", "/worldbooks", `{"document":%s}`)},
		{"keys of a changed world book", keys, body("PATCH", book, `{"document":%s}`)},
		{"keys of a character's world book", keys, body("PATCH", character, `{"worldBook":%s}`)},
		{"keys of a world book in a card", card(`"character_book":{"entries":[{"keys":` + many(`"a"`, 300_000) + `}]}`), upload("/characters/import", "card.json", "")},
		{"entries of a world book", `{"entries":` + many(`{"content":"a"}`, 30_000) + `}`, upload("/worldbooks/import", "book.json", "")},
		{"regex scripts", many(`{"findRegex":"a"}`, 30_000), upload("/regexscripts/import", "scripts.json", "")},
		{"prompts of a preset", `{"prompts":` + many(`{"content":"a"}`, 30_000) + `}`, upload("/presets/import", "preset.json", "")},
		{"values of a persona", `{"name":"Mia","description":"","more":` + values + `}`, upload("/import", "persona.json", "persona")},
		{"values of a preset", `{"prompts":[],"more":` + values + `}`, upload("/lint", "preset.json", "")},
		{"values of a body", values, body("PATCH", book, `{"document":{"entries":{},"more":%s}}`)},
		{"greetings of a new character", greetings, body("POST", "/characters", `{"roleCard":%s}`)},
		{"greetings of a changed character", greetings, body("PATCH", character, `{"roleCard":%s}`)},
		{"greetings of a replaced character", greetings, body("PUT", character, `{"roleCard":%s}`)},
		{"greetings to lint", greetings, body("POST", "/lint", "%s")},
		{"extra greetings", extra, upload("/import", "nodest.json", "")},
	}
	for name, file := range cardWith(t, greetings) {
		attacks = append(attacks, attack{"greetings of " + name, string(file), upload("/characters/import", name, "")})
	}
	for name, file := range map[string]string{"greetings": `{"roleCard":` + greetings + `}`, "extra greetings": extra} {
		attacks = append(attacks, attack{name + " of the app", file, func(doc []byte) *restResponse {
			return h.callApp("chat", map[string]any{"conversationId": "k", "status": "create", "userMessage": "Hi", "jsonString": string(doc)})
		}})
	}
	for _, a := range attacks {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := a.send([]byte(a.file))
		runtime.ReadMemStats(&after)
		spent := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %.2f MiB take %d MiB", a.name, float64(len(a.file))/(1<<20), spent)
		if !strings.Contains(string(got.body), `"too_large"`) {
			t.Errorf("%s: %d %.200s", a.name, got.status, got.body)
		}
		if spent > 250 {
			t.Errorf("%s: %d MiB were allocated", a.name, spent)
		}
	}
}
