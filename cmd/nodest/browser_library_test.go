package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// openPage signs in with the printed link and waits for the page.
func openPage(t *testing.T, ctx context.Context, p *process) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.client.Base+"/signin#"+p.link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the page", `document.querySelector("main h1") && location.pathname == "/"`)
}

// goTo follows a link to an address of the page.
func goTo(t *testing.T, ctx context.Context, address, shows string) {
	t.Helper()
	waitJS(t, ctx, "going to "+address, `(location.hash = `+jsString("#"+address)+`, true)`)
	waitJS(t, ctx, "the view of "+address, shows)
}

// dropFiles drops files on the page; each is a name and its content.
func dropFiles(t *testing.T, ctx context.Context, files ...string) {
	t.Helper()
	var add strings.Builder
	for i := 0; i < len(files); i += 2 {
		fmt.Fprintf(&add, `files.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], %s)); `,
			base64.StdEncoding.EncodeToString([]byte(files[i+1])), jsString(files[i]))
	}
	waitJS(t, ctx, "dropping files", `(() => { const files = new DataTransfer(); `+add.String()+
		`window.dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})); return true })()`)
}

// typeIn replaces the text of the field that a selector finds, as typing does.
func typeIn(t *testing.T, ctx context.Context, selector, value string) {
	t.Helper()
	typeInto(t, ctx, `document.querySelector(`+jsString(selector)+`)`, value)
}

// typeLabelled is typeIn for the field with a label.
func typeLabelled(t *testing.T, ctx context.Context, label, value string) {
	t.Helper()
	typeInto(t, ctx, labelled(label), value)
}

func labelled(label string) string {
	return `[...document.querySelectorAll("label")].find(l => l.innerText.trim() == ` + jsString(label) + `)?.control`
}

func typeInto(t *testing.T, ctx context.Context, field, value string) {
	t.Helper()
	waitJS(t, ctx, "typing into "+field, `(e => e && (e.focus(), e.value = `+jsString(value)+
		`, e.dispatchEvent(new Event("input", {bubbles: true})), e.dispatchEvent(new Event("change", {bubbles: true})), true))(`+field+`)`)
}

// saveInPage presses Save and waits until all is stored.
func saveInPage(t *testing.T, ctx context.Context) {
	t.Helper()
	waitJS(t, ctx, "it is not saved yet", `[...document.querySelectorAll("[role=status]")].some(s => s.textContent == "Not saved yet")`)
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "saved", `![...document.querySelectorAll("[role=status]")].some(s => s.textContent == "Not saved yet")`)
}

const aliceCard = `{
	"spec": "chara_card_v2", "spec_version": "2.0", "name": "Alice", "description": "A guide.", "unknown_top": {"kept": true},
	"data": {
		"name": "Alice", "description": "A guide.", "personality": "calm", "scenario": "A harbour.", "first_mes": "Hello, traveller.",
		"mes_example": "", "alternate_greetings": ["Ahoy!"], "unknown_inside": [1, 2], "extensions": {"other_app": {"kept": 1}},
		"character_book": {"entries": [{"keys": ["harbour"], "content": "The harbour is frozen.", "comment": "Harbour", "enabled": true, "insertion_order": 10, "extensions": {"other": 7}}]}
	}
}`

// testCharacter is what the tests read of a character.
type testCharacter struct {
	ID       string
	Version  int
	RoleCard struct {
		Description string
		UnknownTop  map[string]bool `json:"unknown_top"`
		Data        struct {
			Description, Personality, Scenario string
			AlternateGreetings                 []string       `json:"alternate_greetings"`
			UnknownInside                      []int          `json:"unknown_inside"`
			Extensions                         map[string]any `json:"extensions"`
		}
	}
	WorldBook struct {
		Entries map[string]struct {
			Key     []string
			Content string
			Disable bool
		}
	}
}

