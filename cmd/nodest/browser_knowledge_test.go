package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// knowledgeAccess are the views of knowledge bases that everybody must be able to use.
func knowledgeAccess(base, file, character string) []accessView {
	at := "/knowledge/" + base
	return []accessView{
		{"knowledge bases", "/knowledge", nil, found("main li .card")},
		{"a new knowledge base", "/knowledge", []string{pressable("New knowledge base")}, dialogOpen},
		{"my files", "/knowledge/files", nil, found(".file")},
		{"files of a knowledge base", at, nil, found(".file")},
		{"the menu of a file", at, []string{found(".file [aria-haspopup=menu]")}, found("[role=menu]:popover-open")},
		{"deleting a file", at, []string{found(".file [aria-haspopup=menu]"), pressable("Delete the file")}, dialogOpen},
		{"adding a web page", at, []string{pressable("Other ways to add files"), pressable("Add a web page…")}, dialogOpen},
		{"searching documents", at + "/search", []string{typed("main", "automated"), found("main form button.primary")}, found("main mark")},
		{"an answer from documents", at + "/search", []string{typed("main", "When was the light automated?"), pressable("Ask a model")}, found("main section.card .markdown")},
		{"sharing a knowledge base", at + "/sharing", nil, found("main li select")},
		{"settings of a knowledge base", at + "/settings", []string{found("main summary")}, found("main form [type=number]")},
		{"deleting a knowledge base", at + "/settings", []string{pressable("Delete this knowledge base")}, dialogOpen},
		{"a document", "/files/" + file, nil, found(".text .block")},
		{"chunks of a document", "/files/" + file + "/chunks", nil, found("main article")},
		{"details of a document", "/files/" + file + "/details", nil, found("main dl")},
		{"what a character knows", "/characters/" + character + "/knowledge", nil, found("main [role=switch]")},
		{"adding a file to a character", "/characters/" + character + "/knowledge", []string{pressable("Add a file…")}, dialogOpen},
	}
}

// fillKnowledge makes a knowledge base with a file, by the API, shares it, and gives it and the
// file to the character.
func (a *accessPage) fillKnowledge() {
	a.t.Helper()
	a.base = a.post("/knowledge-bases", map[string]any{"name": "Halden Point", "description": "The lighthouse and its keepers."})
	a.file = a.upload("harbour.md", harbour)
	a.upload("blank.txt", " ")
	a.call(http.MethodPut, "/knowledge-bases/"+a.base+"/grants/mia", map[string]any{"role": "write"}, nil)
	a.call(http.MethodPut, "/characters/"+a.character+"/knowledge/"+a.base, map[string]any{}, nil)
	a.call(http.MethodPut, "/characters/"+a.character+"/files/"+a.file, map[string]any{}, nil)
	eventually(a.t, "the files are processed", func() error {
		var list struct{ Items []struct{ State string } }
		a.call(http.MethodGet, "/knowledge-bases/"+a.base+"/files", nil, &list)
		for _, f := range list.Items {
			if f.State != "ready" && f.State != "failed" {
				return errNotYet
			}
		}
		return nil
	})
}

// upload adds a file to the knowledge base and returns its id.
func (a *accessPage) upload(name, text string) string {
	a.t.Helper()
	var got struct{ File struct{ ID string } }
	if err := a.p.client.Upload(a.t.Context(), "/api/v1/files", name, []byte(text), map[string]string{"knowledgeBaseId": a.base}, &got); err != nil {
		a.t.Fatal(err)
	}
	return got.File.ID
}

// textFile writes a file and returns its path.
func textFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const harbour = "# The harbour\n\nThe light at Halden Point was automated in March 1987, and the last keeper left the island.\n\n## Tides\n\nThe ferry leaves at high water.\n"

// upload chooses files with the field of the list that is shown.
func (m *memoryPage) upload(paths ...string) {
	m.t.Helper()
	if err := chromedp.Do(m.ctx, chromedp.SetUploadFiles("main input[type=file]", paths, chromedp.NodeReady)); err != nil {
		m.t.Fatal(err)
	}
}

// states waits until exactly these files are in the list, as "name: state", in any order.
func (m *memoryPage) states(what string, files ...string) {
	m.t.Helper()
	slices.Sort(files)
	list := ""
	for _, f := range files {
		list += jsString(f) + ","
	}
	m.see(what, `JSON.stringify([...document.querySelectorAll(".file")].map(f => f.querySelector(".name").innerText + ": " + f.dataset.state).sort()) == JSON.stringify([`+list+`])`)
}

