package main

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The lines that the reference says to type work as typed.
func TestTheFirstRequestsWorkAsTyped(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	inst := newInstallation(t, "").fast(t)
	p := inst.start(t)
	page := getBody(t, p.client, "/docs")
	var script strings.Builder
	for _, id := range []string{"first", "second"} {
		_, text, found := strings.Cut(page, `<pre id="`+id+`">`)
		text, _, _ = strings.Cut(text, "</pre>")
		if !found {
			t.Fatalf("the page has no requests called %s", id)
		}
		script.WriteString(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, "")) + "\n")
	}
	if err := os.MkdirAll(filepath.Join(inst.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(commandLine(t), filepath.Join(inst.dir, "bin", "nodest")); err != nil {
		t.Fatal(err)
	}
	typed := strings.ReplaceAll(script.String(), "http://127.0.0.1:8080", p.client.Base) // which the page's script does
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-c", typed)
	cmd.Dir, cmd.Env = inst.dir, inst.withAddrOf(p).env
	out, err := cmd.CombinedOutput()
	for _, want := range []string{`"username":"owner"`, "event: gen.delta", "event: message.updated"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v; the answers lack %q:\n%s", err, want, out)
		}
	}
	p.stop(t)
}

// The reference has contents and a search, on phones too.
func TestPageOfTheReference(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	for width, open := range map[int64]string{390: "false", 1280: "true"} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(p.client.Base+"/docs")); err != nil {
			t.Fatal(err)
		}
		waitJS(t, ctx, "the search", `!document.querySelector("#search").parentElement.hidden`)
		waitJS(t, ctx, "the contents as the width has them", `document.querySelector("#contents").open === `+open)
		waitJS(t, ctx, "nothing wider than the page", `document.documentElement.scrollWidth <= innerWidth`)
		waitJS(t, ctx, "the address of this server", `document.querySelector("#first").textContent.includes(location.origin)`)
		shown := `[...document.querySelectorAll("main section:not([hidden]), main tr[id]:not([hidden])")].filter((e) => e.offsetParent)`
		waitJS(t, ctx, "what was searched", `(() => { const f = document.querySelector("#search"); f.value = "rate_limited retry"; f.dispatchEvent(new Event("input"));
			return `+shown+`.some((e) => e.id === "error-rate_limited") && !`+shown+`.some((e) => e.id === "start-curl") })()`)
		waitJS(t, ctx, "all again", `(() => { const f = document.querySelector("#search"); f.value = ""; f.dispatchEvent(new Event("input"));
			return `+shown+`.some((e) => e.id === "start-curl") })()`)
	}
	p.stop(t)
}
