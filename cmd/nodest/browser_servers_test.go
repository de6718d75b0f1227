package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// TestPageAddsAServer adds a server by a preset, tests it, chats with it, changes and deletes it.
func TestPageAddsAServer(t *testing.T) {
	ctx := browser(t)
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("small", "large")
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("The tide is low.") })
	p := newPageInstallation(t).start(t)
	character := sampleCharacter(t, p.client)
	signInPage(t, ctx, p)
	const card = `document.querySelector("[data-provider=ollama]")`
	goTo(t, ctx, "/settings/models", `document.querySelector("[data-provider=openai] [data-address]").innerText == "https://api.openai.com/v1"`)
	for _, width := range []int64{390, 1280} {
		if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 844)); err != nil {
			t.Fatal(err)
		}
		clickText(t, ctx, "Add a server…")
		fill(t, ctx, "dialog select[name=kind]", "deepseek")
		waitJS(t, ctx, "where DeepSeek gives keys", `document.querySelector("dialog a[href='https://platform.deepseek.com/api_keys']")`)
		fill(t, ctx, "dialog select[name=kind]", "ollama")
		waitJS(t, ctx, "the preset", `document.querySelector("dialog [name=name]").value == "ollama" && document.querySelector("dialog [name=baseUrl]").value == "http://127.0.0.1:11434/v1"`)
		waitJS(t, ctx, "nothing is wider than the page", `document.documentElement.scrollWidth <= innerWidth && document.querySelector("dialog").scrollWidth <= innerWidth`)
		if width == 390 {
			clickText(t, ctx, "Cancel")
			waitJS(t, ctx, "the dialog is closed", `!document.querySelector("dialog")`)
		}
	}
	fill(t, ctx, "dialog [name=baseUrl]", "http://user:secret@127.0.0.1/v1")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the address is refused at its field", `document.querySelector("dialog [name=baseUrl]").validationMessage != ""`)
	fill(t, ctx, "dialog [name=baseUrl]", fake.URL)
	fill(t, ctx, "dialog [name=key]", "sk-of-the-page")
	clickIn(t, ctx, "dialog", "Test")
	waitJS(t, ctx, "the models of the server", `document.querySelector("dialog [role=status]").innerText.includes("small · large")`)
	fill(t, ctx, "dialog [name=model]", "large")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the server", card+`.innerText.includes("Ollama") && `+card+`.querySelector("[data-address]").innerText == `+jsString(fake.URL))

	// It can be chosen, and a chat uses it.
	waitJS(t, ctx, "choosing a model", `(b => b && (b.click(), true))([...`+card+`.querySelectorAll("button")].find(b => b.innerText.startsWith("Choose model")))`)
	waitJS(t, ctx, "the server in the list", `document.querySelector("dialog select[name=provider]").value == "ollama"`)
	waitJS(t, ctx, "the default of the server", `(b => b && (b.click(), true))([...document.querySelectorAll("dialog [role=option]")].find(b => b.innerText.includes("large")))`)
	waitJS(t, ctx, "it is in use", card+`.innerText.includes("In use")`)
	goTo(t, ctx, "/chats/"+newConversation(t, p.client, character), `document.querySelector("`+compose+`")`)
	sendInPage(t, ctx, "How is the tide?")
	waitJS(t, ctx, "the reply of the server", `document.querySelector("main").innerText.includes("The tide is low.")`)
	if got := lastKey(fake); got != "key sk-of-the-page, model large" {
		t.Errorf("asked with %s", got)
	}

	// The key is never shown again, and stays when it is not typed.
	goTo(t, ctx, "/settings/models", card)
	clickIn(t, ctx, "[data-provider=ollama]", "Change server…")
	waitJS(t, ctx, "no key", `document.querySelector("dialog [name=key]").value == "" && document.querySelector("dialog [name=drop]") && !document.documentElement.outerHTML.includes("sk-of-the-page")`)
	fill(t, ctx, "dialog [name=model]", "small")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the dialog is closed", `!document.querySelector("dialog")`)
	var list struct {
		Items []struct {
			Model  string
			HasKey bool
		}
	}
	api(t, p, http.MethodGet, "/servers", nil, &list)
	if len(list.Items) != 1 || list.Items[0].Model != "small" || !list.Items[0].HasKey {
		t.Errorf("%+v", list)
	}
	clickIn(t, ctx, "[data-provider=ollama]", "Delete server")
	clickIn(t, ctx, "dialog", "Delete server")
	waitJS(t, ctx, "the server is gone", `document.querySelector("[data-provider=openai]") && !`+card)
}