// TestPageEditsACharacter drops a card, edits its card and world book, tests a text,
// follows a finding of the check, is warned before leaving, and meets another device
// that stores something else meanwhile: what was typed stays.
func TestPageEditsACharacter(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	dropFiles(t, ctx, "alice.json", aliceCard)
	waitJS(t, ctx, "a chat with her", `document.querySelector("article.assistant .text")?.innerText.includes("Hello, traveller.")`)
	waitJS(t, ctx, "where it went", `document.querySelector(".notes")?.innerText.includes("Character “Alice” was imported.")`)

	var list struct{ Items []testCharacter }
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/characters", nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("list.Items has %d, want %d: %+v", len(list.Items), 1, list.Items)
	}
	address := "/characters/" + list.Items[0].ID
	read := func() (c testCharacter) {
		t.Helper()
		if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1"+address, nil, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}

	goTo(t, ctx, "/characters", `document.querySelectorAll(".tile").length == 1 && document.querySelector(".tile b")?.innerText == "Alice"`)
	waitJS(t, ctx, "opening her", `(e => e && (e.click(), true))(document.querySelector(".tile a"))`)
	waitJS(t, ctx, "her card", `document.querySelector("[data-path=description]")?.value == "A guide."`)
	typeIn(t, ctx, "[data-path=description]", "A guide of few words. {{weather}}")
	clickText(t, ctx, "Add greeting")
	typeIn(t, ctx, `[data-path="alternate_greetings[1]"]`, "Who goes there?")
	click(t, ctx, `[aria-label="Move greeting 2 up"]`)
	saveInPage(t, ctx)
	c := read()
	if c.RoleCard.Data.Description != "A guide of few words. {{weather}}" {
		t.Fatalf("c.RoleCard.Data.Description is %q, want %q", c.RoleCard.Data.Description, "A guide of few words. {{weather}}")
	}
	if c.RoleCard.Description != c.RoleCard.Data.Description {
		t.Fatalf("the copy at the top level changes too: c.RoleCard.Description is %q, want %q", c.RoleCard.Description, c.RoleCard.Data.Description)
	}
	if want := ([]string{"Who goes there?", "Ahoy!"}); !reflect.DeepEqual(c.RoleCard.Data.AlternateGreetings, want) {
		t.Fatalf("c.RoleCard.Data.AlternateGreetings is %q, want %q", c.RoleCard.Data.AlternateGreetings, want)
	}
	if !c.RoleCard.UnknownTop["kept"] {
		t.Fatal(`want c.RoleCard.UnknownTop["kept"]`)
	}
	if want := ([]int{1, 2}); !reflect.DeepEqual(c.RoleCard.Data.UnknownInside, want) {
		t.Fatalf("c.RoleCard.Data.UnknownInside is %+v, want %+v", c.RoleCard.Data.UnknownInside, want)
	}
	if _, ok := c.RoleCard.Data.Extensions["other_app"]; !ok {
		t.Fatalf("c.RoleCard.Data.Extensions is %+v, want it with %q", c.RoleCard.Data.Extensions, "other_app")
	}

	typeIn(t, ctx, "[data-path=name]", " ")
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "what is missing, and where", `(f => f == document.activeElement && f.validationMessage == "A character needs a name." && document.querySelector(".notes")?.innerText.includes(f.validationMessage))(document.querySelector("[data-path=name]"))`)
	typeIn(t, ctx, "[data-path=name]", "Alice")
	waitJS(t, ctx, "there it is", `document.querySelector("[data-path=name]").validity.valid`)

	// Settings and the card are saved together.
	goTo(t, ctx, address+"/settings", `document.querySelector("main h2")?.innerText == "Rules"`)
	typeLabelled(t, ctx, "Extract memories every … exchanges", "3")
	waitJS(t, ctx, "Chinese", `(e => e && (e.value = "中文", e.dispatchEvent(new Event("change", {bubbles: true})), e.value == "中文"))(`+labelled("Language of built-in prompts")+`)`)
	waitJS(t, ctx, "with memories", `(e => e && (e.click(), true))(`+labelled("Let the character say what it recalls")+`)`)
	goTo(t, ctx, address+"/card", `document.querySelector("[data-path=personality]")?.value == "calm"`)
	typeIn(t, ctx, "[data-path=personality]", "curious")
	saveInPage(t, ctx)
	var settings struct {
		Memory struct{ ExtractEvery int }
		Prompt struct {
			Language string
			Recount  bool
		}
	}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1"+address+"/settings", nil, &settings); err != nil {
		t.Fatal(err)
	}
	if settings.Memory.ExtractEvery != 3 {
		t.Fatalf("settings.Memory.ExtractEvery is %d, want %d", settings.Memory.ExtractEvery, 3)
	}
	if settings.Prompt.Language != "zh" {
		t.Fatalf("settings.Prompt.Language is %q, want %q", settings.Prompt.Language, "zh")
	}
	if !settings.Prompt.Recount {
		t.Fatal("imported characters are not asked by default")
	}
	if got := read().RoleCard.Data.Personality; got != "curious" {
		t.Fatalf("read().RoleCard.Data.Personality is %q, want %q", got, "curious")
	}

	// The check leads to the field.
	goTo(t, ctx, address+"/check", `[...document.querySelectorAll("main li")].some(li => li.innerText.includes("unknown macro {{weather}}"))`)
	waitJS(t, ctx, "following the finding", `(e => e && (e.click(), true))([...document.querySelectorAll("main li button")].find(b => b.innerText.includes("{{weather}}")))`)
	waitJS(t, ctx, "its field", `document.activeElement?.dataset.path == "description"`)

	// The world book: a text fires the entry by its key, an edited entry by the new one.
	goTo(t, ctx, address+"/worldbook", `document.querySelector("main .item b")?.innerText == "Harbour"`)
	typeLabelled(t, ctx, "Sample text", "How is the harbour?")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "it fires", `document.querySelector(".test")?.innerText.includes("1 of 1 entry is in the prompt") && document.querySelector(".test")?.innerText.includes("key “harbour”")`)
	waitJS(t, ctx, "opening the entry", `(e => e && (e.click(), true))(document.querySelector("main .item .name"))`)
	typeLabelled(t, ctx, "Keys", "lighthouse, beacon")
	clickText(t, ctx, "Done")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "it is quiet", `document.querySelector(".test")?.innerText.includes("0 of 1 entry is in the prompt")`)
	saveInPage(t, ctx)
	if got, want := read().WorldBook.Entries["0"].Key, ([]string{"lighthouse", "beacon"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	click(t, ctx, `main .item [role=switch]`)
	saveInPage(t, ctx)
	if !read().WorldBook.Entries["0"].Disable {
		t.Fatal(`want read().WorldBook.Entries["0"].Disable`)
	}

	// Another device stores something else: what was typed here stays.
	goTo(t, ctx, address+"/card", `document.querySelector("[data-path=scenario]")?.value == "A harbour."`)
	typeIn(t, ctx, "[data-path=description]", "Typed on this device.")
	var card map[string]any
	full := map[string]any{}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1"+address, nil, &full); err != nil {
		t.Fatal(err)
	}
	card = full["roleCard"].(map[string]any)
	card["data"].(map[string]any)["scenario"] = "A lighthouse."
	card["data"].(map[string]any)["description"] = "Typed on the phone."
	if err := p.client.Call(t.Context(), http.MethodPatch, "/api/v1"+address, map[string]any{"roleCard": card}, nil); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the conflict is shown", `document.querySelector(".banner[role=alert]")?.innerText.includes("changed on another device")`)
	waitJS(t, ctx, "where both changed", `document.querySelector(".banner[role=alert]")?.innerText.includes("Description")`)
	if got := evalString(t, ctx, `document.querySelector("[data-path=description]").value`); got != "Typed on this device." {
		t.Fatalf("got %q, want %q", got, "Typed on this device.")
	}
	if got := read().RoleCard.Data.Description; got != "Typed on the phone." {
		t.Fatalf("nothing was overwritten: read().RoleCard.Data.Description is %q, want %q", got, "Typed on the phone.")
	}
	clickText(t, ctx, "Keep my text and take over their other changes")
	waitJS(t, ctx, "their other change", `document.querySelector("[data-path=scenario]")?.value == "A lighthouse."`)
	saveInPage(t, ctx)
	if got := read().RoleCard.Data.Description; got != "Typed on this device." {
		t.Fatalf("read().RoleCard.Data.Description is %q, want %q", got, "Typed on this device.")
	}
	if got := read().RoleCard.Data.Scenario; got != "A lighthouse." {
		t.Fatalf("read().RoleCard.Data.Scenario is %q, want %q", got, "A lighthouse.")
	}

	// Leaving asks while something is not saved.
	typeIn(t, ctx, "[data-path=personality]", "restless")
	waitJS(t, ctx, "leaving", `(location.hash = "#/library", true)`)
	waitJS(t, ctx, "the question", `document.querySelector("dialog[open]")?.innerText.includes("Leave without saving?")`)
	clickText(t, ctx, "Cancel")
	waitJS(t, ctx, "still there", `location.hash.startsWith("#`+address+`") && document.querySelector("[data-path=personality]")?.value == "restless"`)
	waitJS(t, ctx, "leaving again", `(location.hash = "#/library", true)`)
	clickText(t, ctx, "Save and leave")
	waitJS(t, ctx, "the library", `location.hash == "#/library" && document.querySelector("main h1")?.innerText == "Library"`)

	// Deleting asks, and takes the chats along.
	goTo(t, ctx, "/characters", `document.querySelector(".tile")`)
	click(t, ctx, `.tile [aria-label="More: Alice"]`)
	waitJS(t, ctx, "deleting", `(e => e && (e.click(), true))([...document.querySelectorAll("[role=menuitem]")].find(b => b.innerText.trim() == "Delete"))`)
	waitJS(t, ctx, "the question", `document.querySelector("dialog[open]")?.innerText.includes("All chats with this character")`)
	waitJS(t, ctx, "yes", `(e => e && (e.click(), true))(document.querySelector("dialog[open] .danger"))`)
	waitJS(t, ctx, "gone", `!document.querySelector(".tile")`)
	p.stop(t)
}

