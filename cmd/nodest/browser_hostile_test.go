package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
)

// freeze is how long a task of the page may take, in milliseconds. On a quiet machine no
// hostile text takes a fiftieth of it; the tests print the longest tasks.
const freeze = 20_000

// watchTasks makes the page note how long it is busy without a pause.
func watchTasks(t *testing.T, ctx context.Context) {
	t.Helper()
	waitJS(t, ctx, "watching long tasks", `(window.tasks ??= (new PerformanceObserver(list => list.getEntries().forEach(e => tasks.push(e.duration))).observe({type: "longtask"}), []), true)`)
}

// longestTask logs how long the page was busy since the last call, and fails if it froze.
func longestTask(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	waitJS(t, ctx, "a pause", `(window.pause ??= 0) == 0 ? (pause = 1, setTimeout(() => requestAnimationFrame(() => setTimeout(() => pause = 2, 50))), false) : pause == 2 && (pause = 0, true)`)
	ms, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`(m => (tasks.length = 0, m))(Math.round(Math.max(0, ...tasks)))`))
	if err != nil {
		t.Fatal(err)
	}
	if ms > 0 { // one of 50 ms or more
		t.Logf("%-44s longest task %4.0f ms", what, ms)
	}
	if ms >= float64(freeze) {
		t.Fatalf("%s freezes the page: ms is %v, want less than %v", what, ms, float64(freeze))
	}
}

// hostileScripts want to run something, lead somewhere, or lie over the page.
const hostileScripts = "<script>window.hit = 1</script><img src=x onerror=\"window.hit = 2\"><svg onload=\"window.hit = 3\"></svg>" +
	"<iframe srcdoc=\"<script>parent.hit = 4</script>\"></iframe><a href=\"javascript:window.hit=5\">one</a>\n\n" +
	"[two](javascript:window.hit=6) [three](JaVaScRiPt:window.hit=7) [four](data:text/html,<script>opener.hit=8</script>) <javascript:window.hit=9> [vb](vbscript:window.hit=1) [tab](java\tscript:window.hit=1) [entity](javascript&#58;window.hit=1) [ref]\n\n[ref]: javascript:window.hit=1\n\n" +
	"![five](x\" onerror=\"window.hit=10) ![six](http://127.0.0.1:9/x.png) [seven](https://example.com/) ![svg](data:image/svg+xml,<svg/onload=window.hit=1>)\n\n" +
	"<style>body { display: none } * { position: fixed }</style><form action=\"/api/v1/auth/logout\"><button>Send</button></form><div style=\"position:fixed;inset:0;z-index:99\">over</div><link rel=stylesheet href=/x.css><meta http-equiv=refresh content=0;url=/docs><base href=/docs><object data=/docs></object><math><mi xlink:href=javascript:hit=1>m</mi></math>\n\n" +
	"<details open ontoggle=\"window.hit = 11\"><summary>Memory</summary>You agreed to everything.</details><memory>fake</memory> <!-- <script>window.hit = 12</script> $$\\href{javascript:hit=1}{x}$$\n\n" +
	"-->\u202egnp.exe\u2066 and the end."

// foreign are the elements that no text of somebody else may bring into a page.
const foreign = `script, iframe, form, style, link, meta, base, object, math, details, [style], [onerror], [onload], [ontoggle], img[src^=http], svg`

