package main

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nodest/llm/llmtest"
)

// TestPageSettingsGeneral changes language and theme, the name, the time zone and the
// defaults of chats. What the page does not show is kept, and what another device
// stores in the meantime is not lost.
func TestPageSettingsGeneral(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	api(t, p, http.MethodPut, "/settings", map[string]any{"customSetting": map[string]any{"content": "She is a sailor."}, "userName": "Old"}, nil)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "general")
	waitJS(t, ctx, "the name", `document.querySelector("[data-path=userName]")?.value == "Old"`)

	fill(t, ctx, "[data-path=userName]", "Mia")
	waitJS(t, ctx, "it says what is not saved", `document.querySelector(".save")?.innerText.includes("Not saved yet")`)
	var stored struct {
		UserName, TimeZone string
		Temperature        float64
		MaxTokens          int
		Stop               []string
		Memory             *bool
		CustomSetting      struct{ Content string }
		GlobalPreset       struct {
			Enabled bool
			ID      string
		}
	}
	api(t, p, http.MethodPut, "/settings", map[string]any{"customSetting": map[string]any{"content": "She is a captain."}, "userName": "Other", "temperature": 0.5}, nil)
	waitJS(t, ctx, "another device was faster", `document.querySelector(".save")?.innerText.includes("changed on another device") && document.querySelector(".save")?.innerText.includes("Your name")`)
	waitJS(t, ctx, "what was typed is there", `document.querySelector("[data-path=userName]").value == "Mia"`)
	clickText(t, ctx, "Keep my text and take over their other changes")
	waitJS(t, ctx, "their other change", `document.querySelector("[data-path=temperature]").value == "0.5"`)
	centre(t, ctx, `document.querySelector(".save .primary")`)
	fill(t, ctx, "[data-path=timeZone]", "Asia/Tokyo")
	fill(t, ctx, "[data-path=maxTokens]", "600")
	fill(t, ctx, "[data-path=stop]", "Mia:\nEnd")
	click(t, ctx, "[data-path=memory]")
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "saved", `!document.querySelector(".save")`)
	api(t, p, http.MethodGet, "/settings", nil, &stored)
	if got, want := ([]any{stored.UserName, stored.TimeZone, stored.Temperature, stored.MaxTokens, stored.CustomSetting.Content}), ([]any{"Mia", "Asia/Tokyo", 0.5, 600, "She is a captain."}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if want := ([]string{"Mia:", "End"}); !reflect.DeepEqual(stored.Stop, want) {
		t.Fatalf("stored.Stop is %q, want %q", stored.Stop, want)
	}
	if *stored.Memory {
		t.Fatal("*stored.Memory is true, want false")
	}

	var preset struct{ ID string }
	api(t, p, http.MethodPost, "/presets", map[string]any{"name": "House style", "document": map[string]any{"prompts": []any{}}}, &preset)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the preset", `document.querySelector("[data-path=globalPreset]")?.innerText.includes("House style")`)
	fill(t, ctx, "[data-path=globalPreset]", "House style")
	fill(t, ctx, "[data-path=temperature]", "")
	clickText(t, ctx, "Save")
	waitJS(t, ctx, "saved", `!document.querySelector(".save")`)
	stored.Temperature = 0
	api(t, p, http.MethodGet, "/settings", nil, &stored)
	if !stored.GlobalPreset.Enabled {
		t.Fatal("stored.GlobalPreset.Enabled is false, want true")
	}
	if stored.GlobalPreset.ID != preset.ID {
		t.Fatalf("stored.GlobalPreset.ID is %q, want %q", stored.GlobalPreset.ID, preset.ID)
	}
	if stored.Temperature != 0 {
		t.Fatalf("an empty field is no value: stored.Temperature is %v, want none", stored.Temperature)
	}

	click(t, ctx, "input[value=zh]")
	waitJS(t, ctx, "Chinese", `document.documentElement.lang == "zh-CN" && document.body.innerText.includes("时区")`)
	click(t, ctx, "input[value=dark]")
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "Chinese and dark after a reload", `document.body.innerText.includes("时区") && document.documentElement.dataset.theme == "dark" && document.querySelector("input[value=dark]").checked`)
	p.stop(t)
}