// TestPageKnowledge uses knowledge bases as a person would: one is created, files are
// chosen and dropped, their states are seen, one fails with its reason; a search shows
// passages, which lead into the text; a model answers with sources; and all is deleted.
func TestPageKnowledge(t *testing.T) {
	m := openMemoryPage(t)
	click(t, m.ctx, "nav [href='#/knowledge']")
	m.see("nothing yet", pageText("No knowledge bases yet."))
	m.press("New knowledge base")
	m.see("the name is typed", `(f => (f.value = "Halden Point", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("dialog [data-path=name]"))`)
	click(t, m.ctx, "dialog button.primary")
	m.see("the knowledge base", `document.querySelector("h1").innerText == "Halden Point" && `+pageText("No files yet."))

	m.upload(textFile(t, "harbour.md", harbour), textFile(t, "blank.txt", " \n"))
	m.see("dropping a file", `(files => (files.items.add(new File(["Ana likes honey."], "ana.txt")),
		document.querySelector(".scroller").dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})), true))(new DataTransfer())`)
	m.states("what became of the files", "harbour.md: ready", "blank.txt: failed", "ana.txt: ready")
	m.see("why one has failed, once", `document.querySelector(".file .error")?.innerText == "The file contains no text."`)
	m.upload(textFile(t, "again.md", harbour))
	m.see("that it is there already", `document.querySelector("[data-upload=done]")?.innerText.includes("You have this file already, as harbour.md.")`)
	m.press("Dismiss: again.md")
	m.see("no uploads", `!document.querySelector("[data-upload]")`)

	m.press("Search")
	m.fill("main [type=search]", "When was the light automated?\r")
	m.see("the passage", `[...document.querySelectorAll("main mark")].some(e => e.innerText == "automated") && document.querySelector("main li").innerText.includes("harbour.md")`)
	click(t, m.ctx, "main input[value=lexical]")
	m.see("a search by words", `document.querySelector("main [aria-busy=false] li")?.innerText.includes("words: no. 1")`)
	m.press("Ask a model")
	m.see("the answer with a source", `document.querySelector("main section .markdown")?.innerText.includes("1987") && document.querySelector("main section ol li")`)
	m.see("opening the source", `(s => s && (s.click(), true))(document.querySelector("main section ol summary"))`)
	m.press("Show in the file")
	m.see("the quote in the text", `location.hash.startsWith("#/files/") && document.querySelector("mark.quote")?.innerText.includes("March 1987") && document.querySelector(".block .heading")?.innerText == "# The harbour"`)
	click(t, m.ctx, "main nav a[href$='/chunks']")
	m.see("the chunks", `document.querySelector("main article .text")?.innerText.includes("March 1987")`)
	m.press("Details")
	m.see("the details", pageText("English"))

	click(t, m.ctx, "nav [href='#/knowledge']")
	m.see("the number of files", `document.querySelector("main li .card")?.innerText.includes("3 files")`)
	click(t, m.ctx, "main li .card")
	click(t, m.ctx, "main nav a[href$='/settings']")
	m.see("the index", pageText("chunks are compared by spelling."))
	m.see("another name", `(f => f && (f.value = "The island", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("main [data-path=name]"))`)
	m.press("Save")
	m.see("it is stored", `document.querySelector("h1").innerText == "The island"`)
	m.press("Rebuild the index")
	m.press("Rebuild the index")
	m.see("it is rebuilt", pageText("chunks are compared by spelling."))
	click(t, m.ctx, "main nav a")
	m.press("More: blank.txt")
	m.press("Delete the file")
	m.press("Delete")
	m.states("one file less", "harbour.md: ready", "ana.txt: ready")
	m.press("More: ana.txt")
	m.press("Remove from this knowledge base")
	m.states("one file", "harbour.md: ready")
	click(t, m.ctx, "main nav a[href$='/settings']")
	m.press("Delete this knowledge base")
	click(t, m.ctx, "dialog [type=checkbox]")
	m.press("Delete")
	m.see("no knowledge base", `location.hash == "#/knowledge" && `+pageText("No knowledge bases yet."))
	m.press("My files")
	m.states("only the file that was removed before", "ana.txt: ready")
	m.p.stop(t)
}

