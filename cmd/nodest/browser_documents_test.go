package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"image/color"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// rowJS finds a row of an ordered list by its name.
func rowJS(name string) string {
	return `[...document.querySelectorAll("main ol li")].find(li => li.querySelector("b")?.innerText == ` + jsString(name) + `)`
}

// centre returns the middle of an element that can be pressed there.
func centre(t *testing.T, ctx context.Context, element string) (x, y float64) {
	t.Helper()
	waitJS(t, ctx, "it is in sight: "+element, `(e => { if (!e) return false; const r = e.getBoundingClientRect(); window.centre = [r.x + r.width / 2, r.y + r.height / 2]; `+
		`return e.contains(document.elementFromPoint(...window.centre)) || (e.scrollIntoView({block: "center"}), false) })(`+element+`)`)
	at, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64]("window.centre"))
	if err != nil {
		t.Fatal(err)
	}
	return at[0], at[1]
}

// dragRow drags the handle of a row to another row, with a mouse or a finger.
func dragRow(t *testing.T, ctx context.Context, finger bool, name, to string) {
	t.Helper()
	press := func(mouse input.DispatchMouseEventType, touch input.DispatchTouchEventType, x, y float64) {
		t.Helper()
		event := chromedp.MouseEvent(mouse, x, y, func(p *input.DispatchMouseEventParams) { p.Button, p.Buttons, p.ClickCount = "left", 1, 1 })
		if finger {
			points := []*input.TouchPoint{{X: x, Y: y}}
			if touch == "touchEnd" {
				points = []*input.TouchPoint{}
			}
			event = chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: touch, TouchPoints: points})
				return err
			})
		}
		if err := chromedp.Do(ctx, event); err != nil {
			t.Fatal(err)
		}
	}
	x, y := centre(t, ctx, rowJS(name)+`?.querySelector(".handle")`)
	press("mousePressed", "touchStart", x, y)
	waitJS(t, ctx, name+" is held", rowJS(name)+`?.matches(".dragged")`)
	_, y = centre(t, ctx, rowJS(to))
	press("mouseMoved", "touchMove", x, y)
	waitJS(t, ctx, name+" would go to "+to, rowJS(to)+`?.matches(".above, .below")`)
	press("mouseReleased", "touchEnd", x, y)
}

// order waits for the names of the rows.
func order(t *testing.T, ctx context.Context, names ...string) {
	t.Helper()
	waitJS(t, ctx, "the order "+strings.Join(names, ", "), `[...document.querySelectorAll("main ol li b")].map(b => b.innerText).join() == `+jsString(strings.Join(names, ",")))
}