const (
	bookFile    = `{"name": "Towns", "entries": {"0": {"uid": 0, "key": ["tower"], "keysecondary": [], "comment": "Tower", "content": "An old tower."}}}`
	presetFile  = `{"temperature": 0.7, "prompts": [{"identifier": "main", "name": "Main", "role": "system", "content": "Play {{char}}."}, {"identifier": "extra", "name": "Extra", "role": "system", "content": "Be brief."}, {"identifier": "chatHistory", "name": "Chat History", "marker": true}], "prompt_order": [{"character_id": 100000, "order": []}, {"character_id": 100001, "order": [{"identifier": "main", "enabled": true}, {"identifier": "extra", "enabled": true}, {"identifier": "chatHistory", "enabled": true}]}]}`
	scriptsFile = `[{"id": "a", "scriptName": "Stars", "findRegex": "/\\*/g", "replaceString": "", "placement": [2]}, {"id": "b", "scriptName": "Shout", "findRegex": "/!/g", "replaceString": ".", "placement": [1]}]`
	chatLogFile = `{"user_name":"Mia","character_name":"Nobody","chat_metadata":{}}` + "\n" + `{"name":"Nobody","is_user":false,"mes":"From the log."}` + "\n" +
		`{"name":"Nobody","is_user":false,"mes":"It rains.","extra":{"type":"narrator"}}` + "\n"
)