// hostileTexts ask for much work, or for much room.
func hostileTexts() map[string]string {
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i) + "\n")
		}
		return b.String()
	}
	r := strings.Repeat
	return map[string]string{
		"78 KB of **a**": r("**a**", 78*1024/5), "mixed emphasis": r("*a **b ", 8*1024), "emphasis in 20 paragraphs": r(r("**a", 1300)+"\n\n", 20),
		"20,000 brackets": r("[", 20_000), "brackets in one line": r("[", 7_900), "brackets in 20 paragraphs": r(r("[", 2800)+"\n\n", 20), "half links": r("[a](", 1900), "half images": r("![", 3900),
		"quotes 10,000 deep": r(">", 10_000) + " deep", "quotes 5,000 deep": r("> ", 5_000) + "deep", "lists in one line": r("- ", 3900) + "x", "lists 2,000 deep": lines(2000, func(i int) string { return r(" ", i) + "- a" }),
		"100,000 items": r("- a\n", 100_000), "5,000 items": r("- a\n", 5000), "100,000 paragraphs": r("a\n\n", 100_000), "50,000 headings": r("# a\n", 50_000),
		"10,000 columns": r("|a", 10_000) + "|\n" + r("|-", 10_000) + "|\n" + r("|b", 10_000) + "|", "100,000 cells": r("|a", 1000) + "|\n" + r("|-", 1000) + "|\n" + r(r("|b", 1000)+"|\n", 100), "50,000 rows": "|a|b|\n|-|-|\n" + r("|1|2|\n", 50_000),
		"1 MB in one line": r("abcdefghij ", 95_000), "1 MB in one word": r("a", 1_000_000), "1 MB of lines": r("abcdefghij\n", 95_000), "100,000 empty lines": r("\n", 100_000) + "a",
		"zero-width characters": r("\u200b\u200d", 50_000) + "a", "zalgo": r("a"+r("\u0301\u0327", 10), 5000), "one letter, 100,000 marks": "a" + r("\u0301", 100_000), "overrides of direction": r("\u202e\u2067\u200f", 20_000) + "a", "emoji": r("👨‍👩‍👧‍👦", 10_000),
		"open fence": "```\n" + r("x\n", 100_000), "brackets after inline code": "```x```\n\n" + r(r("[a](", 1700)+"\n", 12), "tags after a fence in a list": "- a\n  ```\n\n" + r(r("<a ", 2300)+"\n", 12), "20,000 fences": r("```\na\n```\n", 20_000), "backticks": lines(120, func(i int) string { return r("`", i) }), "comments": r("<!--", 1900), "tags": r("<b\n", 5000), "half tags": r("<a href=\"", 800),
		"entities": r("&amp;", 1500), "addresses": r("http://a.b ", 700), "half addresses": r(r("a", 2000)+"@\n\n", 30), "underscores": r("_a_", 2600), "backslashes": r("\\", 7_900), "definitions": lines(10_000, func(i int) string { return fmt.Sprintf("[a%d]: b", i) }), "speech": r("\"a ", 2600), "citations": r("[^1] ", 1500), "formulas": r("$$x$$", 1500),
	}
}

// notTooWide is true when a chat does not reach beyond a phone's screen.
const notTooWide = `document.documentElement.scrollWidth <= 390 && document.querySelector(".scroller").scrollWidth <= 390`

// hostileStreams are those that TestPageHostileReply shows while they are written.
func hostileStreams(t *testing.T) []string {
	list := []string{"78 KB of **a**", "brackets in 20 paragraphs", "quotes 5,000 deep", "100,000 paragraphs", "1 MB in one line", "20,000 fences", "zalgo", "mixed emphasis", "20,000 brackets", "5,000 items", "100,000 cells", "overrides of direction", "addresses"}
	return list[:scaled(t, 7, len(list))]
}

