package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"nodest/cognition"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/provider/providertest"
	"nodest/websearch/research"
)

// researcher is a model that answers the question after one search and the pages that were found, and its
// checks with yes. gate, if there is one, is waited for before the question is judged, behind two steps.
type researcher struct {
	answer string
	gate   chan struct{}
	fails  func(call int) error // nil = never

	mu    sync.Mutex
	asked []llm.Prompt
}

// Ask implements llm.Asker.
func (r *researcher) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	r.mu.Lock()
	r.asked = append(r.asked, p)
	n := len(r.asked)
	r.mu.Unlock()
	if r.gate != nil && p.Task == "research.question" {
		select {
		case <-r.gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if r.fails != nil {
		if err := r.fails(n); err != nil {
			return "", err
		}
	}
	switch p.Task {
	case "research.step":
		return `{"think":"The page says it.","action":"answer","answer":"` + r.answer + `"}`, nil
	case "research.question":
		return `{"needsDefinitive":true}`, nil
	case "research.check":
		return `{"think":"fine","pass":true}`, nil
	case "research.final":
		return r.answer, nil
	}
	return `{}`, nil
}

// waiting reports how many questions it was asked to judge.
func (r *researcher) waiting() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.asked {
		if p.Task == "research.question" {
			n++
		}
	}
	return n
}

func (r *researcher) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

const automated = "The light was automated in March 1987. [1]"

// aboutLight makes the web know the lighthouse, and the model what its page says.
func (h *testServer) aboutLight() *researcher {
	h.t.Helper()
	h.web.pages(h.t, map[string]string{"halden-point.test": lighthousePage})
	h.web.search.Answer("", lighthouseResult)
	model := &researcher{answer: automated}
	h.researcher = model
	return model
}

const lightOrder = `"question":"When was the Halden Point lighthouse automated?"`

// look runs a research to its end and returns it.
func (h *testServer) look(order string) map[string]any {
	h.t.Helper()
	id := stringAt(h.rest("POST", "/research", `{"start":true,`+order+`}`).wants(h.t, 202), "research.id")
	return h.researched(id)
}

// researched waits for the end of a research.
func (h *testServer) researched(id string) (run map[string]any) {
	h.t.Helper()
	eventually(h.t, "the research ends", func() bool {
		run = h.rest("GET", "/research/"+id, "").wants(h.t, 200)
		return run["finishedAt"] != nil
	})
	return run
}

func numberAt(answer map[string]any, path string) float64 {
	v, _ := at(answer, strings.Split(path, ".")...)
	n, _ := v.(float64)
	return n
}

func listAt(answer map[string]any, path string) []any {
	v, _ := at(answer, strings.Split(path, ".")...)
	list, _ := v.([]any)
	return list
}

