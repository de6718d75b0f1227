package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nodest/internal/cli"
)

// listed are the titles of the chats in the list.
const listed = `[...document.querySelectorAll("aside [role=listitem] b")].map(e => e.innerText).join("|")`

// atMessage is whether a chat was opened at a message: that is in view and has the focus,
// and the address leads to it once.
func atMessage(chatID, text string) string {
	return `((a, s) => location.hash == ` + jsString("#/chats/"+chatID) + ` && a.matches("article") && a.querySelector(".text")?.innerText.includes(` + jsString(text) + `) &&
		a.getBoundingClientRect().bottom > s.getBoundingClientRect().top && a.getBoundingClientRect().top < s.getBoundingClientRect().bottom)(document.activeElement, document.querySelector(".scroller"))`
}

// hits is what a search finds in messages: the titles of their chats, and what is marked.
const hits = `[...document.querySelectorAll("aside section li")].map(e => e.querySelector("b").innerText + ": " + [...e.querySelectorAll("mark")].map(m => m.innerText).join()).join("|")`

// store stores a message of the user.
func (c *chatPage) store(chatID, text string) {
	c.t.Helper()
	api(c.t, c.p, http.MethodPost, "/conversations/"+chatID+"/messages", map[string]any{"text": text, "reply": false}, nil)
}

// choose opens the menu of an entry in a list and chooses from it; one of the view, if it
// has such an entry, and else of the chats beside it.
func (c *chatPage) choose(name, label string) {
	c.t.Helper()
	button := jsString(`[aria-label="More: ` + name + `"]`)
	c.see("the menu of "+name, `(b => b && (b.click(), true))(document.querySelector("main " + `+button+`) ?? document.querySelector(`+button+`))`)
	c.see("choosing "+label, `(b => b && (b.click(), true))([...document.querySelectorAll("[role=menuitem]")].find(b => b.innerText.trim() == `+jsString(label)+`))`)
}

// downloads lets the browser store what it downloads; the function that is returned
// waits for a file with such a name that has a text in it.
func (c *chatPage) downloads() func(name, has string) {
	c.t.Helper()
	dir := c.t.TempDir()
	_, err := chromedp.Call(c.ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir})
	if err != nil {
		c.t.Fatal(err)
	}
	return func(name, has string) {
		c.t.Helper()
		eventually(c.t, name+" is downloaded", func() error {
			found, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil || len(found) == 0 {
				return fmt.Errorf("no %s: %w", name, err)
			}
			data, err := os.ReadFile(found[0])
			if err == nil && !bytes.Contains(data, []byte(has)) {
				return fmt.Errorf("%d bytes without %s", len(data), has)
			}
			return err
		})
	}
}