// TestPageMovesRows changes the order of the prompts of a preset and of regex scripts
// with a mouse, with the keyboard, and with a finger on a phone; on a phone the rows of a
// preset and of a world book have room for their names and large targets.
func TestPageMovesRows(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var preset, scripts, book struct{ ID string }
	api(t, p, http.MethodPost, "/presets", map[string]any{"name": "House style", "document": json.RawMessage(presetFile)}, &preset)
	api(t, p, http.MethodPost, "/regexscripts", map[string]any{"name": "Scripts", "document": json.RawMessage(scriptsFile)}, &scripts)
	api(t, p, http.MethodPost, "/worldbooks", map[string]any{"name": "Towns", "dialect": "sillytavern", "document": json.RawMessage(bookFile)}, &book)
	openPage(t, ctx, p)

	goTo(t, ctx, "/library/preset/"+preset.ID, `document.querySelectorAll("main ol li").length == 3`)
	order(t, ctx, "Main", "Extra", "The chat")
	dragRow(t, ctx, false, "Main", "The chat")
	order(t, ctx, "Extra", "The chat", "Main")
	waitJS(t, ctx, "it is told", `[...document.querySelectorAll("[role=status]")].some(s => s.innerText == "Main is now number 3")`)
	waitJS(t, ctx, "the keyboard is there", rowJS("Main")+`?.querySelector(".handle") == document.activeElement`)
	typeKeys(t, ctx, kb.ArrowUp)
	order(t, ctx, "Extra", "Main", "The chat")
	waitJS(t, ctx, "the keyboard follows", rowJS("Main")+`?.querySelector(".handle") == document.activeElement`)
	typeKeys(t, ctx, kb.End)
	order(t, ctx, "Extra", "The chat", "Main")
	waitJS(t, ctx, "the keyboard is at the end", rowJS("Main")+`?.querySelector(".handle") == document.activeElement`)
	typeKeys(t, ctx, kb.ArrowDown)
	saveInPage(t, ctx)
	stored := func() (names []string) {
		t.Helper()
		var got struct {
			Document struct {
				PromptOrder []struct{ Order []struct{ Identifier string } } `json:"prompt_order"`
			}
		}
		api(t, p, http.MethodGet, "/presets/"+preset.ID, nil, &got)
		for _, item := range got.Document.PromptOrder[1].Order {
			names = append(names, item.Identifier)
		}
		return names
	}
	if got, want := stored(), ([]string{"extra", "chatHistory", "main"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("stored() is %q, want %q", got, want)
	}

	goTo(t, ctx, "/library/regexscript/"+scripts.ID, `document.querySelectorAll("main ol li").length == 2`)
	dragRow(t, ctx, false, "Shout", "Stars")
	order(t, ctx, "Shout", "Stars")
	waitJS(t, ctx, "the keyboard is there", rowJS("Shout")+`?.querySelector(".handle") == document.activeElement`)
	typeKeys(t, ctx, kb.ArrowDown)
	order(t, ctx, "Stars", "Shout")
	click(t, ctx, `[aria-label="More: Shout"]`)
	clickText(t, ctx, "Move up")
	order(t, ctx, "Shout", "Stars")
	saveInPage(t, ctx)
	var got struct {
		Document []struct{ ScriptName string }
	}
	api(t, p, http.MethodGet, "/regexscripts/"+scripts.ID, nil, &got)
	if got.Document[0].ScriptName != "Shout" {
		t.Fatalf("got.Document[0].ScriptName is %q, want %q", got.Document[0].ScriptName, "Shout")
	}

	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)); err != nil {
		t.Fatal(err)
	}
	usable := func(rows string) {
		t.Helper()
		waitJS(t, ctx, "nothing is wider than the screen", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)
		waitJS(t, ctx, "large targets", `(s => s.length > 2 && s.every(e => (r => r.width >= 43.5 && r.height >= 43.5)(e.getBoundingClientRect())))([...document.querySelectorAll(`+
			jsString(rows+" button, "+rows+" label")+`)])`)
		waitJS(t, ctx, "room for names", `[...document.querySelectorAll(`+jsString(rows+" .name")+`)].every(e => e.getBoundingClientRect().width >= 150)`)
	}
	goTo(t, ctx, "/library/preset/"+preset.ID, `document.querySelectorAll("main ol li").length == 3`)
	usable("main ol li")
	dragRow(t, ctx, true, "Main", "Extra")
	order(t, ctx, "Main", "Extra", "The chat")
	saveInPage(t, ctx)
	if got, want := stored(), ([]string{"main", "extra", "chatHistory"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("stored() is %q, want %q", got, want)
	}
	goTo(t, ctx, "/library/worldbook/"+book.ID, `document.querySelector("main .item b")?.innerText == "Tower"`)
	usable("main .item")
	p.stop(t)
}

// download reads a file of the API.
func download(t *testing.T, p *process, path string) string {
	t.Helper()
	r, err := p.client.Send(t.Context(), http.MethodGet, "/api/v1"+path, nil, "*/*")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		t.Fatalf("r.StatusCode is %d, want %d", r.StatusCode, http.StatusOK)
	}
	return string(data)
}

