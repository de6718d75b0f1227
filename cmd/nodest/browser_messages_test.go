package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"nodest/internal/cli"
)

// noise is a PNG as an address; it cannot be compressed.
func noise(t *testing.T, side int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	for i := range side * side {
		v := random.Uint32()
		img.Set(i%side, i/side, color.RGBA{byte(v), byte(v >> 8), byte(v >> 16), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

// TestPagePictures: a picture in a text is shown, one on another server is a link that
// names the host, and one that is too large or broken is its name.
func TestPagePictures(t *testing.T) {
	c := newChatPage(t)
	said := []string{
		"A map: ![the harbour](https://pictures.example/map.png) and ![](http://203.0.113.7:8080/x.gif)",
		"Small: ![a dot](" + noise(t, 4) + ") in a line.",
		"Large:\n![a field](" + noise(t, 100) + ")\nand *after* it.",
		"Huge:\n\n![a world](" + noise(t, 600) + ")\n\nThe end.",
		"Broken: ![a blot](data:image/png;base64,AAAA) ![a drawing](data:image/svg+xml;base64,PHN2Zy8+)",
	}
	log := `{"chat_metadata":{},"user_name":"Mia","character_name":"Wren"}`
	for _, text := range said {
		line, err := json.Marshal(map[string]any{"name": "Wren", "is_user": false, "send_date": "2025-03-14T09:00:00.000Z", "mes": text})
		if err != nil {
			t.Fatal(err)
		}
		log += "\n" + string(line)
	}
	var chat cli.Item
	if err := c.p.client.Upload(t.Context(), "/api/v1/conversations/import", "log.jsonl", []byte(log),
		map[string]string{"characterId": sampleCharacter(t, c.p.client)}, &chat); err != nil {
		t.Fatal(err)
	}
	openPage(t, c.ctx, c.p)
	goTo(t, c.ctx, "/chats/"+chat.ID, shownAs("Broken:"))
	has := func(begins, what, js string) {
		t.Helper()
		c.see(what, `(e => e && (`+js+`))(`+shownAs(begins)+`)`)
	}
	has("Broken:", "the names of what cannot be shown", `e.innerText.trim() == "Broken: a blot (picture that cannot be shown) a drawing (picture that cannot be shown)" && !e.querySelector("img")`)
	has("Huge:", "a picture that is too large", `!e.querySelector("img") && /^Huge:\s+a world \(picture of .*too large to show\)\s+The end\.$/.test(e.innerText.trim())`)
	has("Large:", "a large picture", `(i => i?.complete && i.naturalWidth == 100 && i.alt == "a field" && i.offsetWidth <= 400)(e.querySelector("img")) && e.querySelector("em")?.innerText == "after"`)
	has("Small:", "a small picture", `(i => i?.complete && i.naturalWidth == 4)(e.querySelector("img")) && e.innerText.includes("in a line.")`)
	has("A map:", "links that name their hosts", `!e.querySelector("img") && [...e.querySelectorAll("a")].map(a => a.innerText.trim() + " " + a.href).join("|") == "the harbour (picture at pictures.example) https://pictures.example/map.png|(picture at 203.0.113.7:8080) http://203.0.113.7:8080/x.gif"`)
	c.p.stop(t)
}

// TestPageRolePlayMarks shows marks of Chinese and English role play as people mean them:
// while a reply is written, and when it is complete.
func TestPageRolePlayMarks(t *testing.T) {
	c := openChatPage(t)
	next, rest := c.writes("*（叹气）*你好，**重要：**", "价格 100~200 元，约 3~5 天，100*100/400*56。", "*\"Come.\"*she said. ~~没有~~（https://example.com/a）见 https://example.com/路径，然后")
	c.send("你好")
	const text = `document.querySelector("article.last .text")`
	next()
	c.see("the first part", text+`?.querySelector("em")?.innerText == "（叹气）" && `+text+`.querySelector("strong")?.innerText == "重要："`)
	next()
	c.see("a part with prices", text+`?.innerText.includes("100~200 元，约 3~5 天，100*100/400*56") && !`+text+`.querySelector("del")`)
	rest()
	c.see("all of it", `document.querySelector("article.last[data-status=complete]") && `+text+`.innerText.startsWith("（叹气）你好，重要：价格 100~200 元，约 3~5 天，100*100/400*56。“Come.”she said. 没有（".replace(/[“”]/g, '"'))`)
	c.see("what is emphasised and struck", `["em", "strong", "del", "q"].map(name => [...`+text+`.querySelectorAll(name)].map(e => e.innerText).join()).join("|") == '（叹气）,"Come."|重要：|没有|"Come."'`)
	c.see("where the links lead", `[...`+text+`.querySelectorAll("a")].map(a => a.href).join() == "https://example.com/a,https://example.com/%E8%B7%AF%E5%BE%84"`)
	c.p.stop(t)
}

// TestPageCitations: a mark in a reply opens the quote of its source, whatever the source
// says. No server sends such sources, so the page gets them on the way.
func TestPageCitations(t *testing.T) {
	c := newChatPage(t)
	_, err := chromedp.Call(c.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const get = fetch
		window.fetch = async (...request) => {
			const response = await get(...request)
			if (!/messages/.test(request[0].url ?? request[0])) return response
			const text = await response.text(), at = text.lastIndexOf('"references":[]')
			return new Response(at < 0 ? text : text.slice(0, at) + '"references":' + JSON.stringify([
				{marker: 1, kind: "web", title: "Ferries <b>of</b> the north", url: "https://ferries.example/north", exactQuote: "It leaves at nine.", evidence: "page", dateTime: "2026-03-14T00:00:00.000Z"},
				{marker: 3, kind: "web", title: "\u202egnp.exe", url: "javascript:hit=1", exactQuote: "<script>hit=1</script>", evidence: "snippet"},
			]) + ',"citationReport":' + JSON.stringify({sentences: 3, marked: 2, marks: 2, supported: 2, unsourced: ["1989", "<img src=x onerror=hit=1>\u202e"]}) + text.slice(at + 15), response)
		}`})
	if err != nil {
		t.Fatal(err)
	}
	chat := importChat(t, c.p, sampleCharacter(t, c.p.client), "Ferries", "When?", "At nine.[^1] Not in winter.[^3] Nobody knows.[^2] `a[^1]`")
	openPage(t, c.ctx, c.p)
	goTo(t, c.ctx, "/chats/"+chat, shownAs("At nine."))
	const sources, marks = `document.querySelectorAll("article.last ol details")`, `[...document.querySelectorAll("article.last .text button")]`
	c.see("two marks; the others are text", marks+`.map(b => b.innerText).join() == "1,3" && document.querySelector("article.last .text").innerText.includes("Nobody knows.[^2] a[^1]")`)
	c.see("the sources are closed", sources+`.length == 2 && !document.querySelector("article.last ol [open]")`)
	c.see("pressing the first", `(`+marks+`[0].click(), true)`)
	c.see("its quote, its page and its date", sources+`[0].open && ["It leaves at nine.", "Ferries <b>of</b> the north", "March 14, 2026"].every(s => `+sources+`[0].innerText.includes(s)) && `+sources+`[0].querySelector("a").href == "https://ferries.example/north"`)
	c.see("pressing the second", `(`+marks+`[1].click(), true)`)
	c.see("its quote instead, without a link, and what it comes from", sources+`[1].open && !`+sources+`[0].open && !`+sources+`[1].querySelector("a") && /<script>hit=1<.script>[^]*search result/i.test(`+sources+`[1].innerText) && !/\u202e/.test(`+sources+`[1].innerText)`)
	c.see("how much has a source", `document.querySelector("article.last .report")?.innerText.includes("2 sources")`)
	c.see("what no source has", `/^Not found in any source: 1989, <img src=x onerror=hit=1>$/.test(document.querySelector("article.last .missing")?.innerText.trim())`)
	c.see("nothing has run", `window.hit === undefined && !document.querySelector("article img")`)
	c.p.stop(t)
}

// TestPageBranches goes from branch to branch at the message and in the tree, looks into
// a save point there, and restores it.
func TestPageBranches(t *testing.T) {
	c := openChatPage(t)
	c.ask("Good evening!", "Good evening.")
	c.ask("Where to?", "To the sea.")
	c.says("It does.")
	c.pressAt("Good evening!", "Edit")
	c.fill(`[aria-label="Text of the message"]`, "It rains.")
	c.press("Save and send as a new branch")
	c.last("complete", "It does.")

	c.see("2/2", shownAs("It rains.")+`.closest("article").querySelector(".branches")?.innerText.trim() == "2/2"`)
	c.pressAt("It rains.", "Previous branch")
	c.last("complete", "To the sea.")
	c.messages(5)
	c.see("1/2", shownAs("Good evening!")+`.closest("article").querySelector(".branches")?.innerText.trim() == "1/2"`)

	c.press("Branches and save points")
	c.fill(`dialog [aria-label="Description"]`, "before the rain")
	c.press("Create save point")
	const dialog = `document.querySelector("dialog[open]")`
	c.see("the save point stands in the tree", `[...`+dialog+`.querySelectorAll(".tree button")].some(b => b.innerText.trim() == "before the rain")`)
	c.see("both branches, one of them shown", `[...`+dialog+`.querySelectorAll(".tree .run")].length == 3 && [...`+dialog+`.querySelectorAll(".tree .run.shown")].length == 2`)
	c.press("Show")
	c.last("complete", "It does.")
	c.messages(3)
	c.reload()
	c.last("complete", "It does.")

	c.press("Branches and save points")
	c.press("before the rain")
	c.see("what it holds", `(d => d.includes("To the sea.") && !d.includes("It rains."))([...document.querySelectorAll("dialog[open]")].at(-1).innerText)`)
	c.press("Restore")
	c.last("complete", "To the sea.")
	c.messages(5)
	c.pressAt("Good evening!", "Next branch")
	c.last("complete", "It does.")

	// A message of the other branch is found, and shown there with what followed.
	chat := strings.TrimPrefix(evalString(t, c.ctx, `location.hash`), "#/chats/")
	typeIn(t, c.ctx, `aside [type=search]`, `"where to?"`)
	c.see("on another branch", hits+`.endsWith(": Where to?") && document.querySelector("aside section li").innerText.includes("another branch")`)
	click(t, c.ctx, `aside section li a`)
	c.see("the message", atMessage(chat, "Where to?"))
	c.last("complete", "To the sea.")
	c.messages(5)
	c.see("the user is told", `document.querySelector(".notes").innerText.includes("on another branch, which is shown now")`)
	c.press("Back to the branch before")
	c.last("complete", "It does.")
	c.messages(3)
	c.p.stop(t)
}

// TestPageWish: what is asked for reaches the model, and the messages stay as they are.
func TestPageWish(t *testing.T) {
	c := openChatPage(t)
	c.ask("Good evening!", "Good evening, traveller of the long road.")
	c.says("Evening.")
	c.pressAt("Good evening, traveller", "Regenerate with instructions…")
	c.fill("dialog[open] textarea", "Shorter, please")
	c.press("Regenerate")
	c.last("complete", "Evening.")
	if got := c.asked(); !strings.Contains(got, "Shorter, please") {
		t.Fatalf("c.asked() is %q, want it with %q", got, "Shorter, please")
	}
	c.said("Good evening!", 1)
	c.press("Previous swipe")
	c.last("complete", "Good evening, traveller of the long road.")
	c.p.stop(t)
}

// TestPageRegeneratesAnEarlierReply: the new branch can be left again at once.
func TestPageRegeneratesAnEarlierReply(t *testing.T) {
	c := openChatPage(t)
	c.ask("Good evening!", "Good evening.")
	c.ask("Where to?", "To the sea.")
	c.says("Evening.")
	c.pressAt("Good evening.", "Regenerate")
	c.last("complete", "Evening.")
	c.messages(3)
	c.pressAt("Evening.", "Previous branch")
	c.last("complete", "To the sea.")
	c.pressAt("Good evening.", "Next branch")
	c.last("complete", "Evening.")
	c.p.stop(t)
}

// TestPageGetReply: a message whose reply was deleted is answered without a branch.
func TestPageGetReply(t *testing.T) {
	c := openChatPage(t)
	c.ask("Good evening!", "Good morning.")
	c.pressAt("Good morning.", "Delete message")
	c.messages(2)
	c.says("Evening.")
	c.pressAt("Good evening!", "Get a reply")
	c.last("complete", "Evening.")
	c.said("Good evening!", 1)
	c.messages(3)
	c.see("no branch", `!document.querySelector("article .branches")`)
	c.p.stop(t)
}

// TestPageChatDetails: the title, persona, note, preset and options of one chat are set
// in the page, and the next request has them.
func TestPageChatDetails(t *testing.T) {
	c := newChatPage(t)
	api(t, c.p, http.MethodPost, "/personas", map[string]any{"name": "Mia", "document": map[string]any{"name": "Mia", "description": "Mia is a clockmaker."}}, nil)
	var ch, chat cli.Item
	api(t, c.p, http.MethodPost, "/characters", map[string]any{"dialect": "sillytavern", "roleCard": map[string]any{"name": "Wren", "first_mes": "Hello."}}, &ch)
	api(t, c.p, http.MethodPost, "/conversations", map[string]any{"characterId": ch.ID}, &chat)
	openPage(t, c.ctx, c.p)
	goTo(t, c.ctx, "/chats/"+chat.ID, shownAs("Hello."))
	c.ask("Good evening!", "Good evening.")
	if got := c.asked(); strings.Contains(got, "clockmaker") {
		t.Fatalf("c.asked() is %q, want it without %q", got, "clockmaker")
	}

	click(t, c.ctx, `main header [aria-haspopup=menu]`)
	c.press("Chat settings")
	c.see("the personas", `[...document.querySelectorAll("dialog option")].some(o => o.innerText == "Mia")`)
	typeLabelled(t, c.ctx, "Title", "The frozen harbour")
	c.see("Mia is chosen", `(s => (s.selectedIndex = [...s.options].findIndex(o => o.innerText == "Mia"), s.dispatchEvent(new Event("change", {bubbles: true})), true))(`+labelled("Your persona")+`)`)
	typeLabelled(t, c.ctx, "Text of the note", "It snows all day.")
	typeLabelled(t, c.ctx, "Model", "another-model")
	typeLabelled(t, c.ctx, "Temperature", "0.25")
	c.press("Save")
	c.see("the title", `document.querySelector("main h1").innerText == "The frozen harbour" && `+listed+` == "The frozen harbour"`)
	c.ask("Who am I?", "Mia, who else?")
	for _, part := range []string{"Mia is a clockmaker.", "It snows all day.", "another-model", "0.25"} {
		if got := c.asked(); !strings.Contains(got, part) {
			t.Fatalf("c.asked() is %q, want it with %q", got, part)
		}
	}
	c.see("her name at the message", shownAs("Who am I?")+`.closest("article").querySelector("header b").innerText == "Mia"`)
	c.p.stop(t)
}

// TestPageGreetings: a long greeting opens at its start, others are one swipe away, and
// each chat keeps its own draft.
func TestPageGreetings(t *testing.T) {
	c := newChatPage(t)
	long := "The beginning. " + strings.Repeat("The river is high tonight.\n\n", 60)
	var ch, other, chat cli.Item
	api(t, c.p, http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"spec": "chara_card_v2", "spec_version": "2.0", "data": map[string]any{
		"name": "Wren", "first_mes": long, "alternate_greetings": []string{"Another greeting."}}}}, &ch)
	api(t, c.p, http.MethodPost, "/conversations", map[string]any{"characterId": ch.ID, "title": "First"}, &other)
	api(t, c.p, http.MethodPost, "/conversations", map[string]any{"characterId": ch.ID, "title": "Second"}, &chat)
	openPage(t, c.ctx, c.p)
	goTo(t, c.ctx, "/chats/"+chat.ID, shownAs("The beginning."))
	c.see("its start is in view, its end is not", `(s => (r => r.top >= s.top && r.top < s.top + 200 && r.bottom > s.bottom)(document.querySelector("article").getBoundingClientRect()))(document.querySelector(".scroller").getBoundingClientRect())`)
	c.press("Next swipe")
	c.last("complete", "Another greeting.")
	c.press("Previous swipe")
	c.see("the first again", shownAs("The beginning."))

	write := func(text string) {
		t.Helper()
		if err := chromedp.Do(c.ctx, chromedp.SendKeys(compose, text)); err != nil {
			t.Fatal(err)
		}
	}
	draft := func(text string) {
		t.Helper()
		c.see(fmt.Sprintf("the draft %q", text), `document.querySelector("`+compose+`")?.value == `+jsString(text))
	}
	write("to the second")
	goTo(t, c.ctx, "/chats/"+other.ID, `document.querySelector("main h1").innerText == "First"`)
	draft("")
	write("to the first")
	goTo(t, c.ctx, "/chats/"+chat.ID, `document.querySelector("main h1").innerText == "Second"`)
	draft("to the second")
	c.reload()
	draft("to the second")
	goTo(t, c.ctx, "/chats/"+other.ID, `document.querySelector("main h1").innerText == "First"`)
	draft("to the first")
	c.p.stop(t)
}
