package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// tavernCard is a card as SillyTavern exports it: a book with entries that fire and others that do not.
const tavernCard = `{"spec": "chara_card_v2", "spec_version": "2.0", "data": {
	"name": "Mira", "description": "Mira keeps the bell tower.", "personality": "calm", "scenario": "", "first_mes": "The tower is quiet.", "mes_example": "",
	"creator_notes": "", "system_prompt": "", "post_history_instructions": "", "alternate_greetings": [], "tags": [], "creator": "", "character_version": "",
	"extensions": {},
	"character_book": {"name": "Tower", "entries": [
		{"id": 0, "keys": ["bell"], "secondary_keys": ["storm"], "selective": true, "content": "The bell rings in storms.", "comment": "Bell", "constant": false, "enabled": true, "insertion_order": 100, "position": "after_char",
			"extensions": {"position": 4, "depth": 2, "role": 0, "probability": 100, "useProbability": true, "selectiveLogic": 0}},
		{"id": 1, "keys": ["/gate(s)?/i"], "secondary_keys": [], "selective": false, "content": "The gate is shut.", "comment": "Gate", "constant": false, "enabled": true, "insertion_order": 90, "position": "before_char", "extensions": {}},
		{"id": 2, "keys": ["bell"], "secondary_keys": [], "selective": false, "content": "Never drawn.", "comment": "Luck", "constant": false, "enabled": true, "insertion_order": 80, "position": "before_char",
			"extensions": {"probability": 0, "useProbability": true}}
	]}}}`

// verdictJS is what the page says about an entry of a world book in one of its two lists.
func verdictJS(list, name string) string {
	return `[...document.querySelectorAll("[data-verdicts=` + list + `] li")].find(li => li.querySelector("b").textContent == ` + jsString(name) + `)?.textContent`
}

// TestPageSillyTavern imports a card of SillyTavern. Its settings name the rules that it follows, the form of an
// entry has what counts by them, and the tester and the preview say why entries fire and others do not, also on a
// phone. A message that is hidden is not in the next request, and one that is shown again is.
func TestPageSillyTavern(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var imported struct{ Character struct{ ID string } }
	if err := p.client.Upload(t.Context(), "/api/v1/characters/import", "Mira.json", []byte(tavernCard), nil, &imported); err != nil {
		t.Fatal(err)
	}
	id := imported.Character.ID
	var chat struct{ ID string }
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": id}, &chat)
	openPage(t, ctx, p)

	goTo(t, ctx, "/characters/"+id+"/settings", `document.querySelector("[data-path=dialect]").value == "SillyTavern" && document.querySelector("[data-path='worldInfo.depth']")`)

	goTo(t, ctx, "/characters/"+id+"/worldbook", `document.querySelectorAll("main [role=listitem]").length == 3`)
	waitJS(t, ctx, "opening the entry", `(b => b && (b.click(), true))([...document.querySelectorAll("[role=listitem] button.name")].find(b => b.innerText.startsWith("Bell")))`)
	waitJS(t, ctx, "its secondary keys and its role", `document.querySelector("dialog [data-path=keysecondary]").value == "storm" && document.querySelector("dialog [data-path=role]")`)
	waitJS(t, ctx, "nothing more is set", `document.querySelector("dialog summary").innerText == "More"`)
	waitJS(t, ctx, "opening the rest", `(s => (s.click(), true))(document.querySelector("dialog summary"))`)
	waitJS(t, ctx, "a sticky time", `(f => (f.value = "3", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("dialog [data-path=sticky]"))`)
	waitJS(t, ctx, "it is counted", `document.querySelector("dialog summary").innerText == "More (1 set)"`)
	clickText(t, ctx, "Done")
	saveInPage(t, ctx)

	waitJS(t, ctx, "a text to test", `(f => (f.value = "The bell of the Gates", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("section.test textarea"))`)
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "the pattern fires", verdictJS("fires", "Gate")+`.includes("key “/gate(s)?/i”")`)
	waitJS(t, ctx, "a secondary key is missing", verdictJS("quiet", "Bell")+`.match(/secondary keys do not agree[^]*storm/)`)
	waitJS(t, ctx, "the number drawn", verdictJS("quiet", "Luck")+`.match(/not drawn · .*drew [\d.]+, needs 0/)`)

	goTo(t, ctx, "/chats/"+chat.ID, `document.querySelector("article.assistant .text")`)
	sendInPage(t, ctx, "Hear the bell in the storm!")
	waitJS(t, ctx, "the reply", `document.querySelector("article.last.assistant[data-status=complete]")`)
	preview := func(text string) {
		t.Helper()
		goTo(t, ctx, "/prompts/new/"+chat.ID, `document.querySelector("main form textarea")`)
		waitJS(t, ctx, "a text", `(f => (f.value = `+jsString(text)+`, f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("main form textarea"))`)
		clickText(t, ctx, "Preview")
	}
	preview("And now?")
	tabOf(t, ctx, "World book")
	waitJS(t, ctx, "the key in the message before", verdictJS("fires", "Bell")+`.match(/key “bell”, 2 messages before the newest|stays from before/)`)
	waitJS(t, ctx, "the tokens", `/\d+ tokens now, \d+ if all of them fired/.test(document.querySelector("[role=tabpanel] [role=status]").innerText)`)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "nothing is wider than a phone", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)

	mine := `[...document.querySelectorAll("article.user")].find(a => a.innerText.includes("Hear the bell"))`
	choose := func(label string) {
		t.Helper()
		goTo(t, ctx, "/chats/"+chat.ID, mine)
		waitJS(t, ctx, "the menu of the message", `(b => (b.click(), true))(`+mine+`.querySelector("[aria-haspopup=menu]"))`)
		clickText(t, ctx, label)
	}
	inRequest := `[...document.querySelectorAll(".part")].some(e => e.textContent.includes("Hear the bell"))`
	choose("Hide from the prompt")
	waitJS(t, ctx, "it looks hidden", mine+`.innerText.includes("Hidden from the prompt")`)
	preview("And then?")
	waitJS(t, ctx, "it is not in the request", `document.querySelector(".part") && !`+inRequest)
	choose("Show to the model again")
	waitJS(t, ctx, "it looks as before", `!`+mine+`.innerText.includes("Hidden")`)
	preview("And after that?")
	waitJS(t, ctx, "it is in the request again", inRequest)
}