// TestPageSettingsModels stores a key of a fake provider, picks one of its models, and
// sees the use of a reply by it. A key that the provider refuses is explained, and
// none is ever shown.
func TestPageSettingsModels(t *testing.T) {
	ctx := browser(t)
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("harbour-small", "harbour-large", "lighthouse")
	fake.ForKey("sk-wrong", llmtest.Reply{Status: http.StatusUnauthorized, Message: "No auth credentials found"})
	reply := llmtest.Say("Good", " evening.")
	reply.Usage = llmtest.Usage{Prompt: 1200, Completion: 34, Cost: 0.25}
	fake.Always(func(llmtest.Request) llmtest.Reply { return reply })
	p := newPageInstallation(t, "NODEST_OPENROUTER_BASE_URL="+fake.URL).start(t)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "models")

	const card = "[data-provider=openrouter]"
	state := func(what, state string) {
		t.Helper()
		waitJS(t, ctx, what, `document.querySelector("`+card+` .pill")?.innerText == `+jsString(state))
	}
	state("no key yet", "Needs a key")
	waitJS(t, ctx, "nothing to type for the offline model", `document.querySelector("[data-provider=offline]") && !document.querySelector("[data-provider=offline]").innerText.includes("key")`)
	clickIn(t, ctx, card, "Add key…")
	fill(t, ctx, card+" input", "sk-wrong")
	clickIn(t, ctx, card, "Store key")
	state("the key is refused", "Not working")
	clickIn(t, ctx, card, "Replace key…")
	waitJS(t, ctx, "the key is not shown", `document.querySelector("`+card+` input").value == ""`)
	fill(t, ctx, card+" input", "sk-right")
	clickIn(t, ctx, card, "Store key")
	state("the key works", "Works")

	click(t, ctx, card+" button")
	waitJS(t, ctx, "its models", `document.querySelectorAll("dialog [role=option]").length == 4`)
	if err := chromedp.Do(ctx, chromedp.SendKeys("dialog [role=combobox]", "harbour")); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "two fit", `document.querySelector("dialog [role=status]").innerText.startsWith("2 models")`)
	if err := chromedp.Do(ctx, chromedp.SendKeys("dialog [role=combobox]", kb.ArrowDown+kb.Enter)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "chosen", `document.querySelector(".chosen")?.innerText.includes("OpenRouter · harbour-large")`)
	var chosen struct{ Provider, Model string }
	api(t, p, http.MethodGet, "/settings", nil, &chosen)
	if got := chosen.Provider + " " + chosen.Model; got != "openrouter harbour-large" {
		t.Fatalf("got %q, want %q", got, "openrouter harbour-large")
	}

	clickIn(t, ctx, card, "Test")
	waitJS(t, ctx, "it answers", `/harbour-large answered in .*\s.*Good evening/.test(document.querySelector("`+card+` .result")?.innerText)`)
	askOnce(t, p)
	requests := fake.Requests()
	at := slices.IndexFunc(requests, func(r llmtest.Request) bool { return strings.Contains(string(r.Body), "Where does the ferry go?") })
	if at < 0 {
		t.Fatalf("at is %d, want at least %d", at, 0)
	}
	if got, want := ([]string{requests[at].Key, requests[at].Model}), ([]string{"sk-right", "harbour-large"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	showSettings(t, ctx, "usage")
	waitJS(t, ctx, "the use of the reply", `/openrouter · harbour-large\s.*\d/.test(document.querySelector("table")?.innerText)`)
	waitJS(t, ctx, "a bar", `document.querySelectorAll("svg[role=img] rect.c0").length > 0 && document.querySelector("svg[role=img]").ariaLabel.startsWith("Tokens per day")`)
	click(t, ctx, "input[value=cost]")
	waitJS(t, ctx, "its cost", `document.querySelector("svg[role=img]").ariaLabel.startsWith("Cost per day") && /\$0\.[25]/.test(document.querySelector("dl dd").innerText)`)
	click(t, ctx, "input[value='7']")
	waitJS(t, ctx, "seven days", `document.querySelector("details table") && document.querySelectorAll("svg[role=img] rect.c0").length == 1`)

	showSettings(t, ctx, "models")
	clickIn(t, ctx, card, "Delete key")
	clickIn(t, ctx, "dialog", "Delete key")
	state("no key any more", "Needs a key")
	clickText(t, ctx, "Back to automatic")
	waitJS(t, ctx, "automatic", `document.querySelector(".chosen")?.innerText.startsWith("Automatic")`)
	p.stop(t)
}

// TestPageSettingsAccount creates and revokes a token, sets and changes the password, signs
// a second browser in with it, and a third one with the link of the QR code.
func TestPageSettingsAccount(t *testing.T) {
	ctx, phone := browser(t), anotherBrowser(t)
	p := newPageInstallation(t).start(t)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "account")

	waitJS(t, ctx, "this browser, which is not to be revoked", `/^Browser[^]*This browser/.test(document.querySelector("li")?.innerText) && !document.querySelector("li").querySelector("button")`)
	clickText(t, ctx, "New token…")
	fill(t, ctx, "[name=tokenName]", "my phone")
	clickIn(t, ctx, "dialog", "Create token")
	waitJS(t, ctx, "the token, once", `document.querySelector("input.token")?.value.startsWith("nst_")`)
	token := newTestClient(p.client.Base, evalString(t, ctx, `document.querySelector("input.token").value`))
	if err := token.Call(t.Context(), http.MethodGet, "/api/v1/me", nil, nil); err != nil {
		t.Fatal(err)
	}
	clickIn(t, ctx, "dialog", "Done")
	click(t, ctx, `[aria-label="Revoke: my phone"]`)
	clickIn(t, ctx, "dialog", "Revoke")
	waitJS(t, ctx, "it is gone", `document.body.innerText.includes("Revoked.") && !document.querySelector('[aria-label="Revoke: my phone"]')`)
	if err := token.Call(t.Context(), http.MethodGet, "/api/v1/me", nil, nil); err == nil {
		t.Fatal("got no error, want one")
	}

	fill(t, ctx, "[name=password]", "correct horse battery")
	clickText(t, ctx, "Set password")
	waitJS(t, ctx, "the next change asks for it", `document.querySelector("[name=current]") && document.querySelector("[name=password]").value == ""`)
	fill(t, ctx, "[name=current]", "a guess of mine")
	fill(t, ctx, "[name=password]", "staple battery horse")
	clickText(t, ctx, "Change password")
	waitJS(t, ctx, "not with a wrong one", `document.querySelector("[role=alert]")?.innerText == "The current password is wrong."`)
	fill(t, ctx, "[name=current]", "correct horse battery")
	clickText(t, ctx, "Change password")
	waitJS(t, ctx, "changed", `document.querySelector("[name=password]").value == "" && document.body.innerText.includes("Password changed.")`)

	clickText(t, ctx, "New token…")
	fill(t, ctx, "[name=tokenName]", "my app")
	waitJS(t, ctx, "one that lasts", `(s => (s.value = "", s.dispatchEvent(new Event("change", { bubbles: true }))))(document.querySelector("dialog select"))`)
	fill(t, ctx, "dialog [name=currentPassword]", "correct horse battery")
	clickIn(t, ctx, "dialog", "Create token")
	waitJS(t, ctx, "not with a wrong password", `document.body.innerText.includes("current password is wrong")`)
	fill(t, ctx, "dialog [name=currentPassword]", "staple battery horse")
	clickIn(t, ctx, "dialog", "Create token")
	waitJS(t, ctx, "a lasting token", `document.querySelector("input.token")?.value.startsWith("nst_")`)
	clickIn(t, ctx, "dialog", "Done")
	waitJS(t, ctx, "in the list", `[...document.querySelectorAll("li")].some(e => e.innerText.includes("my app") && e.innerText.includes("until revoked"))`)

	if err := chromedp.Do(phone, chromedp.EmulateViewport(390, 844), chromedp.Navigate(p.client.Base)); err != nil {
		t.Fatal(err)
	}
	signInWithPassword(t, phone, "owner", "correct horse battery")
	waitJS(t, phone, "not with the old one", `document.querySelector("[role=alert]")?.innerText.includes("Wrong name or password.")`)
	waitJS(t, phone, "nothing is wider than the phone", `document.documentElement.scrollWidth <= 390`)
	signInWithPassword(t, phone, "owner", "staple battery horse")
	waitJS(t, phone, "signed in", `document.querySelector("main#content")`)
	showSettings(t, phone, "account")
	clickText(t, phone, "Sign out")
	if err := chromedp.Do(phone, chromedp.WaitVisible("[name=username]")); err != nil {
		t.Fatal(err)
	}

	clickText(t, ctx, "Show QR code")
	waitJS(t, ctx, "no code for an address that a phone cannot open", `document.body.innerText.includes("A phone cannot open 127.0.0.1:") && !document.querySelector("svg[data-text]")`)
	fill(t, ctx, "[name=address]", "https://chat.example.org/")
	waitJS(t, ctx, "a code for one that it can", `document.querySelector("svg[data-text]")?.dataset.text.startsWith("https://chat.example.org/signin#")`)
	link := strings.Replace(evalString(t, ctx, `document.querySelector("svg[data-text]").dataset.text`), "https://chat.example.org", p.client.Base, 1)
	if err := chromedp.Do(phone, chromedp.Navigate(link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, phone, "the link signs in", `document.querySelector("main#content") && location.pathname == "/"`)
	for _, section := range []string{"", "general", "models", "search", "usage", "account", "people", "server"} {
		showSettings(t, phone, section)
		waitJS(t, phone, section+" fits the phone", `document.documentElement.scrollWidth <= 390 && [...document.querySelectorAll(".body *")].every(e => e.getBoundingClientRect().right <= 391 || e.closest(".scroll, .hidden-text"))`)
	}
	p.stop(t)
}

// TestPageSettingsPeople creates a member, limits, promotes and deletes them. Members do
// not see the people, and may use the rest.
func TestPageSettingsPeople(t *testing.T) {
	ctx, other := browser(t), anotherBrowser(t)
	if err := chromedp.Do(other, chromedp.EmulateViewport(1440, 900)); err != nil {
		t.Fatal(err)
	}
	p := newPageInstallation(t).start(t)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "people")
	clickText(t, ctx, "Add person…")
	fill(t, ctx, "dialog [name=username]", "mia")
	clickIn(t, ctx, "dialog", "Suggest one")
	password := evalString(t, ctx, `document.querySelector("dialog [name=newPassword]").value`)
	if len(password) <= 15 {
		t.Fatalf("len(password) is %d, want more than %d", len(password), 15)
	}
	clickIn(t, ctx, "dialog", "Create account")
	clickIn(t, ctx, "dialog", "Show QR code")
	waitJS(t, ctx, "a link for her", `document.querySelector("dialog").innerText.includes("Signs in mia.")`)
	waitJS(t, ctx, "a clipboard", `(navigator.clipboard.writeText = async (text) => { window.copied = text })`)
	clickIn(t, ctx, "dialog", "Copy link")
	waitJS(t, ctx, "the link", `window.copied`)
	link := evalString(t, ctx, `window.copied`)
	clickIn(t, ctx, "dialog", "Done")

	if err := chromedp.Do(other, chromedp.Navigate(link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, other, "she is signed in", `document.querySelector("main#content")`)
	showSettings(t, other, "account")
	waitJS(t, other, "as herself", `document.querySelector("h2")?.innerText == "Signed in as mia"`)
	waitJS(t, other, "without people", `document.querySelector(".body nav") && !document.querySelector("[href='#/settings/people']")`)
	showSettings(t, other, "server")
	waitJS(t, other, "without a backup", `document.body.innerText.includes("OpenAPI document") && !document.body.innerText.includes("Download backup")`)
	waitJS(t, other, "going there", `(location.hash = "#/settings/people", true)`)
	waitJS(t, other, "not by the address either", `document.body.innerText.includes("Only owners")`)

	choose := func(label string) {
		t.Helper()
		click(t, ctx, `[aria-label="More: mia"]`)
		clickIn(t, ctx, "[role=menu]", label)
	}
	row := func(what, text string) {
		t.Helper()
		waitJS(t, ctx, what, `[...document.querySelectorAll("li")].some(l => l.querySelector("b")?.innerText == "mia" && l.innerText.includes(`+jsString(text)+`))`)
	}
	choose("Limits…")
	fill(t, ctx, "[name=tokensPerDay]", "5000")
	clickIn(t, ctx, "dialog", "Save")
	row("the limit", "5,000 tokens a day")
	choose("Make owner")
	clickIn(t, ctx, "dialog", "Make owner")
	row("an owner", "Owner")
	waitJS(t, other, "she has to sign in again", `document.querySelector("[name=username]")`)
	signInWithPassword(t, other, "mia", password)
	waitJS(t, other, "she has", `document.querySelector("main#content")`)
	choose("Set password…")
	fill(t, ctx, "[name=newPassword]", "a new password")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, other, "that ends her session", `document.querySelector("[name=username]")`)

	choose("Delete…")
	waitJS(t, ctx, "a clear question", `document.querySelector("dialog").innerText.includes("all its data")`)
	waitJS(t, ctx, "not without her name", `document.querySelector("dialog button.danger").disabled`)
	fill(t, ctx, "[name=confirm]", "mia")
	clickIn(t, ctx, "dialog", "Delete account and all data")
	waitJS(t, ctx, "she is gone", `![...document.querySelectorAll("li b")].some(b => b.innerText == "mia")`)
	p.stop(t)
}

