package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// memoryPage is a browser that is signed in, and a chat with the sample character.
type memoryPage struct {
	t         *testing.T
	ctx       context.Context
	p         *process
	character string
	chat      string
}

func openMemoryPage(t *testing.T, said ...string) *memoryPage {
	t.Helper()
	m := &memoryPage{t: t, ctx: browser(t), p: newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)}
	var made struct{ Character struct{ ID string } }
	m.call(http.MethodPost, "/characters/sample", nil, &made)
	m.character = made.Character.ID
	m.chat = m.newChat("The ferry")
	m.say(m.chat, said...)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(m.p.client.Base+"/signin#"+m.p.link)); err != nil {
		t.Fatal(err)
	}
	m.see("the newest chat, which the page goes to by itself", `document.querySelector("nav [href='#/memory']") && location.hash == `+jsString("#/chats/"+m.chat)+` && document.querySelector("article")`)
	return m
}

func (m *memoryPage) call(method, path string, body, out any) {
	m.t.Helper()
	if err := m.p.client.Call(m.t.Context(), method, "/api/v1"+path, body, out); err != nil {
		m.t.Fatal(err)
	}
}

func (m *memoryPage) newChat(title string) string {
	m.t.Helper()
	var chat struct{ ID string }
	m.call(http.MethodPost, "/conversations", map[string]any{"characterId": m.character, "title": title}, &chat)
	return chat.ID
}

func (m *memoryPage) say(chat string, said ...string) {
	m.t.Helper()
	for _, text := range said {
		m.call(http.MethodPost, "/conversations/"+chat+"/messages", map[string]any{"text": text}, nil)
	}
}

func (m *memoryPage) add(fact map[string]any) string {
	m.t.Helper()
	var added struct{ ID string }
	m.call(http.MethodPost, "/characters/"+m.character+"/memories", fact, &added)
	return added.ID
}

func (m *memoryPage) see(what, js string) {
	m.t.Helper()
	waitJS(m.t, m.ctx, what, js)
}

// open shows a part of the memory by its link, as a click on it does.
func (m *memoryPage) open(part string) {
	m.t.Helper()
	m.see("the part "+part, `(location.hash = `+jsString("#/memory/"+m.character+part)+`, true)`)
	m.see("the part", `document.querySelector("main nav [aria-current]")?.getAttribute("href") == location.hash`)
}

// press clicks the first visible button, link or menu item with a label.
func (m *memoryPage) press(label string) {
	m.t.Helper()
	m.see("pressing "+label, `(b => b && !b.disabled && (b.click(), true))([...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("button, a, [role=menuitem]")]`+
		`.find(b => [b.innerText.trim(), b.getAttribute("aria-label")].includes(`+jsString(label)+`)))`)
}

// choose opens the menu of a fact and takes an item.
func (m *memoryPage) choose(fact, item string) {
	m.t.Helper()
	m.press("More: " + fact)
	m.press(item)
}

func (m *memoryPage) fill(selector, text string) {
	m.t.Helper()
	if err := chromedp.Do(m.ctx, chromedp.WaitVisible(selector), chromedp.SendKeys(selector, text)); err != nil {
		m.t.Fatal(err)
	}
}

// set chooses a value of a field, found by its label.
func (m *memoryPage) set(label, value string) {
	m.t.Helper()
	m.see("setting "+label, `(e => e && [...(e.options ?? [])].every(o => o) && (e.value = `+jsString(value)+`, e.dispatchEvent(new Event("input", {bubbles: true})), e.dispatchEvent(new Event("change", {bubbles: true})), true))`+
		`([...document.querySelectorAll("label")].filter(l => l.innerText.trim().startsWith(`+jsString(label)+`)).at(-1)?.querySelector("input, select, textarea"))`)
}

// listed waits until exactly these facts are in the list, in any order.
func (m *memoryPage) listed(what string, facts ...string) {
	m.t.Helper()
	list := ""
	for _, f := range facts {
		list += jsString(f) + ","
	}
	m.see(what, `(shown => shown.length == [`+list+`].length && [`+list+`].every(f => shown.includes(f)))([...document.querySelectorAll(".fact .text")].map(f => f.innerText))`)
}

