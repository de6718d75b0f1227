package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// logged is a log with an event of each type, one of a type that nobody knows, and marks that are no HTML.
const logged = `{"events":[
	{"type":"query","sequence":42,"query_id":"q1","query":"When does the <b>ferry</b> sail?","response":"At nine, says the timetable.","source_ids":["https://harbour.test/times","old-1"],
		"sources":[{"id":"https://harbour.test/times","task":"Timetable of the harbour","content":"The ferry sails at nine.\n<img src=x onerror=alert(1)>"}],"timestamp":"2026-03-20T10:00:00Z"},
	{"type":"evaluation","query_sequence":42,"query_id":"q1","knowledge_id":"https://harbour.test/times","eval_result":{"status":"helpful","reason":"It named the hour."},"evaluated_at_trigger":"goal_completion","timestamp":"2026-03-20T10:05:00Z"},
	{"type":"evaluation","query_sequence":41,"knowledge_id":"lost-1","eval_result":{"status":"harmful","reason":"It was of last year."},"evaluated_at_trigger":"compression","timestamp":"2026-03-20T10:06:00Z"},
	{"type":"extraction_pending","extraction_id":"pending-a1b2c3d4","sequence":42,"payload":{"task":"Ferries","content":"The ferry sails at nine."},"timestamp":"2026-03-20T10:10:00Z"},
	{"type":"extraction_reviewed","extraction_id":"pending-a1b2c3d4","decision":"approve","timestamp":"2026-03-21T10:10:00Z"},
	{"type":"extraction_committed","extraction_id":"pending-a1b2c3d4","knowledge_id":"knowledge-new-1","timestamp":"2026-03-21T10:11:00Z"},
	{"type":"reflection","sequence_range":[43,120],"summary":"Mia likes the harbour.","consumed_at":"2026-04-07T20:05:00Z","timestamp":"2026-04-07T20:00:00Z"},
	{"type":"odd","mine":[1,2]}
]}`

func (m *memoryPage) importLog(log string) {
	m.t.Helper()
	m.call(http.MethodPost, "/conversations/"+m.chat+"/cognition-log/import", json.RawMessage(log), nil)
}

// openLog shows a part of the log of the chat.
func (m *memoryPage) openLog(part string) {
	m.t.Helper()
	m.see("the log "+part, `(location.hash = `+jsString("#/logs/"+m.chat+part)+`, true)`)
	m.see("the part", `document.querySelector("main nav [aria-current]")?.getAttribute("href") == location.hash`)
}

// TestPageLog shows each event of a log with its day, evaluations at the sources that they are about, and one type alone.
func TestPageLog(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	m.importLog(logged)
	m.press("More")
	m.press("Log and goals")
	const event = `[...document.querySelectorAll(".event")]`
	m.see("all but the evaluation that stands at its source", event+`.map(e => e.dataset.type).join() == "query,evaluation,extraction_pending,extraction_reviewed,extraction_committed,reflection,odd"`)
	const query = `document.querySelector(".event[data-type=query]")`
	m.see("the question as text", query+`.querySelector(".question").innerText == "When does the <b>ferry</b> sail?" && !document.querySelector(".event b b, .event img")`)
	m.see("the answer is closed", query+`.querySelector("details:not([open]) blockquote")`)
	m.see("the source and how it worked", `(s => s.querySelector("a").href == "https://harbour.test/times" && s.querySelector("a").innerText == "Timetable of the harbour" && s.querySelector(".excerpt").innerText.includes("<img src=x")`+
		` && s.querySelector(".pill.good").innerText == "helpful" && s.innerText.includes("It named the hour."))(`+query+`.querySelector("ol li"))`)
	m.see("a source that waits", query+`.querySelectorAll("ol li")[1].innerText.includes("not evaluated yet")`)
	m.see("an evaluation without its query", `document.querySelector(".event[data-type=evaluation] .pill.bad").innerText == "harmful"`)
	m.see("the days", `document.querySelectorAll("li.day").length == 4`)
	m.set("Show", "evaluation")
	m.see("both evaluations", event+`.length == 2 && `+event+`.every(e => e.dataset.type == "evaluation")`)
	m.set("Show", "")
	m.see("everything again", event+`.length == 7`)
	m.see("its members", `(d => (d.querySelector("summary").click(), d.innerText.includes('"mine"')))(document.querySelector(".event[data-type=odd] details"))`)
	m.p.stop(t)
}

// TestPageLogInParts: a long log is read on when the user asks for it.
func TestPageLogInParts(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	var events []map[string]any
	for i := range 130 {
		events = append(events, map[string]any{"type": "reflection", "sequence_range": []int{i + 1, i + 1}, "summary": "Day", "timestamp": time.Date(2026, 3, 1, 0, i, 0, 0, time.UTC)})
	}
	m.call(http.MethodPost, "/conversations/"+m.chat+"/cognition-log/import", map[string]any{"events": events}, nil)
	m.openLog("")
	m.see("the first part", `document.querySelectorAll(".event").length == 100`)
	m.press("Show more")
	m.see("all of it", `document.querySelectorAll(".event").length == 130 && ![...document.querySelectorAll("main button")].some(b => b.innerText == "Show more")`)
	m.p.stop(t)
}

// TestPageGoals adds goals, completes one and abandons one, in Chinese, on a phone and with the keyboard.
func TestPageGoals(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	m.see("Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(390, 844), chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.openLog("/goals")
	m.see("no goals", `document.querySelector("main").innerText.includes("还没有目标。")`)
	m.fill("[name=description]", "弄清渡船几点开\r")
	m.see("an active one", `document.querySelector("[data-status=active]")?.innerText.includes("弄清渡船几点开")`)
	m.fill("[name=description]", "去灯塔\r")
	m.see("two", `document.querySelectorAll("[data-status=active]").length == 2`)
	m.press("完成") // the newest
	m.see("completed", `document.querySelector("[data-status=completed]")?.innerText.includes("去灯塔")`)
	m.press("放弃")
	m.see("abandoned", `document.querySelector("[data-status=abandoned]")?.innerText.includes("弄清渡船几点开") && document.querySelector("main").innerText.includes("已放弃")`)
	m.see("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	m.p.stop(t)
}
