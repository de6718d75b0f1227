package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPageMemories adds a memory in one chat, sees in another that it was recalled,
// edits it, archives it, and forgets everything about it.
func TestPageMemories(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=0s").start(t)
	openSample(t, ctx, p)
	sendInPage(t, ctx, "My sister Ana keeps bees in Lisbon.")
	waitJS(t, ctx, "the reply", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)

	click(t, ctx, `[aria-label="Memory"]`)
	fill := func(label, words string) {
		t.Helper()
		selector := `[aria-label="` + label + `"]`
		require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(selector), chromedp.SendKeys(selector, words)))
	}
	fill("New memory", "Ana is allergic to peanuts.")
	clickText(t, ctx, "Add")
	waitJS(t, ctx, "the memory is listed", `document.querySelector(".facts .text")?.innerText == "Ana is allergic to peanuts."`)
	waitJS(t, ctx, "where it is from", `document.querySelector(".facts .note").innerText.includes("written by you")`)
	fill("Search memories", "who keeps bees?")
	clickText(t, ctx, "Search")
	waitJS(t, ctx, "what was said is found", `document.querySelector(".found .text")?.innerText == "My sister Ana keeps bees in Lisbon."`)

	waitJS(t, ctx, "a new chat", `(b => b && (b.click(), true))(document.querySelector('[title="New chat"]'))`)
	waitJS(t, ctx, "its greeting", `document.querySelectorAll("article").length == 1 && document.querySelectorAll("nav .row.chosen").length == 1`)
	sendInPage(t, ctx, "Can Ana eat peanuts?")
	waitJS(t, ctx, "the answer", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)
	waitJS(t, ctx, "why it was so", `(b => b && (b.click(), true))([...document.querySelectorAll("article button")].find(b => b.innerText.startsWith("Recalled")))`)
	waitJS(t, ctx, "the memory is the reason", `[...document.querySelectorAll(".why li")].some(l => l.innerText.includes("Ana is allergic to peanuts."))`)

	waitJS(t, ctx, "pinning", `(b => b && (b.click(), true))([...document.querySelectorAll(".facts button")].find(b => b.innerText == "Pin"))`)
	waitJS(t, ctx, "pinned", `document.querySelector(".facts li.pinned")`)
	waitJS(t, ctx, "editing", `(b => b && (b.click(), true))([...document.querySelectorAll(".facts button")].find(b => b.innerText == "Edit"))`)
	fill("New text", " And to almonds.")
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "the new text", `document.querySelector(".facts .text")?.innerText == "Ana is allergic to peanuts. And to almonds."`)
	clickText(t, ctx, "Archive")
	waitJS(t, ctx, "it is not listed", `!document.querySelector(".facts .text")`)
	click(t, ctx, `.memory [type=checkbox]`)
	clickText(t, ctx, "Restore")
	waitJS(t, ctx, "none is aside", `document.querySelector(".facts")?.innerText.includes("No archived memories")`)
	click(t, ctx, `.memory [type=checkbox]`)
	waitJS(t, ctx, "it is back", `document.querySelector(".facts .text")?.innerText.includes("almonds")`)

	fill("Delete memories about", "peanuts")
	clickText(t, ctx, "Preview")
	waitJS(t, ctx, "what would go", `[...document.querySelectorAll(".leaving li")].some(l => l.innerText.includes("Ana is allergic to peanuts."))`)
	waitJS(t, ctx, "forgetting", `(b => b && (b.click(), true))([...document.querySelectorAll("button")].find(b => b.innerText.startsWith("Delete ")))`)
	waitJS(t, ctx, "it is gone", `!document.querySelector(".leaving") && !document.querySelector(".facts .text")`)
	p.stop(t)
}

// TestPageSuggestionsAndSummaries: a suggestion to change the user's own memory
// appears by itself and takes effect once accepted. A summary can be created, edited
// and deleted.
func TestPageSuggestionsAndSummaries(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=0s").start(t)
	call := func(method, path string, body, out any) {
		t.Helper()
		require.NoError(t, p.client.call(t.Context(), method, "/api/v1"+path, body, out))
	}
	var made struct{ Character struct{ ID string } }
	call(http.MethodPost, "/characters/sample", nil, &made)
	var chat struct{ ID string }
	call(http.MethodPost, "/conversations", map[string]any{"characterId": made.Character.ID}, &chat)
	call(http.MethodPost, "/characters/"+made.Character.ID+"/memories", map[string]any{"text": "User is 30 years old", "kind": "profile"}, nil)
	for _, said := range []string{"I am 31 years old.", "We keep nine hives of bees on the roof.", "The river is high.", "The baker wants forty jars.", "It rains."} {
		call(http.MethodPost, "/conversations/"+chat.ID+"/messages", map[string]any{"text": said}, nil)
	}

	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(p.client.base+"/signin#"+p.link)))
	waitJS(t, ctx, "the chat", `document.querySelectorAll("article").length == 11`)
	click(t, ctx, `[aria-label="Memory"]`)
	waitJS(t, ctx, "the user's memory", `[...document.querySelectorAll(".facts .text")].some(f => f.innerText == "User is 30 years old")`)
	call(http.MethodPost, "/conversations/"+chat.ID+"/memory/extract", map[string]any{}, nil)
	waitJS(t, ctx, "the suggestion", `document.querySelector(".suggestions .text")?.innerText == "Change: User is 30 years old → User is 31 years old"`)
	clickText(t, ctx, "Accept")
	waitJS(t, ctx, "it has happened", `!document.querySelector(".suggestions") && [...document.querySelectorAll(".facts .text")].some(f => f.innerText == "User is 31 years old")`)

	clickText(t, ctx, "Summarise now")
	waitJS(t, ctx, "the summary", `document.querySelector(".summary .text")?.innerText.includes("nine hives of bees")`)
	waitJS(t, ctx, "of what and by whom", `document.querySelector(".summary .note").innerText.startsWith("messages 4 to 8 · selected sentences")`)
	click(t, ctx, ".summary footer button")
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(`[aria-label="New summary"]`), chromedp.SendKeys(`[aria-label="New summary"]`, " They like honey.")))
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "the user's words", `document.querySelector(".summary .text")?.innerText.endsWith("They like honey.") && document.querySelector(".summary .note").innerText.includes("edited by you")`)
	waitJS(t, ctx, "deleting it", `(b => b && (b.click(), true))([...document.querySelectorAll(".summary button")].find(b => b.innerText == "Delete"))`)
	waitJS(t, ctx, "the whole chat is sent", `document.querySelector(".memory").innerText.includes("No summary: the whole chat is sent to the model.")`)
	p.stop(t)
}
