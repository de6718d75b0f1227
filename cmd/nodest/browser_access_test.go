package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// accessPage is a server with something in each view, and a browser that has to show
// all of it so that everybody can use it.
type accessPage struct {
	t     *testing.T
	ctx   context.Context
	p     *process
	phone bool
	both  bool // check each view in both themes

	chat, character, reply, fact   string
	archived                       string
	book, preset, scripts, persona string
	user                           string
	base, file                     string // a knowledge base and its file
	planned, researched            string // deep research
}

func (a *accessPage) call(method, path string, body, out any) {
	a.t.Helper()
	api(a.t, a.p, method, path, body, out)
}

func (a *accessPage) post(path string, body any) (id string) {
	a.t.Helper()
	var made struct{ ID string }
	a.call(http.MethodPost, path, body, &made)
	return made.ID
}

const (
	accessCard = `{"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Ines of the harbour with a rather long name", "description": "Keeps the lighthouse. {{unknown}}",
		"personality": "calm", "scenario": "A harbour.", "first_mes": "*She waves.* \"Come in!\"", "mes_example": "<START>\n{{user}}: Hi", "alternate_greetings": ["Ahoy!", "Who is there?"],
		"tags": ["harbour", "calm"], "creator": "Mia", "creator_notes": "Be **kind**.", "system_prompt": "", "post_history_instructions": "", "character_version": "2",
		"extensions": {"regex_scripts": [{"id": "a", "scriptName": "Stars", "findRegex": "/\\*/g", "replaceString": "", "placement": [2]}]},
		"character_book": {"name": "Harbour", "entries": [
			{"keys": ["harbour", "port"], "secondary_keys": ["ice"], "content": "The harbour is frozen from November to March.", "comment": "Harbour", "enabled": true, "insertion_order": 10},
			{"keys": [], "content": "It is always windy.", "comment": "Wind", "enabled": true, "constant": true, "insertion_order": 20},
			{"keys": ["tower"], "content": "Old.", "comment": "Tower", "enabled": false, "insertion_order": 30}]}}}`
	accessReply = "*She nods.* \"The **ferry** leaves at nine,\" she says.\n\n## Times\n\n- nine\n- ten, see [the table](https://example.com/)\n\n> No boats in winter.\n\n" +
		"| From | To | At | Remark |\n|---|---|---|---|\n| Harbour | Island | 9:00 | not on Sundays and public holidays |\n\n```\nferry --from harbour --to island --at 9:00 --and-something-that-is-long\n```\nInline `code`.\n\n<mem>1. Ana is allergic to peanuts..</mem>"
)