// TestPageMemoryFacts adds a fact as a person would, edits, pins, locks, archives and
// restores it, sees its versions and deletes it; a fact of another device appears by itself.
func TestPageMemoryFacts(t *testing.T) {
	m := openMemoryPage(t)
	m.see("the newest chat", `location.hash.startsWith("#/chats/")`)
	click(t, m.ctx, "nav [href='#/memory']")
	m.see("the characters", `location.hash == "#/memory" && document.querySelector("main [role=listitem] a[href^='#/memory/']")`)
	click(t, m.ctx, "main [role=listitem] a[href^='#/memory/']")
	m.see("no facts", `document.querySelector("main").innerText.includes("No memories yet")`)

	m.press("Add a memory")
	m.fill("dialog textarea", "Ana is allergic to peanuts.")
	m.set("Kind", "profile")
	m.set("Date", "2026-03-04")
	m.press("Save")
	m.listed("the new fact", "Ana is allergic to peanuts.")
	m.see("what it is and where it is from", `(f => f.includes("Profile") && f.includes("March") && f.includes("written by you"))(document.querySelector(".fact").innerText)`)

	m.add(map[string]any{"text": "Rex is a dog.", "kind": "relation", "subject": "world"})
	m.listed("a fact of another device", "Ana is allergic to peanuts.", "Rex is a dog.")

	m.choose("Ana is allergic to peanuts.", "Pin")
	m.see("it is pinned", `document.querySelectorAll(".fact.pinned").length == 1`)
	m.choose("Ana is allergic to peanuts.", "Edit")
	m.fill("dialog textarea", " And to almonds.")
	m.press("Save")
	const fact = "Ana is allergic to peanuts. And to almonds."
	m.listed("the new text", fact, "Rex is a dog.")
	m.see("still pinned", `document.querySelector(".fact.pinned .text").innerText == `+jsString(fact))

	m.press(fact)
	m.see("its versions", `[...document.querySelectorAll("dialog .versions li")].length == 2 && document.querySelector("dialog .versions .old").innerText == "Ana is allergic to peanuts."`)
	m.press("Restore this version: Ana is allergic to peanuts.")
	m.see("the old text counts again, as a third version", `document.querySelectorAll("dialog .versions li").length == 3 && document.querySelector("dialog .text").innerText == "Ana is allergic to peanuts."`)
	m.press("Unlock")
	m.see("unlocked", `[...document.querySelectorAll("dialog button")].some(b => b.innerText == "Lock")`)
	m.press("Close")

	m.choose("Ana is allergic to peanuts.", "Archive")
	m.listed("archived", "Rex is a dog.")
	m.press("Undo")
	m.listed("undone", "Ana is allergic to peanuts.", "Rex is a dog.")
	m.choose("Ana is allergic to peanuts.", "Archive")
	m.press("Filter")
	m.set("Status", "retired")
	m.listed("among the archived", "Ana is allergic to peanuts.")
	m.choose("Ana is allergic to peanuts.", "Restore")
	m.see("no archived facts", `document.querySelector("main").innerText.includes("No archived memories.")`)
	m.set("Status", "active")
	m.listed("restored", "Ana is allergic to peanuts.", "Rex is a dog.")
	m.set("Kind", "relation")
	m.listed("one kind", "Rex is a dog.")
	m.set("Kind", "")
	m.set("About", "user")
	m.listed("one subject", "Ana is allergic to peanuts.")
	m.set("About", "")
	m.set("Pinned", "false")
	m.listed("what is not pinned", "Rex is a dog.")
	m.set("Pinned", "")

	m.choose("Rex is a dog.", "Delete permanently")
	m.see("a question", `document.querySelector("dialog[open]")?.innerText.includes("cannot be undone")`)
	m.press("Delete permanently")
	m.listed("deleted", "Ana is allergic to peanuts.")
	m.p.stop(t)
}

