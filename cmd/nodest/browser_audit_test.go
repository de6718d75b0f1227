package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPageSettingsAudit: an owner reads who did what, chooses among it, and limits what somebody's models may cost.
func TestPageSettingsAudit(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	api(t, p, http.MethodPost, "/users", map[string]any{"username": "Mia", "password": "correct horse battery"}, nil)
	api(t, p, http.MethodPut, "/providers/openrouter/key", map[string]any{"key": "sk-or-secret"}, nil)
	signInPage(t, ctx, p)
	showSettings(t, ctx, "people")
	waitJS(t, ctx, "Mia's limits", `(b => b && (b.click(), true))(document.querySelector('[data-section] [aria-label="More: Mia"]'))`)
	clickIn(t, ctx, "[role=menu]", "Limits…")
	fill(t, ctx, "[name=usdPerMonth]", "2.5")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the limit", `document.querySelector("[data-section]").innerText.includes("$2.50 a month")`)

	showSettings(t, ctx, "audit")
	for action, text := range map[string]string{"user.created": "Mia", "key.changed": "openrouter", "limits.changed": "usdPerMonth 2.5", "signin": "with a link"} {
		waitJS(t, ctx, action, `document.querySelector("[data-action='`+action+`']")?.innerText.includes(`+jsString(text)+`)`)
	}
	waitJS(t, ctx, "no key", `!document.body.innerText.includes("sk-or-secret")`)
	choose := func(name, js string) {
		t.Helper()
		waitJS(t, ctx, "choosing "+name, `(s => { const o = [...s.options].find(o => `+js+`); s.value = o?.value; return !!o && s.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("[name=`+name+`]"))`)
	}
	choose("action", `o.value == "user.created"`)
	waitJS(t, ctx, "one action", `[...document.querySelectorAll("[data-action]")].every(e => e.dataset.action == "user.created")`)
	choose("action", `o.value == ""`)
	choose("person", `o.text == "Mia"`)
	waitJS(t, ctx, "one person", `document.querySelectorAll("[data-action]").length == 2`)

	waitJS(t, ctx, "in Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the Chinese page", `document.querySelector("[data-section=audit]")?.innerText.includes("创建账号")`)
	p.stop(t)
}
