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

// TestPageLogFollows: an evaluation appears beside its source by itself, and sources and messages can be opened.
func TestPageLogFollows(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	fact := m.add(map[string]any{"text": "Ana keeps bees."})
	now := time.Now().UTC().Format(time.RFC3339)
	m.importLog(`{"events":[{"type":"query","sequence":2,"query_id":"q1","query":"Who keeps bees?","response":"Ana.","sources":[{"id":"` + fact + `","task":"","content":"Ana keeps bees."}],"timestamp":"` + now + `"}]}`)
	m.openLog("")
	const source = `document.querySelector(".event ol li")`
	m.see("it waits", source+`.innerText.includes("not evaluated yet")`)
	m.importLog(`{"events":[{"type":"evaluation","query_sequence":2,"query_id":"q1","knowledge_id":"` + fact + `","eval_result":{"status":"irrelevant","reason":"It was about boats."},"evaluated_at_trigger":"task_completion"}]}`)
	m.see("the evaluation", `(s => s.includes("off topic") && s.includes("It was about boats.") && s.includes("when the chat rested"))(`+source+`.innerText)`)
	m.press("Ana keeps bees.")
	m.see("the memory", `location.hash.startsWith("#/memory/") && document.querySelector("dialog[open] .text")?.innerText == "Ana keeps bees."`)
	m.openLog("")
	m.press("Message 2")
	m.see("the message", atMessage(m.chat, "Hello"))
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

// proposals are three extractions that wait for a review.
const proposals = `{"events":[
	{"type":"extraction_pending","extraction_id":"pending-00000001","sequence":2,"payload":{"task":"Ferries","content":"The ferry sails at ten.\nIt takes bicycles.\nIt sails <i>daily</i>.","types":["fact"],"score":4},"timestamp":"2026-03-20T10:10:00Z"},
	{"type":"extraction_pending","extraction_id":"pending-00000002","sequence":2,"payload":{"content":"Mia likes the harbour."},"timestamp":"2026-03-20T10:11:00Z"},
	{"type":"extraction_pending","extraction_id":"pending-00000003","sequence":2,"payload":{"content":"It rains."},"timestamp":"2026-03-20T10:12:00Z"}
]}`

// TestPageLogInChinese reads a log and edits a proposal on a phone, with the keyboard where there is a choice.
func TestPageLogInChinese(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	m.importLog(logged)
	m.importLog(`{"events":[{"type":"extraction_pending","extraction_id":"pending-00000001","sequence":2,"payload":{"content":"渡船九点开。\n可以带自行车。\n每天都开。"}}]}`)
	m.see("Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(390, 844), chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.openLog("")
	m.see("types, statuses and triggers", `["查询", "有帮助", "目标结束时", "尚未评估", "有害", "提议", "已批准", "反思"].every(word => document.querySelector("main ol").innerText.includes(word))`)
	m.openLog("/extractions")
	m.see("at a button", `(b => b && (b.focus(), document.activeElement == b))([...document.querySelectorAll(".extractions button")].find(b => b.innerText == "编辑"))`)
	typeKeys(t, m.ctx, "\r")
	m.see("the field has the focus", `document.activeElement.matches("textarea[data-path$=content]")`)
	m.set("记忆内容", "渡船十点开。\n可以带自行车。\n周日不开。")
	m.see("the characters that differ", `document.querySelector(".hunk .removed .word").innerText == "九" && document.querySelector(".hunk .added .word").innerText == "十"`)
	m.see("at the second change", `(e => e && (e.focus(), document.activeElement == e))(document.querySelectorAll(".hunk input")[1])`)
	typeKeys(t, m.ctx, " ")
	m.see("it is left", `document.querySelectorAll(".hunk.left").length == 1 && document.querySelector(".result").innerText == "渡船十点开。\n可以带自行车。\n每天都开。"`)
	m.press("按这些修改批准")
	m.press("把 1 条已批准的存为记忆")
	m.see("the report", `document.querySelector(".report").innerText.includes("1 条已成为记忆。")`)
	m.see("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	m.p.stop(t)
}

// TestPageExtractions: a user edits a proposal, takes one change and leaves another, approves and discards others, and has
// memories made of those that are approved. Another device sees it by itself.
func TestPageExtractions(t *testing.T) {
	m := openMemoryPage(t, "Hello")
	m.importLog(proposals)
	m.openLog("/extractions")
	m.see("three wait", `document.querySelectorAll(".extractions li").length == 3 && document.querySelector("main nav .count").innerText == "3"`)
	m.see("as text", `document.querySelector(".extractions .content").innerText.includes("It sails <i>daily</i>.")`)
	m.press("Edit")
	m.set("Memory", "The ferry sails at nine.\nIt takes bicycles.\nIt sails at night.")
	m.see("two changes, by words", `document.querySelectorAll(".hunk").length == 2 && [...document.querySelectorAll(".hunk .word")].slice(0, 2).map(e => e.innerText).join() == "ten,nine"`)
	m.see("leaving the second", `(document.querySelectorAll(".hunk input")[1].click(), true)`)
	m.see("the result", `document.querySelector(".result").innerText == "The ferry sails at nine.\nIt takes bicycles.\nIt sails <i>daily</i>."`)
	m.press("Approve with these changes")
	m.see("two are left", `document.querySelectorAll(".extractions li").length == 2 && document.querySelector("main nav .count").innerText == "2"`)
	m.press("Approve")
	m.see("one is left", `document.querySelectorAll(".extractions li").length == 1`)
	m.press("Discard")
	m.see("none is left", `document.querySelector("main").innerText.includes("Nothing to review.") && !document.querySelector("main nav .count")`)
	m.set("State", "discarded")
	m.see("it is discarded", `document.querySelectorAll(".extractions li").length == 1 && document.querySelector(".extractions .content").innerText == "It rains."`)
	m.press("Make memories of 2 approved")
	m.see("the report", `(r => r?.includes("2 became memories.") && r.includes("1 waits for a review or is discarded."))(document.querySelector(".report")?.innerText)`)
	m.set("State", "committed")
	m.see("both are memories, and nothing can be decided", `document.querySelectorAll(".extractions li").length == 2 && !document.querySelector(".extractions li button.danger")`)
	m.see("what was edited", `document.querySelector(".extractions details .hunk .word").textContent == "ten" && document.querySelectorAll(".extractions .hunk").length == 1`)
	m.press("Open the memory 1")
	m.see("the memory", `document.querySelector("dialog[open] .text")?.innerText == "The ferry sails at nine.\nIt takes bicycles.\nIt sails <i>daily</i>."`)

	m.importLog(`{"events":[{"type":"extraction_pending","extraction_id":"pending-00000004","sequence":2,"payload":{"content":"Rex is a dog."}}]}`)
	m.openLog("/extractions")
	m.see("another one", `document.querySelectorAll(".extractions li").length == 1`)
	m.call(http.MethodPost, "/conversations/"+m.chat+"/extractions/pending-00000004/review", map[string]any{"decision": "approve"}, nil)
	m.see("decided on another device", `document.querySelectorAll(".extractions li").length == 0 && [...document.querySelectorAll("main button")].some(b => b.innerText == "Make memories of 1 approved" && !b.disabled)`)
	m.p.stop(t)
}

// fillLog fills the log of the chat, and has the character dream.
func (a *accessPage) fillLog() {
	a.t.Helper()
	for _, log := range []string{logged, proposals} {
		a.call(http.MethodPost, "/conversations/"+a.chat+"/cognition-log/import", json.RawMessage(log), nil)
	}
	a.post("/conversations/"+a.chat+"/goals", map[string]any{"description": "Find out when the ferry sails."})
	for _, text := range []string{"Mia keeps bees.", "Mia keeps bees and hens.\n\nShe lives in Oslo."} {
		a.call(http.MethodPut, "/characters/"+a.character+"/memory-documents/user.md", map[string]any{"text": text}, nil)
	}
	a.call(http.MethodPost, "/characters/"+a.character+"/dream", map[string]any{"force": true}, nil)
}

// logAccess are the views of a log and of the documents of a memory.
func logAccess(chat, memory string) []accessView {
	log := "/logs/" + chat
	return []accessView{
		{"a log", log, []string{found(".event details:not([open]) summary"), found(".event details:not([open]) summary")}, found(".event blockquote")},
		{"goals", log + "/goals", nil, found("[data-status=active]")},
		{"extractions", log + "/extractions", []string{found(".extractions details:not([open]) summary")}, found(".extractions dl")},
		{"an edited extraction", log + "/extractions", []string{pressable("Edit"), `(f => f && (f.value = "The ferry sails at nine.\nIt takes bicycles.\nIt sails at night.", f.dispatchEvent(new Event("input", {bubbles: true})), f))(` +
			found("textarea[data-path$=content]") + `)`, found(".hunk input")}, found(".hunk.left")},
		{"a document", memory + "/documents", nil, found(".lines li")},
		{"editing a document", memory + "/documents", []string{pressable("Edit")}, found("section textarea")},
		{"versions of a document", memory + "/documents", []string{pressable("Versions")}, found(".versions .hunk")},
		{"going back", memory + "/documents", []string{pressable("Versions"), found(".versions > button")}, dialogOpen},
		{"dreams", memory + "/dreams", nil, found("main details[data-state=done], main details[data-state=failed]")},
	}
}