// newAccessPage starts the server and fills it, by the API.
func newAccessPage(t *testing.T) *accessPage {
	t.Helper()
	fake := llmtest.NewOpenAI(t)
	fake.Always(func(llmtest.Request) llmtest.Reply {
		reply := llmtest.Say(accessReply)
		reply.Parts = append([]llmtest.Part{{Reasoning: "She asks about the ferry."}}, reply.Parts...)
		reply.Usage = llmtest.Usage{Prompt: 1200, Completion: 90}
		return reply
	})
	a := &accessPage{t: t, ctx: browser(t)}
	a.p = newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s", "OPENAI_BASE_URL="+fake.URL, "NODEST_MCP_SERVERS=weather="+toolServer(t).URL+"/mcp").start(t)

	var made struct{ Character struct{ ID string } }
	a.call(http.MethodPost, "/characters/sample", nil, &made)
	a.character = made.Character.ID
	a.post("/characters", map[string]any{"roleCard": json.RawMessage(accessCard)})
	a.archived = a.post("/characters", map[string]any{"roleCard": map[string]any{"name": "Tom"}, "archived": true})
	a.chat = a.post("/conversations", map[string]any{"characterId": a.character, "title": "The ferry"})
	memories := "/characters/" + a.character + "/memories"
	a.fact = a.post(memories, map[string]any{"text": "Ana is allergic to peanuts.", "kind": "event"})
	a.post(memories, map[string]any{"text": "User is 30 years old", "kind": "profile"})
	messages := "/conversations/" + a.chat + "/messages"
	for _, said := range []string{"I live in Oslo.", "I am 31 years old.", "We keep nine hives of bees on the roof.", "I moved to Lisbon.", "It rains."} {
		a.post(messages, map[string]any{"text": said})
	}
	a.call(http.MethodPost, "/conversations/"+a.chat+"/memory/extract", map[string]any{}, nil)
	a.call(http.MethodPost, "/conversations/"+a.chat+"/summaries", map[string]any{}, nil)
	a.call(http.MethodPatch, "/conversations/"+a.chat, map[string]any{"tags": []string{"boats", "long evenings"}, "settings": map[string]any{"provider": "openai", "model": "fake"}}, nil)
	a.post(messages, map[string]any{"text": "Is Ana allergic to peanuts?"})
	type message struct{ ID, Status, GenerationID string }
	var list struct{ Items []message }
	last := func() message {
		a.call(http.MethodGet, messages, nil, &list)
		return list.Items[len(list.Items)-1]
	}
	eventually(t, "the reply", func() error {
		if m := last(); m.Status != "complete" {
			return errNotYet
		}
		return nil
	})
	a.post("/conversations/"+a.chat+"/saves", map[string]any{"description": "Before the storm"})
	a.call(http.MethodPost, "/messages/"+last().ID+"/regenerate", map[string]any{}, nil)
	eventually(t, "another swipe", func() error {
		if m := last(); m.Status != "complete" {
			return errNotYet
		}
		return nil
	})
	a.reply = last().GenerationID

	library := func(path, name string, document any) string {
		return a.post(path, map[string]any{"name": name, "dialect": "sillytavern", "document": document})
	}
	a.book = library("/worldbooks", "Towns", json.RawMessage(bookFile))
	a.preset = library("/presets", "House style", json.RawMessage(presetFile))
	a.scripts = library("/regexscripts", "Clean up", json.RawMessage(scriptsFile))
	a.persona = library("/personas", "Mia", map[string]any{"name": "Mia", "description": "A traveller.", "position": 4})
	a.call(http.MethodPut, "/variables", map[string]any{"variables": map[string]any{"gold": 12}}, nil)
	a.call(http.MethodPatch, "/worldbooks/"+a.book, map[string]any{"characterIds": []string{a.character}}, nil)
	// A post that is planned for the last minute of the day, so that it is not written meanwhile.
	a.call(http.MethodPut, "/characters/"+a.character+"/settings", map[string]any{"circle": map[string]any{"scheduledTimes": []string{"23:59"}}}, nil)
	a.call(http.MethodPost, "/circle/characters/"+a.character+"/init", nil, nil)
	post := a.post("/circle/posts", map[string]any{"authorId": a.character, "text": "The ferry leaves at nine."})
	a.post("/circle/posts/"+post+"/comments", map[string]any{"text": "I will be there."})
	var me struct{ ID string }
	a.call(http.MethodGet, "/me", nil, &me)
	a.call(http.MethodPatch, "/circle/relationships/"+a.character+"/"+me.ID, map[string]any{"strength": 42}, nil)
	a.user = a.post("/users", map[string]any{"username": "mia", "password": "staple battery horse"})
	a.post("/tokens", map[string]any{"name": "my phone"})
	a.fillKnowledge()
	a.fillResearch()
	a.fillLog()
	return a
}

// accessView is a part of the page: where it is, what is pressed there one after the
// other, and what shows that it is there.
type accessView struct {
	name, address string
	press         []string // JavaScript that finds the next element to press
	ready         string
}

// pressable finds a button, link or tab by its label, in the topmost dialog if there is one.
func pressable(label string) string {
	return `[...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("[role=menu] button, button, a, summary, [role=tab], [role=menuitem]")]` +
		`.findLast(e => [e.innerText.trim(), e.ariaLabel].includes(` + jsString(label) + `) && e.checkVisibility() && !e.closest("[inert]"))`
}

func found(selector string) string { return `document.querySelector(` + jsString(selector) + `)` }

func pageText(text string) string {
	return `document.querySelector("main")?.innerText.includes(` + jsString(text) + `)`
}

