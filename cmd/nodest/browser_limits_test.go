package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPageSettingsStorage shows what a user has, how much there may be, and what to do
// near a limit. An owner changes the space of somebody.
func TestPageSettingsStorage(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_QUOTA_ITEMS=2", "NODEST_TOKENS_PER_DAY=4000").start(t)
	askOnce(t, p)
	signInPage(t, ctx, p)
	shows := func(kind, text string) {
		t.Helper()
		waitJS(t, ctx, kind+": "+text, `document.querySelector("[data-kind=`+kind+`]")?.innerText.includes(`+jsString(text)+`)`)
	}
	showSettings(t, ctx, "storage")
	shows("bytes", "of 10 GB")
	shows("messages", "3 of 5,000,000")
	shows("characters", "1 of 2")
	waitJS(t, ctx, "nothing is full", `!document.querySelector("[data-section] .pill")`)
	waitJS(t, ctx, "the tokens of today", `/^Tokens today\s+[\d,]+ of 4,000/.test(document.querySelector("[data-kind=tokensPerDay]").innerText) &&
		document.querySelector("[data-kind=tokensPerDay] [role=meter]").ariaValueNow > 10`)

	api(t, p, http.MethodPost, "/characters", map[string]any{"roleCard": map[string]any{"name": "Tom"}}, nil)
	var me struct{ ID string }
	api(t, p, http.MethodGet, "/me", nil, &me)
	showSettings(t, ctx, "people")
	click(t, ctx, `[data-section] [aria-label^="More: "]`)
	clickIn(t, ctx, "[role=menu]", "Limits…")
	fill(t, ctx, "[name=bytes]", "1.5")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the limit", `document.querySelector("[data-section] li").innerText.includes("1.5 GB of space")`)
	var people struct {
		Items []struct {
			Limits struct{ Bytes, TokensPerDay int64 }
		}
	}
	api(t, p, http.MethodGet, "/users", nil, &people)
	if people.Items[0].Limits.Bytes != 3<<29 {
		t.Fatalf("people.Items[0].Limits.Bytes is %d, want %d", people.Items[0].Limits.Bytes, 3<<29)
	}
	api(t, p, http.MethodPatch, "/users/"+me.ID, map[string]any{"limits": map[string]any{"bytes": 1000_000_001}}, nil)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	click(t, ctx, `[data-section] [aria-label^="More: "]`)
	clickIn(t, ctx, "[role=menu]", "Limits…")
	waitJS(t, ctx, "a rounded size", `document.querySelector("[name=bytes]").value == "0.931"`)
	fill(t, ctx, "[name=tokensPerDay]", "20")
	clickIn(t, ctx, "dialog", "Save")
	waitJS(t, ctx, "the tokens", `document.querySelector("[data-section] li").innerText.includes("20 tokens a day")`)
	api(t, p, http.MethodGet, "/users", nil, &people)
	if people.Items[0].Limits.Bytes != 1000_000_001 {
		t.Fatalf("what was not typed stays as it was: people.Items[0].Limits.Bytes is %d, want %d", people.Items[0].Limits.Bytes, 1000_000_001)
	}

	showSettings(t, ctx, "storage")
	shows("bytes", "of 954 MB")
	shows("characters", "2 of 2")
	shows("characters", "Full")
	shows("characters", "Delete what you no longer need")
	shows("tokensPerDay", "Used up")
	shows("tokensPerDay", "midnight UTC")
	p.stop(t)
}

// TestPageSaysWhichLimitIsReached: a refusal names the limit and says what to do, in the
// language of the page.
func TestPageSaysWhichLimitIsReached(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t, "NODEST_QUOTA_ITEMS=1", "NODEST_TOKENS_PER_DAY=10").start(t)
	askOnce(t, p)
	openPage(t, ctx, p)
	dropFiles(t, ctx, "alice.json", aliceCard)
	noted(t, ctx, "alice.json was not imported: You have reached your limit: Characters, at most 1. Delete what you no longer need, or ask the owner of the server for a higher limit.")
	waitJS(t, ctx, "opening the chat", `(e => e && (e.click(), true))(document.querySelector("aside [href^='#/chats/']"))`)
	sendInPage(t, ctx, "And back?")
	waitJS(t, ctx, "no tokens", `document.querySelector("article[data-status=error]")?.innerText.includes("You have used all of your 10 tokens for today. The count starts again at midnight UTC.")`)
	clickText(t, ctx, "Discard")

	waitJS(t, ctx, "in Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	waitJS(t, ctx, "the page", `document.querySelector("`+compose+`")`)
	dropFiles(t, ctx, "alice.json", aliceCard)
	noted(t, ctx, "已达到上限：角色最多 1。请删除不再需要的内容，或请服务器的所有者提高上限。")
	dropFiles(t, ctx, "towns.json", `{"entries": {"0": {"key": ["tower"], "content": "Old.", "group": "a"}}}`)
	noted(t, ctx, "1 条说明")
	clickText(t, ctx, "查看")
	waitJS(t, ctx, "the remark", `document.querySelector("dialog details")?.textContent.includes("此内容不起作用（groups are ignored")`)
	click(t, ctx, "dialog header button")
	sendInPage(t, ctx, "And back?")
	waitJS(t, ctx, "no tokens", `document.querySelector("article[data-status=error]")?.innerText.includes("今日的 10 Token 已用完。")`)
	p.stop(t)
}

