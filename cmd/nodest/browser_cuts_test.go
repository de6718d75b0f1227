package main

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// database opens the server's database beside it.
func (c *chatPage) database() *sql.DB {
	c.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(c.inst.dir, "data", "nodest.db")+"?_busy_timeout=10000")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = db.Close() })
	return db
}

// said waits until a text stands in the page exactly n times as a message.
func (c *chatPage) said(text string, n int) {
	c.t.Helper()
	c.see(fmt.Sprintf("%q, %d times", text, n), fmt.Sprintf(`[...document.querySelectorAll("article .text")].filter(e => e.innerText.trim() == %s).length == %d`, jsString(text), n))
}

const unsent = `document.querySelectorAll("article[data-status=unsent]").length`

// TestPageSignInEnds: messages that wait while the sign-in ends are delivered once after
// the next one, without a reload; a draft is kept too.
func TestPageSignInEnds(t *testing.T) {
	c := openChatPage(t)
	c.see("the page is marked", `window.loadedOnce = true`)
	c.kill()
	c.send("Are you there?")
	c.send("I am waiting.")
	c.see("they wait", unsent+` == 2`)
	c.fill(compose, "not sent")
	_, err := c.database().ExecContext(t.Context(), "DELETE FROM tokens WHERE is_session")
	if err != nil {
		t.Fatal(err)
	}

	c.restart()
	c.see("signing in is asked for", `document.querySelector("[name=secret]")`)
	c.says("I am here.")
	c.says("And I.")
	c.fill("[name=secret]", c.p.client.Base+"/signin#"+c.p.link)
	c.press("Sign in with link or token")
	c.last("complete", "And I.")
	c.see("without a reload", `window.loadedOnce && document.querySelector("`+compose+`").value == "not sent"`)
	for _, text := range []string{"Are you there?", "I am waiting.", "I am here.", "And I."} {
		c.said(text, 1)
	}
	c.messages(5)
	c.see("nothing waits", unsent+` == 0 && !Object.keys(localStorage).some(k => k.startsWith("nodest.unsent"))`)
	c.reload()
	c.last("complete", "And I.")
	c.messages(5)
	c.p.stop(t)
}

// TestPageAnotherSignsIn: a message that waits while somebody else signs in with the browser
// is not sent in that name, but after the next sign-in of its user.
func TestPageAnotherSignsIn(t *testing.T) {
	c := openChatPage(t)
	api(t, c.p, http.MethodPost, "/users", map[string]any{"username": "mia", "password": "a long enough password"}, nil)
	c.see("mia signs in", `(window.mia ??= fetch("/api/v1/auth/login", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({username: "mia", password: "a long enough password"})}).then(r => window.status = r.status), window.status == 200)`)
	c.kill()
	c.send("Are you there?")
	c.see("it waits", unsent+` == 1`)
	c.restart()
	c.see("signing in is asked for", `document.querySelector("[name=secret]")`)
	c.says("I am here.")
	c.fill("[name=secret]", c.p.client.Base+"/signin#"+c.p.link)
	c.press("Sign in with link or token")
	c.last("complete", "I am here.")
	c.said("Are you there?", 1)
	c.messages(3)
	c.see("nothing waits", unsent+` == 0`)
	c.p.stop(t)
}

// TestPageUnsentAfterAReload: a message that waits is there after a reload, and delivered
// once.
func TestPageUnsentAfterAReload(t *testing.T) {
	c := openChatPage(t)
	c.kill()
	c.send("Are you there?")
	c.see("it waits", unsent+` == 1`)
	c.says("I am here.")
	c.p = c.inst.start(t)
	c.reload()
	c.last("complete", "I am here.")
	c.said("Are you there?", 1)
	c.messages(3)
	c.see("nothing waits", unsent+` == 0`)
	c.p.stop(t)
}

// TestPageTwoTabs: two tabs of a browser show what waits in either, and deliver each
// message once, also one whose tab was closed meanwhile.
func TestPageTwoTabs(t *testing.T) {
	c := openChatPage(t)
	ctx, closeTab := chromedp.NewContext(c.ctx)
	t.Cleanup(closeTab)
	other := &chatPage{t: t, ctx: ctx, inst: c.inst, p: c.p, replies: c.replies}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	watchConsole(t, ctx)
	if err := chromedp.Do(ctx, chromedp.Navigate(evalString(t, c.ctx, "location.href"))); err != nil {
		t.Fatal(err)
	}
	other.messages(1)
	c.kill()
	other.see("the lost connection is shown", `document.querySelector("main [role=status]")?.innerText.includes("No connection")`)
	c.send("From the first tab")
	other.see("it waits in the other too", unsent+` == 1`)
	other.send("From the second tab")
	c.see("likewise", unsent+` == 2`)

	c.says("One.")
	c.says("Two.")
	c.restart()
	other.see("connecting at once", `document.dispatchEvent(new Event("visibilitychange"))`)
	for _, page := range []*chatPage{c, other} {
		page.messages(5)
		page.see("nothing waits", unsent+` == 0`)
		for _, text := range []string{"From the first tab", "From the second tab", "One.", "Two."} {
			page.said(text, 1)
		}
	}

	c.kill()
	other.see("the lost connection is shown", `document.querySelector("main [role=status]")?.innerText.includes("No connection")`)
	other.send("Of a closed tab")
	c.see("it waits", unsent+` == 1`)
	closeTab()
	c.says("Three.")
	c.restart()
	c.last("complete", "Three.")
	c.said("Of a closed tab", 1)
	c.messages(7)
	c.reload()
	c.messages(7)
	c.p.stop(t)
}