// TestPageLibrary drops several files at once, is asked whose chat a log is, binds a
// world book, reorders a preset, tries regex scripts, and makes a persona the default.
func TestPageLibrary(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	call := func(method, path string, body, out any) {
		t.Helper()
		if err := p.client.Call(t.Context(), method, "/api/v1"+path, body, out); err != nil {
			t.Fatal(err)
		}
	}
	var alice struct{ ID string }
	call(http.MethodPost, "/characters", map[string]any{"roleCard": json.RawMessage(aliceCard)}, &alice)
	openPage(t, ctx, p)

	// Names are text, whatever they hold.
	hostile := `{"name": "<img src=x onerror=window.hacked=1>` + "\u202e" + `", "description": "x", "first_mes": "y"}`
	goTo(t, ctx, "/library", `document.querySelector("main h1")?.innerText == "Library"`)
	dropFiles(t, ctx, "towns.json", bookFile, "preset.json", presetFile, "scripts.json", scriptsFile, "log.jsonl", chatLogFile, "nobodys.jsonl", chatLogFile, "broken.json", `{"a":`, "card.json", hostile)
	waitJS(t, ctx, "whose chat it is", `document.querySelector("dialog[open]")?.innerText.includes("Which character does it belong to?")`)
	waitJS(t, ctx, "the import goes on", `document.body.innerText.includes("Importing 7 files…")`)
	waitJS(t, ctx, "hers", `(e => e && (e.click(), true))([...document.querySelectorAll("dialog[open] .choice")].find(b => b.innerText.includes("Alice")))`)
	waitJS(t, ctx, "whose the next one is", `document.querySelector("dialog[open] h2")?.innerText.startsWith("nobodys.jsonl: Chat.")`)
	clickText(t, ctx, "Leave this file out")
	waitJS(t, ctx, "what became of each", `document.querySelector("dialog[open]")?.innerText.includes("Imported files") && document.querySelectorAll("dialog[open] .inside > ul > li").length == 7`)
	waitJS(t, ctx, "the import is over", `!document.body.innerText.includes("Importing")`)
	results := evalString(t, ctx, `document.querySelector("dialog[open]")?.innerText`)
	for _, want := range []string{"Towns", "World book", "Preset", "Regex scripts", "Chat", "nobodys.jsonl\nChat · Not imported", "You left it out: no character was chosen.", "img src=x"} {
		if !strings.Contains(results, want) {
			t.Fatalf("results is %q, want it with %q", results, want)
		}
	}
	click(t, ctx, `dialog[open] [aria-label="Close"]`)
	waitJS(t, ctx, "nothing was run", `window.hacked === undefined`)

	// A world book is bound to a character.
	waitJS(t, ctx, "the book in the list", `document.querySelector("main .item b")?.innerText == "Towns"`)
	waitJS(t, ctx, "opening it", `(e => e && (e.click(), true))(document.querySelector("main .item a"))`)
	clickText(t, ctx, "Choose characters")
	waitJS(t, ctx, "choosing her", `(b => b && (b.click(), true))([...document.querySelectorAll("dialog[open] label")].find(l => l.innerText.includes("Alice"))?.control)`)
	click(t, ctx, `dialog[open] [aria-label="Close"]`)
	saveInPage(t, ctx)
	var books struct {
		Items []struct {
			ID           string
			CharacterIDs []string
		}
	}
	call(http.MethodGet, "/worldbooks", nil, &books)
	if want := ([]string{alice.ID}); !reflect.DeepEqual(books.Items[0].CharacterIDs, want) {
		t.Fatalf("books.Items[0].CharacterIDs is %q, want %q", books.Items[0].CharacterIDs, want)
	}

	// A preset: one prompt up by its menu, one off.
	var presets struct{ Items []struct{ ID string } }
	call(http.MethodGet, "/presets", nil, &presets)
	goTo(t, ctx, "/library/preset/"+presets.Items[0].ID, `document.querySelectorAll("main ol li").length == 3`)
	click(t, ctx, `[aria-label="More: Extra"]`)
	clickText(t, ctx, "Move up")
	waitJS(t, ctx, "moved", `document.querySelector("main ol li")?.innerText.includes("Extra")`)
	click(t, ctx, `[aria-label="On: Main"]`)
	saveInPage(t, ctx)
	var preset struct {
		Document struct {
			Temperature float64
			PromptOrder []struct {
				Order []struct {
					Identifier string
					Enabled    bool
				}
			} `json:"prompt_order"`
		}
	}
	call(http.MethodGet, "/presets/"+presets.Items[0].ID, nil, &preset)
	if len(preset.Document.PromptOrder) != 2 {
		t.Fatalf("preset.Document.PromptOrder has %d, want %d: %+v", len(preset.Document.PromptOrder), 2, preset.Document.PromptOrder)
	}
	order := preset.Document.PromptOrder[1].Order
	if order[0].Identifier != "extra" {
		t.Fatalf("order[0].Identifier is %q, want %q", order[0].Identifier, "extra")
	}
	if order[1].Identifier != "main" {
		t.Fatalf("order[1].Identifier is %q, want %q", order[1].Identifier, "main")
	}
	if order[1].Enabled {
		t.Fatal("order[1].Enabled is true, want false")
	}
	if got := preset.Document.Temperature; got != 0.7 {
		t.Fatalf("the temperature is %v, want 0.7", got)
	}

	// Regex scripts are tried on a text.
	var scripts struct{ Items []struct{ ID string } }
	call(http.MethodGet, "/regexscripts", nil, &scripts)
	goTo(t, ctx, "/library/regexscript/"+scripts.Items[0].ID, `document.querySelectorAll("main ol li").length == 2`)
	typeLabelled(t, ctx, "Sample text", "*waves* Hello!")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "what came out", `document.querySelector(".out")?.textContent == "waves Hello!"`)
	waitJS(t, ctx, "what each did", `document.querySelector(".test ul")?.innerText.includes("Stars: 2 replacements") && document.querySelector(".test ul")?.innerText.includes("Shout: not for this kind of text")`)

	// A persona becomes the default.
	goTo(t, ctx, "/library/persona", `document.querySelector("main")?.innerText.includes("No personas yet.")`)
	clickText(t, ctx, "New persona")
	typeIn(t, ctx, "dialog[open] input", "Mia")
	waitJS(t, ctx, "creating it", `(e => e && (e.click(), true))(document.querySelector("dialog[open] .primary"))`)
	waitJS(t, ctx, "its editor", `document.querySelector("main h1")?.innerText == "Mia"`)
	typeLabelled(t, ctx, "Description", "A traveller from the coast.")
	saveInPage(t, ctx)
	clickText(t, ctx, "Make it the default")
	waitJS(t, ctx, "it is", `document.querySelector("main")?.innerText.includes("You play this persona unless")`)
	var settings struct{ PersonaID string }
	var personas struct{ Items []struct{ ID, Name string } }
	call(http.MethodGet, "/settings", nil, &settings)
	call(http.MethodGet, "/personas", nil, &personas)
	if settings.PersonaID != personas.Items[0].ID {
		t.Fatalf("settings.PersonaID is %q, want %q", settings.PersonaID, personas.Items[0].ID)
	}
	p.stop(t)
}

