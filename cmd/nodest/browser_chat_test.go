package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"nodest/internal/cli"
	"nodest/llm/llmtest"
)

// chatPage is a browser that shows a chat with the sample character, and the model that
// answers in it as the test says.
type chatPage struct {
	t       *testing.T
	ctx     context.Context
	inst    *installation
	p       *process
	replies chan llmtest.Reply

	mu      sync.Mutex
	request string // the last one for a reply
}

// asked is the last request for a reply that the model got.
func (c *chatPage) asked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request
}

func newChatPage(t *testing.T, flags ...chromedp.ExecAllocatorOption) *chatPage {
	t.Helper()
	return newChatPageWith(t, nil, flags...)
}

// newChatPageWith has more settings.
func newChatPageWith(t *testing.T, settings []string, flags ...chromedp.ExecAllocatorOption) *chatPage {
	t.Helper()
	c := &chatPage{t: t, ctx: browser(t, flags...), replies: make(chan llmtest.Reply, 8)}
	fake := llmtest.NewOpenAI(t)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) < 2 { // in the background: about the memory, or for the list of models
			return llmtest.Say("{}")
		}
		c.mu.Lock()
		c.request = string(r.Body)
		c.mu.Unlock()
		select {
		case reply := <-c.replies:
			return reply
		default:
			return llmtest.Say("Yes.")
		}
	})
	c.inst = newPageInstallation(t, append([]string{"NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL=" + fake.URL}, settings...)...)
	c.p = c.inst.start(t)
	return c
}

func openChatPage(t *testing.T, flags ...chromedp.ExecAllocatorOption) *chatPage {
	t.Helper()
	c := newChatPage(t, flags...)
	openSample(t, c.ctx, c.p)
	return c
}

// says queues a reply that comes at once.
func (c *chatPage) says(text string) { c.replies <- llmtest.Say(text) }

// writes queues a reply of pieces; the function that it returns lets the next piece be
// sent, or all the rest.
func (c *chatPage) writes(pieces ...string) (next, rest func()) {
	gate := make(chan struct{}, len(pieces))
	reply := llmtest.Say(pieces...)
	reply.Gate = gate
	c.replies <- reply
	closed := false
	rest = func() {
		if !closed {
			close(gate)
		}
		closed = true
	}
	c.t.Cleanup(rest)
	return func() { gate <- struct{}{} }, rest
}

func (c *chatPage) see(what, js string) {
	c.t.Helper()
	waitJS(c.t, c.ctx, what, js)
}

func (c *chatPage) send(message string) {
	c.t.Helper()
	sendInPage(c.t, c.ctx, message)
}

// ask sends a message and waits for its reply, which is the last message then.
func (c *chatPage) ask(message, reply string) {
	c.t.Helper()
	c.says(reply)
	c.send(message)
	c.last("complete", reply)
}

// shownAs finds the text of a message by what it begins with.
func shownAs(text string) string {
	return `[...document.querySelectorAll("article .text")].find(e => e.innerText.trim().startsWith(` + jsString(text) + `))`
}

// last waits until the last message has a status and a text.
func (c *chatPage) last(status, text string) {
	c.t.Helper()
	c.see("the last message is "+status+": "+text, `(a => a?.dataset.status == `+jsString(status)+` && a.querySelector(".text")?.innerText.trim() == `+jsString(text)+`)([...document.querySelectorAll("article")].at(-1))`)
}

func (c *chatPage) messages(n int) {
	c.t.Helper()
	c.see(fmt.Sprint(n, " messages"), fmt.Sprintf(`document.querySelectorAll("article").length == %d`, n))
}

// press clicks a button, link or menu item by its label, in the topmost dialog if there
// is one.
func (c *chatPage) press(label string) {
	c.t.Helper()
	c.see("pressing "+label, `(b => b && !b.disabled && (b.click(), true))([...([...document.querySelectorAll("dialog[open]")].at(-1) ?? document).querySelectorAll("button, a, [role=menuitem]")]`+
		`.findLast(b => [b.innerText.trim(), b.getAttribute("aria-label")].includes(`+jsString(label)+`)))`)
}

// pressAt presses a button of the message with a text, or chooses from its menu.
func (c *chatPage) pressAt(message, label string) {
	c.t.Helper()
	at := shownAs(message) + `?.closest("article")`
	c.see("pressing "+label+" at "+message, `(a => {
		if (!a) return false
		const named = (of, what) => [...of.querySelectorAll("button")].find(b => !b.disabled && [b.innerText.trim(), b.getAttribute("aria-label")].includes(what))
		const found = named(document.querySelector("[role=menu]") ?? a, `+jsString(label)+`) ?? named(a, `+jsString(label)+`)
		if (!found && !document.querySelector("[role=menu]")) a.querySelector("[aria-haspopup=menu]")?.click()
		found?.click()
		return found
	})(`+at+`)`)
}