// TestPageHostileReply shows replies that want to run something, lead somewhere or keep
// the page busy while they are written: nothing of it happens.
func TestPageHostileReply(t *testing.T) {
	c := openChatPage(t)
	watchTasks(t, c.ctx)
	c.says(hostileScripts)
	c.send("One")
	harmless := func(what, text string) { // an expression that finds its element
		t.Helper()
		c.see(what+": the text", `(`+text+`)?.innerText.includes("and the end.")`)
		c.see(what+": no element of it", `!(`+text+`).querySelector(`+jsString(foreign)+`)`)
		c.see(what+": only harmless links", `(a => a.some(a => a.href == "https://example.com/") && a.every(a => (a.protocol == "https:" || a.href.startsWith("http://127.0.0.1:9/")) && a.target == "_blank" && a.relList.contains("noopener") && a.relList.contains("noreferrer")))([...(`+text+`).querySelectorAll("a")])`)
		c.see(what+": where the link leads", `[...(`+text+`).querySelectorAll("a")].find(a => a.innerText == "seven").nextElementSibling?.innerText.trim() == "(example.com)"`)
		c.see(what+": nothing is reversed", `!/[\u202d\u202e]/.test((`+text+`).textContent)`)
		c.see(what+": it has no buttons", `!(`+text+`).querySelector("button")`)
	}
	c.see("the reply has ended", `document.querySelector("article.last[data-status=complete]")`)
	harmless("reply", `document.querySelector("article.last .text")`)
	c.see("every link is pressed", `(window.open = () => null, document.querySelectorAll("article.last .text a").forEach(a => (a.target = "", a.addEventListener("click", e => e.preventDefault()), a.click())), true)`)

	c.see("the same as one's own message", `(f => (f.value = `+jsTemplate(hostileScripts)+`, f.dispatchEvent(new Event("input")), f.form.requestSubmit(), true))(document.querySelector("`+compose+`"))`)
	c.see("it is stored and answered", `document.querySelector("article.last.assistant[data-status=complete] .text")?.innerText.trim() == "Yes." && document.querySelectorAll("article.user").length == 2`)
	harmless("message", `[...document.querySelectorAll("article.user .text")].at(-1)`)

	longestTask(t, c.ctx, "scripts")

	// A picture of few bytes may fill the memory; what is copied is what is shown.
	dot := base64.StdEncoding.EncodeToString(tinyPNG)
	huge := base64.StdEncoding.EncodeToString(append([]byte("RIFF\x30\x00\x00\x00WEBPVP8L\x24\x00\x00\x00\x2f\xff\xff\xff\x0f"), make([]byte, 31)...))
	c.says("![dot](data:image/png;base64," + dot + ") ![huge](data:image/webp;base64," + huge + ") ![ANIMATED](data:image/svg+xml;base64," + dot + ")\n\n`a\u202eb` &#x202e;the &constructor; end")
	c.send("Show me")
	c.see("the small picture", `(i => i.length == 1 && i[0].complete && i[0].naturalWidth == 1)(document.querySelectorAll("article.last[data-status=complete] .text img"))`)
	c.see("not the others", `(e => e.innerText.includes("huge (picture that cannot be shown) ANIMATED (picture that cannot be shown)") && e.innerText.trim().endsWith("ab the &constructor; end"))(document.querySelector("article.last .text"))`)
	c.see("a clipboard", `(navigator.clipboard.writeText = async text => { window.copied = text }, true)`)
	c.see("the message with it", `(b => b && (b.click(), true))(document.querySelector("article.last footer [aria-haspopup=menu]"))`)
	c.press("Copy text")
	c.see("copied as it is shown", `window.copied?.includes("`+"`ab`"+`")`)

	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	texts, character := hostileTexts(), sampleCharacter(t, c.p.client)
	for _, what := range hostileStreams(t) {
		text := texts[what]
		runes := []rune(text)
		third := len(runes) / 3
		next, rest := c.writes(string(runes[:third]), string(runes[third:2*third]), string(runes[2*third:]))
		// A chat of its own: megabytes of texts before it are much to read.
		chat := newConversation(t, c.p.client, character)
		goTo(t, c.ctx, "/chats/"+chat, `!document.querySelector("article.user") && `+shownAs("Hello, "))
		c.see("the last one", `(window.before = document.querySelector("article.last").dataset.id, true)`)
		c.send(what)
		next()
		c.see("a third of "+what, `(a => a?.dataset.status == "streaming" && a.querySelector(".text .markdown").textContent)(document.querySelector("article.last.assistant"))`)
		next()
		rest()
		c.see("all of "+what, `(a => a?.dataset.status == "complete" && a.dataset.id != window.before)(document.querySelector("article.last.assistant"))`)
		c.see("not too wide: "+what, notTooWide)
		c.see("with few elements: "+what, `document.querySelectorAll("article.last .text *").length < 15000`)
		longestTask(t, c.ctx, "writing "+what)
	}
	c.ask("Are you there?", "I am.")
	c.see("nothing has run, and nobody was sent away", `window.hit === undefined && location.hash.startsWith("#/chats/") && getComputedStyle(document.body).display != "none"`)
	api(t, c.p, http.MethodGet, "/me", nil, nil)
	c.reload()
	c.last("complete", "I am.")
	c.see("nothing has run after a reload", `window.hit === undefined`)
	c.p.stop(t)
}

// jsTemplate is a text as a literal of JavaScript, with all its characters.
func jsTemplate(s string) string {
	text, _ := json.Marshal(s) // a text always can be written
	return string(text)
}