// TestPageKnowledgeInAChat talks to a character that searches its documents: what it does is
// seen while it does it, and the reply shows what it used and cites.
func TestPageKnowledgeInAChat(t *testing.T) {
	c := newChatPageWith(t, []string{"NODEST_RERANK=llm"}) // so that a search lasts until the test lets it end
	openSample(t, c.ctx, c.p)
	m := &memoryPage{t: t, ctx: c.ctx, p: c.p}
	var chats struct {
		Items []struct{ CharacterID string }
	}
	m.call(http.MethodGet, "/conversations", nil, &chats)
	a := &accessPage{t: t, p: c.p, character: chats.Items[0].CharacterID}
	a.base = a.post("/knowledge-bases", map[string]any{"name": "Halden Point"})
	file := a.upload("harbour.md", harbour)
	a.call(http.MethodPut, "/characters/"+a.character+"/knowledge/"+a.base, map[string]any{}, nil)
	eventually(t, "the file is processed", func() error {
		var f struct{ State string }
		if m.call(http.MethodGet, "/files/"+file, nil, &f); f.State != "ready" {
			return errNotYet
		}
		return nil
	})
	calling := func(id, tool string, args map[string]any) {
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		c.replies <- llmtest.Reply{Parts: []llmtest.Part{{Call: &llmtest.Call{ID: id, Name: tool, Args: string(text)}}}}
	}
	calling("a", "searchKnowledgeBase", map[string]any{"query": "lighthouse automated"})
	_, ranked := c.writes("[1]")
	calling("b", "readKnowledge", map[string]any{"fileIds": []string{file}})
	c.says("It was automated in March 1987, and the last keeper left the island [^1].")
	c.send("When was the light automated?")
	m.see("what it is doing", `[...document.querySelectorAll("[role=status]")].some(e => e.innerText.includes("Searching the documents for “lighthouse automated”…"))`)
	ranked()
	m.see("the reply", `[...document.querySelectorAll("article")].at(-1).innerText.includes("the last keeper left the island")`)
	m.press("What was used for this reply")
	m.see("what it has done", `(d => d?.innerText.includes("Searched for “lighthouse automated”") && d.innerText.includes("Read harbour.md") && d.querySelector("a[href*='"+`+jsString(file)+`+"']"))(document.querySelector("dialog[open]"))`)
	m.press("Close")
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.see("the reply after a reload", `[...document.querySelectorAll("article")].at(-1)?.innerText.includes("the last keeper left the island")`)
	m.press("What was used for this reply")
	m.see("what is stored of it", `(d => d?.innerText.includes("Searched for “lighthouse automated”") && d.querySelector("a")?.innerText == "harbour.md")(document.querySelector("dialog[open]"))`)
	m.see("a source that is there", `document.querySelector("article ol summary")?.innerText == "harbour.md"`)
	m.call(http.MethodDelete, "/files/"+file, nil, nil)
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.see("that the source is gone", `document.querySelector("article ol summary")?.innerText == "harbour.md not available"`)
	m.p.stop(t)
}