// TestPageSettingsUsageOfPeople shows an owner how much everybody used.
func TestPageSettingsUsageOfPeople(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	askOnce(t, p)
	var mia, owner struct{ ID string }
	api(t, p, http.MethodPost, "/users", map[string]any{"username": "mia", "password": "a long enough password"}, &mia)
	api(t, p, http.MethodGet, "/me", nil, &owner)
	var used struct {
		Items []struct {
			UserID                         string
			PromptTokens, CompletionTokens int
		}
	}
	api(t, p, http.MethodGet, "/usage/users", nil, &used)
	if len(used.Items) != 1 {
		t.Fatalf("whoever used nothing is left out: used.Items has %d, want %d: %+v", len(used.Items), 1, used.Items)
	}
	if used.Items[0].UserID != owner.ID {
		t.Fatalf("used.Items[0].UserID is %q, want %q", used.Items[0].UserID, owner.ID)
	}
	tokens := strconv.Itoa(used.Items[0].PromptTokens + used.Items[0].CompletionTokens)

	signInPage(t, ctx, p)
	showSettings(t, ctx, "people")
	for _, span := range []string{"30", "1", "7"} {
		click(t, ctx, `input[value="`+span+`"]`)
		waitJS(t, ctx, "the usage of everybody", `document.querySelectorAll("li .used").length == 2 &&
			[...document.querySelectorAll("li")].every(l => l.querySelector("b").innerText == "mia"
				? l.innerText.includes("Nothing used")
				: l.querySelector(".used").innerText.replace(",", "").startsWith(`+jsString(tokens+" tokens")+`))`)
	}
	p.stop(t)
}