// TestPageTestsABookWithItsCharacter: an entry at the author's note fires only if the
// character has one, in the test of its world book as in its chats.
func TestPageTestsABookWithItsCharacter(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	var made struct{ ID string }
	api(t, p, http.MethodPost, "/characters", map[string]any{
		"roleCard":  map[string]any{"name": "Mia", "description": "A sailor."},
		"worldBook": map[string]any{"entries": map[string]any{"0": map[string]any{"comment": "Rain", "content": "It rains.", "constant": true, "position": 3}}},
	}, &made)
	openPage(t, ctx, p)
	goTo(t, ctx, "/characters/"+made.ID+"/worldbook", `document.querySelector("main .item b")?.innerText == "Rain"`)
	waitJS(t, ctx, "the hint", `document.querySelector(".test").innerText.includes("author’s note of the character")`)
	typeLabelled(t, ctx, "Sample text", "Hello!")
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "it has no note", `document.querySelector(".test").innerText.includes("0 of 1 entry fires")`)
	clickText(t, ctx, "1 does not fire")
	waitJS(t, ctx, "the reason", `document.querySelector(".test").innerText.includes("there is no author's note")`)
	api(t, p, http.MethodPatch, "/characters/"+made.ID, map[string]any{"authorNote": map[string]any{"content": "Be kind.", "depth": 4}}, nil)
	clickText(t, ctx, "Test")
	waitJS(t, ctx, "it has one", `document.querySelector(".test").innerText.includes("1 of 1 entry fires")`)
	p.stop(t)
}