// TestPageTakesAnyFile drops a file of each kind: the page says what it is, and leads to
// where it went. Of a file that it cannot take it says why.
func TestPageTakesAnyFile(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var alice, chat struct{ ID string }
	api(t, p, http.MethodPost, "/characters", map[string]any{"roleCard": json.RawMessage(aliceCard)}, &alice)
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": alice.ID}, &chat)
	png := download(t, p, "/characters/"+alice.ID+"/export?format=png&spec=v3")
	charx := download(t, p, "/characters/"+alice.ID+"/export?format=charx&spec=v3")
	backup := download(t, p, "/backup")
	openPage(t, ctx, p)

	note := func(text string) string {
		return `[...document.querySelectorAll(".notes > *")].find(n => n.innerText.includes(` + jsString(text) + `))`
	}
	take := func(file, content, says, address, shows string) {
		t.Helper()
		goTo(t, ctx, "/library/persona", `document.querySelector("main h1")?.innerText == "Library"`)
		dropFiles(t, ctx, file, content)
		waitJS(t, ctx, file+": what it is, and to it", `(b => b && (b.click(), true))([...`+note(says)+`?.querySelectorAll("button") ?? []].find(b => b.innerText == "Show"))`)
		// Remarks on a file open the list of files first.
		waitJS(t, ctx, file+": where it is", `([...document.querySelectorAll("dialog[open] a.button")].find(b => b.innerText == "Show")?.click(), true) && location.hash.startsWith(`+jsString("#"+address)+`) && `+shows)
	}
	heading := func(name string) string { return `document.querySelector("main h1")?.innerText == ` + jsString(name) }
	take("alice.png", png, "Character “Alice” was imported.", "/characters/", heading("Alice"))
	take("alice.charx", charx, "Character “Alice” was imported.", "/characters/", heading("Alice"))
	take("towns.json", bookFile, "World book “Towns” was imported.", "/library/worldbook/", heading("Towns"))
	take("style.json", presetFile, "Preset “style” was imported.", "/library/preset/", heading("style"))
	take("scripts.json", scriptsFile, "Regex scripts “scripts” was imported.", "/library/regexscript/", heading("scripts"))
	var list struct{ Items []struct{ ID string } }
	api(t, p, http.MethodGet, "/characters", nil, &list)
	if len(list.Items) != 3 {
		t.Fatalf("list.Items has %d, want %d: %+v", len(list.Items), 3, list.Items)
	}
	for _, c := range list.Items {
		if c.ID != alice.ID { // so that a log by her name is hers
			api(t, p, http.MethodDelete, "/characters/"+c.ID, nil, nil)
		}
	}
	log := strings.ReplaceAll(chatLogFile, "Nobody", "Alice")
	take("evening.jsonl", log, "Chat “", "/chats/", `document.querySelector("article.assistant .text")?.innerText.includes("From the log.")`)
	waitJS(t, ctx, "the narrator is nobody", `(a => a?.ariaLabel == "Narrator" && a.innerText.includes("It rains.") && !a.querySelector(".avatar"))(document.querySelector("article.narrator"))`)

	refuse := func(file, content, says string) {
		t.Helper()
		dropFiles(t, ctx, file, content)
		waitJS(t, ctx, file+": why it is not taken", note(file+" was not imported: "+says))
	}
	refuse("nodest-backup.zip", backup, "It is a backup of a server.")
	refuse("notes.txt", "Buy milk.", "It is none of the files that NodeST knows")
	refuse("nameless.json", `{"spec": "chara_card_v2", "data": {"description": "A guide."}}`, "A character needs a name.")
	refuse("half.json", aliceCard[:200], "invalid JSON")
	refuse("half.png", png[:len(png)/2], "the PNG file is truncated")
	var other bytes.Buffer
	z := zip.NewWriter(&other)
	_, err := z.Create("readme.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	refuse("other.charx", other.String(), "this zip is not a character")
	p.stop(t)
}

// TestPageTestsTexts tries a text on a world book and on regex scripts that are not
// saved: which entries fire and why, what of them does not count, what a text is before
// and after the scripts, and which pattern is none.
func TestPageTestsTexts(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	entry := func(name, key, content string, more map[string]any) map[string]any {
		e := map[string]any{"key": []string{key}, "keysecondary": []string{}, "comment": name, "content": content}
		for k, v := range more {
			e[k] = v
		}
		return e
	}
	var book, own, scripts struct{ ID string }
	api(t, p, http.MethodPost, "/worldbooks", map[string]any{"name": "Villages", "dialect": "nodest", "document": map[string]any{"entries": map[string]any{
		"0": entry("Perhaps", "harbour", "A ship at the tower.", map[string]any{"constant": false, "position": 4, "probability": 40, "useProbability": true}),
		"1": entry("Tower", "tower", "It is old.", map[string]any{"constant": false, "position": 4}),
	}}}, &own)
	api(t, p, http.MethodPost, "/worldbooks", map[string]any{"name": "Towns", "dialect": "sillytavern", "document": map[string]any{"entries": map[string]any{
		"0": entry("Harbour", "harbour", "The harbour is below the tower.", nil),
		"1": entry("Always", "nothing", "The sea.", map[string]any{"constant": true}),
		"2": entry("Perhaps", "harbour", "A ship.", map[string]any{"probability": 0, "useProbability": true}),
		"3": entry("Both", "harbour", "A storm.", map[string]any{"selective": true, "keysecondary": []string{"storm"}}),
		"4": entry("Tower", "tower", "It is old.", nil),
		"5": entry("Switched off", "harbour", "Gone.", map[string]any{"disable": true}),
		"6": entry("Hollow", "harbour", "", nil),
		"7": entry("Far away", "desert", "Sand.", nil),
	}}}, &book)
	api(t, p, http.MethodPost, "/regexscripts", map[string]any{"name": "Scripts", "document": json.RawMessage(scriptsFile)}, &scripts)
	openPage(t, ctx, p)

	goTo(t, ctx, "/library/worldbook/"+book.ID, `document.querySelectorAll("main .item").length > 3`)
	typeLabelled(t, ctx, "Sample text", "To the HARBOUR!")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "how many fire", `document.querySelector(".test [role=status]")?.innerText.startsWith("3 of 8 entries are in the prompt.")`)
	for name, why := range map[string]string{
		"Harbour":      "key “harbour”, in the newest message",
		"Always":       "always on",
		"Perhaps":      "not drawn · key “harbour” was found · drew",
		"Both":         "the secondary keys do not agree · key “harbour” was found · not found: “storm”",
		"Tower":        "key “tower”, in another entry · in pass 2",
		"Switched off": "switched off",
		"Hollow":       "it is empty · key “harbour” was found",
		"Far away":     "no key was found",
	} {
		waitJS(t, ctx, name+": "+why, `[...document.querySelectorAll(".test li")].some(li => li.querySelector("button").innerText == `+jsString(name)+` && li.innerText.includes(`+jsString(why)+`))`)
	}
	waitJS(t, ctx, "from a result to its entry", `(b => b && (b.click(), true))([...document.querySelectorAll(".test li button")].find(b => b.innerText == "Far away"))`)
	waitJS(t, ctx, "the entry", `document.querySelector("dialog[open] textarea")`)
	typeLabelled(t, ctx, "Keys", "harbour")
	clickText(t, ctx, "Done")
	waitJS(t, ctx, "the result is old", `document.querySelector(".test")?.innerText.includes("Changed since the last test.")`)
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "what is not saved counts", `document.querySelector(".test [role=status]")?.innerText.startsWith("4 of 8 entries are in the prompt.") && !document.querySelector(".test").innerText.includes("Changed since")`)
	saveInPage(t, ctx)

	goTo(t, ctx, "/library/worldbook/"+own.ID, `document.querySelectorAll("main .item").length == 2`)
	typeLabelled(t, ctx, "Sample text", "To the HARBOUR!")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "the other dialect: how many fire", `document.querySelector(".test [role=status]")?.innerText.startsWith("1 of 2 entries fire")`)
	waitJS(t, ctx, "which part of an entry does not count", `document.querySelector(".test li")?.innerText.includes("its probability of 40% does not count here")`)
	clickText(t, ctx, "1 does not fire")
	waitJS(t, ctx, "what would set it off elsewhere", `[...document.querySelectorAll(".test li")].some(li => li.innerText.includes("no key was found · “Perhaps” mentions one, but entries do not set off others here"))`)

	goTo(t, ctx, "/library/regexscript/"+scripts.ID, `document.querySelectorAll("main ol li").length == 2`)
	typeLabelled(t, ctx, "Sample text", "*waves* Hello!")
	clickText(t, ctx, "Test")
	shown := func(before, after string) {
		t.Helper()
		waitJS(t, ctx, "before and after", `[...document.querySelectorAll(".test pre")].map(e => e.textContent).join("|") == `+jsString(before+"|"+after))
	}
	shown("*waves* Hello!", "waves Hello!")
	waitJS(t, ctx, "opening a script", `(b => b && (b.click(), true))(`+rowJS("Stars")+`?.querySelector(".name"))`)
	waitJS(t, ctx, "its form", `document.querySelector("dialog[open] fieldset")`)
	typeLabelled(t, ctx, "Find", "/(unclosed/g")
	click(t, ctx, `dialog[open] [aria-label="Close"]`)
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "what is wrong with it", `[...document.querySelectorAll(".test li.error")].some(li => /^Stars: the pattern cannot be read \(.+\)$/.test(li.innerText))`)
	shown("*waves* Hello!", "*waves* Hello!")
	p.stop(t)
}