// A question becomes a plan without a call of the model. It is changed, started, and answered with a quote
// of the page that was opened; every step, what was learned and what it has cost can be read.
func TestAQuestionIsPlannedChangedAndAnswered(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	planned := h.rest("POST", "/research", `{`+lightOrder+`}`, "Idempotency-Key: plan").wants(t, 202)["research"].(map[string]any)
	id := stringAt(planned, "id")
	if planned["state"] != "planned" || len(listAt(planned, "plan.queries")) == 0 || stringAt(planned, "plan.language") != "en" || numberAt(planned, "estimate.tokens") <= 0 || model.calls() > 0 {
		t.Errorf("the plan: %v after %d calls", planned, model.calls())
	}
	if numberAt(planned, "plan.budget.tokens") != 60_000 || numberAt(planned, "plan.budget.seconds") != 600 {
		t.Errorf("the budget that nobody has named: %v", planned["plan"])
	}
	changed := h.rest("PATCH", "/research/"+id, `{"queries":["halden point light"],"doubtful":"remove","budget":{"tokens":30000}}`).wants(t, 200)["research"].(map[string]any)
	if fmt.Sprint(listAt(changed, "plan.queries")) != "[halden point light]" || stringAt(changed, "plan.doubtful") != "remove" || numberAt(changed, "plan.budget.tokens") != 30_000 || numberAt(changed, "plan.budget.seconds") != 600 {
		t.Errorf("the changed plan: %v", changed["plan"])
	}
	h.rest("POST", "/research/"+id+"/start", "").wants(t, 202)
	p.event("research.done", "")
	run := h.researched(id)
	if run["state"] != "done" || run["end"] != "answered" || !strings.Contains(stringAt(run, "answer"), "March 1987") || !strings.Contains(stringAt(run, "answer"), "[^1]") {
		t.Fatalf("the run: %v", run)
	}
	reference := listAt(run, "references")[0].(map[string]any)
	if !strings.HasPrefix(stringAt(reference, "url"), "http://halden-point.test/history") || !strings.Contains(lighthousePage, stringAt(reference, "exactQuote")) || reference["evidence"] != "page" {
		t.Errorf("the source: %v", reference)
	}
	if asked := h.web.search.Asked(); len(asked) != 1 || asked[0] != "halden point light" {
		t.Errorf("searched for %q", asked)
	}
	if numberAt(run, "usage.calls") != float64(model.calls()) || numberAt(run, "step") < 3 || len(listAt(run, "steps")) < 3 || len(listAt(run, "knowledge")) == 0 || numberAt(run, "numUrls") < 1 {
		t.Errorf("%d calls, and %v", model.calls(), run)
	}
	calls := model.calls()
	again := h.rest("POST", "/research/"+id+"/start", "").wants(t, 202)
	if stringAt(again, "research.state") != "done" || model.calls() != calls {
		t.Error("a second start made a second run")
	}
	h.rest("PATCH", "/research/"+id, `{"team":2}`).refuses(t, 409, "conflict")
	if repeated := h.rest("POST", "/research", `{`+lightOrder+`}`, "Idempotency-Key: plan"); stringAt(repeated.wants(t, 202), "research.id") != id || repeated.header.Get("Idempotency-Replayed") != "true" {
		t.Error("the same key made another plan")
	}
	if items := h.rest("GET", "/research", "").items(t); len(items) != 1 || stringAt(items[0], "state") != "done" || stringAt(items[0], "question") == "" {
		t.Errorf("the list: %v", items)
	}
}