// TestPageChatSettings gives one chat a title, an author's note and a temperature; what
// another device stores meanwhile is not lost.
func TestPageChatSettings(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	openPage(t, ctx, p)
	dropFiles(t, ctx, "alice.json", aliceCard)
	waitJS(t, ctx, "a chat with her", `document.querySelector("article.assistant .text")`)
	type conversation struct {
		ID, CharacterID, Title string
		Archived               bool
		AuthorNote             struct {
			Content string
			Depth   int `json:"injection_depth"`
		}
		Settings struct{ Temperature *float64 }
	}
	var list struct{ Items []conversation }
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations", nil, &list); err != nil {
		t.Fatal(err)
	}
	chat := list.Items[0]
	goTo(t, ctx, "/characters/"+chat.CharacterID+"/chats", `document.querySelector('[aria-label^="Settings of this chat"]')`)
	click(t, ctx, `[aria-label^="Settings of this chat"]`)
	typeLabelled(t, ctx, "Title", "The frozen harbour")
	typeLabelled(t, ctx, "Text of the note", "Keep it short.")
	typeLabelled(t, ctx, "Depth", "2")
	typeLabelled(t, ctx, "Temperature", "0.5")
	path := "/api/v1/conversations/" + chat.ID
	if err := p.client.Call(t.Context(), http.MethodPatch, path, map[string]any{"settings": map[string]any{"topP": 0.9}}, nil); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "another device was first", `document.querySelector("dialog[open] .banner")`)
	clickText(t, ctx, "Keep my text and take over their other changes")
	waitJS(t, ctx, "saving", `(b => b && !b.disabled && (b.click(), true))(document.querySelector("dialog[open] form .primary"))`)
	waitJS(t, ctx, "closed", `!document.querySelector("dialog[open]")`)
	var got conversation
	if err := p.client.Call(t.Context(), http.MethodGet, path, nil, &got); err != nil {
		t.Fatal(err)
	}
	if got.Title != "The frozen harbour" {
		t.Fatalf("got.Title is %q, want %q", got.Title, "The frozen harbour")
	}
	if got.AuthorNote.Content != "Keep it short." {
		t.Fatalf("got.AuthorNote.Content is %q, want %q", got.AuthorNote.Content, "Keep it short.")
	}
	if got.AuthorNote.Depth != 2 {
		t.Fatalf("got.AuthorNote.Depth is %d, want %d", got.AuthorNote.Depth, 2)
	}
	if temperature := *got.Settings.Temperature; temperature != 0.5 {
		t.Fatalf("the temperature is %v, want 0.5", temperature)
	}
	p.stop(t)
}