const dialogOpen = `document.querySelector("dialog[open] .inside")?.children.length > 1`

func (a *accessPage) views() []accessView {
	chat, memory, character := "/chats/"+a.chat, "/memory/"+a.character, "/characters/"+a.character
	const reply, menu = `document.querySelector("article.last[data-status=complete] table")`, `document.querySelector("[role=menu]:popover-open")`
	moreAt := found("article.last footer [aria-haspopup=menu]")
	views := []accessView{
		{"a chat", chat, []string{found("article.last details:not([open]) summary"), found("article.last details:not([open]) summary")}, reply},
		{"the menu of a message", chat, []string{moreAt}, menu},
		{"a wish", chat, []string{moreAt, pressable("Regenerate with instructions…")}, dialogOpen},
		{"editing a message", chat, []string{pressable("Edit")}, found("article textarea")},
		{"places of a chat", chat, []string{pressable("Branches and save points")}, pageText("Before the storm")},
		{"preview of a save point", chat, []string{pressable("Branches and save points"), pressable("Preview")}, found("dialog .said")},
		{"details of a chat", chat, []string{found("main > header [aria-haspopup=menu]"), pressable("Chat settings")}, found("dialog form select")},
		{"searching a chat", chat, []string{found("main > header [aria-haspopup=menu]"), pressable("Search this chat"), typed("dialog", "bees")}, found("dialog mark")},
		{"restarting a chat", chat, []string{found("main > header [aria-haspopup=menu]"), found("[role=menuitem]:last-child")}, dialogOpen},
		{"what was recalled", chat, []string{found("article.last footer button.quiet")}, found("dialog li")},
		{"a note", chat, []string{pressable("Copy")}, found(".notes:popover-open .note")},
		{"characters", "/characters", nil, found(".tile")},
		{"deleting a character", "/characters", []string{found(".tile [aria-haspopup=menu]"), pressable("Delete")}, dialogOpen},
		{"archived characters", "/characters", []string{pressable("Show archived characters")}, pageText("Tom")},
		{"an archived character", "/characters/" + a.archived, nil, pageText("This character is archived")},
		{"library entry", "/library/worldbook/" + a.book, []string{found("main .item .name")}, dialogOpen},
		{"binding", "/library/worldbook/" + a.book, []string{pressable("Choose characters")}, dialogOpen},
		{"preset", "/library/preset/" + a.preset, nil, found("main ol li")},
		{"preset prompt", "/library/preset/" + a.preset, []string{found("main ol li .name")}, dialogOpen},
		{"scripts", "/library/regexscript/" + a.scripts, nil, found("main ol li")},
		{"script", "/library/regexscript/" + a.scripts, []string{found("main ol li .name")}, dialogOpen},
		{"persona", "/library/persona/" + a.persona, nil, found("main textarea")},
		{"choosing a memory", "/memory", nil, pageText("Wren")},
		{"facts", memory, nil, found(".fact .text")},
		{"fact", memory + "?fact=" + a.fact, nil, dialogOpen},
		{"forgetting", memory, []string{found("main > header [aria-haspopup=menu]"), found("[role=menuitem]")}, dialogOpen},
		{"selecting facts", memory, []string{pressable("Filter"), pressable("Select")}, found(".fact input")},
		{"a new fact", memory, []string{pressable("Add a memory")}, dialogOpen},
		{"what a search finds", memory + "?q=peanuts", nil, `document.querySelectorAll("main .scroller .inside > *").length > 1 && ` + pageText("peanuts")},
		{"importing facts", memory, []string{found("main > header [aria-haspopup=menu]"), pressable("Import…")}, dialogOpen},
		{"suggestions", memory + "/suggestions", nil, found(".suggestions li")},
		{"timeline", memory + "/timeline", nil, found(".happening")},
		{"summaries", memory + "/summaries", nil, found("main article")},
		{"memory jobs", memory + "/jobs", nil, found("li[data-state]")},
		{"prompt", "/prompts/" + a.reply, nil, found(".part")},
		{"a part of the prompt", "/prompts/" + a.reply, []string{found(".part button")}, found(".part .text")},
		{"run again", "/prompts/" + a.reply, []string{pressable("Run again")}, dialogOpen},
		{"prompt of the next reply", "/prompts/new/" + a.chat, []string{found("main form details:not([open]) summary")}, found("main form textarea")},
		{"new person", "/settings/people", []string{pressable("Add person…")}, dialogOpen},
		{"QR code", "/settings/account", []string{pressable("Show QR code")}, found("[name=address]")},
		{"new token", "/settings/account", []string{pressable("New token…")}, dialogOpen},
		{"model picker", "/settings/models", []string{found("[data-provider=openai] button")}, found("dialog [role=option]")},
		{"a new model server", "/settings/models", []string{found("main [data-add=server]")}, found("dialog [name=baseUrl]")},
		{"new chat", "/", []string{pressable("New chat")}, dialogOpen},
	}
	views = append(views, circleAccess()...)
	views = append(views, logAccess(a.chat, memory)...)
	views = append(views, knowledgeAccess(a.base, a.file, a.character)...)
	views = append(views, researchAccess(a.researched, a.planned)...)
	for _, part := range []string{"card", "worldbook", "preset", "scripts", "note", "settings", "chats", "check"} {
		views = append(views, accessView{"character " + part, character + "/" + part, nil, `document.querySelector("main .inside")?.children.length > 0 && !` + pageText("Loading…")})
	}
	for _, kind := range []string{"worldbook", "preset", "regexscript", "persona"} {
		views = append(views, accessView{"library " + kind, "/library/" + kind, nil, found("main .item")})
	}
	for i, tab := range []string{"Left out", "Changes", "Reply"} {
		views = append(views, accessView{"prompt " + tab, "/prompts/" + a.reply, []string{fmt.Sprintf(`document.querySelectorAll("[role=tab]")[%d]`, i+1)}, found("[role=tabpanel]")})
	}
	for _, section := range []string{"general", "models", "search", "usage", "storage", "account", "people", "server"} {
		views = append(views, accessView{"settings " + section, "/settings/" + section, nil, found("[data-section=" + section + "] section.card")})
	}
	if a.phone {
		views = append(views,
			accessView{"chats", "/", nil, found("main [role=listitem]")},
			accessView{"settings", "/settings", nil, found("main nav a")},
			accessView{"drawer", "/characters", []string{pressable("Open menu")}, `!document.querySelector("aside").inert`})
	}
	list := "aside"
	if a.phone {
		list = "main"
	}
	return append(views, accessView{"what was said", "/", []string{typed(list, "bees")}, found(list + " mark")}) // the words stay
}

