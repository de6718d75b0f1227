package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"nodest/llm/llmtest"
)

const (
	researched = "When was the light at Halden Point automated?"

	// researchAnswer has a sentence with a source, and one that no page supports.
	researchAnswer = lighthouseQuote + "[^1] The lighthouse was painted red in 1989.[^1]"
)

// researchAccess are the views of research that everybody must be able to use.
func researchAccess(done, planned string) []accessView {
	return []accessView{
		{"research", "/research", []string{found("main summary")}, found("main li .card")},
		{"a plan", "/research/" + planned, nil, found("main [data-path=queries]")},
		{"a finished research", "/research/" + done, []string{found("main details:not([open]) summary"), found("main details:not([open]) summary")}, found("main .answer .markdown")},
		{"deleting a research", "/research/" + done, []string{pressable("Delete")}, dialogOpen},
	}
}

// fillResearch makes a plan, and runs a research of the knowledge base.
func (a *accessPage) fillResearch() {
	a.t.Helper()
	order := func(more map[string]any) (id string) {
		more["question"] = researched
		var made struct{ Research struct{ ID string } }
		a.call(http.MethodPost, "/research", more, &made)
		return made.Research.ID
	}
	a.planned = order(map[string]any{})
	a.researched = order(map[string]any{"web": false, "knowledgeBaseIds": []string{a.base}, "start": true})
	eventually(a.t, "the research", func() error {
		var run struct{ State string }
		if a.call(http.MethodGet, "/research/"+a.researched, nil, &run); run.State != "done" {
			return errNotYet
		}
		return nil
	})
}

// researchPage is the page of a server that can research. Its model answers as soon as the test lets it.
type researchPage struct {
	*chatPage
	gate chan struct{} // the choice of a step waits for it; nil = it does not
}