// The document of a run has the question, the answer, its sources, the report and the pages.
func TestAResearchIsExportedAsMarkdown(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	run := h.look(lightOrder)
	file := h.rest("GET", "/research/"+stringAt(run, "id")+"/export", "")
	if file.status != 200 || !strings.HasPrefix(file.header.Get("Content-Type"), "text/markdown") || !strings.Contains(file.header.Get("Content-Disposition"), ".md") {
		t.Fatalf("%d %v", file.status, file.header)
	}
	for _, part := range []string{"# When was the Halden Point", "March 1987[^1].", "\n[^1]: ", "<http://halden-point.test/history", "## Report", "## Pages read"} {
		if !strings.Contains(string(file.body), part) {
			t.Errorf("%q is not in\n%s", part, file.body)
		}
	}
	plan := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	if body := string(h.rest("GET", "/research/"+plan+"/export", "").body); !strings.Contains(body, "no answer") || !strings.Contains(body, "planned") {
		t.Errorf("a plan: %s", body)
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for body, field := range map[string]string{
		`{}`: "question", `{"question":"  "}`: "question", `{"question":7}`: "question",
		`{` + lightOrder + `,"budget":{"tokens":0}}`:                        "budget.tokens",
		`{` + lightOrder + `,"budget":{"tokens":-5}}`:                       "budget.tokens",
		`{` + lightOrder + `,"budgetTokens":0}`:                             "budgetTokens",
		`{` + lightOrder + `,"budgetTokens":1000001}`:                       "budgetTokens",
		`{` + lightOrder + `,"budgetTokens":2000,"budget":{"tokens":3000}}`: "budgetTokens",
		`{` + lightOrder + `,"budget":{"seconds":9}}`:                       "budget.seconds",
		`{` + lightOrder + `,"budget":{"seconds":3601}}`:                    "budget.seconds",
		`{` + lightOrder + `,"budget":{"usd":-1}}`:                          "budget.usd",
		`{` + lightOrder + `,"team":5}`:                                     "team",
		`{` + lightOrder + `,"doubtful":"hide"}`:                            "doubtful",
		`{` + lightOrder + `,"language":"x y"}`:                             "language",
		`{` + lightOrder + `,"queries":["a","b","c","d","e","f"]}`:          "queries",
		`{` + lightOrder + `,"queries":[" "]}`:                              "queries",
		`{` + lightOrder + `,"hosts":["http://example.org/"]}`:              "hosts",
		`{` + lightOrder + `,"web":false}`:                                  "web",
		`{` + lightOrder + `,"provider":"nobody"}`:                          "provider",
	} {
		h.rest("POST", "/research", body).refuses(t, 400, "invalid_field", field)
	}
	long := `{"question":"` + strings.Repeat("Why? ", 20_000) + `"}`
	h.rest("POST", "/research", long).refuses(t, 413, "too_large")
	h.rest("POST", "/research", `{"question":"`+strings.Repeat("茶", 8_000)+`"}`).wants(t, 202)
	missing := "019ab3f2-7c10-7d2e-9a51-3f2b8c6d1e00"
	h.rest("POST", "/research", `{`+lightOrder+`,"conversationId":"`+missing+`"}`).refuses(t, 404, "not_found")
	h.rest("POST", "/research", `{`+lightOrder+`,"knowledgeBaseIds":["`+missing+`"]}`).refuses(t, 404, "not_found")
	h.rest("GET", "/research?conversationId="+missing, "").refuses(t, 404, "not_found")
	id := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	h.rest("PATCH", "/research/"+id, `{"question":""}`).refuses(t, 400, "invalid_field", "question")
	h.rest("PATCH", "/research/"+id, `{"start":true}`).refuses(t, 400, "invalid_field", "start")
	h.rest("PATCH", "/research/"+id, `{"knowledgeBaseIds":["`+missing+`"]}`).refuses(t, 404, "not_found")
}

// Search words and language follow a question that is changed, unless they are named.
func TestAChangedQuestionIsPlannedAnew(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := stringAt(h.rest("POST", "/research", `{`+lightOrder+`,"queries":["mine"]}`).wants(t, 202), "research.id")
	run := h.rest("PATCH", "/research/"+id, `{"question":"哈尔登角灯塔是哪一年实现自动化的？"}`).wants(t, 200)
	if stringAt(run, "research.plan.language") != "zh" || fmt.Sprint(listAt(run, "research.plan.queries")) == "[mine]" {
		t.Errorf("the plan: %v", run)
	}
	run = h.rest("PATCH", "/research/"+id, `{`+lightOrder+`,"language":"de","queries":[]}`).wants(t, 200)
	if stringAt(run, "research.plan.language") != "de" || len(listAt(run, "research.plan.queries")) != 0 {
		t.Errorf("the plan: %v", run)
	}
}

// A run is cancelled at once, whatever it waits for; its steps stay, and it makes no further call.
func TestAResearchIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	model.gate = make(chan struct{})
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	id := stringAt(h.rest("POST", "/research", `{"start":true,`+lightOrder+`}`).wants(t, 202), "research.id")
	eventually(t, "the model is asked", func() bool { return model.waiting() > 0 })
	calls := model.calls()
	run := h.rest("POST", "/research/"+id+"/cancel", "").wants(t, 200)["research"].(map[string]any)
	if run["state"] != "cancelled" || run["answer"] != "" || run["finishedAt"] == nil {
		t.Errorf("the run: %v", run)
	}
	if numberAt(run, "usage.calls") != 1 || numberAt(run, "usage.promptTokens") == 0 || numberAt(run, "usage.completionTokens") == 0 {
		t.Errorf("the call that was cut off counts as %v", run["usage"])
	}
	if done := p.event("research.done", ""); field[string](t, done, "state") != "cancelled" || numberAt(dataOf(t, done), "usage.calls") != 1 {
		t.Errorf("%s", done.Data)
	}
	h.rested()
	close(model.gate)
	run = h.rest("GET", "/research/"+id, "").wants(t, 200)
	if run["state"] != "cancelled" || len(listAt(run, "steps")) != 2 || model.calls() != calls {
		t.Errorf("%d calls, and %v", model.calls(), run)
	}
	if again := h.rest("POST", "/research/"+id+"/cancel", "").wants(t, 200); stringAt(again, "research.state") != "cancelled" {
		t.Errorf("again: %v", again)
	}
	h.rest("POST", "/research/"+id+"/start", "").wants(t, 202) // it was started before: no error, and no second run
	plan := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	l := h.openStream("GET", "/research/"+plan+"/events", "") // the stream of a plan waits for the end, too
	h.rest("POST", "/research/"+plan+"/cancel", "").wants(t, 200)
	if e := l.next(); e == nil || e.kind != "research.done" || l.next() != nil {
		t.Errorf("the stream of a plan that is cancelled: %+v", e)
	}
	h.rest("POST", "/research/"+plan+"/start", "").refuses(t, 409, "conflict")
}

