package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// TestPageFirstMinutes walks with a new person: they say their name, chat with the sample
// character, come back to the same chat, begin another one that has a title of its own, see a
// failed reply as one, look at what was sent, and choose another model.
func TestPageFirstMinutes(t *testing.T) {
	c := newChatPage(t)
	if err := chromedp.Do(c.ctx, chromedp.Navigate(c.p.client.Base+"/signin#"+c.p.link)); err != nil {
		t.Fatal(err)
	}
	c.see("the question", pageText("What should your characters call you?"))
	c.fill("input[autocomplete=nickname]", "Mia")
	c.press("Use this name")
	c.see("it is answered", `!document.querySelector("input[autocomplete=nickname]")`)
	c.press("Sample character")
	c.see("the greeting knows the name", `document.querySelector("article .text")?.innerText.includes("going, Mia?")`)
	c.ask("Good evening.", "Good evening, Mia.")
	c.see("no question in the chat", `!document.querySelector("input[autocomplete=nickname]")`)

	first := evalString(t, c.ctx, "location.hash")
	goTo(t, c.ctx, "/characters", found(".tile"))
	c.press("Chat with Wren Halloway")
	c.see("the same chat", `location.hash == `+jsString(first))
	c.messages(3)
	goTo(t, c.ctx, "/characters", found(".tile"))
	c.press("New chat with Wren Halloway")
	c.see("another chat", `location.hash.startsWith("#/chats/") && location.hash != `+jsString(first))
	c.messages(1)
	c.see("titles that differ", `(t => t.length == 2 && t[0] != t[1])([...document.querySelectorAll("aside [role=listitem] [aria-haspopup=menu]")].map(b => b.ariaLabel))`)
	c.says("To the sea.")
	c.send("Where does the river go?")
	c.last("complete", "To the sea.")
	c.see("the title", `document.querySelector("main h1").innerText == "Where does the river go?"`)

	c.replies <- llmtest.Reply{Status: 400, Message: "The harbour is closed."}
	c.send("And then?")
	c.see("the failure", `document.querySelector("article.last")?.dataset.status == "error"`)
	c.see("it is told as one", `[...document.querySelectorAll("[aria-live]")].some(e => e.innerText == "The reply failed.")`)
	c.see("no count of swipes", `!document.querySelector("article.last").innerText.includes("1/")`)
	c.press("Show the prompt")
	c.see("what was sent", `location.hash.startsWith("#/prompts/") && `+pageText("And then?"))

	goTo(t, c.ctx, first[1:], found("article.last"))
	c.press("Model of this chat: Automatic")
	c.see("the models", `document.querySelector("dialog[open] [role=option]")`)
	c.fill("dialog [role=combobox]", "another-model")
	c.keys("\r")
	c.see("the chosen model", `[...document.querySelectorAll("main header button")].some(b => b.ariaLabel == "Model of this chat: another-model")`)
	c.p.stop(t)
}

// TestPageAsksTheNameOnceForAllDevices puts the question off in one browser: another one does not ask it again, until
// a memory has learnt a name.
func TestPageAsksTheNameOnceForAllDevices(t *testing.T) {
	const field = `document.querySelector("input[autocomplete=nickname]")`
	m := openMemoryPage(t, "Good evening.")
	m.see("the question", pageText("What should your characters call you?"))
	m.press("Not now")
	m.see("it is put off", "!"+field)

	other := anotherBrowser(t)
	var made struct{ Link string }
	m.call(http.MethodPost, "/auth/links", map[string]any{}, &made)
	if err := chromedp.Do(other, chromedp.Navigate(m.p.client.Base+"/signin#"+made.Link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, other, "the settings on the other device", `document.querySelector("article") && performance.getEntriesByType("resource").some(e => e.name.endsWith("/api/v1/settings"))`)
	waitJS(t, other, "no question there", "!"+field)
	m.add(map[string]any{"text": "The user's name is Mia.", "kind": "profile", "subject": "user"})
	for _, page := range []context.Context{m.ctx, other} {
		waitJS(t, page, "the learnt name", field+`?.value == "Mia"`)
	}
	waitJS(t, other, "pressing Not now", `(b => b && (b.click(), true))(`+pressable("Not now")+`)`)
	for _, page := range []context.Context{m.ctx, other} {
		waitJS(t, page, "it is put off, too", "!"+field)
	}
}

// TestPageShowsWhichRepliesUsedTheProfile: all of them, also in a page that did not see them being written.
func TestPageShowsWhichRepliesUsedTheProfile(t *testing.T) {
	m := openMemoryPage(t, "Good evening.")
	m.add(map[string]any{"text": "The user keeps bees.", "kind": "profile", "subject": "user", "pinned": true})
	m.say(m.chat, "How are you?", "And the ferry?")
	replies := `[...document.querySelectorAll("article")].map(a => [...a.querySelectorAll("button")].filter(b => b.innerText.trim() == "Used your profile").length).join()`
	m.see("two of three replies", replies+` == "0,0,0,1,0,1"`)
	if err := chromedp.Do(m.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.see("after a reload", replies+` == "0,0,0,1,0,1"`)
	m.press("Used your profile")
	m.see("the fact", `document.querySelector("dialog[open]")?.innerText.includes("The user keeps bees.")`)

	var fork struct{ ID string }
	m.call(http.MethodPost, "/conversations/"+m.chat+"/fork", map[string]any{}, &fork)
	m.see("opening the fork", `(location.hash = "#/chats/`+fork.ID+`", true)`)
	m.see("two of three replies of a fork, without the dialog of the chat before", `!document.querySelector("dialog[open]") && location.hash.includes("`+fork.ID+`") && `+replies+` == "0,0,0,1,0,1"`)
	m.press("Used your profile")
	m.see("the fact in a fork", `document.querySelector("dialog[open]")?.innerText.includes("The user keeps bees.")`)
}