// TestPageLargeWorldBook opens a world book of 3,000 entries: only those in sight are
// in the page, and a search finds one.
func TestPageLargeWorldBook(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s").start(t)
	entries := map[string]any{}
	for i := range 3000 {
		entries[fmt.Sprint(i)] = map[string]any{"key": []string{fmt.Sprintf("key%d", i)}, "comment": fmt.Sprintf("Entry %d", i), "content": strings.Repeat("A fact. ", 20)}
	}
	var book struct{ ID string }
	if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/worldbooks", map[string]any{"name": "Large", "dialect": "sillytavern", "document": map[string]any{"entries": entries}}, &book); err != nil {
		t.Fatal(err)
	}
	openPage(t, ctx, p)
	goTo(t, ctx, "/library/worldbook/"+book.ID, `document.querySelector("main")?.innerText.includes("3,000 entries")`)
	waitJS(t, ctx, "some rows", `(n => n > 5 && n < 60)(document.querySelectorAll("main .item").length)`)
	typeIn(t, ctx, `[aria-label="Search entries"]`, "key2999")
	waitJS(t, ctx, "found", `document.querySelectorAll("main .item").length == 1 && document.querySelector("main .item b")?.innerText == "Entry 2999"`)
	click(t, ctx, `main .item [role=switch]`)
	saveInPage(t, ctx)
	var got struct {
		Document struct {
			Entries map[string]struct{ Disable bool }
		}
	}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/worldbooks/"+book.ID, nil, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Document.Entries) != 3000 {
		t.Fatalf("got.Document.Entries has %d, want %d: %+v", len(got.Document.Entries), 3000, got.Document.Entries)
	}
	if !got.Document.Entries["2999"].Disable {
		t.Fatal(`want got.Document.Entries["2999"].Disable`)
	}
	p.stop(t)
}