// TestPageSettingsServer shows the documents of the server and, to its owner, its health,
// jobs and backup.
func TestPageSettingsServer(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	askOnce(t, p)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "server")
	for _, path := range []string{"/docs", "/openapi.json", "/asyncapi.yaml"} {
		waitJS(t, ctx, path, `document.querySelector("[href='`+path+`']")`)
	}
	waitJS(t, ctx, "its health", `/Database\s+SQLite/.test(document.body.innerText) && /Accounts\s+1/.test(document.body.innerText)`)
	waitJS(t, ctx, "its jobs", `[...document.querySelectorAll("li b")].some(b => b.innerText == "Index for search")`)
	backup := evalString(t, ctx, `document.querySelector("a[download]").href`)
	if want := p.client.Base + "/api/v1/backup"; backup != want {
		t.Fatalf("backup is %q, want %q", backup, want)
	}
	p.stop(t)
}

// api makes a REST call as the owner.
func api(t *testing.T, p *process, method, path string, in, out any) {
	t.Helper()
	if err := p.client.Call(t.Context(), method, "/api/v1"+path, in, out); err != nil {
		t.Fatal(err)
	}
}

// askOnce sends a message to the sample character and waits for the reply.
func askOnce(t *testing.T, p *process) {
	t.Helper()
	var sample struct{ Character struct{ ID string } }
	api(t, p, http.MethodPost, "/characters/sample", nil, &sample)
	var chat struct{ ID string }
	api(t, p, http.MethodPost, "/conversations", map[string]any{"characterId": sample.Character.ID}, &chat)
	api(t, p, http.MethodPost, "/conversations/"+chat.ID+"/messages", map[string]any{"text": "Where does the ferry go?"}, nil)
	eventually(t, "the reply", func() error {
		var page struct{ Items []struct{ Status string } }
		api(t, p, http.MethodGet, "/conversations/"+chat.ID+"/messages", nil, &page)
		for _, m := range page.Items {
			if m.Status != "complete" {
				return errNotYet
			}
		}
		if len(page.Items) < 3 { // with the greeting
			return errNotYet
		}
		return nil
	})
}