// DELETE cancels what runs, and removes what does not: with its events and stored answers.
func TestAResearchIsRemovedForGood(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	model.gate = make(chan struct{})
	path := "/research/" + stringAt(h.rest("POST", "/research", `{"start":true,"question":"What is a zorbalik?"}`, "Idempotency-Key: first").wants(t, 202), "research.id")
	eventually(t, "the model is asked", func() bool { return model.waiting() > 0 })
	h.rest("DELETE", path, "").wants(t, 204)
	if run := h.rest("GET", path, "").wants(t, 200); run["state"] != "cancelled" {
		t.Errorf("the run: %v", run)
	}
	close(model.gate)
	h.rested()
	h.wantWords("zorbalik", "research_runs.plan", "events.entries", "backup: tables/research_runs.jsonl")
	h.rest("DELETE", path, "", "Idempotency-Key: remove").wants(t, 204)
	h.rest("GET", path, "").refuses(t, 404, "not_found")
	h.rest("DELETE", path, "", "Idempotency-Key: remove").wants(t, 204)
	h.rest("POST", "/research", `{"start":true,"question":"What is a zorbalik?"}`, "Idempotency-Key: first").refuses(t, 404, "not_found")
	h.wantGone(&leaping{}, []string{"zorbalik"})
}

// A user's runs wait for each other beyond two, and none is lost.
func TestRunsOfAUserWaitForEachOther(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	model.gate = make(chan struct{})
	var ids []string
	for range 4 {
		ids = append(ids, stringAt(h.rest("POST", "/research", `{"start":true,`+lightOrder+`}`).wants(t, 202), "research.id"))
	}
	states := func() (states []string) {
		for _, id := range ids {
			states = append(states, stringAt(h.rest("GET", "/research/"+id, "").wants(t, 200), "state"))
		}
		slices.Sort(states)
		return states
	}
	eventually(t, "two of them run", func() bool { return fmt.Sprint(states()) == "[queued queued running running]" && model.waiting() == 2 })
	close(model.gate)
	for _, id := range ids {
		if run := h.researched(id); run["state"] != "done" {
			t.Errorf("%v", run)
		}
	}
	model.gate = make(chan struct{})
	defer close(model.gate)
	for range 20 {
		h.rest("POST", "/research", `{"start":true,`+lightOrder+`}`).wants(t, 202)
	}
	h.rest("POST", "/research", `{"start":true,`+lightOrder+`}`).refuses(t, 409, "conflict")
}

