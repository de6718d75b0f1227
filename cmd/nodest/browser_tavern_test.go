package main

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/framework/macro"
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

// importMira imports tavernCard and begins a chat with her.
func importMira(t *testing.T, p *process) (chat string) {
	t.Helper()
	var imported struct{ Character struct{ ID string } }
	if err := p.client.Upload(t.Context(), "/api/v1/characters/import", "Mira.json", []byte(tavernCard), nil, &imported); err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": imported.Character.ID}, &made)
	return made.ID
}

// TestPagePersonaAtDepth puts a persona into the chat at a depth: the next request of a character that follows
// the rules of SillyTavern has it there. Values from a file that nobody could choose do no harm.
func TestPagePersonaAtDepth(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	chat := importMira(t, p)
	var imported struct{ Resource struct{ ID string } }
	file := `{"name":"Mia","description":"{{user}} is a sailor.","position":"4","depth":{},"mine":1}`
	if err := p.client.Upload(t.Context(), "/api/v1/import", "Mia.json", []byte(file), map[string]string{"as": "persona"}, &imported); err != nil {
		t.Fatal(err)
	}
	id := imported.Resource.ID
	openPage(t, ctx, p)

	goTo(t, ctx, "/library/persona/"+id, `document.querySelector("main h1")?.innerText == "Mia"`)
	waitJS(t, ctx, "a place that cannot be", `!`+labelled("Depth")+` && `+labelled("Where the description goes")+`.value == "Where the preset lists the persona"`)
	typeLabelled(t, ctx, "Where the description goes", "In the chat at a depth")
	waitJS(t, ctx, "depth and role, as if absent", labelled("Depth")+`.value == "2" && `+labelled("Role")+`.value == "System"`)
	typeLabelled(t, ctx, "Depth", "1")
	typeLabelled(t, ctx, "Role", "User")
	saveInPage(t, ctx)
	var stored struct{ Document map[string]any }
	api(t, p, http.MethodGet, "/personas/"+id, nil, &stored)
	want := map[string]any{"name": "Mia", "description": "{{user}} is a sailor.", "mine": 1.0, "position": 4.0, "depth": 1.0, "role": 1.0}
	if !reflect.DeepEqual(stored.Document, want) {
		t.Fatalf("stored.Document is %v, want %v", stored.Document, want)
	}
	clickText(t, ctx, "Make it the default")
	waitJS(t, ctx, "it is", `document.querySelector("main")?.innerText.includes("You play this persona unless")`)

	goTo(t, ctx, "/prompts/new/"+chat, `document.querySelector("main form textarea")`)
	typeIn(t, ctx, "main form textarea", "Who am I?")
	clickText(t, ctx, "Preview")
	at := func(text string) string {
		return `[...document.querySelectorAll(".part")].findIndex(e => e.textContent.includes(` + jsString(text) + `))`
	}
	waitJS(t, ctx, "the persona before the newest message", at("Mia is a sailor.")+` > `+at("The tower is quiet.")+` && `+at("Mia is a sailor.")+` + 1 == `+at("Who am I?"))
	p.stop(t)
}

// TestPageTestsScriptsByRules tries scripts on each kind of texts that the dialect has.
func TestPageTestsScriptsByRules(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	scripts := map[string]any{"name": "Scripts", "document": json.RawMessage(`[{"scriptName": "Lore", "findRegex": "/bell/g", "replaceString": "{{char}}'s {{match}}", "placement": [5]}]`)}
	var library, own struct{ ID string }
	api(t, p, http.MethodPost, "/regexscripts", scripts, &library)
	api(t, p, http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": "Tom"}, "dialect": "nodest", "regexScripts": scripts["document"]}, &own)
	openPage(t, ctx, p)

	options := func(labels string) {
		t.Helper()
		waitJS(t, ctx, "kinds of texts: "+labels, `[...`+labelled("The text is")+`.options].map(o => o.innerText).join(" | ") == `+jsString(labels))
	}
	goTo(t, ctx, "/characters/"+own.ID+"/scripts", `document.querySelectorAll("main ol li").length == 1`)
	options("a reply | a message of the user")
	goTo(t, ctx, "/library/regexscript/"+library.ID, `document.querySelectorAll("main ol li").length == 1`)
	options("a reply | a message of the user | a slash command | a world-book entry | thoughts of the model")
	typeLabelled(t, ctx, "Sample text", "The bell rings.")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "not for a reply", `document.querySelector(".test li")?.innerText == "Lore: not for this kind of text"`)
	typeLabelled(t, ctx, "The text is", "a world-book entry")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "by the rules of SillyTavern", `document.querySelector(".test .out").textContent == "The Character's bell rings."`)
	for _, other := range []string{"a slash command", "thoughts of the model", "a message of the user"} {
		typeLabelled(t, ctx, "The text is", other)
		clickText(t, ctx, "Test")
		waitJS(t, ctx, "not for "+other, `document.querySelector(".test .out").textContent == "The bell rings."`)
	}
	p.stop(t)
}