// TestPageMemoryManyFacts selects facts, sees how many would change, archives them and
// takes it back; then all facts of a filter at once.
func TestPageMemoryManyFacts(t *testing.T) {
	m := openMemoryPage(t)
	for _, text := range []string{"Ana keeps bees.", "Ana lives in Lisbon.", "Rex is a dog."} {
		m.add(map[string]any{"text": text, "pinned": text == "Rex is a dog."})
	}
	m.open("")
	m.listed("all of them", "Ana keeps bees.", "Ana lives in Lisbon.", "Rex is a dog.")
	m.press("Select")
	click(t, m.ctx, `[aria-label="Select: Ana keeps bees."]`)
	click(t, m.ctx, `[aria-label="Select: Rex is a dog."]`)
	m.see("how many", `document.querySelector("[role=toolbar]").innerText.includes("2 selected")`)
	m.press("Pin")
	m.see("what would change", `document.querySelector("dialog[open]")?.innerText.includes("1 of 2 memories will change")`)
	m.press("Cancel")
	m.see("no question any more", `!document.querySelector("dialog[open]")`)
	m.press("Archive")
	m.see("what would be archived", `document.querySelector("dialog[open]")?.innerText.includes("2 memories will change")`)
	m.press("Archive")
	m.listed("archived", "Ana lives in Lisbon.")
	m.press("Undo")
	m.listed("undone", "Ana keeps bees.", "Ana lives in Lisbon.", "Rex is a dog.")

	m.press("Filter")
	m.set("Pinned", "false")
	m.listed("the filter", "Ana keeps bees.", "Ana lives in Lisbon.")
	m.press("Select")
	m.press("Select all")
	m.press("More for the selected memories")
	m.press("Delete permanently")
	m.see("that it is for good", `(d => d?.includes("2 memories will change") && d.includes("cannot be undone"))(document.querySelector("dialog[open]")?.innerText)`)
	m.press("Delete permanently")
	m.listed("nothing matches")
	m.set("Pinned", "")
	m.listed("the rest", "Rex is a dog.")
	m.p.stop(t)
}

// TestPageMemorySearch finds what was said and reads why, opens the source in its chat,
// and sees what was recalled for a reply of another chat, with the way to the fact.
func TestPageMemorySearch(t *testing.T) {
	m := openMemoryPage(t, "My sister Ana keeps bees in Lisbon.", "I am allergic to peanuts.", "The river is high.", "It rains.", "The baker wants forty jars.")
	m.add(map[string]any{"text": "Ana's favourite tea is Darjeeling.", "kind": "preference"})
	m.open("")
	m.fill(`[aria-label="Search memories and messages"]`, "who keeps bees?\r")
	m.see("the message is found", `[...document.querySelectorAll(".found li .text")].some(f => f.innerText == "My sister Ana keeps bees in Lisbon.")`)
	const result = `[...document.querySelectorAll(".found li")].find(l => l.querySelector(".text").innerText == "My sister Ana keeps bees in Lisbon.")`
	m.see("why, in words", `(w => w.includes("bees") && w.includes("keeps") && w.startsWith("It matches the words"))(`+result+`.querySelector(".why").innerText)`)
	m.see("the parts of its score", `/^Score \d+.*words and context \d+/.test(`+result+`.querySelector(".bar").getAttribute("aria-label"))`)
	m.see("opening the source", `(l => l && (l.click(), true))([...`+result+`.querySelectorAll("a")].find(a => a.innerText == "Open in the chat"))`)
	m.see("the message in its chat", atMessage(m.chat, "My sister Ana keeps bees in Lisbon."))

	m.open("")
	m.fill(`[aria-label="Search memories and messages"]`, "zebra\r")
	m.see("nothing is found", `document.querySelector("main").innerText.includes("Nothing found.")`)
	m.press("Show all memories")
	m.see("all again", `[...document.querySelectorAll(".fact .text")].some(f => f.innerText == "Ana's favourite tea is Darjeeling.")`)

	other := m.newChat("The morning after")
	m.say(other, "What is Ana's favourite tea?")
	m.see("the other chat", `(location.hash = "#/chats/`+other+`", true)`)
	m.see("what was recalled", `(b => b && (b.click(), true))([...document.querySelectorAll("article button")].find(b => /^\d+ recalled$/.test(b.innerText)))`)
	const recalled = `[...document.querySelectorAll("dialog[open] li")].find(l => l.querySelector(".text").innerText == "Ana's favourite tea is Darjeeling.")`
	m.see("the fact and the reason", `(l => l && l.querySelector(".why").innerText.includes("favourite"))(`+recalled+`)`)
	m.see("opening the fact", `(l => l && (l.click(), true))([...`+recalled+`.querySelectorAll("a")].find(a => a.innerText == "Open the memory"))`)
	m.see("the fact in the memory", `location.hash.startsWith("#/memory/") && document.querySelector("dialog[open] .text")?.innerText == "Ana's favourite tea is Darjeeling."`)
	m.p.stop(t)
}

