package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPageRemembers adds a memory beside one chat, sees in another that it was
// recalled, changes it, sets it aside, and forgets everything about it.
func TestPageRemembers(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=0s").start(t)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(p.client.base+"/signin#"+p.link)))
	script(t, ctx, "the page offers the sample", `[...document.querySelectorAll("main button")].some(b => b.innerText == "Sample character")`)
	click(t, ctx, "main button")
	script(t, ctx, "the greeting", `document.querySelectorAll("article.assistant .text").length == 1`)
	say(t, ctx, "My sister Ana keeps bees in Lisbon.")
	script(t, ctx, "the reply", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)

	click(t, ctx, `[aria-label="Memory"]`)
	fill := func(label, words string) {
		t.Helper()
		selector := `[aria-label="` + label + `"]`
		require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(selector), chromedp.SendKeys(selector, words)))
	}
	fill("New memory", "Ana is allergic to peanuts.")
	clickText(t, ctx, "Add")
	script(t, ctx, "the memory is listed", `document.querySelector(".facts .text")?.innerText == "Ana is allergic to peanuts."`)
	script(t, ctx, "where it is from", `document.querySelector(".facts .note").innerText.includes("written by you")`)
	fill("Search the memory", "who keeps bees?")
	clickText(t, ctx, "Search")
	script(t, ctx, "what was said is found", `document.querySelector(".found .text")?.innerText == "My sister Ana keeps bees in Lisbon."`)

	script(t, ctx, "a new chat", `(b => b && (b.click(), true))(document.querySelector('[title="New chat"]'))`)
	script(t, ctx, "its greeting", `document.querySelectorAll("article").length == 1 && document.querySelectorAll("nav .row.chosen").length == 1`)
	say(t, ctx, "Can Ana eat peanuts?")
	script(t, ctx, "the answer", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)
	script(t, ctx, "why it was so", `(b => b && (b.click(), true))([...document.querySelectorAll("article button")].find(b => b.innerText.startsWith("Recalled")))`)
	script(t, ctx, "the memory is the reason", `[...document.querySelectorAll(".why li")].some(l => l.innerText.includes("Ana is allergic to peanuts."))`)

	script(t, ctx, "pinning", `(b => b && (b.click(), true))([...document.querySelectorAll(".facts button")].find(b => b.innerText == "Pin"))`)
	script(t, ctx, "pinned", `document.querySelector(".facts li.pinned")`)
	script(t, ctx, "editing", `(b => b && (b.click(), true))([...document.querySelectorAll(".facts button")].find(b => b.innerText == "Edit"))`)
	fill("New text", " And to almonds.")
	clickText(t, ctx, "Keep")
	script(t, ctx, "the new text", `document.querySelector(".facts .text")?.innerText == "Ana is allergic to peanuts. And to almonds."`)
	clickText(t, ctx, "Set aside")
	script(t, ctx, "it is not listed", `!document.querySelector(".facts .text")`)
	click(t, ctx, `.memory [type=checkbox]`)
	clickText(t, ctx, "Bring back")
	script(t, ctx, "none is aside", `document.querySelector(".facts")?.innerText.includes("None was set aside")`)
	click(t, ctx, `.memory [type=checkbox]`)
	script(t, ctx, "it is back", `document.querySelector(".facts .text")?.innerText.includes("almonds")`)

	fill("Forget everything about", "peanuts")
	clickText(t, ctx, "Look")
	script(t, ctx, "what would go", `[...document.querySelectorAll(".leaving li")].some(l => l.innerText.includes("Ana is allergic to peanuts."))`)
	script(t, ctx, "forgetting", `(b => b && (b.click(), true))([...document.querySelectorAll("button")].find(b => b.innerText.startsWith("Forget these")))`)
	script(t, ctx, "it is gone", `!document.querySelector(".leaving") && !document.querySelector(".facts .text")`)
	p.stop(t)
}
