package server

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"

	"nodest/store/storetest"
)

// everything gives the user of the test something of each subject that has rows by way of the API.
func (h *testServer) everything() *fixtures {
	h.t.Helper()
	e := h.newFixtures()
	h.processed(e.file)
	h.rest("PUT", "/settings", `{"userName":"Ada"}`).wants(h.t, 200)
	h.rested()
	return e
}

// fileOf is the export of whoever has the token.
func (h *testServer) fileOf() []byte {
	h.t.Helper()
	got := h.rest("GET", "/me/export", "")
	got.wants(h.t, 200)
	if got.header.Get("Content-Type") != "application/zip" || !strings.Contains(got.header.Get("Content-Disposition"), "account-") {
		h.t.Errorf("headers %v", got.header)
	}
	return got.body
}

// entriesOf are the entries of a file but for its manifest.
func entriesOf(t testing.TB, file []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != "manifest.json" {
			all[f.Name] = string(text)
		}
	}
	return all
}

func TestAMemberTakesEverythingToAnotherServer(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	e := h.everything()
	file := h.fileOf()
	other := newTestServer(t, nil)
	p, _ := other.connect(map[string]any{"deviceId": "phone"})
	dry := other.upload("POST", "/me/import", "a.zip", file, "dryRun=true").wants(t, 200)
	if n := len(entriesOf(t, other.fileOf())); n != 0 {
		t.Errorf("a dry run has stored %d things", n)
	}
	done := other.upload("POST", "/me/import", "a.zip", file).wants(t, 200)
	for table, n := range dry["added"].(map[string]any) {
		if done["added"].(map[string]any)[table] != n {
			t.Errorf("%s: %v, not %v", table, done["added"].(map[string]any)[table], n)
		}
	}
	p.event("account.imported", "")
	want, got := entriesOf(t, file), entriesOf(t, other.fileOf())
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s:\n had %.900s\n has %.900s", name, text, got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, not %d", len(got), len(want))
	}
	again := other.upload("POST", "/me/import", "a.zip", file).wants(t, 200)
	if added := again["added"].(map[string]any); len(added) != 0 {
		t.Errorf("a repetition added %v", added)
	}
	for server, action := range map[*testServer]string{h: "data.exported", other: "data.imported"} {
		if found := actions(server.rest("GET", "/audit?action="+action, "").wants(t, 200)); len(found) == 0 {
			t.Errorf("the audit log has no %s", action)
		}
	}
	// It is alive: the chat goes on, and the document is found by its words.
	other.turn(e.conversation, "And now?", "It goes on.")
	found := other.rest("POST", "/knowledge-bases/search", `{"query":"Who kept the light of the harbour?"}`)
	found.wants(t, 200)
	if !strings.Contains(string(found.body), "Maren Oduya") {
		t.Errorf("found %.400s", found.body)
	}
}

func TestAFileThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.newChat()
	file := h.fileOf()
	h.upload("POST", "/me/import", "a.zip", []byte("no archive")).refuses(t, 415, "unsupported_media_type")
	h.upload("POST", "/me/import", "a.zip", file, "dryRun=perhaps").refuses(t, 400, "invalid_field", "dryRun")
	for what, edit := range map[string]func(name, text string) string{
		"a row is missing": func(name, text string) string {
			if at := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n"); strings.HasPrefix(name, "conversations/") {
				return text[:at+1]
			}
			return text
		},
		"another table": func(name, text string) string { return strings.Replace(text, `{"messages":`, `{"users":`, 1) },
		"another chat": func(name, text string) string {
			return strings.Replace(text, `"conversation_id":"0`, `"conversation_id":"1`, 1)
		},
		"no JSON":       func(name, text string) string { return strings.Replace(text, `"role_card":{`, `"role_card":"{`, 1) },
		"a column more": func(name, text string) string { return strings.Replace(text, `{"id":`, `{"user_id":"x","id":`, 1) },
		"a newer version": func(name, text string) string {
			return strings.Replace(text, `"formatVersion": 1`, `"formatVersion": 2`, 1)
		},
		"no manifest": func(name, text string) string { return strings.Replace(text, `nodest.account`, `nodest.other`, 1) },
	} {
		h.rest("DELETE", "/conversations/"+stringAt(h.rest("GET", "/conversations", "").items(t)[0], "id"), "")
		code := "invalid_import"
		if what == "a newer version" {
			code = "newer_version"
		}
		h.upload("POST", "/me/import", "a.zip", rezipped(t, file, edit)).refuses(t, 422, code)
		h.upload("POST", "/me/import", "a.zip", file).wants(t, 200)
	}
}