// TestPageMemoryForgets previews what would go, keeps one of it, and removes the rest;
// then everything.
func TestPageMemoryForgets(t *testing.T) {
	m := openMemoryPage(t, "The river is high.")
	for _, text := range []string{"Ana is allergic to peanuts.", "Peanuts grow in the garden.", "Rex is a dog."} {
		m.add(map[string]any{"text": text})
	}
	m.open("")
	m.listed("all of them", "Ana is allergic to peanuts.", "Peanuts grow in the garden.", "Rex is a dog.")
	m.press("More")
	m.press("Forget everything about…")
	m.fill("dialog input", "peanuts")
	m.press("Preview")
	m.see("what would go", `(d => d?.includes("2 memories, with all their versions") && d.includes("Ana is allergic to peanuts.") && !d.includes("Rex"))(document.querySelector("dialog[open] .leaving")?.innerText)`)
	m.see("keeping one", `(l => l && (l.querySelector("input").click(), true))([...document.querySelectorAll("dialog[open] li label")].find(l => l.innerText.includes("garden")))`)
	m.press("Delete 1 permanently")
	m.listed("it is gone", "Peanuts grow in the garden.", "Rex is a dog.")

	m.press("More")
	m.press("Forget everything about…")
	m.press("Forget everything…")
	m.see("a question", `[...document.querySelectorAll("dialog[open]")].at(-1)?.innerText.includes("will forget everything: all memories")`)
	m.press("Forget everything")
	m.see("all of it is gone", `document.querySelector("main").innerText.includes("No memories yet")`)
	m.p.stop(t)
}

// TestPageMemoryEditMeetsAnotherDevice: a text of another device is not overwritten
// unseen, not even one that comes while the user decides. What was typed stays.
func TestPageMemoryEditMeetsAnotherDevice(t *testing.T) {
	m := openMemoryPage(t)
	id := m.add(map[string]any{"text": "Ana keeps bees.", "kind": "profile"})
	m.open("")
	m.listed("the fact", "Ana keeps bees.")
	elsewhere := func(text string) {
		m.call(http.MethodPatch, "/characters/"+m.character+"/memories/"+id, map[string]any{"text": text}, nil)
	}
	m.choose("Ana keeps bees.", "Edit")
	m.fill("dialog textarea", " And hens.")
	elsewhere("Ana keeps goats.")
	m.press("Save")
	m.see("what it became", `document.querySelector("dialog [role=alert]")?.innerText.includes("Ana keeps goats.")`)
	elsewhere("Ana keeps cats.")
	m.press("Save my text anyway")
	m.see("what it became meanwhile", `document.querySelector("dialog [role=alert]")?.innerText.includes("Ana keeps cats.") && document.querySelector("dialog textarea").value == "Ana keeps bees. And hens."`)
	m.press("Save my text anyway")
	m.listed("the text of the user", "Ana keeps bees. And hens.")
	m.p.stop(t)
}

// TestPageMemoryTimeline shows what a correction in the chat replaced, and leads to its
// source.
func TestPageMemoryTimeline(t *testing.T) {
	m := openMemoryPage(t, "I live in Oslo.", "I love sushi.", "It rains.")
	extract := func() { m.call(http.MethodPost, "/conversations/"+m.chat+"/memory/extract", map[string]any{}, nil) }
	extract()
	m.open("/timeline")
	m.see("what was learned", `[...document.querySelectorAll(".happening.learned .text a")].some(a => a.innerText == "User lives in Oslo")`)
	m.say(m.chat, "I moved to Lisbon.", "The river is high.")
	extract()
	const changed = `[...document.querySelectorAll(".happening.changed")].find(h => h.querySelector(".text a").innerText == "User moved to Lisbon")`
	m.see("what replaced it, by itself", `(h => h && h.querySelector(".old bdi").innerText == "User lives in Oslo" && h.innerText.startsWith("Replaced"))(`+changed+`)`)
	m.see("a day", `document.querySelector("main h2").innerText.length > 5`)
	m.see("only changes", `(document.querySelector("main input[type=checkbox]").click(), true)`)
	m.see("nothing else", `document.querySelectorAll(".happening.learned").length == 0 && document.querySelectorAll(".happening.changed").length == 1`)
	m.see("to its source", `(a => a && (a.click(), true))(`+changed+`.querySelector(".about a"))`)
	m.see("the message", atMessage(m.chat, "I moved to Lisbon."))
	m.p.stop(t)
}