// TestPageKnowledgeUploads unpacks an archive and says what of it was not added; a file that
// is refused stays in the list with its reason, and can be sent again.
func TestPageKnowledgeUploads(t *testing.T) {
	m := &memoryPage{t: t, ctx: browser(t), p: newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s", "NODEST_KB_FILES=2").start(t)}
	var base struct{ ID string }
	m.call(http.MethodPost, "/knowledge-bases", map[string]any{"name": "Notes"}, &base)
	if err := chromedp.Do(m.ctx, chromedp.Navigate(m.p.client.Base+"/signin#"+m.p.link)); err != nil {
		t.Fatal(err)
	}
	goTo(t, m.ctx, "/knowledge/"+base.ID, pageText("No files yet."))
	archive := filepath.Join(t.TempDir(), "notes.zip")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for i := range 3 {
		w, err := z.Create(fmt.Sprintf("notes/%d.md", i))
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(w, "Note number %d about the harbour.", i)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	m.upload(archive)
	m.states("two of the files", "notes/0.md: ready", "notes/1.md: ready")
	m.see("what was not added", `(u => u?.includes("2 files were added from the archive.") && u.includes("notes/2.md"))(document.querySelector("[data-upload=done]")?.innerText)`)
	m.press("Dismiss: notes.zip")
	m.upload(textFile(t, "harbour.md", harbour))
	m.see("that there is no room, with the name", `(u => u?.includes("harbour.md") && u.includes("2"))(document.querySelector("[data-upload=failed]")?.innerText)`)
	m.press("More: notes/0.md")
	m.press("Delete the file")
	m.press("Delete")
	m.states("one file", "notes/1.md: ready")
	m.press("Try again: harbour.md")
	m.states("there is room", "harbour.md: ready", "notes/1.md: ready")
	m.see("no uploads", `!document.querySelector("[data-upload]")`)
	m.p.stop(t)
}

// TestPageKnowledgeShared shares a knowledge base by the name of a user, who sees it
// without being able to change it, until the user leaves it or the access is revoked.
func TestPageKnowledgeShared(t *testing.T) {
	m := openMemoryPage(t)
	var base struct{ ID string }
	m.call(http.MethodPost, "/knowledge-bases", map[string]any{"name": "Halden Point"}, &base)
	m.call(http.MethodPost, "/users", map[string]any{"username": "mia", "password": "staple battery horse"}, nil)
	goTo(t, m.ctx, "/knowledge/"+base.ID, pageText("No files yet."))
	m.upload(textFile(t, "harbour.md", harbour))
	m.states("the file", "harbour.md: ready")
	m.press("Sharing")
	m.fill("main [name=username]", "nobody\r")
	m.see("that there is no such user", pageText("There is no user of this name."))
	m.see("another name", `(f => (f.value = "mia", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("main [name=username]"))`)
	m.press("Share")
	m.see("with whom", `document.querySelector("main li")?.innerText.includes("mia")`)

	other := &memoryPage{t: t, ctx: anotherBrowser(t), p: m.p}
	signInAs(other.ctx, t, m.p, "mia", "staple battery horse")
	goTo(t, other.ctx, "/knowledge", `document.querySelector("main li .card")?.innerText.includes("Shared with you: read only")`)
	click(t, other.ctx, "main li .card")
	other.states("the file of the owner", "harbour.md: ready")
	other.see("nothing to add or change", pageText("You can read these files but not change them.")+` && !document.querySelector("main button.primary")`)
	other.press("More: harbour.md")
	other.see("what can be done with it", `JSON.stringify([...document.querySelectorAll("[role=menuitem]")].map(b => b.innerText.trim())) == '["Open","Download the original"]'`)
	other.press("Open")
	other.see("its text", `document.querySelector(".block")?.innerText.includes("March 1987")`)
	m.replacedWhileRead(other)

	goTo(t, other.ctx, "/knowledge/"+base.ID+"/settings", pageText("Leave this knowledge base"))
	other.press("Leave this knowledge base")
	other.press("Leave this knowledge base")
	other.see("that it was left", `location.hash == "#/knowledge" && `+pageText("No knowledge bases yet."))
	goTo(t, m.ctx, "/knowledge", `document.querySelector("main li .card")`)
	goTo(t, m.ctx, "/knowledge/"+base.ID+"/sharing", pageText("Not shared with anybody."))
	m.call(http.MethodPut, "/knowledge-bases/"+base.ID+"/grants/mia", map[string]any{"role": "write"}, nil)
	m.see("the role", `document.querySelector("main li select")?.selectedOptions[0].innerText == "Can add and remove"`)

	m.press("Revoke access: mia")
	m.press("Revoke access")
	m.see("with nobody", pageText("Not shared with anybody."))
	goTo(t, other.ctx, "/knowledge", pageText("No knowledge bases yet."))
	m.p.stop(t)
}

// replacedWhileRead lets another user, who has opened a file, read its text in parts. The
// first try fails; during the second one the owner replaces the file.
func (m *memoryPage) replacedWhileRead(other *memoryPage) {
	m.t.Helper()
	other.see("reading in small parts, of which the second one waits", `(real => (window.fetch = async (url, ...rest) => {
		if (!String(url).includes("/text?")) return real(url, ...rest)
		if (!String(url).includes("offset=0")) {
			if (!window.second) return Response.json({code: "forbidden", detail: "Not now."}, {status: 403})
			window.waits = true
			await window.second
		}
		return real(url + "&limit=60", ...rest)
	}, true))(window.fetch)`)
	click(m.t, other.ctx, "main nav a[href$='/chunks']")
	other.see("the chunks", `document.querySelector("main article")`)
	other.press("Text")
	other.see("that it failed", `document.querySelector("main [role=alert] .error") && !document.querySelector(".block")`)
	other.see("another try", `(window.second = new Promise(go => window.go = go), true)`)
	other.press("Try again")
	other.see("the second part is asked for", `window.waits`)
	var own struct{ Items []struct{ ID string } }
	m.call(http.MethodGet, "/files", nil, &own)
	at := "/files/" + own.Items[0].ID
	const next = "Bees.\n\nThe keepers of the light keep bees now, and they sell the honey at the harbour in the summer."
	if err := m.p.client.UploadFile(m.t.Context(), http.MethodPut, "/api/v1"+at+"/content", textFile(m.t, "harbour.md", next), map[string]string{"name": "harbour.md"}, &struct{}{}); err != nil {
		m.t.Fatal(err)
	}
	eventually(m.t, "the new text is there", func() error {
		var text struct{ Edition int }
		if m.call(http.MethodGet, at+"/text", nil, &text); text.Edition != 2 {
			return errNotYet
		}
		return nil
	})
	other.see("the new text alone", `(window.go(), [...document.querySelectorAll(".block")].map(b => b.textContent).join("").trim() == `+jsString(next)+`)`)
}

// signInAs signs a browser in with a name and a password.
func signInAs(ctx context.Context, t *testing.T, p *process, username, password string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.client.Base+"/"), chromedp.WaitVisible("[name=password]"),
		chromedp.SendKeys("[name=username]", username), chromedp.SendKeys("[name=password]", password+"\r")); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "signed in", `document.querySelector("nav [href='#/knowledge']")`)
}