// TestPageAllowsScriptsOfCards: scripts that came with a card wait, and say so, until the user allows them.
func TestPageAllowsScriptsOfCards(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	var imported struct{ Character struct{ ID string } }
	file := strings.Replace(tavernCard, `"extensions": {},`, `"extensions": {"regex_scripts": [{"scriptName": "Stars", "findRegex": "/\\*/g", "replaceString": "", "placement": [2]}]},`, 1)
	if err := p.client.Upload(t.Context(), "/api/v1/characters/import", "Mira.json", []byte(file), nil, &imported); err != nil {
		t.Fatal(err)
	}
	path := "/characters/" + imported.Character.ID
	openPage(t, ctx, p)
	goTo(t, ctx, path+"/scripts", `document.querySelector("main")?.innerText.includes("These scripts do not run until you allow them.")`)
	clickText(t, ctx, "Let them run")
	saveInPage(t, ctx)
	waitJS(t, ctx, "they wait no longer", `!document.querySelector("main").innerText.includes("until you allow them")`)
	var settings struct{ Scripts struct{ Card bool } }
	api(t, p, http.MethodGet, path+"/settings", nil, &settings)
	if !settings.Scripts.Card {
		t.Error("the scripts of the card still wait")
	}
	p.stop(t)
}

// TestPageVariablesOfAllChats changes the variables that all chats share. What a reply sets meanwhile stays.
func TestPageVariablesOfAllChats(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	showSettings(t, ctx, "general")
	waitJS(t, ctx, "no macro can set any", labelled("Your name")+` && !document.querySelector("main").innerText.includes("Variables of all chats")`)
	importMira(t, p)
	waitJS(t, ctx, "now one could", `document.querySelector("main").innerText.includes("Variables of all chats")`)

	type document struct {
		Variables map[string]any `json:"variables"`
	}
	api(t, p, http.MethodPut, "/variables", document{map[string]any{"gold": 12, "mood": "calm", "old": "x"}}, nil)
	goTo(t, ctx, "/characters", `document.querySelector(".tile")`)
	showSettings(t, ctx, "general")
	waitJS(t, ctx, "what they are", labelled("gold")+`.value == "12" && `+labelled("mood")+`.value == "calm"`)
	typeLabelled(t, ctx, "gold", "13")
	click(t, ctx, `[aria-label="Remove old"]`)
	typeIn(t, ctx, `[aria-label="Name of a new variable"]`, "town")
	clickText(t, ctx, "Add variable")
	typeLabelled(t, ctx, "town", "Oslo")
	api(t, p, http.MethodPut, "/variables", document{map[string]any{"gold": 12, "mood": "calm", "old": "x", "heard": 1}}, nil)
	saveInPage(t, ctx)
	waitJS(t, ctx, "what was set meanwhile", labelled("heard")+`.value == "1"`)
	var stored document
	api(t, p, http.MethodGet, "/variables", nil, &stored)
	if want := map[string]any{"gold": 13.0, "mood": "calm", "town": "Oslo", "heard": 1.0}; !reflect.DeepEqual(stored.Variables, want) {
		t.Fatalf("stored.Variables is %v, want %v", stored.Variables, want)
	}
	p.stop(t)
}

// TestThePageExplainsMacros: the page lists the macros that have an effect, in the order of package macro, in
// English and Chinese.
func TestThePageExplainsMacros(t *testing.T) {
	page, err := os.ReadFile("../../web/src/documents/macros.ts")
	if err != nil {
		t.Fatal(err)
	}
	var listed, want [][2]string
	for _, m := range regexp.MustCompile(`(?m)^  \['([^']+)', '([^']*)', '([^']+)', '([^']*\p{Han}[^']*)'\],$`).FindAllSubmatch(page, -1) {
		listed = append(listed, [2]string{string(m[1]), string(m[2])})
	}
	for _, info := range macro.Names() {
		if info.Status != macro.NoEffect {
			want = append(want, [2]string{info.Name, info.Args})
		}
	}
	if !reflect.DeepEqual(listed, want) {
		t.Errorf("the page has\n%q\nwant\n%q", listed, want)
	}
}