// chatWith stores a character with a chat that has a title.
func chatWith(t *testing.T, p *process, character, title string, tags ...string) (characterID, chatID string) {
	t.Helper()
	var ch, conv cli.Item
	api(t, p, http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": character, "first_mes": "I am " + character + ".", "tags": tags}}, &ch)
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": ch.ID, "title": title}, &conv)
	return ch.ID, conv.ID
}

// TestPageChatList searches, renames, tags, archives, exports and deletes chats, and
// takes back what can be taken back.
func TestPageChatList(t *testing.T) {
	c := newChatPage(t)
	_, harbour := chatWith(t, c.p, "Wren", "The harbour")
	_, tower := chatWith(t, c.p, "Mira", "The tower")
	_, road := chatWith(t, c.p, "Tom", "")
	openPage(t, c.ctx, c.p)
	c.see("the newest is first", listed+` == "Tom|The tower|The harbour"`)
	c.see("faces", `document.querySelectorAll("aside [role=listitem] .avatar").length == 3`)

	typeIn(t, c.ctx, `aside [type=search]`, "mira")
	c.see("found by the character", listed+` == "The tower"`)
	typeIn(t, c.ctx, `aside [type=search]`, "harb")
	c.see("found by the title", listed+` == "The harbour"`)
	typeIn(t, c.ctx, `aside [type=search]`, "nowhere")
	c.see("not found", `document.querySelector("aside").innerText.includes("Nothing found.")`)
	c.findWhatWasSaid(harbour, tower)
	typeIn(t, c.ctx, `aside [type=search]`, "")
	c.see("all", listed+`.split("|").length == 3`)

	c.choose("Tom", "Rename")
	c.fill("dialog[open] input", "The long road"+kb.Enter)
	c.see("renamed", listed+`.includes("The long road")`)

	goTo(t, c.ctx, "/chats/"+harbour, shownAs("I am Wren."))
	click(t, c.ctx, `main header [aria-haspopup=menu]`)
	c.press("Chat settings")
	typeLabelled(t, c.ctx, "Tags", "sea, cold")
	c.press("Save")
	c.see("the tags", `[...document.querySelectorAll("aside .tags button")].map(b => b.innerText).join() == "cold,sea"`)
	c.press("sea")
	c.see("only those with it", listed+` == "The harbour"`)
	c.press("sea")
	c.see("all", listed+`.split("|").length == 3`)
	click(t, c.ctx, `main header [aria-haspopup=menu]`)
	c.press("Archive")
	c.see("archived where it is open", `!`+listed+`.includes("The harbour") && !location.hash.includes(`+jsString(harbour)+`)`)
	c.press("Undo")
	c.see("taken back", listed+`.includes("The harbour")`)

	c.choose("The tower", "Archive")
	c.see("archived", `!`+listed+`.includes("The tower")`)
	c.press("Undo")
	c.see("taken back", listed+`.includes("The tower")`)
	c.choose("The tower", "Archive")
	c.press("Show the archive")
	c.see("the archive", listed+` == "The tower"`)
	c.choose("The tower", "Restore from archive")
	c.press("Back to the chats")
	c.see("taken out", listed+`.includes("The tower")`)

	download := c.downloads()
	c.choose("The harbour", "Export as chat log (JSONL)")
	download("*.jsonl", "I am Wren.")
	c.choose("The harbour", "Export with all branches (JSON)")
	download("*.json", "I am Wren.")

	// A deleted chat is hidden, and is there again when that is taken back.
	remove := func(title string) {
		t.Helper()
		c.choose(title, "Delete")
		c.see("the question", `document.querySelector("dialog[open]")?.innerText.includes("Delete this chat?")`)
		click(t, c.ctx, "dialog[open] .danger")
		c.see("hidden", `!`+listed+`.includes(`+jsString(title)+`)`)
	}
	remove("The harbour")
	c.see("another is shown", `!location.hash.includes(`+jsString(harbour)+`)`)
	c.press("Undo")
	c.see("taken back", listed+`.includes("The harbour")`)
	api(t, c.p, http.MethodGet, "/conversations/"+harbour, nil, nil)
	// Leaving the page ends the time for undo.
	remove("The long road")
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	c.see("without it", listed+`.includes("The tower") && !`+listed+`.includes("The long road")`)
	eventually(t, "deleted", func() error {
		if err := c.p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+road, nil, nil); err == nil {
			return fmt.Errorf("the chat is still there")
		}
		return nil
	})
	api(t, c.p, http.MethodGet, "/conversations/"+tower, nil, nil)
	// One that another device deletes while it is open.
	c.see("a chat", `(location.hash = "#/chats/`+harbour+`", document.querySelector("main h1")?.innerText == "The harbour")`)
	api(t, c.p, http.MethodDelete, "/conversations/"+harbour, nil, nil)
	c.see("the user is told", `document.querySelector(".notes .bad")`)
	c.p.stop(t)
}