// typed types into a field for searches, and returns it.
func typed(where, text string) string {
	return `(f => f && (f.value = ` + jsString(text) + `, f.dispatchEvent(new Event("input", {bubbles: true})), f))(` + found(where+" [type=search]") + `)`
}

func (a *accessPage) see(what, js string) {
	a.t.Helper()
	waitJS(a.t, a.ctx, what, js)
}

// show goes to a view, which is made anew.
func (a *accessPage) show(v accessView) {
	a.t.Helper()
	a.see("away from the view before "+v.name, `(location.hash = "#/settings/none", true)`)
	a.see("nothing", `(document.querySelector("dialog[open] header button, .note .icon")?.click(), !document.querySelector("dialog, .note") && document.querySelector("main p.section"))`)
	a.see("going to "+v.name, `(location.hash = `+jsString("#"+v.address)+`, true)`)
	for i, js := range v.press {
		a.see(fmt.Sprintf("%s: press %d", v.name, i), `(e => e && !e.disabled && (e.click(), true))(`+js+`)`)
	}
	a.see(v.name, v.ready)
}

// media emulates a preference of the user, as name and value.
func (a *accessPage) media(features ...string) {
	a.t.Helper()
	var p emulation.SetEmulatedMediaParams
	for i := 0; i < len(features); i += 2 {
		p.Features = append(p.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	_, err := chromedp.Call(a.ctx, emulation.SetEmulatedMedia, p)
	if err != nil {
		a.t.Fatal(err)
	}
}

// check lists what is wrong with what is shown.
func (a *accessPage) check(where, js string) (wrong []string) {
	a.t.Helper()
	list, err := chromedp.Run(a.ctx, chromedp.Evaluate[[]string](js, chromedp.EvalAwaitPromise))
	if err != nil {
		a.t.Fatalf("%s: %v", where, err)
	}
	for _, w := range list {
		wrong = append(wrong, where+": "+w)
	}
	return wrong
}

// checks is all that is asked of a view, in the size that is set.
func (a *accessPage) checks(view string) (wrong []string) {
	a.t.Helper()
	whole := view == "a chat" || view == "drawer" || view == "what was said" || view == "new chat"
	size := "wide"
	if a.phone {
		size = "phone"
	}
	where := view + ", " + size
	wrong = append(wrong, a.check(where, fmt.Sprintf(`access.rules(%t)`, whole))...)
	wrong = append(wrong, a.check(where+", unnamed field", `access.unnamed()`)...)
	if a.phone {
		wrong = append(wrong, a.check(where+", too wide", `access.wide()`)...)
		wrong = append(wrong, a.check(where+", small target", `access.small()`)...)
	}
	wrong = append(wrong, a.check(where+", focus is not visible", `access.unseen()`)...)
	// Both themes have the same elements, and both sizes have the same colours.
	if a.both {
		a.media("prefers-color-scheme", a.theme(!a.phone))
		wrong = append(wrong, a.check(where+", the other theme", fmt.Sprintf(`access.rules(%t, ["color-contrast", "link-in-text-block"])`, whole))...)
		a.media("prefers-color-scheme", a.theme(a.phone))
	}
	return wrong
}

// theme is the one for a size: the phone is dark.
func (a *accessPage) theme(phone bool) string {
	if phone {
		return "dark"
	}
	return "light"
}

// TestPageAccessible shows every view, menu and dialog, with content, on a dark phone, and
// the views on a light wide screen; with NODEST_LONG=1 all of it on both, light and dark: axe-core finds nothing, nothing is wider than the
// screen, all targets are large enough for a finger, all fields have a name, and the
// focus is seen.
func TestPageAccessible(t *testing.T) {
	axe, err := os.ReadFile("../../web/node_modules/axe-core/axe.min.js")
	if os.IsNotExist(err) {
		t.Skip("skipped: there is no web/node_modules (make web-check)")
	}
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("testdata/access.js")
	if err != nil {
		t.Fatal(err)
	}
	walk := func(t *testing.T, phone bool) {
		a := newAccessPage(t)
		size := chromedp.EmulateViewport(1440, 900)
		a.both = scaled(t, 0, 1) == 1
		if a.phone = phone; phone {
			size = chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
		}
		if err := chromedp.Do(a.ctx, size); err != nil {
			t.Fatal(err)
		}
		_, err := chromedp.Call(a.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: string(axe) + ";\n" + string(own)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = chromedp.Call(a.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		if err != nil {
			t.Fatal(err)
		}
		a.media("prefers-color-scheme", a.theme(phone))
		if err := chromedp.Do(a.ctx, chromedp.Navigate(a.p.client.Base)); err != nil {
			a.t.Fatal(err)
		}
		a.see("signing in", found("[name=password]"))
		a.see("four faults", `(() => {
			const bad = document.createElement("main")
			bad.id = "bad"
			bad.append(...["input", "button", "a"].map(e => document.createElement(e)), "Gray")
			bad.style.cssText = "width: 1600px; color: #777"
			bad.children[0].placeholder = "Placeholder"
			bad.children[1].textContent = "x"
			bad.children[1].style.cssText = "outline: none; width: 20px; min-height: 0; height: 20px; padding: 0"
			document.body.append(bad)
			return true
		})()`)
		faults := strings.Join(a.checks("faults"), "\n")
		for _, f := range []string{"landmark-no-duplicate-main", "color-contrast", "unnamed field", "focus is not visible"} {
			if !strings.Contains(faults, f) {
				t.Fatalf("the checks find what is wrong: faults is %q, want it with %q", faults, f)
			}
		}
		if phone {
			if !strings.Contains(faults, "too wide") {
				t.Fatalf("faults is %q, want it with %q", faults, "too wide")
			}
			if !strings.Contains(faults, "small target") {
				t.Fatalf("faults is %q, want it with %q", faults, "small target")
			}
		}
		a.see("without them", `(document.querySelector("#bad").remove(), true)`)
		wrong := a.checks("signing in")
		signInWithPassword(a.t, a.ctx, "mia", "staple battery horse")
		a.see("no chats yet", pageText("Welcome"))
		wrong = append(wrong, a.checks("welcome")...)
		if err := chromedp.Do(a.ctx, chromedp.Navigate(a.p.client.Base+"/signin#"+a.p.link)); err != nil {
			t.Fatal(err)
		}
		a.see("the page of the owner", `document.querySelector("main h1") && `+found("[href='#/chats/"+a.chat+"']"))
		for _, v := range a.views() {
			if !phone && !a.both && v.press != nil {
				continue // menus and dialogs have the same elements in both sizes
			}
			a.show(v)
			wrong = append(wrong, a.checks(v.name)...)
		}
		if len(wrong) > 0 {
			t.Errorf("%d findings:\n%s", len(wrong), strings.Join(wrong, "\n"))
		}
		a.p.stop(t)
	}
	t.Run("wide", func(t *testing.T) { walk(t, false) })
	t.Run("phone", func(t *testing.T) { walk(t, true) })
}

// TestPageAnnouncesReplies: the beginning and the end of a reply are read aloud, its
// pieces are not.
func TestPageAnnouncesReplies(t *testing.T) {
	c := openChatPage(t)
	c.see("what is read aloud is collected", `(() => {
		window.heard = []
		const live = (n) => (n.nodeType == 1 ? n : n.parentElement)?.closest("[aria-live], [role=status], [role=alert], [role=log]")
		new MutationObserver((changes) => {
			for (const at of new Set(changes.map((m) => live(m.target)).filter(Boolean))) if (at.innerText != heard.at(-1)) heard.push(at.innerText)
		}).observe(document.body, {subtree: true, childList: true, characterData: true})
		return true
	})()`)
	pieces := []string{"One ", "two ", "three ", "four."}
	next, rest := c.writes(pieces...)
	c.send("Count!")
	said := ""
	for _, piece := range pieces[:3] {
		next()
		said += piece
		c.last("streaming", strings.TrimSpace(said))
	}
	c.see("it is not finished", `document.querySelector("article.last").ariaBusy == "true"`)
	c.see("only the beginning", `heard.filter(Boolean).join() == "Wren Halloway is writing"`)
	rest()
	c.last("complete", "One two three four.")
	c.see("and the end", `heard.filter(Boolean).join() == "Wren Halloway is writing,Wren Halloway has answered"`)
	c.see("politely", `[...document.querySelectorAll("[aria-live]")].every(e => e.ariaLive == "polite") && !document.querySelector("article.last").closest("[aria-live], [role=log]")`)
	c.p.stop(t)
}

// TestPageInstalls: a browser offers to install the page, with icons that fit, and its
// colour is that of the theme.
func TestPageInstalls(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	signInPage(t, ctx, p)
	manifest, err := chromedp.Call(ctx, page.GetAppManifest, page.GetAppManifestParams{})
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Errors) != 0 {
		t.Fatalf("manifest.Errors is %+v, want none", manifest.Errors)
	}
	var m struct {
		Name, ID, Display string
		StartURL          string `json:"start_url"`
		ThemeColor        string `json:"theme_color"`
		Icons             []struct{ Src, Sizes, Type, Purpose string }
	}
	if err := json.Unmarshal([]byte(manifest.Data), &m); err != nil {
		t.Fatal(err)
	}
	if got, want := ([]string{m.Name, m.ID, m.StartURL, m.Display}), ([]string{"NodeST", "/", "/", "standalone"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if m.ThemeColor == "" {
		t.Fatalf("m.ThemeColor is %q, want more", m.ThemeColor)
	}
	want := map[string]bool{"192x192 ": true, "512x512 ": true, "512x512 maskable": true}
	for _, icon := range m.Icons {
		delete(want, icon.Sizes+" "+icon.Purpose)
		size, err := chromedp.Run(ctx, chromedp.Evaluate[string](`new Promise((done) => { const i = new Image(); i.onload = () => done(i.width + "x" + i.height); i.onerror = () => done("broken"); i.src = `+jsString(icon.Src)+` })`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		if icon.Sizes != "any" {
			if size != icon.Sizes {
				t.Fatalf("%s: size is %q, want %q", icon.Src, size, icon.Sizes)
			}
		}
	}
	if len(want) != 0 {
		t.Fatalf("icons that are missing: want is %+v, want none", want)
	}
	problems, err := chromedp.Call(ctx, page.GetInstallabilityErrors, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range problems.InstallabilityErrors {
		if e.ErrorID != "in-incognito" { // says nothing about the page
			t.Errorf("the page cannot be installed: %s", e.ErrorID)
		}
	}

	const colours = `[...document.querySelectorAll("meta[name=theme-color]")].map(m => m.content).join() == `
	waitJS(t, ctx, "the colours", colours+`"#fbfaf8,#16191d"`)
	showSettings(t, ctx, "general")
	click(t, ctx, "input[value=dark]")
	waitJS(t, ctx, "dark, whatever the system says", colours+`"#16191d,#16191d"`)
	waitJS(t, ctx, "as the page is", `getComputedStyle(document.documentElement).backgroundColor == "rgb(22, 25, 29)"`)
	p.stop(t)
}

// TestPageForcedColours: with the colours of the system, and without motion, what a
// background or a movement says is said otherwise.
func TestPageForcedColours(t *testing.T) {
	a := newAccessPage(t)
	a.media("forced-colors", "active", "prefers-reduced-motion", "reduce", "prefers-color-scheme", "dark")
	signInPage(t, a.ctx, a.p)
	a.see("the colours of the system", `matchMedia("(forced-colors: active)").matches && matchMedia("(prefers-reduced-motion: reduce)").matches`)
	show := func(address, ready string) {
		t.Helper()
		goTo(t, a.ctx, address, ready)
	}
	const canvas = `getComputedStyle(document.documentElement).backgroundColor`
	marked := func(what, selector string) {
		t.Helper()
		a.see(what+" is marked", `(list => list.length > 0 && list.every(e => parseFloat(getComputedStyle(e).outlineWidth) >= 2 && getComputedStyle(e).outlineStyle == "solid"))([...document.querySelectorAll(`+jsString(selector)+`)])`)
	}
	seen := func(what, selector string) {
		t.Helper()
		a.see(what+" is seen", `(list => list.length > 0 && list.every(e => ![`+canvas+`, "rgba(0, 0, 0, 0)"].includes(getComputedStyle(e).backgroundColor)))([...document.querySelectorAll(`+jsString(selector)+`)])`)
	}
	show("/library/preset/"+a.preset, found("main ol li"))
	seen("a switch", "[role=switch]")
	show("/prompts/"+a.reply, found(".part"))
	seen("a share of the budget", ".bar i[data-source]")
	seen("the colour of a source", ".tag i")
	marked("the tab", "[role=tab][aria-selected=true]")
	a.see("the tab of the reply", `(document.querySelectorAll("[role=tab]")[3].click(), document.querySelector("[data-step]"))`)
	seen("a step of the time", "[data-step]")
	show("/settings/account", found("[data-section=account] section"))
	marked("the place in the navigation", "nav [aria-current]")
	show("/chats/"+a.chat, found("article.last[data-status=complete] table"))
	a.see("a tag is chosen", `(e => e && (e.click(), true))(`+found("aside .tags button")+`)`)
	marked("the tag", ".tags [aria-pressed=true]")
	a.see("a note", `(navigator.clipboard.writeText = async () => {}, (e => e && (e.click(), true))(`+pressable("Copy")+`))`)
	a.see("it has an edge", `(e => e && getComputedStyle(e).borderTopStyle == "solid" && getComputedStyle(e).borderTopColor != getComputedStyle(e).backgroundColor)(`+found(".note")+`)`)
	a.see("nothing moves for long", `document.getAnimations().every(m => m.effect.getComputedTiming().endTime < 100)`)
	a.p.stop(t)
}