// TestPagePersonaAndNote makes a persona and an author's note of a character; a preview
// of the next request has both. It stores the preview as a file.
func TestPagePersonaAndNote(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var alice, chat struct{ ID string }
	api(t, p, http.MethodPost, "/characters", map[string]any{"roleCard": json.RawMessage(aliceCard)}, &alice)
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": alice.ID}, &chat)
	openPage(t, ctx, p)

	goTo(t, ctx, "/library/persona", `document.querySelector("main h1")?.innerText == "Library"`)
	clickText(t, ctx, "New persona")
	typeIn(t, ctx, "dialog[open] input", "Mia")
	click(t, ctx, "dialog[open] .primary")
	waitJS(t, ctx, "her editor", `document.querySelector("main h1")?.innerText == "Mia"`)
	typeLabelled(t, ctx, "Description", "{{user}} is a sailor from the coast.")
	waitJS(t, ctx, "for whom", `(b => b && !b.checked && (b.click(), true))(`+labelled("All characters")+`)`)
	if err := chromedp.Do(ctx, chromedp.SetUploadFiles(".portrait input[type=file]", []string{pictureFile(t, color.RGBA{0, 0, 255, 255})})); err != nil {
		t.Fatal(err)
	}
	showsPicture(t, ctx, ".portrait", "001")
	saveInPage(t, ctx)
	clickText(t, ctx, "Make it the default")
	waitJS(t, ctx, "it is", `document.querySelector("main")?.innerText.includes("You play this persona unless")`)

	goTo(t, ctx, "/characters/"+alice.ID+"/note", `document.querySelector("[data-path='authorNote.content']")`)
	typeLabelled(t, ctx, "Text of the note", "Speak of the tide.")
	typeLabelled(t, ctx, "Depth", "1")
	saveInPage(t, ctx)
	var stored struct {
		AuthorNote struct {
			Content string
			Depth   int `json:"injection_depth"`
		}
	}
	api(t, p, http.MethodGet, "/characters/"+alice.ID, nil, &stored)
	if stored.AuthorNote.Content != "Speak of the tide." {
		t.Fatalf("stored.AuthorNote.Content is %q, want %q", stored.AuthorNote.Content, "Speak of the tide.")
	}
	if stored.AuthorNote.Depth != 1 {
		t.Fatalf("stored.AuthorNote.Depth is %d, want %d", stored.AuthorNote.Depth, 1)
	}

	goTo(t, ctx, "/prompts/new/"+chat.ID, `document.querySelector("main form textarea")`)
	typeIn(t, ctx, "main form textarea", "Who am I?")
	clickText(t, ctx, "Preview")
	waitJS(t, ctx, "the persona", partJS("Mia is a sailor from the coast."))
	waitJS(t, ctx, "the note", partJS("Speak of the tide.")+`?.textContent.includes("Author")`)
	waitJS(t, ctx, "each part has the colour of its source in the bar", `[...new Set([...document.querySelectorAll(".part")].map(e => e.dataset.source))].every(s => `+
		`getComputedStyle(document.querySelector(".bar i[data-source=" + s + "]")).backgroundColor == getComputedStyle(document.querySelector(".part[data-source=" + s + "]")).borderInlineStartColor)`)
	waitJS(t, ctx, "the bar shares out the tokens", `(bar => bar && Math.abs([...bar.children].reduce((sum, i) => sum + i.getBoundingClientRect().width, 0) - bar.getBoundingClientRect().width) < 2 * bar.children.length)(document.querySelector(".bar"))`)

	dir := t.TempDir()
	if err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: dir})
		return err
	})); err != nil {
		t.Fatal(err)
	}
	click(t, ctx, `main header [aria-haspopup=menu]`)
	clickText(t, ctx, "Download")
	eventually(t, "the file", func() error {
		text, err := os.ReadFile(filepath.Join(dir, "prompt-preview.json"))
		if err != nil || !json.Valid(text) || !strings.Contains(string(text), "Speak of the tide.") {
			return errNotYet
		}
		return nil
	})

	goTo(t, ctx, "/chats/"+chat.ID, `document.querySelector("article")`)
	sendInPage(t, ctx, "It is me.")
	showsPicture(t, ctx, "article.user", "001")
	p.stop(t)
}

