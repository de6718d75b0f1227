package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser starts headless Chromium; the test is skipped without one.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("skipped: there is no chromium on this machine")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(testTimeout))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// waitJS evaluates JavaScript in the page until it is true.
func waitJS(t *testing.T, ctx context.Context, what, js string) {
	t.Helper()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool]("Boolean("+js+")", chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(testTimeout)))
	if err != nil {
		page, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText")) // for the message only
		t.Fatalf("%s: %v\nthe page shows:\n%s", what, err, page)
	}
}

// openSample signs in with the printed link and starts a chat with the sample
// character.
func openSample(t *testing.T, ctx context.Context, p *process) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(p.client.base+"/signin#"+p.link)))
	waitJS(t, ctx, "the page offers the sample", `[...document.querySelectorAll("main button")].some(b => b.innerText == "Sample character")`)
	click(t, ctx, "main button")
	waitJS(t, ctx, "the greeting", `document.querySelectorAll("article.assistant .text").length == 1`)
}

// TestPage goes through the first minutes in a browser: the printed link, the sample
// character, a streamed reply, another swipe, a lost connection that is restored, and
// a reload that shows the same.
func TestPage(t *testing.T) {
	ctx := browser(t)
	inst := newInstallation(t, "", "NODEST_OFFLINE_DELAY=20ms")
	p := inst.start(t)

	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(p.client.base+"/signin#"+p.link)))
	waitJS(t, ctx, "the page offers the sample", `[...document.querySelectorAll("main button")].some(b => b.innerText == "Sample character")`)
	waitJS(t, ctx, "the secret has left the address", `location.pathname == "/" && location.hash == ""`)
	waitJS(t, ctx, "the banner of the offline model", `document.querySelector(".banner")?.innerText.includes("Offline demo")`)
	click(t, ctx, "main button")
	waitJS(t, ctx, "the greeting", `document.querySelectorAll("article.assistant .text").length == 1`)

	// The caret may come and go between two evaluations, so an observer records it.
	waitJS(t, ctx, "watching for the caret", `new MutationObserver(() => window.sawCaret ||= !!document.querySelector("article.assistant .caret")).observe(document.body, {childList: true, subtree: true}) || true`)
	sendInPage(t, ctx, "Good evening! Where does the ferry go?")
	waitJS(t, ctx, "the reply is being written", `window.sawCaret`)
	waitJS(t, ctx, "the reply is complete", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)
	reply := evalString(t, ctx, `[...document.querySelectorAll("article.assistant .text")].at(-1).innerText`)
	require.NotEmpty(t, strings.TrimSpace(reply))

	clickText(t, ctx, "Regenerate")
	waitJS(t, ctx, "a second swipe", `document.querySelector("article:last-of-type footer span")?.innerText == "2/2"`)
	click(t, ctx, `article:last-of-type [aria-label="Previous swipe"]`)
	waitJS(t, ctx, "the first swipe again", `[...document.querySelectorAll("article.assistant .text")].at(-1).innerText == `+jsString(reply))

	p.kill(t)
	waitJS(t, ctx, "the lost connection is shown", `document.querySelector(".banner.warn")`)
	inst.env = append(inst.env, "NODEST_ADDR="+strings.TrimPrefix(p.client.base, "http://"))
	p = inst.start(t)
	waitJS(t, ctx, "the connection is back", `!document.querySelector(".banner.warn")`)
	sendInPage(t, ctx, "Are you still there?")
	waitJS(t, ctx, "the next reply", `document.querySelectorAll("article.assistant[data-status=complete]").length == 3`)

	require.NoError(t, chromedp.Do(ctx, chromedp.Reload()))
	waitJS(t, ctx, "all of it after a reload", `document.querySelectorAll("article").length == 5`)
	p.stop(t)
}

