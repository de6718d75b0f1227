package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/internal/tavern/taverntest"
)

// tavernFolder writes the folder of a SillyTavern user with 8 files, of which 2 are never taken, and returns it.
func tavernFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "SillyTavern", "data", "default-user")
	line := `{"name":"%","is_user":false,"send_date":"June 19, 2023 4:20pm","mes":"The harbour is quiet."}` + "\n"
	for name, text := range map[string]string{
		"characters/Wren.png":           string(taverntest.Card("Wren", "Wren keeps the light.", "")),
		"chats/Wren/first.jsonl":        `{"chat_metadata":{},"user_name":"Ada","character_name":"Wren"}` + "\n" + strings.Replace(line, "%", "Wren", 1),
		"chats/Robin/only.jsonl":        `{"chat_metadata":{},"user_name":"Ada","character_name":"Robin"}` + "\n" + strings.Replace(line, "%", "Robin", 1),
		"worlds/Harbour.json":           `{"entries":{"0":{"uid":0,"key":["harbour"],"content":"The harbour is old."}}}`,
		"instruct/ChatML.json":          `{"name":"ChatML","input_sequence":"<|im_start|>user","output_sequence":"<|im_start|>assistant"}`,
		"settings.json":                 `{"username":"Ada","power_user":{},"extension_settings":{}}`,
		"secrets.json":                  `{"api_key_openai":"sk-zorbalik"}`,
		"thumbnails/avatar/Wren.png.js": "x",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// narrow makes the page as wide as a phone, and wide as a desk.
func narrow(t *testing.T, ctx context.Context, yes bool) {
	t.Helper()
	width, height := int64(1280), int64(800)
	if yes {
		width, height = 390, 844
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatal(err)
	}
}

// moveIn is the part of the settings that moves a folder in.
const moveIn = `document.querySelector("[data-part=movein]")`

// TestPageMovesAFolderIn chooses the folder of a SillyTavern user on the page. The trial says what would be added and why
// the rest is not; then it is imported. A second time nothing is new. It also works with an archive, on a phone and in Chinese.
func TestPageMovesAFolderIn(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	dir := tavernFolder(t)
	count := func(path string) int {
		t.Helper()
		var list struct{ Items []any }
		api(t, p, http.MethodGet, path, nil, &list)
		return len(list.Items)
	}
	choose := func() {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.SetUploadFiles("[data-part=movein] input[webkitdirectory]", []string{filepath.Dir(filepath.Dir(dir))}, chromedp.NodeReady)); err != nil {
			t.Fatal(err)
		}
	}
	cell := func(kind string, column int) string {
		return `document.querySelector("[data-part=movein] tr[data-kind=` + kind + `]").cells[` + string(rune('0'+column)) + `].innerText`
	}

	showSettings(t, ctx, "account")
	choose()
	waitJS(t, ctx, "the trial", moveIn+`.innerText.includes("6 files would be taken.")`)
	waitJS(t, ctx, "two chats", cell("chat", 1)+` == "2" && `+cell("secrets", 3)+` == "1"`)
	waitJS(t, ctx, "why keys are not taken", `[...document.querySelectorAll("[data-part=movein] li")].some(l => l.innerText.includes("secrets.json") && l.innerText.includes("never taken"))`)
	if n := count("/characters"); n != 0 {
		t.Fatalf("the trial has made %d characters", n)
	}
	clickText(t, ctx, "Import")
	waitJS(t, ctx, "the end", moveIn+`.innerText.includes("6 files were taken.")`)
	if characters, chats, templates := count("/characters"), count("/conversations"), count("/templates"); characters != 2 || chats != 2 || templates != 1 {
		t.Fatalf("%d characters, %d chats, %d templates", characters, chats, templates)
	}
	typeLabelled(t, ctx, "Show", "Taken")
	typeLabelled(t, ctx, "Kind", "Instruct templates")
	waitJS(t, ctx, "what is said of a template", `(l => l.length == 1 && l[0].innerText.includes("without effect"))(document.querySelectorAll("[data-part=movein] ul[aria-label=Files] li"))`)
	narrow(t, ctx, true)
	waitJS(t, ctx, "nothing is wider than a phone", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)

	waitJS(t, ctx, "in Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the report after a reload", moveIn+`.innerText.includes("已导入 6 个文件。")`)
	narrow(t, ctx, false)
	clickText(t, ctx, "关闭报告")
	choose()
	waitJS(t, ctx, "nothing is new", moveIn+`.innerText.includes("没有新内容")`)
	clickText(t, ctx, "关闭报告")
	waitJS(t, ctx, "choosing anew", `[...document.querySelectorAll("button")].some(b => b.innerText == "选择 zip 文件…")`)
}

// TestPageMakesTheCharacterOfAChat drops a chat whose character is not there: the page makes one with its name.
func TestPageMakesTheCharacterOfAChat(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	dropFiles(t, ctx, "only.jsonl", `{"user_name":"Ada","character_name":"Robin"}`+"\n"+`{"name":"Robin","is_user":false,"mes":"The harbour is quiet."}`)
	clickText(t, ctx, "Make a character named Robin")
	waitJS(t, ctx, "it is imported", `document.body.innerText.includes("“only” was imported")`)
	var list struct{ Items []struct{ Name string } }
	api(t, p, http.MethodGet, "/characters", nil, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "Robin" {
		t.Fatalf("%+v", list)
	}
}

// TestPageTakesADroppedArchive drops the archive of a folder anywhere on the page: the settings show what would be added.
// A template that is dropped is in the library, with a word about it.
func TestPageTakesADroppedArchive(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	files := taverntest.Files{"worlds/Harbour.json": []byte(`{"entries":{"0":{"uid":0,"key":["harbour"],"content":"Old."}}}`), "chats/Robin/a.jsonl": []byte(`{"name":"Robin","is_user":false,"mes":"Quiet."}`)}
	dropFiles(t, ctx, "SillyTavern.zip", string(files.Zip("default-user/")))
	waitJS(t, ctx, "the trial", moveIn+`.innerText.includes("2 files would be taken.")`)
	waitJS(t, ctx, "it is in sight", `(r => r.top < innerHeight && r.bottom > 0)(`+moveIn+`.getBoundingClientRect()) && !document.querySelector(".note.bad")`)
	clickText(t, ctx, "Cancel")
	waitJS(t, ctx, "choosing anew", `[...document.querySelectorAll("button")].some(b => b.innerText == "Choose a folder…")`)

	dropFiles(t, ctx, "ChatML.json", `{"name":"ChatML","input_sequence":"<|im_start|>user","output_sequence":""}`)
	waitJS(t, ctx, "the template is imported", `document.body.innerText.includes("Template “ChatML” was imported. 1 ")`)
	goTo(t, ctx, "/library/template", `[...document.querySelectorAll("main [role=listitem]")].some(i => i.innerText.includes("ChatML"))`)
	waitJS(t, ctx, "none is made here", `!document.querySelector("main header .primary") && document.querySelector("main").innerText.includes("without effect")`)
	waitJS(t, ctx, "opening it", `(a => (a.click(), true))(document.querySelector("main [role=listitem] a"))`)
	waitJS(t, ctx, "its text", `document.querySelector("main pre").innerText.includes("im_start")`)
	narrow(t, ctx, true)
	waitJS(t, ctx, "nothing is wider than a phone", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)
}