// findWhatWasSaid searches the messages of all chats.
func (c *chatPage) findWhatWasSaid(chatID, archivedID string) {
	c.t.Helper()
	search := func(text string) { c.t.Helper(); typeIn(c.t, c.ctx, `aside [type=search]`, text) }
	for _, text := range []string{"我喜欢绿茶，还有咖啡。", "The *Lanterns* are lit.", "Good night."} {
		c.store(chatID, text)
	}
	c.store(archivedID, "She put out the lanterns.")
	api(c.t, c.p, http.MethodPatch, "/conversations/"+archivedID, map[string]any{"archived": true}, nil)

	search("lanterns")
	c.see("found in both chats, the newest first", hits+` == "The tower: lanterns|The harbour: Lanterns"`)
	c.see("who said it, and where", `(t => t[0].includes("archived") && t.every(e => e.includes("User: ")) && t[1].includes("The Lanterns are lit.") && t[1].includes("Wren"))([...document.querySelectorAll("aside section li")].map(e => e.innerText))`)
	c.see("how many, for those who do not see them", `document.querySelector("aside [role=status]").innerText == "2 messages found."`)
	click(c.t, c.ctx, `aside section li a`)
	c.see("an archived chat is opened at it", atMessage(archivedID, "She put out the lanterns."))
	search("绿茶")
	c.see("two Chinese characters", hits+` == "The harbour: 绿茶"`)
	click(c.t, c.ctx, `aside section li a`)
	c.see("the message", atMessage(chatID, "我喜欢绿茶"))
	search(`"are lit"`)
	c.see("a phrase", hits+` == "The harbour: are lit"`)
	search(`""`)
	c.see("no words", `!document.querySelector("aside section")`)

	// An answer that comes late is not shown, and a failed search shows nothing that is old.
	c.see("the first answer is held", `(window.asks = window.fetch, window.fetch = (url, init) => {
		const q = new URL(url, location).searchParams.get("q")
		if (!String(url).includes("/messages/search")) return window.asks(url, init)
		if (q == "night") return new Promise(go => window.release = go).then(() => window.asks(url, init)).then(async answer => {
			const text = await answer.text()
			setTimeout(() => requestAnimationFrame(() => window.arrived = true))
			return new Response(text)
		})
		if (q == "lost") return Promise.resolve(new Response(JSON.stringify({code: "rate_limited", detail: "Too many searches.", retry: "later"}), {status: 429}))
		return window.asks(url, init)
	}, true)`)
	search("night")
	c.see("asked", `window.release && document.querySelector("aside [role=status]").innerText == "Searching…"`)
	search("lit")
	c.see("the later answer", hits+` == "The harbour: lit"`)
	c.see("the earlier answer arrives", `(window.release(), window.arrived)`)
	c.see("it is not shown", hits+` == "The harbour: lit"`)
	search("lost")
	c.see("what went wrong, and no hits", `document.querySelector(".notes .bad")?.innerText.includes("Too many searches.") && !document.querySelector("aside section li")`)
	click(c.t, c.ctx, ".notes .bad button")
	c.see("dismissed", `(window.fetch = window.asks, !document.querySelector(".notes .bad"))`)
	api(c.t, c.p, http.MethodPatch, "/conversations/"+archivedID, map[string]any{"archived": false}, nil)
}