// TestPageSavePoints creates a save point, edits, deletes and restores messages, and
// restores the save point; the later messages remain as a branch.
func TestPageSavePoints(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=0s").start(t)
	openSample(t, ctx, p)
	sendInPage(t, ctx, "Good evening!")
	waitJS(t, ctx, "the reply", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)

	click(t, ctx, `[aria-label="Save points and branches"]`)
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(`[aria-label="Description"]`), chromedp.SendKeys(`[aria-label="Description"]`, "the ferry")))
	clickText(t, ctx, "Create save point")
	waitJS(t, ctx, "the save point", `[...document.querySelectorAll(".places .row b")].some(b => b.innerText == "the ferry")`)
	click(t, ctx, `[aria-label="Close"]`)

	waitJS(t, ctx, "editing", `(b => b && (b.click(), true))([...document.querySelectorAll("article.user button")].find(b => b.innerText == "Edit"))`)
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible(`[aria-label="Edited text"]`), chromedp.SendKeys(`[aria-label="Edited text"]`, " It rains.")))
	clickText(t, ctx, "Send edit")
	waitJS(t, ctx, "said otherwise, and answered", `document.querySelector("article.user .text").innerText == "Good evening! It rains." && document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)
	waitJS(t, ctx, "deleting", `(b => b && (b.click(), true))([...document.querySelectorAll("article:last-of-type button")].find(b => b.innerText == "Delete"))`)
	waitJS(t, ctx, "deleted", `document.querySelectorAll("article").length == 2`)
	clickText(t, ctx, "Undo")
	waitJS(t, ctx, "back again", `document.querySelectorAll("article").length == 3`)

	click(t, ctx, `[aria-label="Save points and branches"]`)
	waitJS(t, ctx, "two branches", `[...document.querySelectorAll(".places li b")].filter(b => b.innerText == "3 messages").length == 2`)
	waitJS(t, ctx, "restoring", `(b => b && (b.click(), true))([...document.querySelectorAll(".places .row")].find(b => b.innerText.includes("the ferry")))`)
	waitJS(t, ctx, "as it was", `document.querySelector("article.user .text").innerText == "Good evening!"`)
	p.stop(t)
}

// TestPageStopsAReply presses Stop while a long reply is being written: the text so
// far stays.
func TestPageStopsAReply(t *testing.T) {
	ctx := browser(t)
	p := newInstallation(t, "", "NODEST_OFFLINE_DELAY=1s").start(t)
	openSample(t, ctx, p)
	sendInPage(t, ctx, "Tell me everything you know about the river.")
	waitJS(t, ctx, "text is coming", `[...document.querySelectorAll("article.assistant .text")].length == 2 && [...document.querySelectorAll("article.assistant .text")].at(-1).innerText.trim()`)
	clickText(t, ctx, "Stop")
	waitJS(t, ctx, "it has stopped", `document.querySelector("article.assistant[data-status=cancelled]")`)
	require.NotEmpty(t, strings.TrimSpace(evalString(t, ctx, `document.querySelector("article[data-status=cancelled] .text").innerText`)))
	p.stop(t)
}

func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	waitJS(t, ctx, "clicking "+selector, `(b => b && !b.disabled && (b.click(), true))(document.querySelector(`+jsString(selector)+`))`)
}

func clickText(t *testing.T, ctx context.Context, label string) {
	t.Helper()
	waitJS(t, ctx, "clicking "+label, `(b => b && !b.disabled && (b.click(), true))([...document.querySelectorAll("button")].find(b => b.innerText == `+jsString(label)+`))`)
}

// sendInPage types a message and sends it with Enter.
func sendInPage(t *testing.T, ctx context.Context, message string) {
	t.Helper()
	require.NoError(t, chromedp.Do(ctx, chromedp.WaitVisible("textarea"), chromedp.SendKeys("textarea", message+"\r")))
}

func evalString(t *testing.T, ctx context.Context, js string) string {
	t.Helper()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
	require.NoError(t, err)
	return s
}

func jsString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
