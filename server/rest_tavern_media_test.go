package server

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"nodest/internal/tavern/taverntest"
)

// A message of an imported chat has the files that its shown swipe names. Only pictures are shown by a browser, and nobody else
// reads them. What is missing is in the report, and in no message.
func TestAnImportedMessageHasItsFiles(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	dot := taverntest.Card("Dot", "", "")
	active := []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	id := h.importFolder(taverntest.Files{
		"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "user/images/Bo/one.png": dot, "user/images/Bo/other.png": append([]byte{}, dot[:200]...),
		"user/images/Bo/drawing.svg": active, "user/images/Bo/false.png": active, "user/files/1-page.html": []byte("<script>alert(1)</script>"),
		"chats/Bo/one.jsonl": []byte(strings.Join([]string{
			`{"chat_metadata":{},"user_name":"unused","character_name":"unused"}`,
			`{"name":"Ann","is_user":true,"mes":"Look.","extra":{"media":[{"url":"/user/images/Bo/one.png","type":"image"},{"url":"/user/images/Bo/gone.png","type":"image"}],"files":[{"url":"/user/files/1-page.html","name":"My page.html","size":25}]}}`,
			`{"name":"Bo","is_user":false,"mes":"B","swipes":["A","B"],"swipe_id":1,"swipe_info":[{"extra":{"image":"user/images/Bo/one.png"}},{"extra":{}}],"extra":{"image":"user/images/Bo/drawing.svg"}}`,
			`{"name":"Ann","is_user":true,"mes":"No images, no files."}`,
		}, "\n") + "\n"),
	})
	chat := stringAt(h.rest("GET", "/conversations", "").items(t)[0], "id")
	page := h.rest("GET", "/conversations/"+chat+"/messages", "").wants(t, 200)
	messages := h.rest("GET", "/conversations/"+chat+"/messages", "").items(t)
	if page["displays"] != true {
		t.Errorf("displays is %v", page["displays"])
	}
	filesOf := func(m map[string]any) (ids []string, said string) {
		list, _ := m["files"].([]any)
		for _, f := range list {
			f := f.(map[string]any)
			ids = append(ids, f["id"].(string))
			said += fmt.Sprintf("%v %v %v;", f["name"], f["contentType"], f["size"])
		}
		return ids, said
	}
	ids, said := filesOf(messages[0])
	if want := fmt.Sprintf("one.png image/png %d;My page.html text/html 25;", len(dot)); said != want {
		t.Fatalf("files %q, want %q", said, want)
	}
	drawing, said := filesOf(messages[1])
	if said != fmt.Sprintf("drawing.svg image/svg+xml %d;", len(active)) || messages[2]["files"] != nil {
		t.Errorf("files %q and %v", said, messages[2]["files"])
	}
	reply := stringAt(messages[1], "id")
	chosen := h.rest("POST", "/messages/"+reply+"/swipe", `{"swipe":"prev"}`)
	if chosen.status != 200 {
		t.Fatalf("%d %s", chosen.status, chosen.body)
	}
	if got, _ := filesOf(h.rest("GET", "/messages/"+reply, "").wants(t, 200)); len(got) != 1 || got[0] != ids[0] {
		t.Errorf("the other swipe has %v, want %v", got, ids[:1])
	}

	content := func(id string) string { return "/sillytavern/files/" + id + "/content" }
	shown := h.rest("GET", content(ids[0]), "")
	if shown.status != 200 || !bytes.Equal(shown.body, dot) || shown.header.Get("Content-Type") != "image/png" || shown.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a picture: %d %v", shown.status, shown.header)
	}
	kept := h.rest("GET", "/sillytavern/files?kind=image", "").items(t)
	for _, f := range kept {
		if strings.HasSuffix(f["path"].(string), "false.png") {
			drawing = append(drawing, f["id"].(string))
		}
	}
	if len(drawing) != 2 {
		t.Fatalf("kept: %v", kept)
	}
	for _, id := range append(drawing, ids[1]) {
		got := h.rest("GET", content(id), "")
		if got.status != 200 || got.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment") ||
			got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("no picture: %d %v", got.status, got.header)
		}
	}
	report := string(h.rest("GET", "/sillytavern/imports/"+id+"/files?kind=chat", "").body)
	if !strings.Contains(report, "missing_files") || !strings.Contains(report, "(1): user/images/Bo/gone.png") {
		t.Errorf("report: %s", report)
	}

	own := h.token
	h.token = h.newMember("stranger")
	h.rest("GET", content(ids[0]), "").refuses(t, 404, "not_found")
	h.rest("GET", "/messages/"+reply, "").refuses(t, 404, "not_found")
	h.importFolder(taverntest.Files{ // names what another user has
		"characters/Bo.png":  taverntest.Card("Bo", "Bo sings.", ""),
		"chats/Bo/one.jsonl": []byte(`{"name":"Bo","is_user":false,"mes":"B","extra":{"image":"user/images/Bo/one.png"}}` + "\n"),
	})
	chat = stringAt(h.rest("GET", "/conversations", "").items(t)[0], "id")
	if m := h.rest("GET", "/conversations/"+chat+"/messages", "").items(t)[0]; m["files"] != nil {
		t.Errorf("a message names the files of another user: %v", m["files"])
	}
	h.token = own
	h.rest("DELETE", "/sillytavern/files/"+ids[0], "").wants(t, 204)
	if got, _ := filesOf(h.rest("GET", "/messages/"+reply, "").wants(t, 200)); got != nil {
		t.Errorf("a removed file is still named: %v", got)
	}
}