// TestPageServerIsKilledDuringARegeneration: the reply before it is in reach while the
// new one is written and afterwards; what was shown of the new one is kept, whether the
// server has stored some of it or nothing.
func TestPageServerIsKilledDuringARegeneration(t *testing.T) {
	c := openChatPage(t)
	c.ask("How is the river?", "It is high.")
	next, _ := c.writes("It is ", "low.")
	c.press("Regenerate")
	next()
	c.last("streaming", "It is")
	c.press("Previous swipe")
	c.last("complete", "It is high.")
	c.press("Next swipe")
	c.last("streaming", "It is")
	release := c.holdWrites()
	c.kill()
	release()
	c.press("Previous swipe")
	c.last("complete", "It is high.")
	c.restart()
	c.see("it has ended", `document.querySelector("article.last [aria-label='New swipe']")`)
	c.last("complete", "It is high.")
	c.see("what was written is there", `(d => d?.innerText.startsWith("The new reply was interrupted") && d.textContent.includes("It is"))(document.querySelector("article.last details"))`)

	stored := strings.Repeat("The river is low. ", 60)
	next, _ = c.writes(stored, "Very low.", "End")
	c.press("Regenerate")
	next()
	db := c.database()
	eventually(t, "some of it is stored", func() error {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM generations WHERE is_open AND text LIKE '%low.%'").Scan(&n); err != nil || n == 1 {
			return err
		}
		return fmt.Errorf("%d generations", n)
	})
	release = c.holdWrites()
	next()
	c.last("streaming", stored+"Very low.")
	c.kill()
	release()
	c.restart()
	c.last("complete", "It is high.")
	c.see("it says where the rest is", `document.querySelector("article.last").innerText.includes("What was written of it is a swipe.")`)
	c.press("Show it")
	c.last("interrupted", stored+"Very low.")
	c.press("Keep all of it")
	c.see("kept", `!document.querySelector("article.last").innerText.includes("not stored")`)
	c.reload()
	c.see("all of it", shownAs("The river is low.")+`?.innerText.trim() == `+jsString(stored+"Very low."))
	c.press("Previous swipe")
	c.last("complete", "It is high.")
	c.ask("And now?", "Still high.")
	c.messages(5)
	c.p.stop(t)
}

// TestPageStopsARegeneration: what was written is a swipe, and so is the reply before it.
func TestPageStopsARegeneration(t *testing.T) {
	c := openChatPage(t)
	c.ask("How is the river?", "It is high.")
	next, _ := c.writes("It is ", "low.")
	c.press("Regenerate")
	next()
	c.last("streaming", "It is")
	c.press("Stop")
	c.last("cancelled", "It is")
	c.press("Previous swipe")
	c.last("complete", "It is high.")
	c.reload()
	c.last("complete", "It is high.")
	c.press("Next swipe")
	c.see("what was written", shownAs("It is")+`?.innerText.trim() == "It is"`)
	c.p.stop(t)
}

// cutting is a proxy whose connections can be cut.
type cutting struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	down     bool
	open     map[net.Conn]bool
}

func newCutting(t *testing.T, to string) *cutting {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &cutting{listener: l, to: to, open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.forward(t, from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut(true)
		running.Wait()
	})
	return p
}

// cut ends all connections and takes no more of them, or takes them again.
func (p *cutting) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for c := range p.open {
			_ = c.Close()
		}
	}
}

// keep returns whether a connection may be used.
func (p *cutting) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		_ = c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *cutting) forward(t *testing.T, from net.Conn) {
	defer from.Close()
	if !p.keep(from) {
		return
	}
	to, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	if !p.keep(to) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, from)
	delete(p.open, to)
}

// TestPageConnectionIsCut cuts the connection in the middle of a reply and of a
// regeneration: both are shown whole once it is back, and a message of the meantime is
// answered once.
func TestPageConnectionIsCut(t *testing.T) {
	c := newChatPage(t)
	wire := newCutting(t, strings.TrimPrefix(c.p.client.Base, "http://"))
	if err := chromedp.Do(c.ctx, chromedp.Navigate("http://"+wire.listener.Addr().String()+"/signin#"+c.p.link)); err != nil {
		t.Fatal(err)
	}
	clickText(t, c.ctx, "Sample character")
	c.messages(1)
	lost := func() {
		t.Helper()
		wire.cut(true)
		c.see("the lost connection is shown", `document.querySelector("main [role=status]")?.innerText.includes("No connection")`)
	}
	back := func() {
		t.Helper()
		wire.cut(false)
		c.see("connecting at once", `document.dispatchEvent(new Event("visibilitychange"))`)
	}

	next, rest := c.writes("The river ", "is ", "high.")
	c.send("How is the river?")
	next()
	c.last("streaming", "The river")
	lost()
	c.see("what came is shown", shownAs("The river"))
	c.send("Are you there?")
	c.see("the message waits", unsent+` == 1`)
	next()
	c.says("I am here.")
	back()
	c.see("more of it", shownAs("The river is"))
	rest()
	c.last("complete", "I am here.")
	c.said("The river is high.", 1)
	c.said("Are you there?", 1)
	c.messages(5)

	next, rest = c.writes("I ", "was ", "asleep.")
	c.press("Regenerate")
	next()
	c.last("streaming", "I")
	lost()
	c.press("Previous swipe")
	c.last("complete", "I am here.")
	c.press("Next swipe")
	rest()
	back()
	c.last("complete", "I was asleep.")
	c.press("Previous swipe")
	c.last("complete", "I am here.")
	c.messages(5)
	c.reload()
	c.last("complete", "I am here.")
	c.messages(5)
	c.p.stop(t)
}