// TestPageImportsAgain: where an import may succeed later, the page offers to try again,
// and does so under the same key, so that a file that was stored after all is not stored twice.
func TestPageImportsAgain(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	openPage(t, ctx, p)
	// The first answers to an import are those of a server in trouble.
	waitJS(t, ctx, "a server in trouble", `(() => {
		const real = window.fetch
		window.trouble = []
		window.keys = []
		window.fetch = (url, init) => {
			if (!url.endsWith("/import")) return real(url, init)
			keys.push(init.headers["Idempotency-Key"])
			const next = trouble.shift()
			return next ? Promise.resolve(new Response(JSON.stringify({title: "", type: "", ...next}), {status: next.status})) : real(url, init)
		}
		return true
	})()`)
	answer := func(js string) {
		t.Helper()
		waitJS(t, ctx, "the next answers", `(trouble = `+js+`, keys = [], true)`)
	}
	again := func(imported string) {
		t.Helper()
		waitJS(t, ctx, "trying again", `(b => b && (b.click(), true))([...document.querySelectorAll(".note button")].find(b => b.innerText == "Try again"))`)
		noted(t, ctx, imported)
	}

	book := func(name string) string { return `{"name": "` + name + `", "entries": {}}` }

	answer(`[{code: "rate_limited", status: 429, retry: "later", retryAfterMs: 1000, detail: "too many large requests are in work"}]`)
	dropFiles(t, ctx, "towns.json", book("Towns"))
	noted(t, ctx, "towns.json was not imported: too many large requests are in work")
	again("World book “Towns” was imported.")
	waitJS(t, ctx, "the same key", `keys.length == 2 && keys[0] == keys[1]`)

	for _, code := range []string{"storage_busy", "storage_unavailable"} {
		answer(`Array(4).fill({code: "` + code + `", status: 503, retry: "same", detail: "` + code + `, try again"})`)
		dropFiles(t, ctx, code+".json", book(code))
		noted(t, ctx, code+".json was not imported: "+code+", try again")
		again("World book “" + code + "” was imported.")
		waitJS(t, ctx, "the same key", `keys.length == 5 && new Set(keys).size == 1`)
	}

	answer(`[{code: "too_large", status: 413, retry: "no", detail: "the file may have 64 MB"}]`)
	dropFiles(t, ctx, "huge.json", book("Huge"))
	noted(t, ctx, "huge.json was not imported: the file may have 64 MB")
	waitJS(t, ctx, "that does not help again", `![...document.querySelectorAll(".note button")].some(b => b.innerText == "Try again")`)

	answer(`[{code: "too_large", status: 413, retry: "no", detail: "the file may have 64 MB"}, {code: "rate_limited", status: 429, retry: "later", detail: "wait a little"}]`)
	dropFiles(t, ctx, "one.json", book("One"), "two.json", book("Two"))
	waitJS(t, ctx, "both", `document.querySelectorAll("dialog li .error").length == 2 && document.querySelector("dialog").innerText.includes("wait a little")`)
	waitJS(t, ctx, "one of them again", `document.querySelectorAll("dialog li button").length == 1`)
	clickIn(t, ctx, "dialog", "Try again")
	noted(t, ctx, "World book “Two” was imported.")
	waitJS(t, ctx, "the other one stays", `document.querySelectorAll("dialog li .error").length == 1 && keys[1] == keys[2]`)

	click(t, ctx, "dialog header button")
	var made struct{ Character struct{ ID string } }
	api(t, p, http.MethodPost, "/characters/sample", nil, &made)
	answer(`[{code: "rate_limited", status: 429, retry: "later", detail: "wait a little"}]`)
	goTo(t, ctx, "/memory/"+made.Character.ID, pressable("Add a memory"))
	click(t, ctx, "main > header [aria-haspopup=menu]")
	clickIn(t, ctx, "[role=menu]", "Import…")
	waitJS(t, ctx, "choosing a file", `(() => {
		const input = document.querySelector("dialog input[type=file]"), files = new DataTransfer()
		files.items.add(new File(['{"text": "Ana keeps bees."}'], "facts.jsonl"))
		input.files = files.files
		return input.dispatchEvent(new Event("change", {bubbles: true}))
	})()`)
	waitJS(t, ctx, "why it failed", `document.querySelector("dialog p[role=alert]")?.innerText == "facts.jsonl: wait a little"`)
	clickIn(t, ctx, "dialog", "Try again")
	waitJS(t, ctx, "imported", `document.querySelector("dialog .done") && !document.querySelector("dialog p[role=alert]") && keys.length == 2 && keys[0] == keys[1]`)

	var books struct{ Items []struct{ Name string } }
	api(t, p, http.MethodGet, "/worldbooks", nil, &books)
	if len(books.Items) != 4 {
		t.Fatalf("books.Items has %d, want %d: %+v", len(books.Items), 4, books.Items)
	}
	p.stop(t)
}

// noted waits for a note.
func noted(t *testing.T, ctx context.Context, text string) {
	t.Helper()
	waitJS(t, ctx, "the note "+text, `[...document.querySelectorAll(".note")].some(n => n.innerText.includes(`+jsString(text)+`))`)
}
