package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// promptChat starts a chat with the sample character, a memory and three replies, the
// last of which uses the memory, and shows it in the browser. It returns the chat's id.
func promptChat(t *testing.T, ctx context.Context, p *process) string {
	t.Helper()
	call := func(path string, body, out any) {
		t.Helper()
		if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1"+path, body, out); err != nil {
			t.Fatal(err)
		}
	}
	var made struct{ Character struct{ ID string } }
	call("/characters/sample", nil, &made)
	var chat struct{ ID string }
	call("/conversations", map[string]any{"characterId": made.Character.ID}, &chat)
	call("/characters/"+made.Character.ID+"/memories", map[string]any{"text": "Ana is allergic to peanuts.", "kind": "event"}, nil)
	for _, said := range []string{"Good evening!", "What do you know about the drowned bridge?", "Is Ana allergic to peanuts?"} {
		call("/conversations/"+chat.ID+"/messages", map[string]any{"text": said}, nil)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(p.client.Base+"/signin#"+p.link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "signed in", `document.querySelector("main")`)
	waitJS(t, ctx, "going to the chat", `(location.hash = "#/chats/`+chat.ID+`")`)
	waitJS(t, ctx, "the last reply", `document.querySelector("article.last.assistant[data-status=complete]")`)
	return chat.ID
}

// partJS finds a part of the shown request by a text of it. The browser does not lay out
// what is far away (content-visibility), so it has textContent and no innerText.
func partJS(text string) string {
	return `[...document.querySelectorAll(".part")].find(e => e.textContent.includes(` + jsString(text) + `))`
}

// changeJS finds a row of the shown changes by two texts of it.
func changeJS(op, text string) string {
	return `[...document.querySelectorAll("details[data-op=` + op + `]")].find(e => e.textContent.includes(` + jsString(text) + `))`
}

func tabOf(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	waitJS(t, ctx, "the tab "+name, `(b => b && (b.click(), true))([...document.querySelectorAll("[role=tab]")].find(b => b.innerText.startsWith(`+jsString(name)+`)))`)
}