// A provider that dies in the middle ends the run with what is known by then; one that answers nothing at
// all and a web that is not there fail it, with the reason.
func TestAProviderThatDies(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	away := fault.New(fault.UpstreamDown, "the provider is away")
	model.fails = func(call int) error {
		if call > 1 {
			return away
		}
		return nil
	}
	run := h.look(lightOrder)
	if run["state"] != "done" || run["answer"] == "" || len(listAt(run, "left")) == 0 {
		t.Errorf("in the middle: %v", run)
	}
	model.fails = func(int) error { return away }
	h.web.search.Fail(providertest.Fault{Status: http.StatusServiceUnavailable})
	run = h.look(`"question":"Who kept the light of Tarn?"`)
	if run["state"] != "failed" || stringAt(run, "error.code") != "upstream_unavailable" || run["answer"] != "" {
		t.Errorf("from the start: %v", run)
	}
}

// Without a model the answer consists of quotes of pages that were opened.
func TestWithoutAModelTheAnswerConsistsOfQuotes(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	id := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	estimate := func(run map[string]any, of string) [4]float64 {
		return [4]float64{numberAt(run, of+".tokens"), numberAt(run, of+".calls"), numberAt(run, of+".seconds"), numberAt(run, of+".usd")}
	}
	h.researcher = nil
	for name, got := range map[string][4]float64{
		"planned": estimate(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.estimate"),
		"changed": estimate(h.rest("PATCH", "/research/"+id, `{"team":2}`).wants(t, 200), "research.estimate"),
	} {
		if got != [4]float64{0, 0, 8, 0} {
			t.Errorf("the estimate of a plan that was %s is %v", name, got)
		}
	}
	run := h.look(lightOrder)
	if run["state"] != "done" || run["end"] != "quotes" || !strings.Contains(stringAt(run, "answer"), "March 1987") || numberAt(run, "usage.calls") != 0 {
		t.Errorf("%v", run)
	}
}

// A wall is never knowledge: not its page, and not as a page that was read.
func TestAWallIsNoKnowledgeOfAResearch(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	h.web.pages(t, map[string]string{
		"halden-point.test": `<html><head><title>Just a moment...</title></head><body><h1>Checking your browser before accessing halden-point.test</h1>
			<p>Please enable JavaScript and cookies to continue. Verify you are human. The zorbalik passes.</p><div id="cf-challenge"></div></body></html>`,
	})
	run := h.look(lightOrder)
	whole := string(h.rest("GET", "/research/"+stringAt(run, "id"), "").body)
	if strings.Contains(whole, "zorbalik") || strings.Contains(whole, "Verify you are human") || len(listAt(run, "readUrls")) > 0 || len(listAt(run, "references")) > 0 {
		t.Errorf("%s", whole)
	}
}

// A client that comes later gets the steps so far, and then the end; the stream ends with it.
func TestEventsOfAResearchAreStreamed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	model := h.aboutLight()
	model.gate = make(chan struct{})
	id := stringAt(h.rest("POST", "/research", `{"start":true,`+lightOrder+`}`).wants(t, 202), "research.id")
	eventually(t, "the model is asked", func() bool { return model.waiting() > 0 })
	l := h.openStream("GET", "/research/"+id+"/events", "")
	for n := 1; n <= 2; n++ {
		if e := l.next(); e == nil || e.kind != "research.step" || e.id != "" || field[string](t, &e.frame, "researchId") != id || field[float64](t, &e.frame, "n") != float64(n) {
			t.Errorf("event %d: %+v", n, e)
		}
	}
	close(model.gate)
	var all []string
	for _, e := range l.remaining() {
		all = append(all, e.kind)
	}
	if len(all) == 0 || all[len(all)-1] != "research.done" || !slices.Contains(all, "research.step") || !slices.Contains(all, "research.budget") || !slices.Contains(all, "research.delta") {
		t.Errorf("events %q", all)
	}
	after := h.openStream("GET", "/research/"+id+"/events", "").remaining()
	kinds := map[string]int{}
	for _, e := range after {
		kinds[e.kind]++
	}
	run := h.researched(id)
	if kinds["research.step"] != len(listAt(run, "steps")) || kinds["research.done"] != 1 || after[len(after)-1].kind != "research.done" || len(kinds) != 2 {
		t.Errorf("after its end: %v", kinds)
	}
}