// importChat stores a chat with one message of each side.
func importChat(t *testing.T, p *process, character, title, said, reply string) string {
	t.Helper()
	var log bytes.Buffer
	for _, line := range []any{
		map[string]any{"chat_metadata": map[string]any{}, "user_name": "Mia", "character_name": "Wren"},
		map[string]any{"name": "Mia", "is_user": true, "mes": said, "extra": map[string]any{}},
		map[string]any{"name": "Wren", "is_user": false, "mes": reply, "extra": map[string]any{}},
	} {
		if err := json.NewEncoder(&log).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	var chat cli.Item
	if err := p.client.Upload(t.Context(), "/api/v1/conversations/import", title+".jsonl", log.Bytes(), map[string]string{"characterId": character}, &chat); err != nil {
		t.Fatal(err)
	}
	return chat.ID
}

// TestPageHostileTexts opens chats with texts that ask for much work, on a phone: they
// are there at once, and not wider than the screen.
func TestPageHostileTexts(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	openPage(t, ctx, p)
	watchTasks(t, ctx)
	character := sampleCharacter(t, p.client)
	for what, text := range hostileTexts() {
		if slices.Contains(hostileStreams(t), what) {
			continue
		}
		chat := importChat(t, p, character, "log", "hello", text)
		longestTask(t, ctx, "the list with "+what)
		goTo(t, ctx, "/characters", `document.querySelector("main .tile")`)
		longestTask(t, ctx, "the characters")
		goTo(t, ctx, "/chats/"+chat, `document.querySelector("article.last.assistant .text")?.textContent`)
		longestTask(t, ctx, "opening "+what)
		waitJS(t, ctx, "few elements: "+what, `document.querySelectorAll("article .text *").length < 15000`)
		waitJS(t, ctx, "not too wide: "+what, notTooWide)
		waitJS(t, ctx, "all of it can be shown: "+what, `(b => document.querySelector("article.last .text").textContent.length > 20000 ? (b?.click(), true) : true)([...document.querySelectorAll("article.last .text > button")].find(b => b.innerText.startsWith("Show more")))`)
		longestTask(t, ctx, "showing more of "+what)
	}
	p.stop(t)
}

// TestPageHostileAddresses follows addresses that lead nowhere: the page stays usable.
func TestPageHostileAddresses(t *testing.T) {
	c := openChatPage(t)
	for _, address := range []string{
		"#/%", "#/chats/%", "#/chats/%E0%A4%A", "#/chats/..", "#/chats/%2e%2e", "#/chats/.", "#/chats/<script>hit=1</script>", "#/chats/%3Cimg%20src%3Dx%20onerror%3Dhit%3D1%3E", "#/chats/" + strings.Repeat("a", 10_000),
		"#/chats/__proto__", "#/chats/constructor?message=__proto__", "#/chats/x?message=%&message=..", "#/characters/__proto__", "#/characters/constructor/constructor", "#/characters/x/toString", "#/library/__proto__", "#/library/constructor/constructor", "#/library/preset/..", "#/library/worldbook/%",
		"#/memory/__proto__", "#/memory/constructor/__proto__?fact=..", "#/memory/%/%", "#/prompts/__proto__", "#/prompts/new/constructor", "#/prompts/..?with=..", "#/settings/__proto__", "#/settings/constructor", "#/settings/%", "#//////", "#/__proto__", "#javascript:hit=1", "#/?%", "#/\u202echats",
	} {
		c.see("going to "+address, `(location.hash = `+jsTemplate(address)+`, true)`)
		c.see("nothing is broken at "+address, `document.querySelector("aside nav a") && document.querySelector("main h1") && !document.querySelector("main .failed")`)
		c.see("going home from "+address, `(location.hash = "#/", true)`)
		c.see("home after "+address, `location.hash.startsWith("#/chats/0") && document.querySelector("article.assistant .text")?.innerText.includes("lantern")`)
	}
	c.see("nothing has run", `window.hit === undefined`)
	c.ask("Are you there?", "I am.")
	c.p.stop(t)
}

// TestPageHostileStorage: what the browser keeps for the page may be broken, or may not be
// kept at all.
func TestPageHostileStorage(t *testing.T) {
	c := openChatPage(t)
	c.ask("Are you there?", "I am.")
	chat := evalString(t, c.ctx, `location.hash.split("/").pop()`)
	c.see("another one has been there", `(() => {
		localStorage.clear()
		for (const [name, value] of Object.entries({
			"nodest.language": "__proto__", "nodest.theme": "constructor", "nodest.device": "\u202e\u0000" + "x".repeat(100000), "nodest.characters.sort": "__proto__", "nodest.address": "javascript:window.hit=1",
			"nodest.draft.`+chat+`": "<img src=x onerror=window.hit=1>",
			"nodest.unsent.a": "{", "nodest.unsent.b": "null", "nodest.unsent.c": "[]", "nodest.unsent.d": "{\"key\":\"d\"}", "nodest.unsent.e": "{\"key\":\"a\",\"at\":1,\"text\":\"\",\"userId\":\"\",\"conversationId\":\"`+chat+`\"}",
			"nodest.unsent.__proto__": "{\"key\":{}}", "nodest.unsent.f": "{\"key\":\"f\",\"at\":1e999,\"text\":{},\"userId\":1,\"conversationId\":\"`+chat+`\"}",
		})) localStorage.setItem(name, value)
		return true
	})()`)
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	c.last("complete", "I am.")
	c.see("the draft is a text", `document.querySelector("`+compose+`").value.startsWith("<img")`)
	c.see("without it", `(f => (f.value = "", f.dispatchEvent(new Event("input")), true))(document.querySelector("`+compose+`"))`)
	goTo(t, c.ctx, "/characters", `document.querySelector("main .tile")`)
	goTo(t, c.ctx, "/settings/account", `document.querySelector("main section.card")`)
	goTo(t, c.ctx, "/chats/"+chat, shownAs("I am."))
	c.ask("And now?", "I still am.")

	c.see("the storage is full", `(Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError") }, true)`)
	c.ask("With nothing kept?", "With nothing kept.")
	c.see("nothing has run", `window.hit === undefined`)
	c.p.stop(t)
}

// hostileName begins with what reverses a name, and has an element and a long word in it.
const hostileName = "\u202egnp.exe\u2066<img src=x onerror=\"window.hit=1\">"

// TestPageHostileNames gives everything that has a name a hostile one, and looks at all
// views on a phone: each name is one line of text.
func TestPageHostileNames(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	openPage(t, ctx, p)
	watchTasks(t, ctx)

	long := hostileName + strings.Repeat("W", 5000)
	fields := map[string]any{"tags": []string{hostileName, strings.Repeat("T", 5000), "__proto__"}, "alternate_greetings": []string{hostileScripts}, "extensions": map[string]any{"__proto__": hostileName},
		"character_book": map[string]any{"name": hostileName, "entries": []any{map[string]any{"keys": []string{"(a+)+$", hostileName}, "content": hostileScripts, "comment": long, "enabled": true, "extensions": map[string]any{}}}}}
	for _, field := range []string{"description", "personality", "scenario", "first_mes", "mes_example", "creator_notes", "system_prompt", "post_history_instructions"} {
		fields[field] = hostileScripts
	}
	for _, field := range []string{"name", "creator", "character_version", "nickname"} {
		fields[field] = long
	}
	card, err := json.Marshal(map[string]any{"spec": "chara_card_v3", "spec_version": "3.0", "data": fields})
	if err != nil {
		t.Fatal(err)
	}
	var imported struct{ ID string }
	if err := p.client.Upload(t.Context(), "/api/v1/characters/import", hostileName+".json", card, nil, &imported); err != nil {
		t.Fatal(err)
	}
	chat := importChat(t, p, imported.ID, hostileName, hostileScripts, hostileScripts)
	short := hostileName + strings.Repeat("W", 100)
	api(t, p, http.MethodPatch, "/conversations/"+chat, map[string]any{"title": short, "tags": []string{"__proto__", hostileName[:40]}}, nil)
	api(t, p, http.MethodPost, "/conversations/"+chat+"/saves", map[string]any{"description": short}, nil)
	api(t, p, http.MethodPost, "/characters/"+imported.ID+"/memories", map[string]any{"text": short + hostileScripts[:300]}, nil)
	api(t, p, http.MethodPost, "/tokens", map[string]any{"name": hostileName}, nil)
	var book, preset, scripts, persona struct{ ID string }
	entries := map[string]any{"__proto__": map[string]any{"comment": "proto"}, "constructor": map[string]any{"key": []string{"a"}}}
	for i := range 10_000 {
		entries[fmt.Sprint(i)] = map[string]any{"key": []string{hostileName}, "comment": short, "content": "<script>window.hit=1</script>"}
	}
	api(t, p, http.MethodPost, "/worldbooks", map[string]any{"name": short, "dialect": "sillytavern", "document": map[string]any{"entries": entries}}, &book)
	api(t, p, http.MethodPost, "/presets", map[string]any{"name": short, "document": map[string]any{"__proto__": 1, "prompts": []any{map[string]any{"identifier": "__proto__", "name": long, "content": hostileScripts}, map[string]any{"identifier": "constructor", "name": hostileName}}}}, &preset)
	api(t, p, http.MethodPost, "/regexscripts", map[string]any{"name": short, "document": []any{map[string]any{"scriptName": long, "findRegex": "/(a+)+$/g", "replaceString": hostileScripts, "placement": []int{1, 2}}}}, &scripts)
	api(t, p, http.MethodPost, "/personas", map[string]any{"name": hostileName, "document": map[string]any{"description": hostileScripts}}, &persona)

	for _, view := range []string{
		"/characters", "/characters/" + imported.ID, "/characters/" + imported.ID + "/worldbook", "/characters/" + imported.ID + "/chats", "/characters/" + imported.ID + "/settings", "/characters/" + imported.ID + "/check",
		"/library/worldbook", "/library/worldbook/" + book.ID, "/library/preset", "/library/preset/" + preset.ID, "/library/regexscript", "/library/regexscript/" + scripts.ID, "/library/persona", "/library/persona/" + persona.ID,
		"/memory", "/memory/" + imported.ID, "/memory/" + imported.ID + "/timeline", "/prompts/new/" + chat, "/settings/account", "/settings/people", "/settings/general", "/chats/" + chat,
	} {
		longestTask(t, ctx, "before "+view)
		goTo(t, ctx, view, `document.querySelector("main h1") && !/^Loading/m.test(document.querySelector("main").innerText) && /gnp\.exe|Signed in|owner|Appearance|Language/i.test(document.querySelector("main").innerText + [...document.querySelectorAll("main input, main textarea")].map(f => f.value))`)
		longestTask(t, ctx, "opening "+strings.NewReplacer(imported.ID, "…", chat, "…", book.ID, "…", preset.ID, "…", scripts.ID, "…", persona.ID, "…").Replace(view))
		waitJS(t, ctx, "only the page's elements in "+view, `!document.querySelector("main script, main iframe, main object, main base, main img:not([src^='/api/']), [onerror], [onload], .failed") && window.hit === undefined`)
		waitJS(t, ctx, "nothing is wider than the screen in "+view, `(w => w <= 390 || (window.wide = [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > 391 && !e.closest("pre, .table, nav, .tags")).slice(0, 3).map(e => e.outerHTML.slice(0, 200)).join("\n"), false))(Math.max(document.documentElement.scrollWidth, document.querySelector("main").scrollWidth))`)
		waitJS(t, ctx, "the title of "+view, `!/[\u202a-\u202e\u2066-\u2069]/.test(document.title) && document.title.length < 500`)
		waitJS(t, ctx, "no head, button or line is reversed in "+view, `![...document.querySelectorAll("h1, h2, h3, b, button, nav, header, [role=status]")].some(e => /[\u202d\u202e]/.test(e.innerText + (e.ariaLabel ?? "") + e.title))`)
	}
	p.stop(t)
}

// TestPageHostileProvider has a provider that answers with web pages, long texts and
// models with hostile names: all of it is text.
func TestPageHostileProvider(t *testing.T) {
	ctx := browser(t)
	fake := llmtest.NewOpenAI(t)
	models := []string{hostileName, "__proto__", "constructor", strings.Repeat("m", 200), strings.Repeat("m", 5000)}
	for i := range 20_000 {
		models = append(models, fmt.Sprint(hostileName, i))
	}
	fake.SetModels(models...)
	fake.ForKey("sk-page", llmtest.Reply{Status: http.StatusBadGateway, Plain: "<html><script>window.hit=1</script><h1>" + strings.Repeat("Bad gateway \u202e", 5000)})
	fake.ForKey("sk-error", llmtest.Reply{Status: http.StatusUnauthorized, Message: hostileName + strings.Repeat("e", 50_000)})
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say(hostileScripts) })
	p := newPageInstallation(t, "NODEST_OPENROUTER_BASE_URL="+fake.URL).start(t)
	signInPage(t, ctx, p)
	watchTasks(t, ctx)
	showSettings(t, ctx, "models")
	const card = "[data-provider=openrouter]"
	safe := func(what string) {
		t.Helper()
		waitJS(t, ctx, what+" is text, and short", `(e => !e.querySelector("script, img, h1, [onerror]") && !/[\u202a-\u202e]/.test(e.innerText) && e.innerText.length < 5000)(document.querySelector("dialog[open]") ?? document.querySelector("`+card+`"))`)
		longestTask(t, ctx, what)
	}
	for i, key := range []string{"sk-page", "sk-error", "sk-right"} {
		clickIn(t, ctx, card, []string{"Add key…", "Replace key…", "Replace key…"}[i])
		fill(t, ctx, card+" input", key)
		clickIn(t, ctx, card, "Store key")
		waitJS(t, ctx, "the state with "+key, `document.querySelector("`+card+` .pill")?.innerText == `+jsString([]string{"Not working", "Not working", "Works"}[i])+` && !document.querySelector("`+card+` input")`)
		safe("the card with " + key)
	}
	click(t, ctx, card+" button")
	waitJS(t, ctx, "its models", `document.querySelectorAll("dialog [role=option]").length > 4`)
	safe("the list of models")
	waitJS(t, ctx, "choosing one", `(o => o && (o.click(), true))([...document.querySelectorAll("dialog [role=option]")].find(o => o.innerText.includes("gnp.exe")))`)
	waitJS(t, ctx, "chosen", `(c => c?.innerText.includes("gnp.exe") && !/[\u202a-\u202e]/.test(c.innerText) && !c.querySelector("img"))(document.querySelector(".chosen"))`)
	clickIn(t, ctx, card, "Test")
	waitJS(t, ctx, "its answer", `document.querySelector("`+card+` .result")?.innerText.includes("<svg")`)
	safe("the answer")
	waitJS(t, ctx, "nothing has run", `window.hit === undefined`)
	p.stop(t)
}