// TestPageMemoryTimelineOfArchivedFacts says which fact replaced an archived one, and
// which message did it; what the user archives, nothing replaced.
func TestPageMemoryTimelineOfArchivedFacts(t *testing.T) {
	m := openMemoryPage(t, "I live in Oslo.", "It rains.")
	extract := func() { m.call(http.MethodPost, "/conversations/"+m.chat+"/memory/extract", map[string]any{}, nil) }
	extract()
	m.open("/timeline")
	m.see("what was learned", `[...document.querySelectorAll(".happening.learned .text a")].some(a => a.innerText == "User lives in Oslo")`)
	m.call(http.MethodPost, "/characters/"+m.character+"/memories/import", map[string]any{"text": "User lives in Paris", "kind": "profile", "subject": "user"}, nil)
	m.say(m.chat, "I moved to Lisbon.", "The river is high.")
	extract()
	const archived = `[...document.querySelectorAll(".happening.archived")].find(h => /User lives in (Oslo|Paris)/.test(h.querySelector(".text").innerText))`
	m.see("what replaced it", `(h => h && h.innerText.includes("Replaced by: User moved to Lisbon") && !h.innerText.includes("by you"))(`+archived+`)`)
	m.see("to the message that ended it", `(a => a && (a.click(), true))([...`+archived+`.querySelectorAll("a")].find(a => a.innerText == "Message that contradicts it"))`)
	m.see("the message", atMessage(m.chat, "I moved to Lisbon."))

	fact := m.add(map[string]any{"text": "User owns a boat", "kind": "profile"})
	m.call(http.MethodDelete, "/characters/"+m.character+"/memories/"+fact, nil, nil)
	m.open("/timeline")
	m.see("what the user archived", `[...document.querySelectorAll(".happening.archived")].some(h => h.innerText.includes("User owns a boat") && h.innerText.includes("by you") && !h.innerText.includes("Replaced"))`)
	m.p.stop(t)
}

// TestPageMemorySuggestions: a suggestion to change the user's own memory appears by
// itself, with its source, and takes effect once accepted; jobs say what was done.
func TestPageMemorySuggestions(t *testing.T) {
	m := openMemoryPage(t)
	m.add(map[string]any{"text": "User is 30 years old", "kind": "profile"})
	m.say(m.chat, "I am 31 years old.", "It rains.")
	m.open("/jobs")
	m.press("Extract memories now")
	m.see("the job is done", `[...document.querySelectorAll("li[data-state=done] b")].some(b => b.innerText == "Extract memories")`)
	m.see("one waits for a decision", `document.querySelector("main nav .count")?.innerText == "1"`)
	m.open("/suggestions")
	m.see("the suggestion", `document.querySelector(".suggestions .old")?.innerText == "User is 30 years old" && document.querySelector(".suggestions .new").innerText.trim() == "User is 31 years old"`)
	m.see("its reason and source", `(s => s.innerText.includes("newer statement replaces it") && s.querySelector("a").hash.startsWith("#/chats/`+m.chat+`?message="))(document.querySelector(".suggestions li"))`)
	m.press("Accept")
	m.see("it is decided", `!document.querySelector(".suggestions") && !document.querySelector("main nav .count")`)
	m.open("")
	m.see("it has happened", `[...document.querySelectorAll(".fact .text")].some(f => f.innerText == "User is 31 years old")`)
	m.p.stop(t)
}