// TestPagePrompt opens the request behind a reply from the chat: its parts with source,
// reason and text, what was left out, what has changed since the request before, and how
// long the reply took. It runs the reply again with a wish and without memories, and
// sees what that changed in the request.
func TestPagePrompt(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=5ms").start(t)
	promptChat(t, ctx, p)

	click(t, ctx, `article.last footer [aria-haspopup=menu]`)
	clickText(t, ctx, "Show the prompt")
	waitJS(t, ctx, "the parts", partJS("Is Ana allergic to peanuts?"))
	waitJS(t, ctx, "the budget", `/^[\d,]+ of [\d,]+ tokens$/.test(document.querySelector("[aria-label=Budget] strong").innerText)`)
	waitJS(t, ctx, "the reserve", `document.querySelector("[aria-label=Budget]").innerText.includes("Kept for reply")`)
	waitJS(t, ctx, "a part of the card, and why", partJS("Char Description")+`.textContent.includes("listed by the preset")`)
	waitJS(t, ctx, "a world-book entry and its key", partJS("The drowned bridge")+`.textContent.match(/World book[^]*key “.*” fired[^]*after the character’s description/)`)
	waitJS(t, ctx, "the memory apart from the message", partJS("1. Ana is allergic to peanuts.")+`.textContent.trim().startsWith("Memory")`)
	waitJS(t, ctx, "the block around it", partJS("<mem>")+`.textContent.trim().startsWith("Guidelines")`)
	waitJS(t, ctx, "the end of the cached prefix", `document.querySelector(".cut")?.innerText.startsWith("The same as in the request before up to here")`)

	waitJS(t, ctx, "opening a part", `(b => (b.click(), true))(`+partJS("Char Description")+`.querySelector("button"))`)
	waitJS(t, ctx, "all of its text", `document.querySelector(".part pre")?.innerText.includes("Wren Halloway keeps the Lantern Ferry")`)
	waitJS(t, ctx, "only the world book", `(b => b && (b.click(), true))([...document.querySelectorAll("[aria-label=Budget] button")].find(b => b.innerText.startsWith("World book")))`)
	waitJS(t, ctx, "one source", `document.querySelectorAll(".part").length > 0 && [...document.querySelectorAll(".part")].every(e => e.dataset.source == "worldbook")`)
	clickText(t, ctx, "Show all parts")
	if err := chromedp.Do(ctx, chromedp.SendKeys(`[aria-label="Find in prompt"]`, "allergic to pea")); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "what was looked for is open", `document.querySelectorAll(".part").length == 2 && document.querySelectorAll(".part pre").length == 2`)

	tabOf(t, ctx, "Left out")
	waitJS(t, ctx, "everything is in", `document.querySelector("[role=tabpanel]").innerText.includes("Nothing was left out")`)

	tabOf(t, ctx, "Changes")
	waitJS(t, ctx, "the request before", `document.querySelector("select")?.selectedOptions[0].text.startsWith("the request before: Reply · ")`)
	waitJS(t, ctx, "the memory is new", changeJS("added", "1. Ana is allergic to peanuts."))
	waitJS(t, ctx, "the message is another one", changeJS("changed", "Your message")+`?.querySelector("ins")`)

	tabOf(t, ctx, "Reply")
	waitJS(t, ctx, "the time", `document.querySelectorAll("[role=tabpanel] dl dd i").length >= 3 && document.querySelector("[role=tabpanel] dl").innerText.includes("Writing")`)
	old := evalString(t, ctx, `location.hash`)

	clickText(t, ctx, "Run again")
	if err := chromedp.Do(ctx, chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "shorter, please")); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "without memories", `(s => s && (s.value = "Off", s.dispatchEvent(new Event("change", {bubbles: true})), s.value == "Off"))(`+labelled("Memories")+`)`)
	click(t, ctx, "dialog button.primary")
	waitJS(t, ctx, "another reply", `location.hash.startsWith("#/prompts/") && location.hash != `+jsString(old))
	waitJS(t, ctx, "it is complete", `document.querySelector("main [data-status]")?.dataset.status == "done"`)
	waitJS(t, ctx, "compared with the first one", `document.querySelector("select")?.selectedOptions[0].text == "the request before: swipe 1 of this reply"`)
	waitJS(t, ctx, "the wish", `[...`+changeJS("changed", "Your message")+`?.querySelectorAll("ins") ?? []].map(e => e.innerText).join("").includes("shorter, please")`)
	waitJS(t, ctx, "the memory is gone", changeJS("removed", "1. Ana is allergic to peanuts."))
	waitJS(t, ctx, "the wish is shown", `document.querySelector("main .about").innerText.includes("Wish: shorter, please")`)

	waitJS(t, ctx, "a clipboard", `(navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	click(t, ctx, `main [aria-haspopup=menu]`)
	clickText(t, ctx, "Copy the request as JSON")
	waitJS(t, ctx, "the request", `window.copied && JSON.parse(window.copied).at(-1).content.includes("shorter, please")`)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "on a phone nothing is wider than the screen", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)
	p.stop(t)
}

// TestPagePromptPreview previews the request of a message that is not sent, and once
// more with a smaller context: the messages that have no room any more are named, and
// the difference between the two previews is shown.
func TestPagePromptPreview(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	id := promptChat(t, ctx, p)

	const view = `document.querySelector("main h1")?.innerText.startsWith("Next request")`
	goTo(t, ctx, "/prompts/new/"+id, view)
	if err := chromedp.Do(ctx, chromedp.WaitVisible("main form textarea"), chromedp.SendKeys("main form textarea", "And the lantern?")); err != nil {
		t.Fatal(err)
	}
	clickText(t, ctx, "Preview")
	waitJS(t, ctx, "the message is a part", partJS("And the lantern?")+`?.textContent.trim().startsWith("Your message")`)
	tabOf(t, ctx, "Changes")
	waitJS(t, ctx, "compared with the latest request", `document.querySelector("select:has(option[value=sent])")?.value == "sent"`)
	waitJS(t, ctx, "the latest reply's message is history now", changeJS("added", "Is Ana allergic to peanuts?"))

	waitJS(t, ctx, "the options", `(d => d && (d.open = true))(document.querySelector("main form details"))`)
	typeLabelled(t, ctx, "Context (tokens)", "700")
	clickText(t, ctx, "Preview")
	waitJS(t, ctx, "history was removed", changeJS("removed", "Good evening!"))
	waitJS(t, ctx, "compared with the preview before", `document.querySelector("select:has(option[value=preview])")?.value == "preview"`)
	tabOf(t, ctx, "Left out")
	waitJS(t, ctx, "no room", `document.querySelector("[role=tabpanel]").innerText.match(/No room[^]*The prompt would have been longer than the budget[^]*messages of the chat/)`)
	var list struct{ Items []struct{ ID string } }
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations/"+id+"/messages", nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 7 {
		t.Fatalf("a preview stores nothing: list.Items has %d, want %d: %+v", len(list.Items), 7, list.Items)
	}

	// A provider has the request of the last reply, although that was deleted since.
	api(t, p, http.MethodDelete, "/messages/"+list.Items[6].ID, nil, nil)
	goTo(t, ctx, "/chats/"+id, `document.querySelector("article.last.user")`)
	goTo(t, ctx, "/prompts/new/"+id, view)
	clickText(t, ctx, "Preview")
	tabOf(t, ctx, "Changes")
	waitJS(t, ctx, "compared with it", `/^the request before: Reply · .* · no longer in the chat$/.test(document.querySelector("select:has(option[value=sent])")?.selectedOptions[0].text)`)
	// A minute later, the time in it is another one.
	waitJS(t, ctx, "nothing of it is missing in this one", `(text => /The two requests are the same\.|Changed\s+(Guidelines|Memory)[^]*Now:/.test(text) && !/^(Added|Removed)$/m.test(text))(document.querySelector("[role=tabpanel]").innerText)`)
	p.stop(t)
}