// flushed calls then when the head of the answer was sent.
type flushed struct {
	*httptest.ResponseRecorder
	then func()
}

func (f *flushed) Flush() {
	f.ResponseRecorder.Flush()
	if then := f.then; then != nil {
		f.then = nil
		then()
	}
}

// A run may be started as soon as the stream has answered: nothing of it is missed.
func TestTheStreamOfAResearchHearsItsBeginning(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	h.aboutLight()
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	id := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	w := &flushed{ResponseRecorder: httptest.NewRecorder(), then: func() {
		h.rest("POST", "/research/"+id+"/start", "").wants(t, 202)
		p.event("research.done", "")
	}}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/research/"+id+"/events", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+h.token)
	h.server.Handler().ServeHTTP(w, r)
	for _, kind := range []string{"research.step", "research.search", "research.done"} {
		if !strings.Contains(w.Body.String(), "event: "+kind+"\n") {
			t.Errorf("%s is missing in %s", kind, w.Body)
		}
	}
}

// The removal of a run is an event, with which its stream ends. That of a run which goes with its chat ends with the
// next ping.
func TestTheStreamOfARemovedResearchEnds(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	p, _ := h.connect(map[string]any{"deviceId": "phone"})
	plan := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	l := h.openStream("GET", "/research/"+plan+"/events", "")
	h.rest("DELETE", "/research/"+plan, "").wants(t, 204)
	if e := l.next(); e == nil || e.kind != research.EventRemoved || field[string](t, &e.frame, "researchId") != plan || l.next() != nil {
		t.Errorf("the stream: %+v", e)
	}
	if e := p.event(research.EventRemoved, ""); field[string](t, e, "researchId") != plan || e.Seq == 0 {
		t.Errorf("another device: %+v", e)
	}
	chat := h.newChat()
	plan = stringAt(h.rest("POST", "/research", `{`+lightOrder+`,"conversationId":"`+chat+`"}`).wants(t, 202), "research.id")
	l = h.openStream("GET", "/research/"+plan+"/events", "")
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	for _, c := range h.server.sockets.list() {
		c.out.Ping()
	}
	if e := l.next(); e != nil {
		t.Errorf("%+v", e)
	}
}