// TestPageCharacterList gives a character a picture, and searches, filters, duplicates,
// renames, exports, archives and deletes characters.
func TestPageCharacterList(t *testing.T) {
	c := newChatPage(t)
	wren, chat := chatWith(t, c.p, "Wren", "", "sea")
	chatWith(t, c.p, "Mira", "", "sea", "light")
	chatWith(t, c.p, "Tom", "", "road")
	openPage(t, c.ctx, c.p)
	const tiles = `[...document.querySelectorAll(".tile b")].map(e => e.innerText).sort().join()`
	goTo(t, c.ctx, "/characters", tiles+` == "Mira,Tom,Wren"`)
	typeIn(t, c.ctx, `main [type=search]`, "MIR")
	c.see("found by name", tiles+` == "Mira"`)
	typeIn(t, c.ctx, `main [type=search]`, "")
	c.press("sea")
	c.see("those with the tag", tiles+` == "Mira,Wren"`)
	c.press("sea")

	goTo(t, c.ctx, "/characters/"+wren, `document.querySelector(".portrait")`)
	if err := chromedp.Do(c.ctx, chromedp.SetUploadFiles(".portrait input[type=file]", []string{pictureFile(t, color.RGBA{255, 0, 0, 255})})); err != nil {
		t.Fatal(err)
	}
	showsPicture(t, c.ctx, ".portrait", "100")
	if err := chromedp.Do(c.ctx, chromedp.SetUploadFiles(".portrait input[type=file]", []string{pictureFile(t, color.RGBA{0, 0, 255, 255})})); err != nil {
		t.Fatal(err)
	}
	showsPicture(t, c.ctx, ".portrait", "001")
	showsPicture(t, c.ctx, "aside a[href*='"+chat+"']", "001")
	goTo(t, c.ctx, "/chats/"+chat, shownAs("I am Wren."))
	showsPicture(t, c.ctx, "article", "001")
	c.see("the name and the time", `(h => h.querySelector("b").innerText == "Wren" && /\d/.test(h.querySelector("time").innerText) && !isNaN(Date.parse(h.querySelector("time").dateTime)))(document.querySelector("article header"))`)

	goTo(t, c.ctx, "/characters", tiles+` == "Mira,Tom,Wren"`)
	download := c.downloads()
	c.choose("Wren", "Export as PNG (V3)")
	download("*.png", "\x89PNG")
	c.choose("Wren", "Duplicate")
	c.see("the copy", `document.querySelectorAll(".tile").length == 4`)
	c.choose("Wren (copy)", "Rename")
	c.fill("dialog[open] input", "Jay"+kb.Enter)
	c.see("renamed", tiles+` == "Jay,Mira,Tom,Wren"`)

	c.choose("Wren", "Archive")
	c.see("archived, and its chat is still there", tiles+` == "Jay,Mira,Tom" && document.querySelector("aside a[href*='`+chat+`']")`)
	c.press("Undo")
	c.see("taken back", tiles+` == "Jay,Mira,Tom,Wren"`)
	c.choose("Wren", "Archive")
	c.see("archived", tiles+` == "Jay,Mira,Tom"`)
	c.press("New chat")
	c.see("nobody to chat with", `(d => d?.innerText.includes("Mira") && !d.innerText.includes("Wren"))(document.querySelector("dialog[open]"))`)
	click(t, c.ctx, `dialog[open] [aria-label="Close"]`)
	c.press("Show archived characters")
	c.see("the archive", tiles+` == "Wren" && document.querySelector("main h1").innerText == "Archived characters"`)
	c.choose("Wren", "Restore from archive")
	c.see("nothing left", `document.querySelector("main").innerText.includes("No archived characters.")`)
	c.press("Back to the characters")
	c.see("taken out", tiles+` == "Jay,Mira,Tom,Wren"`)
	// Another device archives one that is being edited.
	hint := func(shown bool) string {
		return fmt.Sprintf(`document.querySelector("main").innerText.includes("This character is archived") == %t && !document.querySelector(".banner")`, shown)
	}
	goTo(t, c.ctx, "/characters/"+wren, `document.querySelector("[data-path=description]")`)
	typeIn(t, c.ctx, "[data-path=description]", "Typed meanwhile.")
	api(t, c.p, http.MethodPatch, "/characters/"+wren, map[string]any{"archived": true}, nil)
	c.see("it is archived", hint(true))
	c.press("Restore from archive")
	c.see("it is not", hint(false))
	saveInPage(t, c.ctx)
	var saved struct {
		Archived bool
		RoleCard struct{ Description string }
	}
	api(t, c.p, http.MethodGet, "/characters/"+wren, nil, &saved)
	if saved.RoleCard.Description != "Typed meanwhile." {
		t.Fatalf("saved.RoleCard.Description is %q, want %q", saved.RoleCard.Description, "Typed meanwhile.")
	}
	if saved.Archived {
		t.Fatal("saved.Archived is true, want false")
	}
	goTo(t, c.ctx, "/characters", tiles+` == "Jay,Mira,Tom,Wren"`)

	c.choose("Wren", "Delete")
	c.see("the question", `document.querySelector("dialog[open]")?.innerText.includes("All chats with this character")`)
	click(t, c.ctx, "dialog[open] .danger")
	c.see("hidden with its chat", `!`+tiles+`.split(",").includes("Wren") && !document.querySelector("aside a[href*='`+chat+`']")`)
	c.press("Undo")
	c.see("both are back", tiles+`.split(",").includes("Wren") && document.querySelector("aside a[href*='`+chat+`']")`)
	api(t, c.p, http.MethodGet, "/characters/"+wren, nil, nil)
	c.p.stop(t)
}

