package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// took prints the time in the page from an action to the frame that shows its result.
func (c *chatPage) took(what, action, result string) {
	c.t.Helper()
	c.see(what+" begins", `(window.took = 0, (async () => {
		const begin = performance.now();
		`+action+`;
		while (!(`+result+`)) await new Promise(requestAnimationFrame)
		window.took = performance.now() - begin
	})(), true)`)
	c.see(what, `window.took > 0`)
	c.t.Logf("%s: %s ms", what, evalString(c.t, c.ctx, `window.took.toFixed(0)`))
}

// TestPageStreamsMarkdown writes 48 KB of Markdown at 4 KB a second and prints how much
// of the page's main thread that takes. What is complete is drawn once: the first
// paragraph is the same element at the end.
func TestPageStreamsMarkdown(t *testing.T) {
	c := openChatPage(t)
	const second, size = 4 << 10, 48 << 10
	var text strings.Builder
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, "## Part %d\n\n*She turns the page and reads.* \"This is **bold** and _soft_ speech, with `code` in it,\" she says.\n\n"+
			"- one item with *emphasis*\n- two items and [a link](https://example.com/%d)\n\n> A quotation that goes on for a while, as they do.\n\n"+
			"| a | b |\n|---|---|\n| %d | \"text\" |\n\n```js\nconst x = %d\n```\n\n", i, i, i, i)
	}
	var pieces []string
	for rest := text.String(); rest != ""; {
		n := min(len(rest), 16)
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	next, rest := c.writes(pieces...)
	c.send("Tell me everything")
	for range 20 { // two parts of it
		next()
	}
	c.see("the first paragraph", `window.paragraph0 = document.querySelector("article.last[data-status=streaming] .text p:nth-of-type(2)")`)

	measure := func() (at time.Time, used map[string]float64) {
		used = map[string]float64{}
		metrics, err := chromedp.Call(c.ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metrics.Metrics {
			used[m.Name] = m.Value
		}
		return time.Now(), used
	}
	_, err := chromedp.Call(c.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	if err != nil {
		t.Fatal(err)
	}
	begin, before := measure()
	ticks := time.NewTicker(16 * time.Second / second)
	defer ticks.Stop()
	for range pieces[20:] {
		<-ticks.C
		next()
	}
	end, after := measure()
	share := func(name string) float64 { return 100 * (after[name] - before[name]) / end.Sub(begin).Seconds() }
	t.Logf("48 KB of Markdown in %.1f s: %.1f %% of the main thread (script %.1f, style %.1f, layout %.1f)",
		end.Sub(begin).Seconds(), share("TaskDuration"), share("ScriptDuration"), share("RecalcStyleDuration"), share("LayoutDuration"))
	rest()
	c.see("all of it", `document.querySelector("article.last[data-status=complete] .text")?.innerText.includes("Part `+fmt.Sprint(strings.Count(text.String(), "## ")-1)+`")`)
	c.see("the first paragraph is still there", `window.paragraph0.isConnected`)
	c.p.stop(t)
}

// TestPageFormatsLongReplies writes a dense reply without empty lines and a long list: all
// of it is formatted at the end, and the same after a reload.
func TestPageFormatsLongReplies(t *testing.T) {
	c := openChatPage(t)
	var text strings.Builder
	for i := range 160 {
		fmt.Fprintf(&text, "*Line %d.* \"So she said,\" and went on, with **strong** words.\n", i)
	}
	text.WriteString("\n")
	for i := range 700 {
		fmt.Fprintf(&text, "- item **%d** with *words*\n", i)
	}
	long := text.String()
	next, rest := c.writes(long[:4000], long[4000:10_000], long[10_000:])
	c.send("Tell me everything")
	next()
	next()
	c.see("its beginning", `(e => e?.querySelectorAll("p em").length > 140 && !e.querySelector("p.plain"))(document.querySelector("article.last[data-status=streaming] .text"))`)
	next()
	rest()
	whole := `(e => e?.querySelectorAll("p em").length == 160 && e.querySelectorAll("li em").length == 700 && !e.querySelector("p.plain"))(document.querySelector("article.last[data-status=complete] .text"))`
	c.see("all of it", whole)
	c.reload()
	c.see("the button for the rest", `(b => b && (b.click(), true))(document.querySelector("article.last .text > button"))`)
	c.see("the same", whole)
	c.p.stop(t)
}