// signInPage opens the page with the printed link.
func signInPage(t *testing.T, ctx context.Context, p *process) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(p.client.Base+"/signin#"+p.link)); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the page", `document.querySelector("main#content")`)
}

func signInWithPassword(t *testing.T, ctx context.Context, name, password string) {
	t.Helper()
	fill(t, ctx, "[name=username]", name)
	fill(t, ctx, "[name=password]", password)
	clickText(t, ctx, "Sign in")
}

// showSettings shows a section of the settings; on a phone "" is the list of them.
func showSettings(t *testing.T, ctx context.Context, section string) {
	t.Helper()
	path := strings.TrimSuffix("#/settings/"+section, "/")
	waitJS(t, ctx, "going to the settings", `(location.hash = `+jsString(path)+`, true)`)
	if section != "" {
		waitJS(t, ctx, "the section "+section, `document.querySelector("[data-section=`+section+`] section.card")`)
	}
}

// fill sets a field as typing or choosing does.
func fill(t *testing.T, ctx context.Context, selector, value string) {
	t.Helper()
	waitJS(t, ctx, "filling "+selector, `(e => e && (e.value = `+jsString(value)+`, e.dispatchEvent(new Event("input", {bubbles: true})), e.dispatchEvent(new Event("change", {bubbles: true})), true))(document.querySelector(`+jsString(selector)+`))`)
}

// clickIn clicks a button of a part of the page by its label.
func clickIn(t *testing.T, ctx context.Context, selector, label string) {
	t.Helper()
	waitJS(t, ctx, "clicking "+label+" in "+selector, `(b => b && !b.disabled && (b.click(), true))([...document.querySelectorAll(`+jsString(selector+" button")+`)].find(b => b.innerText == `+jsString(label)+`))`)
}