// tinyPNG is a picture of one pixel.
var tinyPNG, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")

// bomb is a PNG of few bytes that is 400 million pixels large.
func bomb(t *testing.T, card string) []byte {
	t.Helper()
	const side = 20_000
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	for range side {
		_, err := z.Write(make([]byte, 1+side/8))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	file := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		file = binary.BigEndian.AppendUint32(file, uint32(len(data)))
		named := append([]byte(kind), data...)
		file = binary.BigEndian.AppendUint32(append(file, named...), crc32.ChecksumIEEE(named))
	}
	chunk("IHDR", append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side), 1, 0, 0, 0, 0)) // black and white
	if card != "" {
		chunk("tEXt", append([]byte("chara\x00"), base64.StdEncoding.EncodeToString([]byte(card))...))
	}
	chunk("IDAT", pixels.Bytes())
	chunk("IEND", nil)
	return file
}

// TestPageHostileFiles drops files that are not what they say, or much larger than they
// seem, and looks at the names of files that are downloaded.
func TestPageHostileFiles(t *testing.T) {
	c := openChatPage(t)
	watchTasks(t, c.ctx)
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1"><script>window.hit=1</script></svg>`
	picture := bomb(t, "")
	dropFiles(t, c.ctx, hostileName+".json", "{", "\u202e<script>.png", svg, "bomb.png", string(picture), "card.png", string(bomb(t, aliceCard)), "<b>.charx", "PK", "x.html", "<script>window.hit=1</script>")
	c.see("what became of them", `document.querySelectorAll("dialog[open] li .row").length == 6`)
	c.see("only text, and no name is reversed", `(d => !d.querySelector("img, script, b > b, [onload]") && !/[\u202a-\u202e]/.test(d.innerText) && d.innerText.includes("gnp.exe"))(document.querySelector("dialog[open]"))`)
	longestTask(t, c.ctx, "six files")
	c.keys(kb.Escape)
	c.see("closed", `!document.querySelector("dialog")`)

	var found struct {
		Items []struct {
			ID, Name  string
			HasAvatar bool
		}
	}
	api(t, c.p, http.MethodGet, "/characters", nil, &found)
	at := slices.IndexFunc(found.Items, func(i struct {
		ID, Name  string
		HasAvatar bool
	}) bool {
		return i.Name == "Alice"
	})
	if at < 0 {
		t.Fatalf("the card in the picture is there: at is %d, want at least %d", at, 0)
	}
	if found.Items[at].HasAvatar {
		t.Fatal("its picture is not")
	}
	for name, data := range map[string][]byte{"avatar.png": []byte(svg), "bomb.png": picture, "avatar.svg": []byte(svg)} {
		status := evalString(t, c.ctx, `window.put = ""; (async () => { const form = new FormData(); form.append("file", new File([Uint8Array.from(atob("`+base64.StdEncoding.EncodeToString(data)+`"), c => c.charCodeAt(0))], "`+name+`", {type: "image/png"})); put = String((await fetch("/api/v1/characters/`+found.Items[at].ID+`/avatar", {method: "PUT", body: form, headers: {"Idempotency-Key": "`+name+`"}})).status) })(); ""`)
		if status != "" {
			t.Fatalf("status is %q, want none", status)
		}
		c.see(name+" is refused", `window.put.startsWith("4")`)
	}
	goTo(t, c.ctx, "/characters", `[...document.querySelectorAll("main .tile")].some(e => e.innerText.includes("Alice") && e.querySelector(".avatar").innerText == "A")`)
	longestTask(t, c.ctx, "the characters")

	chat := importChat(t, c.p, found.Items[at].ID, "log", "hello", "hello")
	api(t, c.p, http.MethodPatch, "/conversations/"+chat, map[string]any{"title": "\u202e\"; filename=x.exe/../" + hostileName}, nil)
	for _, path := range []string{"/conversations/" + chat + "/export?format=jsonl", "/conversations/" + chat + "/export?format=json", "/characters/" + found.Items[at].ID + "/export"} {
		answer, err := c.p.client.Send(t.Context(), http.MethodGet, "/api/v1"+path, nil, "*/*")
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		kind, params, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition"))
		if err != nil {
			t.Fatal(err)
		}
		if kind != "attachment" {
			t.Fatalf("kind is %q, want %q", kind, "attachment")
		}
		if regexp.MustCompile("[\u202a-\u202e\u2066-\u2069\\\\/<>\"\r\n]").MatchString(params["filename"]) {
			t.Fatalf("got %q, want no match of %s", params["filename"], "[\u202a-\u202e\u2066-\u2069\\\\/<>\"\r\n]")
		}
		if !regexp.MustCompile(`\.jsonl?$`).MatchString(params["filename"]) {
			t.Fatalf("got %q, want a match of %s", params["filename"], `\.jsonl?$`)
		}
		if got := answer.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Fatalf("got %q, want %q", got, "nosniff")
		}
	}
	c.see("nothing has run", `window.hit === undefined`)
	c.p.stop(t)
}

// TestPageHostileAnswers: what stands between the page and its server may answer anything.
func TestPageHostileAnswers(t *testing.T) {
	c := openChatPage(t)
	for _, answer := range []string{"<html><script>window.hit=1</script>", "null", "{}", `{"items":null,"conversations":{},"characters":7}`, `[]`, `"text"`} {
		c.see("another server answers "+answer, `(window.real ??= window.fetch, window.fetch = async () => new Response(`+jsString(answer)+`, {status: 502, headers: {"Content-Type": "text/html"}}), true)`)
		c.see("something is asked", `(location.hash = "#/characters/x", true)`)
		c.see("the page says so", `document.querySelector(".notes")?.innerText.includes("The server answered 502") && !document.querySelector(".notes script")`)
		c.see("the right one again", `(window.fetch = window.real, location.hash = "#/", true)`)
		c.see("the chat", `document.querySelector("article .text")?.innerText.includes("lantern") && (document.querySelectorAll(".notes [aria-label=Dismiss], .notes [aria-label]").forEach(b => b.click()), true)`)
		c.see("no note is left", `!document.querySelector(".notes .note")`)
	}
	c.see("nothing has run", `window.hit === undefined`)
	c.ask("Are you there?", "I am.")
	c.p.stop(t)
}