// TestPageKnowledgeOfCharacter gives a character a knowledge base and files, switches them
// off and on, and puts the files into another order.
func TestPageKnowledgeOfCharacter(t *testing.T) {
	m := openMemoryPage(t)
	var base struct{ ID string }
	m.call(http.MethodPost, "/knowledge-bases", map[string]any{"name": "Halden Point"}, &base)
	goTo(t, m.ctx, "/knowledge/files", pageText("You have no files yet."))
	m.upload(textFile(t, "harbour.md", harbour), textFile(t, "ana.txt", "Ana likes honey."))
	m.states("the files", "harbour.md: ready", "ana.txt: ready")
	type known struct {
		Files []struct {
			Name     string
			Enabled  bool
			Position int
		}
		KnowledgeBases []struct {
			Name    string
			Enabled bool
		}
	}
	stored := func(what, want string) {
		t.Helper()
		eventually(t, what, func() error {
			var got known
			m.call(http.MethodGet, "/characters/"+m.character+"/knowledge", nil, &got)
			list := ""
			for _, b := range got.KnowledgeBases {
				list += fmt.Sprintf("%s %t;", b.Name, b.Enabled)
			}
			for _, f := range got.Files {
				list += fmt.Sprintf("%s %t;", f.Name, f.Enabled)
			}
			if list != want {
				return errNotYet
			}
			return nil
		})
	}
	goTo(t, m.ctx, "/characters/"+m.character+"/knowledge", pageText("This character has no knowledge bases."))
	m.press("Add a knowledge base…")
	click(t, m.ctx, "dialog .choice")
	m.see("the knowledge base", `document.querySelector("main li a")?.innerText == "Halden Point"`)
	for _, name := range []string{"harbour.md", "ana.txt"} {
		m.press("Add a file…")
		m.see("choosing "+name, `(b => b && (b.click(), true))([...document.querySelectorAll("dialog .choice")].find(b => b.innerText.startsWith(`+jsString(name)+`)))`)
		m.see("the file "+name, `!document.querySelector("dialog[open]") && [...document.querySelectorAll("main ol b")].some(b => b.innerText == `+jsString(name)+`)`)
	}
	stored("all", "Halden Point true;harbour.md true;ana.txt true;")
	click(t, m.ctx, "main ul [role=switch]")
	stored("the knowledge base is off", "Halden Point false;harbour.md true;ana.txt true;")
	m.press("More: ana.txt")
	m.press("Move up")
	stored("another order", "Halden Point false;ana.txt true;harbour.md true;")
	m.see("it is shown", `document.querySelector("main ol b").innerText == "ana.txt"`)
	click(t, m.ctx, "main ol [role=switch]")
	stored("the first file is off", "Halden Point false;ana.txt false;harbour.md true;")
	m.press("More: harbour.md")
	m.press("Remove from the character")
	m.press("Remove from the character: Halden Point")
	stored("what is left", "ana.txt false;")
	m.p.stop(t)
}