// rezipped is a file with other texts.
func rezipped(t testing.TB, file []byte, edit func(name, text string) string) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		w, err := out.Create(f.Name)
		if err == nil {
			_, err = io.WriteString(w, edit(f.Name, string(text)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestABombIsRefusedBeforeItIsUnpacked(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.newChat()
	bomb := rezipped(t, h.fileOf(), func(name, text string) string {
		if strings.HasPrefix(name, "characters/") && strings.HasSuffix(name, ".jsonl") {
			text += strings.Repeat(" ", 64<<20)
		}
		return text
	})
	h.upload("POST", "/me/import", "a.zip", bomb).refuses(t, 413, "too_large")
}

func TestAChatIsPurgedAtOnce(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	kept, chat := h.newChat(), h.newChat()
	h.turn(chat, "What about the zorbalik?", "A zorbalik again.")
	h.turn(kept, "What about the quavendo?", "It stays.")
	h.rested()
	h.wantWords("zorbalik", "revisions.text")
	h.rest("DELETE", "/conversations/"+chat+"?purge=true", "", "Idempotency-Key: once").wants(t, 204)
	h.wantGone(clock, []string{"zorbalik"})
	h.wantWords("quavendo", "revisions.text")
	h.rest("DELETE", "/conversations/"+chat+"?purge=true", "").refuses(t, 404, "not_found")
	h.rest("DELETE", "/conversations/"+kept, "").wants(t, 204)
	h.wantWords("quavendo", "revisions.text")
	h.rest("DELETE", "/conversations/"+kept+"?purge=true", "").wants(t, 204) // also one that was deleted before
	h.wantGone(clock, []string{"quavendo"})
}

func TestAnAccountIsDeletedByItsMember(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	mine := h.everything()
	h.rest("DELETE", "/me", `{"username":"somebody"}`).refuses(t, 400, "invalid_field", "username")
	mia := h.createMia()
	h.as(h.newToken(mia.ID), func() {
		chat := h.newChatOf(mia.ID)
		h.turn(chat, "Where is the zorbalik?", "The zorbalik is in the barn.")
		p, _ := h.connect(map[string]any{"deviceId": "phone"})
		running := h.model.enqueue(&script{pieces: []string{"The zorbalik "}, hangs: true})
		p.send("chat.send", "k", map[string]any{"conversationId": chat, "text": "And the friend of the zorbalik?"})
		await(t, running.requested, "the request of a reply")
		h.rest("GET", "/me/export", "").refuses(t, 409, "busy")
		h.rest("DELETE", "/me", `{"currentPassword":"wrong horse battery"}`).refuses(t, 400, "invalid_field", "currentPassword")
		h.rest("DELETE", "/me", `{}`).refuses(t, 400, "invalid_field", "currentPassword")
		h.rest("DELETE", "/me", `{"currentPassword":"`+goodPassword+`"}`).wants(t, 204)
		await(t, running.ended, "the end of the reply")
		h.rest("GET", "/me", "").refuses(t, 401, "unauthenticated")
		p.wantClose(closeAuth)
	})
	for word, places := range storetest.Words(t, h.db, "zorbalik") {
		t.Errorf("%q is left in %q", word, places)
	}
	h.rest("GET", "/conversations/"+mine.conversation, "").wants(t, 200)
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.rest("DELETE", "/me", `{"username":"`+h.user.Username+`"}`).refuses(t, 409, "conflict")
	h.rest("GET", "/me", "").wants(t, 200)
}
