package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPageYourData takes everything out and brings it in again, purges a chat, and deletes an account.
func TestPageYourData(t *testing.T) {
	ctx := browser(t)
	here := newPageInstallation(t)
	p := here.start(t)
	openSample(t, ctx, p)
	sendInPage(t, ctx, "Where is the zorbalik?")
	waitJS(t, ctx, "the reply", `document.querySelectorAll("article.assistant .text").length == 2 && !document.querySelector("article[aria-busy=true]")`)
	showSettings(t, ctx, "account")
	waitJS(t, ctx, "a link to the file", `document.querySelector("a[download][href$='/api/v1/me/export']")`)
	waitJS(t, ctx, "a link to the folder", `document.querySelector("a[download][href$='/api/v1/sillytavern/export']")`)
	file := filepath.Join(t.TempDir(), "me.zip")
	here.env = append(here.env, "NODEST_ADDR="+strings.TrimPrefix(p.client.Base, "http://"))
	here.mustRun(t, "export", "--all", "-o", file)

	waitJS(t, ctx, "the menu of the chat", `(b => b && (b.click(), true))(document.querySelector("aside [aria-label^='More: ']"))`)
	waitJS(t, ctx, "choosing to delete it", `(b => b && (b.click(), true))([...document.querySelectorAll("[role=menuitem]")].find(b => b.innerText.trim() == "Delete"))`)
	click(t, ctx, "dialog [name=purge]")
	clickIn(t, ctx, "dialog", "Delete")
	eventually(t, "the chat is gone", func() error {
		var list struct{ Items []any }
		if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/conversations", nil, &list); err != nil || len(list.Items) > 0 {
			return fmt.Errorf("%d chats, %w", len(list.Items), err)
		}
		return nil
	})

	showSettings(t, ctx, "account")
	upload := func() {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.SetUploadFiles("section:has(a[download]) input[type=file]", []string{file}, chromedp.NodeReady)); err != nil {
			t.Fatal(err)
		}
	}
	upload()
	waitJS(t, ctx, "what it would add", `/would add: 1 chat, \d+ messages/.test(document.body.innerText) && document.body.innerText.includes("stay as they are: 1 character")`)
	clickText(t, ctx, "Add")
	waitJS(t, ctx, "what it has added", `/Added: 1 chat, \d+ messages/.test(document.body.innerText)`)
	upload()
	waitJS(t, ctx, "nothing more", `document.body.innerText.includes("You have everything in this file already.")`)

	clickText(t, ctx, "Delete account…")
	fill(t, ctx, "dialog [name=username]", "somebody")
	clickIn(t, ctx, "dialog", "Delete everything")
	waitJS(t, ctx, "not with another name", `document.querySelector("dialog [role=alert]")?.innerText == "That is not the name of the account."`)
	fill(t, ctx, "dialog [name=username]", "owner")
	clickIn(t, ctx, "dialog", "Delete everything")
	waitJS(t, ctx, "not the last owner", `document.querySelector("dialog [role=alert]")?.innerText.includes("last owner")`)
	p.stop(t)
}