// TestPageTwoDevices edits one preset on two devices: the second to save is told, keeps
// what it typed, and takes over the rest.
func TestPageTwoDevices(t *testing.T) {
	ctx, phone := browser(t), anotherBrowser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var preset struct{ ID string }
	api(t, p, http.MethodPost, "/presets", map[string]any{"name": "House style", "document": json.RawMessage(presetFile)}, &preset)
	openPage(t, ctx, p)
	var made struct{ Link string }
	api(t, p, http.MethodPost, "/auth/links", map[string]any{}, &made)
	if err := chromedp.Do(phone, chromedp.Navigate(p.client.Base+"/signin#"+made.Link)); err != nil {
		t.Fatal(err)
	}
	for _, device := range []context.Context{ctx, phone} {
		waitJS(t, device, "signed in", `document.querySelector("main h1")`)
		goTo(t, device, "/library/preset/"+preset.ID, `document.querySelectorAll("main ol li").length == 3`)
	}

	typeLabelled(t, ctx, "Name", "Typed here")
	typeLabelled(t, ctx, "Temperature", "0.3")
	typeLabelled(t, phone, "Name", "Typed on the phone")
	typeLabelled(t, phone, "Top P", "0.5")
	saveInPage(t, phone)
	waitJS(t, ctx, "it is told", `document.querySelector(".banner[role=alert]")?.innerText.includes("changed on another device")`)
	waitJS(t, ctx, "where both changed", `document.querySelector(".banner[role=alert]")?.innerText.includes("Name")`)
	waitJS(t, ctx, "it cannot be overwritten", `[...document.querySelectorAll("button")].find(b => b.innerText == "Save").disabled`)
	waitJS(t, ctx, "what was typed is there", labelled("Name")+`.value == "Typed here" && `+labelled("Temperature")+`.value == "0.3"`)
	clickText(t, ctx, "Keep my text and take over their other changes")
	waitJS(t, ctx, "their other change", labelled("Top P")+`.value == "0.5"`)
	saveInPage(t, ctx)
	waitJS(t, phone, "the phone follows", labelled("Name")+`.value == "Typed here" && `+labelled("Temperature")+`.value == "0.3" && `+labelled("Top P")+`.value == "0.5"`)
	p.stop(t)
}
