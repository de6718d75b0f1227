package server

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"nodest/internal/tavern/taverntest"
)

// folderOut is the export of whoever has the token.
func (h *testServer) folderOut() map[string]string {
	h.t.Helper()
	got := h.rest("GET", "/sillytavern/export", "")
	got.wants(h.t, 200)
	if got.header.Get("Content-Type") != "application/zip" || !strings.Contains(got.header.Get("Content-Disposition"), "sillytavern-") {
		h.t.Errorf("headers %v", got.header)
	}
	if _, err := zip.NewReader(bytes.NewReader(got.body), int64(len(got.body))); err != nil {
		h.t.Fatal(err)
	}
	return entriesOf(h.t, got.body)
}

// A folder comes out of the server as it went in, with what SillyTavern has no place for, for its owner alone.
func TestAFolderIsExported(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := `{"chat_metadata":{},"user_name":"unused","character_name":"unused"}` + "\n" + `{"name":"Bo","is_user":false,"mes":"Hello."}`
	files := taverntest.Files{"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "chats/Bo/one.jsonl": []byte(chat)}
	h.importFolder(files)
	out := h.folderOut()
	for name, data := range files {
		if out[name] != string(data) {
			t.Errorf("%s is %.200q", name, out[name])
		}
	}
	if !strings.Contains(out["NodeST/report.json"], `"path":"chats/Bo/one.jsonl"`) || out["settings.json"] == "" {
		t.Errorf("the report is %s", out["NodeST/report.json"])
	}
	h.as(h.newMember("mia"), func() {
		if all := h.folderOut(); len(all) != 2 || strings.Contains(all["NodeST/report.json"], "Bo") {
			t.Errorf("another user gets %v", all)
		}
	})
	h.as("nobody", func() { h.rest("GET", "/sillytavern/export", "").refuses(t, 401, "unauthenticated") })
}

// Everything that an account can have goes out.
func TestAnAccountGoesOutForSillyTavern(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.everything()
	out := h.folderOut()
	kinds := map[string]int{}
	for name := range out {
		kind, _, _ := strings.Cut(name, "/")
		kinds[kind]++
	}
	for _, kind := range []string{"characters", "chats", "worlds", "OpenAI Settings", "settings.json", "User Avatars", "NodeST"} {
		if kinds[kind] == 0 {
			t.Errorf("nothing of %s: %v", kind, kinds)
		}
	}
	if !strings.Contains(out["NodeST/report.json"], e.conversation) || !strings.Contains(out["NodeST/report.json"], e.save) {
		t.Errorf("the report lacks the chat or its save point: %s", out["NodeST/report.json"])
	}
}
