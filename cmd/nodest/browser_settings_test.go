package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPageSettings changes the user's name and time zone, the prompts of the open
// chat's character, and the password, and signs in with the new one.
func TestPageSettings(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=0s").start(t)
	read := func(path string, out any) {
		t.Helper()
		require.NoError(t, p.client.call(t.Context(), http.MethodGet, "/api/v1"+path, nil, out))
	}
	openSample(t, ctx, p)
	clickText(t, ctx, "Settings")
	waitJS(t, ctx, "three forms", `document.querySelectorAll(".settings form").length == 3`)

	set := func(what, selector, value string) {
		t.Helper()
		waitJS(t, ctx, what, `(e => { e.value = `+jsString(value)+`; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); return true })(document.querySelector(`+jsString(selector)+`))`)
	}
	save := func(form string) {
		t.Helper()
		click(t, ctx, form+" button")
		waitJS(t, ctx, "saved", `document.querySelector(".settings [role=status]")?.innerText == "Saved."`)
	}
	const user, character, password = ".settings form:nth-of-type(1)", ".settings form:nth-of-type(2)", ".settings form:nth-of-type(3)"
	set("a name", user+" input", "Mia")
	set("a zone", user+" select", "Asia/Tokyo")
	save(user)
	var mine struct{ UserName, TimeZone string }
	read("/settings", &mine)
	require.Equal(t, "Mia", mine.UserName)
	require.Equal(t, "Asia/Tokyo", mine.TimeZone)

	set("a language", character+" select", "zh")
	click(t, ctx, character+" label:nth-of-type(4) input")
	save(character)
	var list struct{ Items []struct{ ID string } }
	read("/characters", &list)
	var prompts struct {
		Prompt struct {
			Language string
			Recount  bool
		}
	}
	read("/characters/"+list.Items[0].ID+"/settings", &prompts)
	require.Equal(t, "zh", prompts.Prompt.Language)
	require.True(t, prompts.Prompt.Recount, "imported characters are not asked by default")

	set("a password", password+" input", "correct horse battery")
	save(password)
	login := map[string]any{"username": "owner", "password": "correct horse battery"}
	require.NoError(t, newTestClient(p.client.base, "").call(t.Context(), http.MethodPost, "/api/v1/auth/login", login, nil))
	waitJS(t, ctx, "the next change asks for it", `document.querySelector(".settings").innerText.includes("Current password")`)

	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(390, 844)))
	waitJS(t, ctx, "on a phone nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	p.stop(t)
}