// TestPageMemorySummaries creates a summary, edits and deletes it.
func TestPageMemorySummaries(t *testing.T) {
	m := openMemoryPage(t, "It is 9 o'clock.", "We keep nine hives of bees on the roof.", "The river is high.", "The baker wants forty jars.", "It rains.")
	m.open("/summaries")
	m.see("no summary", `document.querySelector("main").innerText.includes("No summary: the whole chat is sent to the model.")`)
	m.press("Summarise now")
	m.see("the summary", `document.querySelector("article.active .text")?.innerText.includes("nine hives of bees")`)
	m.see("of what and by whom", `(n => n.includes("Messages 4 to 8") && n.includes("selected sentences"))(document.querySelector("article.active p").innerText)`)
	m.press("Edit")
	m.fill("article textarea", " They like honey.")
	m.press("Save")
	m.see("the user's words", `document.querySelector("article.active .text")?.innerText.endsWith("They like honey.") && document.querySelector("article.active p").innerText.includes("edited by you")`)
	m.press("Delete")
	m.see("a question", `document.querySelector("dialog[open]")`)
	m.press("Delete")
	m.see("the whole chat is sent", `document.querySelector("main").innerText.includes("No summary: the whole chat is sent to the model.")`)
	m.p.stop(t)
}

// TestPageMemoryFiles exports a memory and imports the file for another character, with
// lines that cannot be used.
func TestPageMemoryFiles(t *testing.T) {
	m := openMemoryPage(t)
	m.add(map[string]any{"text": "Ana is allergic to peanuts."})
	m.open("")
	m.listed("the fact", "Ana is allergic to peanuts.")
	m.press("More")
	m.press("Export") // the browser downloads it; the test reads the same address
	m.see("the file", `(fetch("/api/v1/characters/`+m.character+`/memories/export").then(r => r.text()).then(x => window.exported = x), window.exported)`)
	exported := evalString(t, m.ctx, "window.exported")
	if !strings.Contains(exported, "Ana is allergic to peanuts.") {
		t.Fatalf("exported is %q, want it with %q", exported, "Ana is allergic to peanuts.")
	}

	file := filepath.Join(t.TempDir(), "memory.jsonl")
	if err := os.WriteFile(file, []byte(exported+"{\"text\":\"Rex is a dog.\"}\n{\"text\":\"\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made struct{ Character struct{ ID string } }
	m.call(http.MethodPost, "/characters/sample", nil, &made)
	m.character = made.Character.ID
	m.open("")
	take := func() {
		m.press("More")
		m.press("Import…")
		m.see("the dialog", `document.querySelector("dialog[open] [type=file]")`)
		if err := chromedp.Do(m.ctx, chromedp.SetUploadFiles("dialog [type=file]", []string{file}, chromedp.NodeReady)); err != nil {
			t.Fatal(err)
		}
	}
	take()
	m.see("what became of it", `(d => d?.includes("2 memories imported") && d.includes("2 lines are invalid") && /Line \d+: .*blank/.test(d) && d.includes("Left out"))(document.querySelector("dialog[open]")?.innerText)`)
	m.press("Close")
	m.listed("the facts", "Ana is allergic to peanuts.", "Rex is a dog.")
	take()
	m.see("known facts are skipped", `(d => d?.includes("0 memories imported") && d.includes("2 skipped"))(document.querySelector("dialog[open]")?.innerText)`)
	m.p.stop(t)
}

// TestPageMemoryKeyboard opens a fact with the keyboard alone, on a phone's screen and in
// Chinese, edits and closes it, and is where it was.
func TestPageMemoryKeyboard(t *testing.T) {
	m := openMemoryPage(t)
	m.add(map[string]any{"text": "安娜对花生过敏。"})
	m.see("Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(390, 844), chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.open("")
	m.see("the fact", `(f => f && (f.focus(), document.activeElement == f))(document.querySelector(".fact .text"))`)
	press := func(key string) { typeKeys(t, m.ctx, key) }
	press("\r")
	m.see("its details, in Chinese", `document.querySelector("dialog[open]")?.innerText.includes("由你添加")`)
	m.press("编辑")
	m.see("the field has the focus", `document.activeElement.matches("dialog textarea")`)
	press("\x1b")
	m.see("the details again", `document.querySelectorAll("dialog[open]").length == 1`)
	press("\x1b")
	m.see("back where it was", `!document.querySelector("dialog[open]") && document.activeElement.innerText == "安娜对花生过敏。"`)
	m.see("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	m.p.stop(t)
}
