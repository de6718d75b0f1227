package main

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"nodest/memory/dream"
)

func (m *memoryPage) write(path, text string) {
	m.t.Helper()
	m.call(http.MethodPut, "/characters/"+m.character+"/memory-documents/"+path, map[string]any{"text": text}, nil)
}

// TestPageDocuments: a user writes a document, sees what another device has changed, how two versions differ, and goes back.
func TestPageDocuments(t *testing.T) {
	m := openMemoryPage(t)
	m.open("/documents")
	m.see("nothing yet", `document.querySelector("section").innerText.includes("Nothing is written here yet.")`)
	m.press("Write")
	m.fill("section textarea", "Mia keeps bees.\nShe lives in <b>Oslo</b>.\nShe likes tea.")
	m.press("Save")
	const lines = `[...document.querySelectorAll(".lines li bdi")].map(e => e.innerText).join("|")`
	m.see("her lines, as text, and hers", lines+` == "Mia keeps bees.|She lives in <b>Oslo</b>.|She likes tea." && document.querySelectorAll(".lines [title='written by you']").length == 3`)
	m.press("Lock")
	m.see("it is locked", `document.querySelector("section").innerText.includes("Locked: dreams do not change it")`)

	m.press("Edit")
	m.set("Text", "Mia keeps bees and hens.\nShe lives in <b>Oslo</b>.\nShe likes tea.")
	m.write("user.md", "Mia keeps bees.\nShe lives in <b>Oslo</b>.\nShe likes coffee.")
	m.press("Save")
	m.see("what saving would change", `(d => d.includes("She likes coffee.") && d.includes("She likes tea."))(document.querySelector("section [role=alert]")?.innerText)`)
	m.press("Save my text anyway")
	m.see("the text", lines+` == "Mia keeps bees and hens.|She lives in <b>Oslo</b>.|She likes tea."`)

	m.press("Versions")
	const words = `[...document.querySelectorAll(".versions .word")].map(e => e.innerText).join("|")`
	m.see("the last change", `document.querySelectorAll(".versions .hunk").length == 2 && `+words+` == " and hens|coffee|tea"`)
	m.set("Before", "1")
	m.see("from the first version on", `document.querySelectorAll(".versions .hunk").length == 1 && `+words+` == " and hens"`)
	m.press("Go back to version 1")
	m.press("Go back to version 1") // in the question
	m.see("as it was", lines+` == "Mia keeps bees.|She lives in <b>Oslo</b>.|She likes tea." && document.querySelector("section").innerText.includes("Version 4")`)
	m.press("Delete")
	m.press("Delete")
	m.see("it is gone", `document.querySelector("section").innerText.includes("Nothing is written here yet.")`)
	m.write("threads.md", "We want to see the lighthouse.")
	m.press("Promises and plans")
	m.see("a document of another device", lines+` == "We want to see the lighthouse."`)
	m.p.stop(t)
}

// TestPageDream: a user has the character dream although they have just talked, reads the report, follows a line to its
// message, and finds the line in its document, in Chinese and on a phone too.
func TestPageDream(t *testing.T) {
	m := openMemoryPage(t, "I live in Marseille.")
	m.open("/dreams")
	m.see("when it dreams, and no dream", `(s => s.includes("It dreams by itself at 04:00 if there are at least 20 new messages.") && s.includes("It has not dreamt yet."))(document.querySelector("main").innerText)`)
	m.press("Try without changing anything")
	m.press("Dream anyway")
	m.see("a trial", `document.querySelector("details[data-state=done]")?.innerText.includes("trial: nothing was changed") && document.querySelector("details .pill:not(summary *)").innerText == "Would add"`)
	m.press("Dream now")
	m.press("Dream anyway")
	const report = `document.querySelectorAll("details[data-state=done]")[0]`
	m.see("the report, by itself", `document.querySelectorAll("details[data-state=done]").length == 2 && `+report+`.innerText.includes("1 line changed")`)
	m.see("opening it", `(`+report+`.open ||= true)`)
	m.see("the new line", report+`.querySelector("[data-do=add] .added bdi").innerText.includes("lives in Marseille")`)
	m.see("to its document", `(`+report+`.querySelector("h2 a").click(), true)`)
	m.see("the line of a dream", `(l => l && l.innerText.includes("lives in Marseille") && l.querySelector("[title='written by a dream']"))(document.querySelector(".lines li"))`)
	m.see("to its message", `(document.querySelector(".lines li a").click(), true)`)
	m.see("the message", atMessage(m.chat, "I live in Marseille."))

	m.see("Chinese", `(localStorage.setItem("nodest.language", "zh"), true)`)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(390, 844), chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.open("/dreams")
	m.see("the report", `(s => s.includes("由你发起") && s.includes("改动 1 行") && s.includes("添加") && s.includes("lives in Marseille"))(document.querySelector("details[open]")?.innerText)`)
	m.see("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	m.p.stop(t)
}

// TestRefusalsOfDreamsAreTranslated: the page has Chinese words for each reason for which a dream is not allowed to change a line.
func TestRefusalsOfDreamsAreTranslated(t *testing.T) {
	rules, err := os.ReadFile("../../memory/dream/rules.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../web/src/views/memory/documentWords.ts")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^(?:\t|var )reason\w+ += (?:fmt\.Sprintf\()?"(.+)"`).FindAllSubmatch(rules, -1)
	if len(reasons) < 12 {
		t.Errorf("%d reasons are found, want all of them", len(reasons))
	}
	_, chinese, _ := strings.Cut(string(page), "梦")
	for _, r := range reasons {
		reason := strings.ReplaceAll(string(r[1]), "%d", strconv.Itoa(dream.MaxOthers))
		if !strings.Contains(chinese, "'"+reason+"': '") {
			t.Errorf("no Chinese words for %q", reason)
		}
	}
}