func (c *chatPage) keys(keys string, opts ...chromedp.KeyOption) {
	c.t.Helper()
	typeKeys(c.t, c.ctx, keys, opts...)
}

// fill types into the field with a label; what was in it is replaced.
func (c *chatPage) fill(selector, text string) {
	c.t.Helper()
	if err := chromedp.Do(c.ctx, chromedp.WaitVisible(selector)); err != nil {
		c.t.Fatal(err)
	}
	c.see("choosing all of "+selector, `(e => (e.focus(), e.select(), true))(document.querySelector(`+jsString(selector)+`))`)
	if err := chromedp.Do(c.ctx, chromedp.SendKeys(selector, text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chatPage) reload() {
	c.t.Helper()
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		c.t.Fatal(err)
	}
	c.see("the chat", `document.querySelector("article")`)
}

// kill ends the server as a crash does; the address stays for the next one.
func (c *chatPage) kill() {
	c.t.Helper()
	c.p.kill(c.t)
	c.see("the lost connection is shown", `document.querySelector("main [role=status]")?.innerText.includes("No connection")`)
	c.inst.env = append(c.inst.env, "NODEST_ADDR="+strings.TrimPrefix(c.p.client.Base, "http://"))
}

func (c *chatPage) restart() {
	c.t.Helper()
	c.p = c.inst.start(c.t)
	c.see("connecting at once, as after a look at another tab", `document.dispatchEvent(new Event("visibilitychange"))`)
	c.see("the connection is back", `!document.querySelector("main .banner")`)
}

// holdWrites keeps the server from storing anything until the function that it returns
// is called: what it shows meanwhile is lost when it is killed.
func (c *chatPage) holdWrites() (release func()) {
	c.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(c.inst.dir, "data", "nodest.db")+"?_busy_timeout=10000")
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := db.Conn(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = conn.ExecContext(c.t.Context(), "BEGIN IMMEDIATE")
	if err != nil {
		c.t.Fatal(err)
	}
	return func() {
		c.t.Helper()
		_, err := conn.ExecContext(c.t.Context(), "ROLLBACK")
		if err != nil {
			c.t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			c.t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestPage goes through the first minutes: the printed link, the sample character, a
// reply that is shown while it is written, its formatting, other swipes, and a reload
// that shows the same.
func TestPage(t *testing.T) {
	c := openChatPage(t)
	c.see("the secret has left the address", `location.pathname == "/" && !location.hash.includes("signin") && !document.body.innerHTML.includes(`+jsString(c.p.link)+`)`)

	next, rest := c.writes("*She lifts ", "the lantern.* \"Down", " the river,\" **she** says.")
	c.send("Where does the ferry go?")
	c.see("the message", shownAs("Where does the ferry go?"))
	next()
	c.last("streaming", "She lifts")
	c.see("it is an action already", `document.querySelector("article.last .text em")?.innerText.trim() == "She lifts"`)
	next()
	c.last("streaming", `She lifts the lantern. "Down"`)
	rest()
	const first = `She lifts the lantern. "Down the river," she says.`
	c.last("complete", first)
	c.see("actions, speech and strong words", `["em", "q", "strong"].map(e => document.querySelector("article.last .text " + e)?.innerText).join("|") == 'She lifts the lantern.|"Down the river,"|she'`)

	shown := func(n string) {
		t.Helper()
		c.see("swipe "+n, `document.querySelector("article.last footer")?.innerText.trim().startsWith(`+jsString(n)+`)`)
	}
	shown("1/1")
	next, rest = c.writes("Nowhere, ", "tonight.")
	c.press("New swipe")
	next()
	c.last("streaming", "Nowhere,")
	rest()
	c.last("complete", "Nowhere, tonight.")
	shown("2/2")
	next, rest = c.writes("To the ", "sea.")
	c.press("Regenerate")
	next()
	c.last("streaming", "To the")
	rest()
	c.last("complete", "To the sea.")
	shown("3/3")
	c.press("Previous swipe")
	c.last("complete", "Nowhere, tonight.")
	c.press("Previous swipe")
	c.last("complete", first)
	c.press("Next swipe")
	c.last("complete", "Nowhere, tonight.")

	c.reload()
	c.last("complete", "Nowhere, tonight.")
	shown("2/3")
	c.messages(3)
	c.p.stop(t)
}

// TestPageWritesFurther continues a reply, lets the model write the user's message,
// stops a reply, and keeps what was written and not sent over a reload.
func TestPageWritesFurther(t *testing.T) {
	c := openChatPage(t)
	c.ask("Who are you?", "I keep the ferry.")
	next, rest := c.writes(" And ", "the lantern.")
	c.pressAt("I keep the ferry.", "Continue")
	next()
	c.last("streaming", "I keep the ferry. And")
	rest()
	c.last("complete", "I keep the ferry. And the lantern.")

	next, rest = c.writes("May I ", "come aboard?")
	c.press("Write my next message")
	next()
	c.see("the field is being filled", `document.querySelector("`+compose+`").value.trim() == "May I"`)
	rest()
	c.see("the field is filled and can be changed", `(f => f.value == "May I come aboard?" && !f.readOnly)(document.querySelector("`+compose+`"))`)
	c.messages(3)
	c.reload()
	c.see("the draft is there", `document.querySelector("`+compose+`").value == "May I come aboard?"`)

	next, _ = c.writes("Come ", "aboard.")
	c.send(" Now?")
	next()
	c.last("streaming", "Come")
	c.see("what was sent is no draft", `document.querySelector("`+compose+`").value == ""`)
	c.press("Stop")
	c.last("cancelled", "Come")
	c.see("it says so", `document.querySelector("article.last").innerText.includes("Stopped.")`)
	c.reload()
	c.last("cancelled", "Come")
	c.see("what was sent is no draft", `document.querySelector("`+compose+`").value == ""`)
	c.see("the message", shownAs("May I come aboard? Now?"))
	c.p.stop(t)
}

// TestPageChangesMessages edits in place and as a branch, goes from one branch to the
// other, deletes and takes it back.
func TestPageChangesMessages(t *testing.T) {
	c := openChatPage(t)
	const field = `[aria-label="Text of the message"]`
	c.ask("Good evening!", "Good evening.")

	c.press("Edit")
	c.fill(field, "*A nod.*")
	c.press("Save")
	c.last("complete", "A nod.")
	c.messages(3)

	c.pressAt("Good evening!", "Edit")
	c.fill(field, "Not sent")
	c.keys(kb.Escape)
	c.see("as it was", shownAs("Good evening!"))
	c.says("It does.")
	c.pressAt("Good evening!", "Edit")
	c.fill(field, "It rains.")
	c.press("Save and send as a new branch")
	c.last("complete", "It does.")
	c.see("said otherwise", shownAs("It rains."))
	c.messages(3)

	c.pressAt("It does.", "Delete message")
	c.see("deleted", `!`+shownAs("It does."))
	c.see("it says so", `document.querySelector(".notes [role], .notes")?.innerText.includes("Message deleted.")`)
	c.press("Undo")
	c.last("complete", "It does.")
	c.pressAt("It rains.", "Delete this and all that follow")
	c.messages(1)
	c.press("Undo")
	c.last("complete", "It does.")

	c.press("Branches and save points")
	c.see("two branches", `(d => d?.includes("A nod.") && d.includes("It does."))(document.querySelector("dialog[open]")?.innerText)`)
	c.p.stop(t)
}

// TestPageSavePoints creates a save point, looks into it and restores it; what was said
// since stays as a branch.
func TestPageSavePoints(t *testing.T) {
	c := openChatPage(t)
	c.ask("Good evening!", "Good evening.")
	c.press("Branches and save points")
	c.fill(`dialog [aria-label="Description"]`, "the ferry")
	c.press("Create save point")
	c.see("the save point", `document.querySelector("dialog[open]").innerText.includes("the ferry") && document.querySelector("dialog[open] [aria-label=Description]").value == ""`)
	c.press("Close")
	c.see("closed", `!document.querySelector("dialog[open]")`)
	c.ask("Farewell!", "Safe travels.")
	c.messages(5)

	c.press("Branches and save points")
	c.see("the save point", `document.querySelector("dialog[open]")?.innerText.includes("the ferry")`)
	c.press("Preview")
	c.see("what it holds", `(d => d.includes("Good evening.") && !d.includes("Farewell!"))([...document.querySelectorAll("dialog[open]")].at(-1).innerText)`)
	c.see("who speaks", `[...document.querySelectorAll("dialog .said")].map(e => e.querySelector("b").innerText + (e.querySelector(".avatar") ? "" : "?")).join() == "Wren Halloway,User,Wren Halloway"`)
	c.press("Restore")
	c.last("complete", "Good evening.")
	c.messages(3)
	c.see("it says so", `document.querySelector(".notes").innerText.includes("Restored.")`)
	c.reload()
	c.last("complete", "Good evening.")
	c.press("Branches and save points")
	c.see("what was said since is there", `document.querySelector("dialog[open]")?.innerText.includes("Safe travels.")`)
	c.p.stop(t)
}

// TestPageServerIsKilledDuringAReply: what was shown of the reply stays although its end
// is not stored, and can be kept. A message of the meantime is answered once.
func TestPageServerIsKilledDuringAReply(t *testing.T) {
	c := openChatPage(t)
	next, _ := c.writes("The river ", "is high ", "tonight.")
	c.send("How is the river?")
	next()
	c.last("streaming", "The river")
	release := c.holdWrites()
	next()
	c.last("streaming", "The river is high")
	c.kill()
	release()
	c.see("the text is still there", shownAs("The river is high"))
	c.send("Are you there?")
	c.see("the message waits", `(a => a.dataset.status == "unsent" && a.innerText.includes("Are you there?") && a.innerText.includes("Waiting for the connection"))([...document.querySelectorAll("article")].at(-1))`)

	c.says("I am here.")
	c.restart()
	c.last("complete", "I am here.")
	c.messages(5)
	at := shownAs("The river is high") + `?.closest("article")`
	c.see("the whole text, and that its end is not stored", `(a => a?.dataset.status == "interrupted" && a.innerText.includes("The end of it is not stored"))(`+at+`)`)
	c.pressAt("The river is high", "Keep all of it")
	c.see("it is stored", `(a => a && !a.innerText.includes("not stored"))(`+at+`)`)
	c.reload()
	c.see("after a reload too", shownAs("The river is high"))
	c.last("complete", "I am here.")
	c.messages(5)
	c.see("once", `[...document.querySelectorAll("article .text")].filter(e => e.innerText.trim() == "Are you there?").length == 1`)
	c.p.stop(t)
}

// TestPageOnAPhone chats by touch: the drawer opens and closes, Enter makes a line
// break, the button sends, and what is touched is large enough.
func TestPageOnAPhone(t *testing.T) {
	c := newChatPage(t)
	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)); err != nil {
		t.Fatal(err)
	}
	openSample(t, c.ctx, c.p)
	small := func(where string) {
		t.Helper()
		c.see("large targets "+where, `(s => (window.tooSmall = s.map(e => e.outerHTML.slice(0, 80)).join("\n"), s.length == 0 || (console.log(window.tooSmall), false)))(`+
			`[...document.querySelectorAll("button, nav a, [role=menuitem], textarea, input")].filter(e => !e.closest("[inert]") && e.checkVisibility({visibilityProperty: true}) && e.type != "file")`+
			`.filter(e => { const r = e.getBoundingClientRect(); return r.height < 43.5 || r.width < 43.5 }))`)
	}
	tap := func(selector string) {
		t.Helper()
		c.see(selector, `(e => { if (!e) return false; const r = e.getBoundingClientRect(); const x = r.x + r.width / 2, y = r.y + r.height / 2; window.at = x + " " + y; return e.contains(document.elementFromPoint(x, y)) })(document.querySelector(`+jsString(selector)+`))`)
		var x, y float64
		_, err := fmt.Sscan(evalString(t, c.ctx, `window.at`), &x, &y)
		if err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(c.ctx, chromedp.TapXY(x, y)); err != nil {
			t.Fatal(err)
		}
	}
	c.see("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
	small("in the chat")

	tap(compose)
	c.keys("Hello" + kb.Enter + "there")
	c.see("two lines", `document.querySelector("`+compose+`").value == "Hello\nthere"`)
	c.messages(1)
	c.says("Welcome.")
	tap(`[aria-label="Send"]`)
	c.last("complete", "Welcome.")
	c.messages(3)
	c.see("the field is empty and one line high", `(f => f.value == "" && f.offsetHeight < 60)(document.querySelector("`+compose+`"))`)
	small("below a reply")

	const inside = `(r => r.left >= -1 && r.right > 200)(document.querySelector("aside").getBoundingClientRect())`
	c.see("the drawer is closed", `document.querySelector("aside").inert && !`+inside)
	tap(`[aria-label="Open menu"]`)
	c.see("the drawer is open", `!document.querySelector("aside").inert && `+inside)
	small("in the drawer")
	if err := chromedp.Do(c.ctx, chromedp.TapXY(375, 500)); err != nil {
		t.Fatal(err)
	}
	c.see("a tap beside it closes it", `document.querySelector("aside").inert && !`+inside)
	tap(`[aria-label="Open menu"]`)
	c.see("open", inside)
	tap(`aside [role=listitem] a`)
	c.see("the chosen chat closes it", `document.querySelector("aside").inert`)

	tap(`article.last footer [aria-haspopup=menu]`)
	c.see("the menu", `document.querySelector("[role=menu]")`)
	small("in the menu")
	if err := chromedp.Do(c.ctx, chromedp.TapXY(200, 20)); err != nil {
		t.Fatal(err)
	}
	c.see("no menu", `!document.querySelector("[role=menu]")`)

	c.see("notes stay", `(real => (window.setTimeout = (f, ms) => ms < 5000 ? real(f, ms) : 0, true))(window.setTimeout)`)
	c.pressAt("Welcome.", "Copy text")
	uncovered := func(where string) {
		t.Helper()
		c.see("a note, but not over the head or the field "+where, `document.querySelector(".note") && ["header .drawer", "header h1", "`+compose+`", "article.last footer"].every(s => {
			const e = document.querySelector("main " + s), r = e.getBoundingClientRect()
			return [r.top + 1, r.bottom - 1].every(y => e.contains(document.elementFromPoint(r.x + r.width / 2, y)))
		})`)
	}
	uncovered("in the chat")
	small("in the note")

	// The keyboard of the phone: the page becomes lower, or only what is seen of it.
	tap(compose)
	const seen = `(r => r.height >= 44 && r.top > 200 && r.bottom <= 420)(document.querySelector("` + compose + `").getBoundingClientRect())`
	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(390, 420, chromedp.EmulateMobile, chromedp.EmulateTouch)); err != nil {
		t.Fatal(err)
	}
	c.see("the field above the keyboard", `innerHeight == 420 && document.documentElement.scrollHeight <= 420 && `+seen)
	c.see("the end of the reply above it", `(r => r.bottom <= document.querySelector("`+compose+`").getBoundingClientRect().top)(document.querySelector("article.last").getBoundingClientRect())`)
	uncovered("above the keyboard")
	tap(`.note [aria-label="Dismiss"]`)
	c.see("no note", `!document.querySelector(".note")`)
	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)); err != nil {
		t.Fatal(err)
	}
	c.see("without the keyboard", `innerHeight == 844 && document.querySelector("`+compose+`").getBoundingClientRect().bottom > 800`)
	c.see("a keyboard over the page", `(Object.defineProperty(visualViewport, "height", {value: 420, configurable: true}), visualViewport.dispatchEvent(new Event("resize")))`)
	c.see("the field above it", seen)
	c.see("a zoom, which hides as much", `(Object.defineProperty(visualViewport, "scale", {value: 2, configurable: true}), visualViewport.dispatchEvent(new Event("resize")))`)
	c.see("the page as high as before", `document.querySelector("`+compose+`").getBoundingClientRect().bottom > 800`)
	c.p.stop(t)
}