// The run of a chat knows the end of the chat, and its answer is in the log of the chat with every source,
// as something that nobody has vouched for. It goes with the chat.
func TestAResearchOfAChatIsInItsLog(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	model := h.aboutLight()
	chat := h.newChat()
	h.turn(chat, "I love the vexatrill of Halden Point.", "So do I.")
	run := h.look(lightOrder + `,"conversationId":"` + chat + `"`)
	id := stringAt(run, "id")
	if run["conversationId"] != chat {
		t.Errorf("%v", run)
	}
	known := false
	for _, p := range model.asked {
		for _, m := range p.Messages {
			known = known || strings.Contains(m.Text, "vexatrill")
		}
	}
	if !known {
		t.Error("the model does not know the chat")
	}
	events := h.rest("GET", "/conversations/"+chat+"/cognition-log", "").wants(t, 200)["events"].([]any)
	var queries []map[string]any
	for _, e := range events {
		if e := e.(map[string]any); e["type"] == cognition.TypeQuery {
			queries = append(queries, e)
		}
	}
	if len(queries) != 1 || queries[0]["query_id"] != id || queries[0]["untrusted"] != true || !strings.Contains(stringAt(queries[0], "response"), "March 1987") || !strings.Contains(fmt.Sprint(queries[0]["sources"]), "halden-point.test") {
		t.Errorf("the log: %v", queries)
	}
	if items := h.rest("GET", "/research?conversationId="+chat, "").items(t); len(items) != 1 {
		t.Errorf("the list: %v", items)
	}
	if items := h.rest("GET", "/research?conversationId="+h.newChat(), "").items(t); len(items) != 0 {
		t.Errorf("of another chat: %v", items)
	}
	h.wantWords("molvig", "cognition_events.body")
	for _, judged := range []string{`"query_id":"` + id + `"`, `"query_sequence":1`} {
		h.rest("POST", "/conversations/"+chat+"/cognition-log/import", `{"events":[{"type":"evaluation",`+judged+`,"knowledge_id":"`+id+`.7","eval_result":{"status":"helpful","reason":"The quorvane of the page."}}]}`).wants(t, 200)
	}
	h.wantWords("quorvane", "cognition_events.body")
	h.rest("DELETE", "/research/"+id, "").wants(t, 204)
	log := string(h.rest("GET", "/conversations/"+chat+"/cognition-log", "").body)
	if strings.Contains(log, "Halden") || strings.Contains(log, "quorvane") {
		t.Errorf("the log after the removal: %s", log)
	}
	id = stringAt(h.look(lightOrder+`,"conversationId":"`+chat+`"`), "id")
	h.rest("DELETE", "/conversations/"+chat, "").wants(t, 204)
	h.rest("GET", "/research/"+id, "").refuses(t, 404, "not_found")
	if items := h.rest("GET", "/research", "").items(t); len(items) != 0 {
		t.Errorf("after the deletion of the chat: %v", items)
	}
}

// A research reads the documents that its user may read when it runs, and goes with them.
func TestAResearchReadsDocuments(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	h.researcher = &researcher{answer: "The zorbalik of the harbour was automated in March 1987. [1]"}
	base := h.newBase("Harbour")
	file := h.addFile("harbour.md", "# The harbour\n\nThe zorbalik of the harbour was automated in March 1987.\n", "knowledgeBaseId="+base)["id"].(string)
	h.processed(file)
	order := `"question":"When was the harbour automated?","web":false,"knowledgeBaseIds":["` + base + `"]`
	run := h.look(order)
	if run["state"] != "done" || !strings.Contains(fmt.Sprint(run["references"]), file) {
		t.Fatalf("%v", run)
	}
	reader := h.newMember("tom")
	h.rest("PUT", "/knowledge-bases/"+base+"/grants/tom", `{"role":"read"}`).wants(t, 200)
	var theirs string
	h.as(reader, func() { theirs = stringAt(h.look(order), "id") })
	h.wantWords("zorbalik", "research_runs.result")
	h.rest("DELETE", "/files/"+file, "").wants(t, 204)
	h.rested()
	h.rest("GET", "/research/"+stringAt(run, "id"), "").refuses(t, 404, "not_found")
	h.as(reader, func() { h.rest("GET", "/research/"+theirs, "").refuses(t, 404, "not_found") })
	h.wantGone(clock, []string{"zorbalik"})
}

// Plans that nobody has started go after a week; runs stay until they are removed.
func TestPlansGoAndRunsStay(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	h.aboutLight()
	plan := stringAt(h.rest("POST", "/research", `{`+lightOrder+`}`).wants(t, 202), "research.id")
	run := stringAt(h.look(lightOrder), "id")
	clock.leap(6 * 24 * time.Hour)
	h.maintain()
	h.rest("GET", "/research/"+plan, "").wants(t, 200)
	clock.leap(2 * 24 * time.Hour)
	h.maintain()
	h.rest("GET", "/research/"+plan, "").refuses(t, 404, "not_found")
	clock.leap(365 * 24 * time.Hour)
	h.maintain()
	if got := h.rest("GET", "/research/"+run, "").wants(t, 200); got["answer"] == "" || len(listAt(got, "steps")) == 0 {
		t.Errorf("a year later: %v", got)
	}
}
