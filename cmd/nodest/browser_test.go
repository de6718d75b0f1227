package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nodest/store/storetest"
)

// browser starts headless Chromium for a test that may run beside others; the test is
// skipped without one. It fails if the page throws, complains in the console, breaks
// its Content-Security-Policy, or gets an answer that says that the server is wrong.
func browser(t *testing.T, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	storetest.NeedSQLite(t)
	if _, err := chromium(); err != nil {
		t.Skip("skipped: there is no chromium-headless-shell or chromium on this machine")
	}
	t.Parallel()
	return anotherBrowser(t, flags...)
}

// chromium is the program's path. The headless shell is the same browser without windows, which
// take three quarters of the processor time of these tests.
func chromium() (path string, err error) {
	if path, err = exec.LookPath("chromium-headless-shell"); err != nil {
		path, err = exec.LookPath("chromium")
	}
	return path, err
}

// anotherBrowser starts one more, with a profile of its own: another device.
func anotherBrowser(t *testing.T, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	opts := append(slices.Concat(chromedp.DefaultExecAllocatorOptions[:], flags), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(testTimeout))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 8*testTimeout) // a test with many pages, on a machine that does much else
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	watchConsole(t, ctx)
	return ctx
}

// expected are the messages of the console about requests that were refused, and about
// a server that a test has stopped or killed.
var expected = regexp.MustCompile(`status of 4\d\d|net::ERR_(CONNECTION_|EMPTY_RESPONSE|SOCKET_|ABORTED|INCOMPLETE_)|WebSocket connection to .* failed`)

// watchConsole makes the test fail on what the page writes to the console. A server that
// is stopped early may leave the browser without its icons, which TestPageInstalls loads.
func watchConsole(t *testing.T, ctx context.Context) {
	t.Helper()
	var mu sync.Mutex
	var found []string
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			bad := m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.Type == "assert" || m.Source == "security"
			if bad && !(m.Source == "network" && expected.MatchString(m.Text)) && !strings.Contains(m.Text, "icon from the Manifest") {
				mu.Lock()
				found = append(found, fmt.Sprintf("%s: %s (%s)", m.Source, m, m.URL))
				mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(found) != 0 {
			t.Fatalf("the console of the page: found is %q, want none", found)
		}
	})
}

// newPageInstallation returns an installation for tests of the page. Its server runs
// without the race detector, which takes most of the time otherwise and which the tests
// of the server use for the same operations.
func newPageInstallation(t *testing.T, env ...string) *installation {
	t.Helper()
	return newInstallation(t, "", env...).fast(t)
}

// waitJS evaluates JavaScript in the page until it is true. An element that is not there yet is not true.
func waitJS(t *testing.T, ctx context.Context, what, js string) {
	t.Helper()
	js = "(() => { try { return Boolean(" + js + ") } catch (e) { if (e instanceof TypeError) return false; throw e } })()"
	poll := chromedp.Poll[bool](js, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(testTimeout))
	_, err := chromedp.Run(ctx, poll)
	if err != nil && strings.Contains(err.Error(), "Cannot find context") { // the page was just being left for the next
		_, err = chromedp.Run(ctx, poll)
	}
	if err != nil {
		page, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText")) // for the message only
		t.Fatalf("%s: %v\nthe page shows:\n%s", what, err, page)
	}
}

// openSample signs in with the printed link and starts a chat with the sample
// character.
func openSample(t *testing.T, ctx context.Context, p *process) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.client.Base+"/signin#"+p.link)); err != nil {
		t.Fatal(err)
	}
	clickText(t, ctx, "Sample character")
	waitJS(t, ctx, "the greeting", `document.querySelectorAll("article.assistant .text").length == 1`)
}

func click(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	waitJS(t, ctx, "clicking "+selector, `(b => b && !b.disabled && (b.click(), true))(document.querySelector(`+jsString(selector)+`))`)
}

func clickText(t *testing.T, ctx context.Context, label string) {
	t.Helper()
	waitJS(t, ctx, "clicking "+label, `(b => b && !b.disabled && (b.click(), true))([...document.querySelectorAll("button")].find(b => b.innerText == `+jsString(label)+`))`)
}

// compose is the field for the next message.
const compose = "textarea[enterkeyhint]"

// typeKeys presses keys where the focus is. A key and its character are one event, so
// that a page that prevents the key gets no character, as with a real keyboard.
func typeKeys(t *testing.T, ctx context.Context, keys string, opts ...chromedp.KeyOption) {
	t.Helper()
	press := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range keys {
			events := kb.Encode(r)
			if len(events) == 3 {
				events[0].Text, events[0].UnmodifiedText = events[1].Text, events[1].UnmodifiedText
				events = []*input.DispatchKeyEventParams{events[0], events[2]}
			}
			for _, e := range events {
				for _, o := range opts {
					o(e)
				}
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := chromedp.Do(ctx, press); err != nil {
		t.Fatal(err)
	}
}

// sendInPage types a message and sends it with Enter.
func sendInPage(t *testing.T, ctx context.Context, message string) {
	t.Helper()
	waitJS(t, ctx, "the field for the message", `(f => f && !f.readOnly && (f.focus(), f.setSelectionRange(f.value.length, f.value.length), document.activeElement == f))(document.querySelector("`+compose+`"))`)
	typeKeys(t, ctx, message+"\r")
	waitJS(t, ctx, "the message has left the field", `document.querySelector("`+compose+`").value == ""`)
}

func evalString(t *testing.T, ctx context.Context, js string) string {
	t.Helper()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](js))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func jsString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