// TestPageByKeyboard goes from signing in to a reply without a pointer, through the menu
// of a message and back.
func TestPageByKeyboard(t *testing.T) {
	c := newChatPage(t)
	if err := chromedp.Do(c.ctx, chromedp.Navigate(c.p.client.Base)); err != nil {
		t.Fatal(err)
	}
	c.see("signing in", `document.querySelector("[name=secret]")`)
	reach := func(what, js string, opts ...chromedp.KeyOption) {
		t.Helper()
		c.see("there is "+what, `document.body && [...document.querySelectorAll("*")].some(e => (`+js+`)(e))`)
		for range 60 {
			c.keys(kb.Tab, opts...)
			there, err := chromedp.Run(c.ctx, chromedp.Evaluate[bool](`Boolean((`+js+`)(document.activeElement))`))
			if err != nil {
				t.Fatal(err)
			}
			if there {
				return
			}
		}
		t.Fatalf("%s cannot be reached with Tab", what)
	}
	reach("the field for the link", `e => e.name == "secret"`)
	c.keys(c.p.client.Base + "/signin#" + c.p.link + kb.Enter)
	reach("the sample", `e => e.tagName == "BUTTON" && e.innerText == "Sample character"`)
	c.keys(kb.Enter)
	c.messages(1)
	reach("the field for the message", `e => e.matches("`+compose+`")`)
	c.says("Welcome.")
	c.keys("Good evening!" + kb.Enter)
	c.last("complete", "Welcome.")
	c.see("the field still has the focus", `document.activeElement.matches("`+compose+`")`)

	const button = `e => e.matches("article.last [aria-haspopup=menu]")`
	focused := func(what, label string) {
		t.Helper()
		c.see(what, `document.activeElement.innerText.trim() == `+jsString(label))
	}
	reach("the menu of the reply", button, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	focused("the first item", "Regenerate with instructions…")
	c.keys(kb.ArrowDown)
	focused("the next", "Continue")
	c.keys(kb.ArrowUp + kb.ArrowUp)
	focused("around the end", "Delete message")
	c.keys(kb.Escape)
	c.see("closed, and back at its button", `!document.querySelector("[role=menu]") && (`+button+`)(document.activeElement)`)

	c.keys(kb.Enter)
	c.see("open", `document.activeElement.role == "menuitem"`)
	c.keys(kb.Enter)
	c.see("the wish is asked for", `document.activeElement.matches("dialog[open] textarea")`)
	c.keys(kb.Escape)
	c.see("closed, and back again", `!document.querySelector("dialog") && (`+button+`)(document.activeElement)`)
	reach("the branches", `e => e.ariaLabel == "Branches and save points"`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	c.see("the dialog has the focus", `document.activeElement.closest("dialog[open]")`)
	reach("its field", `e => e.ariaLabel == "Description"`)
	c.keys("the ferry" + kb.Enter)
	c.see("a save point", `document.querySelector("dialog li [aria-haspopup=menu]")`)
	for range 12 { // more than there is in the dialog
		c.keys(kb.Tab)
		c.see("the focus stays in the dialog, or goes to the browser", `document.activeElement == document.body || document.activeElement.closest("dialog[open]")`)
	}
	reach("the menu of the save point", `e => e.matches("dialog li [aria-haspopup=menu]")`)
	c.keys(kb.ArrowDown)
	focused("open", "Export")
	c.keys(kb.Escape)
	c.see("only the menu is closed", `!document.querySelector("[role=menu]") && document.activeElement.matches("dialog[open] li [aria-haspopup=menu]")`)
	var saves struct{ Items []struct{ ID string } }
	api(t, c.p, http.MethodGet, "/conversations/"+strings.TrimPrefix(evalString(t, c.ctx, `location.hash`), "#/chats/")+"/saves", nil, &saves)
	api(t, c.p, http.MethodDelete, "/saves/"+saves.Items[0].ID, nil, nil)
	reach("restoring what is gone", `e => e.innerText == "Restore" && e.closest("dialog li")`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	c.see("what went wrong, where it can be read and reached", `document.querySelector("dialog[open] .note[role=alert]")`)
	reach("its button", `e => e.matches("dialog[open] .note button")`)
	c.keys(kb.Enter)
	c.see("dismissed", `!document.querySelector(".note")`)
	reach("the dialog again", `e => e.matches("dialog[open] button")`)
	c.keys(kb.Escape)
	c.see("closed, and back there", `!document.querySelector("dialog") && document.activeElement.ariaLabel == "Branches and save points"`)

	// Another view begins at its heading; what leads to a part of the same view keeps the focus.
	heading := func(title string) {
		t.Helper()
		c.see("at the heading "+title, `document.activeElement.matches("main h1") && document.activeElement.innerText == `+jsString(title))
	}
	reach("the characters", `e => e.hash == "#/characters"`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	heading("Characters")
	reach("the character", `e => e.matches(".tile a")`)
	c.keys(kb.Enter)
	heading("Wren Halloway")
	reach("a part of it", `e => e.hash?.endsWith("/worldbook")`)
	c.keys(kb.Enter)
	c.see("its link has the focus", `document.querySelector("main .item") && document.activeElement.hash?.endsWith("/worldbook") && document.activeElement.ariaCurrent == "page"`)
	reach("the link over the navigation", `e => e.matches(".skip")`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.see("it is seen", `(r => r.top >= 0 && r.height >= 44)(document.activeElement.getBoundingClientRect())`)
	c.keys(kb.Enter + kb.Tab)
	c.see("past the navigation", `document.activeElement.closest("main") && document.activeElement != document.querySelector("main")`)

	// On a small screen the navigation is a drawer.
	if err := chromedp.Do(c.ctx, chromedp.EmulateViewport(390, 844)); err != nil {
		t.Fatal(err)
	}
	const opener = `document.activeElement.matches("main button.drawer")`
	reach("the drawer", `e => e.matches("main button.drawer")`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	c.see("the focus is in it, and the page behind it is out of reach", `document.activeElement.closest("aside") && document.querySelector("main").inert`)
	c.keys(kb.Escape)
	c.see("closed, and back at its button", `document.querySelector("aside").inert && !document.querySelector("main").inert && `+opener)
	c.keys(kb.Enter)
	reach("the search", `e => e.matches("aside [type=search]")`)
	c.keys("welcome")
	reach("what was said", `e => e.matches("aside section li a")`)
	c.keys(kb.Enter)
	c.see("the message, and the drawer is closed", `document.activeElement.matches("article") && document.activeElement.innerText.includes("Welcome.") && document.querySelector("aside").inert`)
	reach("the drawer", `e => e.matches("main button.drawer")`, chromedp.KeyModifiers(chromedp.ModifierShift))
	c.keys(kb.Enter)
	reach("the library", `e => e.hash == "#/library"`)
	c.keys(kb.Enter)
	heading("Library")
	if err := chromedp.Do(c.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	c.see("a page that is loaded has the focus nowhere", `document.querySelector("main nav [aria-current]") && document.activeElement == document.body`)
	c.p.stop(t)
}

// TestPageInChinese: the browser's language is the page's.
func TestPageInChinese(t *testing.T) {
	c := newChatPage(t, chromedp.Flag("accept-lang", "zh-CN"))
	if err := chromedp.Do(c.ctx, chromedp.Navigate(c.p.client.Base+"/signin#"+c.p.link)); err != nil {
		t.Fatal(err)
	}
	c.press("示例角色")
	c.messages(1)
	c.see("the language of the document", `document.documentElement.lang == "zh-CN"`)
	c.says("晚上好。")
	c.send("你好")
	c.last("complete", "晚上好。")
	c.see("the field and its buttons", `(f => f.placeholder == "写消息" && f.ariaLabel == "消息" && document.querySelector("form [aria-label='发送']"))(document.querySelector("`+compose+`"))`)
	c.pressAt("晚上好。", "继续写")
	c.see("the continued reply", `document.querySelector("article.last").dataset.status == "complete" && document.querySelector("article.last [aria-label='重新生成']")`)
	c.press("分支与存档点")
	c.see("the dialog", `document.querySelector("dialog[open]")?.innerText.includes("还没有存档点")`)
	// A sentence of the page in English that a Chinese reader sees is a text that was forgotten.
	c.see("no English words", `![...document.querySelectorAll("main button, main [aria-label], dialog button")].some(e => /\b(Send|Stop|More|Close|Edit|Regenerate|Swipe|Delete)\b/.test(e.ariaLabel + " " + e.innerText))`)
	c.p.stop(t)
}

// longChat stores a chat with messages of different lengths, "message 0. …" and so on.
func (c *chatPage) longChat(length int) (chat cli.Item) {
	c.t.Helper()
	var log strings.Builder
	log.WriteString(`{"chat_metadata":{},"user_name":"Mia","character_name":"Wren"}`)
	for i := range length {
		fmt.Fprintf(&log, "\n"+`{"name":"Mia","is_user":%t,"send_date":"2025-03-14T09:00:00.000Z","mes":"message %d. %s","extra":{}}`, i%2 == 0, i, strings.Repeat("The river is high tonight. ", i*7%40))
	}
	if err := c.p.client.Upload(c.t.Context(), "/api/v1/conversations/import", "log.jsonl", []byte(log.String()),
		map[string]string{"characterId": sampleCharacter(c.t, c.p.client)}, &chat); err != nil {
		c.t.Fatal(err)
	}
	return chat
}

// TestPageLongChat opens a chat with 10,000 messages at its end and reads it upwards
// through several pages; what is read stays where it is while older ones are put above.
func TestPageLongChat(t *testing.T) {
	c := newChatPage(t)
	const length = 10_000
	chat := c.longChat(length)
	openPage(t, c.ctx, c.p)
	c.took("opening a chat with 10,000 messages", `location.hash = "#/chats/`+chat.ID+`"`, shownAs(fmt.Sprintf("message %d.", length-1)))
	c.see("the newest message is in view", `(s => s.scrollHeight - s.scrollTop - s.clientHeight < 2 && `+shownAs(fmt.Sprintf("message %d.", length-1))+`.getBoundingClientRect().bottom <= innerHeight)(document.querySelector(".scroller"))`)
	c.see("few of them are drawn", `document.querySelectorAll("article").length < 60`)

	// The first message that is in view is followed while the page above it is loaded.
	_, err := chromedp.Run(c.ctx, chromedp.Evaluate[bool](`(() => {
		const scroller = document.querySelector(".scroller")
		const top = () => scroller.getBoundingClientRect().top
		const number = (a) => Number(/message (\d+)\./.exec(a.textContent)[1])
		const inView = () => [...scroller.querySelectorAll("article")].filter(a => a.querySelector(".text")).find(a => a.getBoundingClientRect().bottom > top() + 40)
		const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
		window.read = {pages: 0, jumps: [], first: 1e9}
		const frames = []
		let shown = performance.now()
		requestAnimationFrame(function next(now) {
			frames.push(now - shown)
			shown = now
			if (!window.read.done) return requestAnimationFrame(next)
			frames.sort((a, b) => a - b)
			window.read.frames = [0.5, 0.99].map(p => frames[Math.floor(frames.length * p)].toFixed(0) + " ms")
		})
		;(async () => {
			let up = 0
			while (window.read.pages < 6) {
				const read = inView(), id = read.dataset.id, at = read.getBoundingClientRect().top, before = scroller.scrollTop
				scroller.scrollBy(0, -200)
				const moved = Math.min(200, before)
				await frame()
				const now = document.querySelector('[data-id="' + id + '"]')
				if (!now) window.read.jumps.push("message " + id + " is gone at " + scroller.scrollTop)
				else {
					const by = now.getBoundingClientRect().top - at
					if (by < -3 || by > 203) window.read.jumps.push(by + " after " + moved + " at " + before + " with page " + window.read.pages)
				}
				const n = number(inView())
				if (n > window.read.first) window.read.jumps.push("from message " + window.read.first + " to " + n)
				window.read.first = Math.min(window.read.first, n)
				window.read.pages = Math.floor((10000 - n) / 50)
				if (++up > 5000) break
			}
			window.read.done = true
		})()
		return true
	})()`))
	if err != nil {
		t.Fatal(err)
	}
	c.see("six pages were read", `window.read.done`)
	if got := evalString(t, c.ctx, `JSON.stringify(window.read.jumps)`); got != "[]" {
		t.Fatalf("jumps: got %q, want %q", got, "[]")
	}
	c.see("the frames are counted", `window.read.frames`)
	t.Logf("a frame while it is read upwards: %s p50, %s p99", evalString(t, c.ctx, `window.read.frames[0]`), evalString(t, c.ctx, `window.read.frames[1]`))
	c.see("far up", `window.read.pages >= 6 && document.querySelectorAll("article").length < 60`)
	c.press("To the newest message")
	c.see("the newest message again", shownAs(fmt.Sprintf("message %d.", length-1)))

	// A message far up is found and opened without loading all that follows, which can still be read from there.
	find := func() {
		t.Helper()
		click(t, c.ctx, `main header [aria-haspopup=menu]`)
		c.press("Search this chat")
	}
	find()
	typeIn(t, c.ctx, `dialog [type=search]`, `"message 2500."`)
	c.see("found", `document.querySelectorAll("dialog mark").length == 1`)
	c.took("opening a message that 7,500 follow", `document.querySelector("dialog section li a").click()`, atMessage(chat.ID, "message 2500."))
	const scroll = `(s => s.scrollTo(0, s.scrollHeight))(document.querySelector(".scroller"))`
	c.see("read on", `(`+scroll+`, [...document.querySelectorAll("article .text")].some(e => Number(/message (\d+)\./.exec(e.innerText)?.[1]) >= 2600))`)
	c.see("few of them are drawn", `document.querySelectorAll("article").length < 60`)
	find()
	c.see("the words are there still", `document.querySelector("dialog mark")`)
	click(t, c.ctx, `dialog section li a`)
	c.see("the message again", atMessage(chat.ID, "message 2500."))
	c.press("To the newest message")
	c.see("the end", `!document.querySelector(".newest") && document.querySelector("article.last .text").innerText.startsWith("message 9999.")`)
	c.p.stop(t)
}

// TestPageFollowsAReply: the end of a reply that is written stays in view until the
// reader scrolls up, and again after the button to the newest message.
func TestPageFollowsAReply(t *testing.T) {
	c := openChatPage(t)
	piece := strings.Repeat("The river is high tonight.\n\n", 30)
	next, rest := c.writes("One. "+piece, "Two. "+piece, "Three. "+piece, "Four.")
	const atEnd = `(s => s.scrollHeight - s.scrollTop - s.clientHeight < 24)(document.querySelector(".scroller"))`
	c.send("Tell me all")
	for _, has := range []string{"One.", "Two."} {
		next()
		c.see(has, shownAs("One.")+`?.innerText.includes(`+jsString(has)+`) && `+atEnd)
	}
	if err := chromedp.Do(c.ctx, chromedp.MouseEvent("mouseWheel", 640, 400, func(p *input.DispatchMouseEventParams) { p.DeltaX, p.DeltaY = 1, -500 })); err != nil {
		t.Fatal(err)
	}
	c.see("scrolled up", `!`+atEnd+` && (window.top0 = document.querySelector(".scroller").scrollTop, true)`)
	c.see("the scrolling has ended", `(s => { const same = s.scrollTop == window.top0; window.top0 = s.scrollTop; return same })(document.querySelector(".scroller"))`)
	next()
	c.see("more is written, and what is read stays", shownAs("One.")+`.innerText.includes("Three.") && document.querySelector(".scroller").scrollTop == window.top0`)
	c.press("To the newest message")
	c.see("the end", atEnd)
	rest()
	c.see("followed again", `document.querySelector("article.last[data-status=complete] .text")?.innerText.trim().endsWith("Four.") && `+atEnd)

	// One's own message leads to the end from far up, where what follows is not loaded.
	chat := c.longChat(120)
	var all struct{ Items []cli.Item }
	api(t, c.p, http.MethodGet, "/conversations/"+chat.ID+"/messages?limit=200", nil, &all)
	goTo(t, c.ctx, "/chats/"+chat.ID+"?message="+all.Items[10].ID, atMessage(chat.ID, "message 10."))
	c.see("the end is not loaded", `document.querySelector(".newest")`)
	c.ask("What was that?", "A river.")
	c.see("the end", `!document.querySelector(".newest") && `+atEnd)
	goTo(t, c.ctx, "/chats/"+chat.ID+"?message="+all.Items[10].ID, atMessage(chat.ID, "message 10."))
	c.see("far up again", `document.querySelector(".newest")`)
	c.p.stop(t)
}

// TestPageSaysWhoAnswers: without a provider the page says that this is a demo.
func TestPageSaysWhoAnswers(t *testing.T) {
	ctx := browser(t)
	p := newPageInstallation(t).start(t)
	openSample(t, ctx, p)
	waitJS(t, ctx, "the demo", `document.querySelector("aside").innerText.includes("Demo")`)
	sendInPage(t, ctx, "Good evening! Where does the ferry go?")
	waitJS(t, ctx, "the reply", `document.querySelectorAll("article.assistant[data-status=complete]").length == 2`)
	if got := strings.TrimSpace(evalString(t, ctx, `document.querySelector("article.last .text").innerText`)); got == "" {
		t.Fatalf("got %q, want more", got)
	}
	p.stop(t)
}