// newResearchPage starts a server that finds two pages, of which one can be read.
func newResearchPage(t *testing.T, held bool, env ...string) *researchPage {
	t.Helper()
	r := &researchPage{chatPage: newChatPage(t)}
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/search":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"results": [{"title": "Halden <b>Point</b>", "url": "%[1]s/history", "content": "The light was automated in March 1987."},
				{"title": "Lost", "url": "%[1]s/lost", "content": "The light of Halden Point, automated."}]}`, web.URL)
		case "/history":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, lighthouse)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(web.Close)
	if held {
		r.gate = make(chan struct{})
	}
	model := llmtest.NewOpenAI(t)
	model.Always(func(req llmtest.Request) llmtest.Reply { return llmtest.Say(r.reply(string(req.Body))) })
	r.p.stop(t)
	r.inst.env = append(append(r.inst.env, "NODEST_SEARCH=searxng", "NODEST_SEARCH_BASE_URL="+web.URL, "NODEST_FETCH_ALLOW=127.0.0.1", "OPENAI_BASE_URL="+model.URL), env...)
	r.p = r.inst.start(t)
	return r
}

// reply plays the model of a research, and of the character that tells its result.
func (r *researchPage) reply(request string) string {
	switch {
	case strings.Contains(request, "Decide which checks"):
		return `{"needsDefinitive":true,"needsFreshness":false,"needsPlurality":false,"needsCompleteness":false}`
	case strings.Contains(request, "Check whether an answer"):
		return `{"think":"It is direct.","pass":true}`
	case strings.Contains(request, "Choose one of these actions"):
		if r.gate != nil {
			select {
			case <-r.gate:
			case <-r.t.Context().Done():
			}
		}
		if !strings.Contains(request, "answer – answer the question") { // it may not answer yet
			return `{"think":"Who did it may matter.","action":"reflect","questionsToAnswer":["Who automated the light at Halden Point?"]}`
		}
		return fmt.Sprintf(`{"think":"The page says it.","action":"answer","answer":%s}`, jsString(researchAnswer))
	case strings.Contains(request, "tells User what came of it"):
		return researchAnswer
	}
	return "{}"
}

// begins starts a research in the page.
func (r *researchPage) begins(question string) {
	r.t.Helper()
	goTo(r.t, r.ctx, "/research", `document.querySelector("main [data-path=question]")`)
	r.fill("[data-path=question]", question)
	r.press("Start at once")
}

// alters lets the page see JSON of the server as a function of the test changes it. value is the answer to a
// request whose address fits.
func (r *researchPage) alters(address, change string) {
	r.t.Helper()
	_, err := chromedp.Call(r.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `(get => window.fetch = async (...request) => {
		const response = await get(...request)
		if (!response.ok || !` + address + `.test(request[0].url ?? request[0])) return response
		const value = await response.json()
		` + change + `
		return Response.json(value)
	})(fetch)`})
	if err != nil {
		r.t.Fatal(err)
	}
}

// reopens loads the page again and waits for something.
func (r *researchPage) reopens(what, js string) {
	r.t.Helper()
	if err := chromedp.Do(r.ctx, chromedp.Reload()); err != nil {
		r.t.Fatal(err)
	}
	r.see(what, js)
}

const (
	steps       = `[...document.querySelectorAll("main ol[aria-label=Steps] .step")]`
	runState    = `document.querySelector("main [data-state]")?.dataset.state`
	researchURL = `location.hash.slice(2)`
)

// TestPageResearch plans a question, changes the plan, starts it, follows its steps also over a reload, reads
// the answer with its sources and its report, exports it, and deletes it.
func TestPageResearch(t *testing.T) {
	r := newResearchPage(t, true)
	openPage(t, r.ctx, r.p)
	goTo(t, r.ctx, "/research", pageText("Nothing was researched yet."))
	r.see("no plan without a question", pressable("Plan")+`.disabled`)
	r.fill("[data-path=question]", researched)
	r.press("Plan")
	r.see("the first search words and the language", `document.querySelector("[data-path=queries]").value.includes("Halden Point") && document.querySelector("[data-path=language]").value == "en"`)
	const estimate = `document.querySelector("[aria-label=Estimate] p").innerText`
	r.see("the estimate", `/^About [\d,]+ tokens in \d+ calls/.test(`+estimate+`)`)
	r.see("nothing to update", pressable("Update the plan")+`.disabled && (window.before = `+estimate+`)`)
	r.fill("[data-path='budget.tokens']", "20000")
	r.fill("[data-path=queries]", "Halden Point light 1987")
	r.press("Update the plan")
	r.see("another estimate", estimate+` != before && `+pressable("Update the plan")+`.disabled && document.querySelector("[data-path=queries]").value == "Halden Point light 1987"`)
	r.fill("[data-path=hosts]", "https://127.0.0.1/history")
	r.press("Start") // which stores that first

	const both = steps + `.map(e => e.dataset.action).join() == "search,visit" && ` + steps + `[0].innerText.includes("Halden Point light 1987")`
	r.see("two steps", runState+` == "running" && `+both)
	r.see("the pages and how it went", `(p => ["/history", "read"].every(s => p[0].innerText.includes(s)) && ["/lost", "not found"].every(s => p[1].innerText.includes(s)))([...`+steps+`[1].querySelectorAll(".pages li")].sort((a, b) => a.innerText < b.innerText ? -1 : 1))`)
	r.see("what is used of the budget", `(b => / of 20,000 tokens$/.test(b[0].ariaValueText) && b[0].ariaValueNow > 0 && b[1].ariaLabel == "Time")(document.querySelectorAll("main [role=meter]"))`)
	r.reopens("the steps so far", runState+` == "running" && `+both)
	close(r.gate)
	r.see("the answer", runState+` == "done" && document.querySelector("main .answer .markdown").innerText.includes("the last keeper left the island")`)
	r.see("why the model answered", steps+`.at(-1).innerText.includes("The page says it.")`)
	r.see("the mark", `(b => b.length == 1 && (b[0].click(), true))(document.querySelectorAll("main .answer .cite"))`)
	r.see("the quote, its page, host and date", `(d => d.open && [`+jsString(lighthouseQuote)+`, "Halden Point Lighthouse", "127.0.0.1", "March 14, 2026"].every(s => d.innerText.includes(s)))(document.querySelector("main .answer ol details"))`)
	r.see("the report", `(s => s.includes("1 of 2 sentences names a source.") && s.includes("The mark is supported by its quote.") && s.includes("Numbers and names that no source has: 1989"))(document.querySelector(".report").innerText)`)

	exported := evalString(t, r.ctx, `document.querySelector("main header a[download]").getAttribute("href")`)
	r.see("the export", `(window.exported ??= fetch(`+jsString(exported)+`).then(async a => window.file = [a.headers.get("Content-Disposition"), await a.text()].join("\n")), window.file?.includes("attachment") && file.includes(`+jsString("# "+researched)+`))`)
	r.press("All research")
	r.see("the list", `(a => a.dataset.state == "done" && a.innerText.includes(`+jsString(researched)+`) && a.innerText.includes("tokens"))(document.querySelector("main li a"))`)
	r.see("opening it", `(document.querySelector("main li a").click(), true)`)
	r.press("Delete")
	r.see("the question", dialogOpen)
	r.press("Delete")
	r.see("it is gone", researchURL+` == "research" && `+pageText("Nothing was researched yet."))
	r.p.stop(t)
}

// TestPageStopsResearch stops a research, whose steps stay, and asks again.
func TestPageStopsResearch(t *testing.T) {
	r := newResearchPage(t, true)
	openPage(t, r.ctx, r.p)
	r.begins(researched)
	r.see("two steps", runState+` == "running" && `+steps+`.length == 2`)
	r.press("Stop")
	r.see("the question", dialogOpen)
	r.press("Stop")
	r.see("it has ended, and its steps stay", runState+` == "cancelled" && `+pageText("It was stopped. There is no answer")+` && `+steps+`.length == 2`)
	r.reopens("also after a reload", runState+` == "cancelled" && `+steps+`.length == 2`)
	r.press("Ask again")
	r.see("the question is there", `document.querySelector("main [data-path=question]").value == `+jsString(researched))
	goTo(t, r.ctx, "/research/01a227a8-65ed-76cb-bd2c-db7116e2bf00", pageText("This research was removed."))
	r.p.stop(t)
}

// TestPageResearchInAChat starts a research from the field for messages and from the menu. The chat shows that
// it runs, and a message that came from one leads to its report. When another device removes that, its view says so,
// and the message leads there too.
func TestPageResearchInAChat(t *testing.T) {
	r := newResearchPage(t, true)
	openSample(t, r.ctx, r.p)
	r.send("Good evening.")
	r.last("complete", "{}")
	r.fill(compose, "/research")
	r.keys("\r")
	r.see("how it is meant", `document.querySelector(".note").innerText.includes("Write the question behind /research.")`)
	const running = `[...document.querySelectorAll("main ul[role=status] a")].map(a => a.innerText)`
	r.see("another text", `(f => (f.select(), f.value == "/research"))(document.querySelector("`+compose+`"))`)
	r.keys("/research " + researched + "\r")
	r.see("it runs", running+`.join() == `+jsString("Researching: "+researched))
	r.messages(3) // it is none
	click(t, r.ctx, "main > header [aria-haspopup=menu]")
	r.press("Research a question…")
	r.fill("dialog textarea", "Who was the last keeper?")
	r.press("Start")
	r.see("both", running+`.length == 2 && `+running+`[1].endsWith("Who was the last keeper?")`)
	r.reload()
	r.see("also after a reload", running+`.length == 2`)
	r.press("Researching: " + researched)
	r.see("its view, which leads back", runState+` == "running" && document.querySelector("main a[href^='#/chats/']")`)
	r.see("back", `(document.querySelector("main a[href^='#/chats/']").click(), true)`)
	r.see("both still run", running+`.length == 2`)
	close(r.gate)
	r.see("both are over", `document.querySelector("article") && `+running+`.length == 0`)
	r.see("the character tells both, with their reports", `document.querySelectorAll("article.assistant a.report").length == 2`)
	r.press("Report of the research")
	r.see("the report", runState+` == "done"`)
	removed := evalString(t, r.ctx, researchURL)
	api(t, r.p, http.MethodDelete, "/"+removed, nil, nil)
	r.see("it was removed", pageText("This research was removed."))
	r.see("back", `(window.backed ||= (history.back(), true), document.querySelector("article.assistant a.report[href='#/`+removed+`']") !== null)`)
	r.see("the link of the message", `(document.querySelector("article.assistant a.report[href='#/`+removed+`']").click(), true)`)
	r.see("it says so", pageText("This research was removed."))
	r.p.stop(t)
}

// TestPageResearchDoubts marks the sentences that no source supports, says why, and what was left out. Texts of
// pages and models are text.
func TestPageResearchDoubts(t *testing.T) {
	r := newResearchPage(t, false)
	r.alters(`/research.[0-9a-f-]{36}$/`, `if (value.report) {
		value.answer += "\n\nNot [?](https://example.com/) and not `+"`[?]`"+`. <img src=x onerror=hit=1>"
		value.left = ["Open question: <img src=x onerror=hit=1>"]
		Object.assign(value.report, {claims: 2, doubtful: 1, verdicts: [
			{text: "The light was automated.", position: [0, 24], marks: [1]},
			{text: "It was painted in 1989.", position: [25, 48], marks: [], why: [{code: "number", fact: "1989"}, {code: "odd", part: "<b>it"}]},
			{text: "Was it?", position: [49, 56], marks: []},
		]})
	}`)
	openPage(t, r.ctx, r.p)
	r.begins(researched)
	r.see("what has no source", runState+` == "done" && [...document.querySelectorAll(".answer .doubt")].map(e => e.innerText).join() == "no source" && /in 1989\s*no source/.test(document.querySelector(".answer .markdown").innerText)`)
	r.see("links and code are what they were", `document.querySelector(".answer .markdown a[href='https://example.com/']") && document.querySelector(".answer code").innerText == "[?]"`)
	r.see("how many", `document.querySelector(".report").innerText.includes("1 of 2 sentences that need a source has none.")`)
	r.see("opening it", `(document.querySelector(".report summary").click(), true)`)
	r.see("each sentence", `(l => l[0].innerText.includes("supported [1]") && /no source\s+a number is not that of the source: “1989”\s+odd \(<b>it\)/.test(l[1].innerText) && l[2].innerText.includes("needs no source"))(document.querySelectorAll(".report ol li"))`)
	r.see("what was left out", pageText("Open question: <img src=x onerror=hit=1>"))
	r.see("nothing has run", `window.hit === undefined && !document.querySelector("main img")`)
	r.p.stop(t)
}

// TestPageResearchOffline: without a model the page says before and after that an answer consists of quotes.
func TestPageResearchOffline(t *testing.T) {
	r := newResearchPage(t, false, "NODEST_PROVIDER=", "NODEST_MODEL=", "OPENAI_BASE_URL=")
	openPage(t, r.ctx, r.p)
	goTo(t, r.ctx, "/research", pageText("No model is set up, so the answer will consist of quotes."))
	r.begins(researched)
	r.see("quotes", runState+` == "done" && (s => s.startsWith("Quotes") && s.includes("automated in March 1987"))(document.querySelector(".answer").innerText)`)
	r.p.stop(t)
}

// TestPageResearchWithoutWeb: on a server without a search provider the page says so, and what helps: the
// settings of the server, or a knowledge base, which alone can be researched.
func TestPageResearchWithoutWeb(t *testing.T) {
	r := newResearchPage(t, false, "NODEST_SEARCH=none")
	openPage(t, r.ctx, r.p)
	goTo(t, r.ctx, "/research", pageText("This server cannot search the web"))
	r.see("the ways out", `["#/settings/search", "#/knowledge"].every(a => document.querySelector("main .warn a[href='" + a + "']"))`)
	r.fill("[data-path=question]", researched)
	r.see("there is nothing to search", pressable("Plan")+`.disabled`)
	a := &accessPage{t: t, p: r.p}
	a.base = a.post("/knowledge-bases", map[string]any{"name": "Halden Point"})
	a.upload("light.md", "# The light\n\n"+lighthouseQuote)
	eventually(t, "the file is ready", func() error {
		var list struct{ Items []struct{ State string } }
		if a.call(http.MethodGet, "/files", nil, &list); list.Items[0].State != "ready" {
			return errNotYet
		}
		return nil
	})
	r.see("choosing the knowledge base", `(c => (c.click(), c.checked))([...document.querySelectorAll("main label")].find(l => l.innerText.trim() == "Halden Point").querySelector("input"))`)
	r.press("Start at once")
	r.see("the answer with the file", runState+` == "done" && document.querySelector(".answer .cite")`)
	r.see("its quote leads to the file", `(document.querySelector(".answer .cite").click(), document.querySelector(".answer details[open] a").getAttribute("href").startsWith("#/files/"))`)
	r.p.stop(t)
}