// TestPageThousands: 1,200 characters and as many chats are listed, searched and scrolled
// quickly, and all of them can be found.
func TestPageThousands(t *testing.T) {
	const n = 1200
	c := newChatPage(t)
	const writers = 8
	var failed [writers]error
	var create sync.WaitGroup
	for w := range writers {
		create.Go(func() {
			for i := w; i < n && failed[w] == nil; i += writers {
				failed[w] = storeChat(t, c.p.client, i)
			}
		})
	}
	create.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	openPage(t, c.ctx, c.p)
	c.see("the chats", `document.querySelector("aside [role=listitem]")`)

	search := func(where, text string) string {
		return `{ const f = document.querySelector("` + where + ` [type=search]"); f.value = "` + text + `"; f.dispatchEvent(new Event("input", {bubbles: true})) }`
	}
	tiles := `[...document.querySelectorAll(".tile b")]`
	titles := `[...document.querySelectorAll("aside [role=listitem] b")]`
	c.took("opening the list of 1,200 characters", `location.hash = "#/characters"`, tiles+`.length > 10`)
	c.took("finding one of 1,200 characters", search("main", "number 7 of"), tiles+`.length == 1 && `+tiles+`[0].innerText == "Number 7 of many"`)
	c.took("showing all again", search("main", ""), tiles+`.length > 10`)
	c.took("filtering them by a tag", `[...document.querySelectorAll("main .tags button")].find(b => b.innerText == "odd").click()`, `document.querySelector("main .tags [aria-pressed=true]") && `+tiles+`.length > 10 && `+tiles+`.every(e => Number(e.innerText.split(" ")[1]) % 2)`)
	c.took("finding the oldest of 1,200 chats", search("aside", "chat 3 of"), titles+`.length == 1 && `+titles+`[0].innerText == "Chat 3 of many"`)
	c.took("showing all chats again", search("aside", ""), titles+`.length > 5`)
	c.took("scrolling to the oldest chat", `const end = setInterval(() => { const list = document.querySelector("aside .list"); list.scrollTop = list.scrollHeight }, 16)`,
		titles+`.some(e => e.innerText == "Chat 0 of many") && (clearInterval(end), true)`)
	c.see("few are drawn", `document.querySelectorAll("aside [role=listitem]").length < 60`)
	c.p.stop(t)
}

// pictureFile writes a picture of one colour.
func pictureFile(t *testing.T, of color.Color) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 300, 300))
	for i := range 300 * 300 {
		img.Set(i%300, i/300, of)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "face.png")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// showsPicture waits until the middle of a face has a colour, such as "100" for red.
func showsPicture(t *testing.T, ctx context.Context, where, colour string) {
	t.Helper()
	waitJS(t, ctx, where+" in "+colour, `(i => {
		if (!i?.complete || !i.naturalWidth) return false
		const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d")
		canvas.drawImage(i, i.naturalWidth / 2, i.naturalHeight / 2, 1, 1, 0, 0, 1, 1)
		return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)].map(v => v > 127 ? 1 : 0).join("") == `+jsString(colour)+`
	})(document.querySelector(`+jsString(where+" .avatar img")+`))`)
}

// storeChat stores a character and a chat with it.
func storeChat(t *testing.T, p *cli.Client, i int) error {
	var ch cli.Item
	card := map[string]any{"name": fmt.Sprintf("Number %d of many", i), "first_mes": strings.Repeat("Hello. ", 20), "tags": []string{[]string{"even", "odd"}[i%2]}}
	if err := p.Call(t.Context(), http.MethodPost, "/api/v1/characters", map[string]any{"roleCard": card}, &ch); err != nil {
		return err
	}
	return p.Call(t.Context(), http.MethodPost, "/api/v1/conversations", map[string]any{"characterId": ch.ID, "title": fmt.Sprintf("Chat %d of many", i)}, nil)
}
