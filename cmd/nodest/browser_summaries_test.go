package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

// TestPageSettingsOfSummaries shows when chats are summarised and what a turn costs so, by the model's context and
// by a length, at the widths of a phone and of a screen.
func TestPageSettingsOfSummaries(t *testing.T) {
	ctx := browser(t)
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("m")
	fake.SetContext(128_000)
	p := newPageInstallation(t, "NODEST_PROVIDER=openai", "NODEST_MODEL=m", "OPENAI_BASE_URL="+fake.URL).start(t)
	character := sampleCharacter(t, p.client)
	signInPage(t, ctx, p)
	cost := func(what, words string) {
		t.Helper()
		waitJS(t, ctx, what, `document.querySelector("[data-cost]")?.innerText.includes(`+jsString(words)+`)`)
	}
	goTo(t, ctx, "/characters/"+character+"/settings", `document.querySelector("[data-path='memory.summaryShare']")`)
	cost("half of the context, at most", "at most about 32,000 tokens")
	fill(t, ctx, "[data-path='memory.summaryShare']", "10")
	cost("a tenth of it", "at most about 12,800 tokens")
	for _, width := range []int64{390, 1280} {
		if _, err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 900)); err != nil {
			t.Fatal(err)
		}
		waitJS(t, ctx, "nothing is wider than the page", `document.documentElement.scrollWidth <= innerWidth`)
	}
	waitJS(t, ctx, "by length", `(s => (s.selectedIndex = 1, s.dispatchEvent(new Event("change", {bubbles: true})), true))(document.querySelector("[data-path='memory.summaryBy']"))`)
	waitJS(t, ctx, "no share", `!document.querySelector("[data-path='memory.summaryShare']")`)
	cost("the length", "6,000 in Chinese")
	fill(t, ctx, "[data-path='memory.summaryThreshold']", "60000")
	clickText(t, ctx, "Save")
	eventually(t, "the length is stored", func() error {
		var set struct {
			Memory struct{ SummaryShare, SummaryThreshold int }
		}
		api(t, p, http.MethodGet, "/characters/"+character+"/settings", nil, &set)
		if set.Memory.SummaryShare != 0 || set.Memory.SummaryThreshold != 60_000 {
			return errNotYet
		}
		return nil
	})
}
