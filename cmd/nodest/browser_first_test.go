package main

import (
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
