package main

import (
	"encoding/base64"
	"fmt"
	"image/color"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"nodest/circle"
	"nodest/internal/op"
	"nodest/store"
)

// circleAccess are the views of the circle that everybody must be able to use.
func circleAccess() []accessView {
	more := found(".posts article [aria-haspopup=menu]")
	return []accessView{
		{"circle", "/circle", nil, found(".posts article")},
		{"a comment", "/circle", []string{found(".tools [aria-expanded]")}, found("article form textarea")},
		{"forwarding a post", "/circle", []string{more, pressable("Forward to a chat")}, dialogOpen},
		{"reactions to a post", "/circle", []string{more, pressable("Reactions and problems")}, dialogOpen},
		{"relationships", "/circle/relationships", nil, found("main svg circle")},
		{"a relationship", "/circle/relationships", []string{found("main li button")}, dialogOpen},
		{"setting a relationship", "/circle/relationships", []string{pressable("Set what a member thinks of another")}, dialogOpen},
		{"posts of members", "/circle", []string{pressable("Details: Posts that members are about to write")}, dialogOpen},
		{"message box", "/circle/messages", nil, found("main .part select")},
		{"offers", "/circle/actions", nil, found("main .part p")},
		{"cost of the circle", "/circle/cost", nil, found("[role=meter]")},
		{"members of the circle", "/circle/members", nil, found("main li input")},
		{"settings of the circle", "/circle/settings", nil, found("main form")},
	}
}

// slowCircle has reactions come late from the first day on, so that none comes between.
func (m *memoryPage) slowCircle() {
	m.t.Helper()
	m.call(http.MethodPut, "/circle/settings", map[string]any{"quick": false}, nil)
}

// circlePost makes a post by the API, as the user ("") or a character.
func (m *memoryPage) circlePost(author, text string) string {
	m.t.Helper()
	var made struct{ ID string }
	body := map[string]any{"text": text}
	if author != "" {
		body["authorId"] = author
	}
	m.call(http.MethodPost, "/circle/posts", body, &made)
	return made.ID
}

// posted waits until exactly these posts are in the feed, the newest first.
func (m *memoryPage) posted(what string, texts ...string) {
	m.t.Helper()
	list := ""
	for _, text := range texts {
		list += jsString(text) + ","
	}
	m.see(what, `JSON.stringify([...document.querySelectorAll(".posts article")].map(p => p.querySelector(".text")?.innerText ?? "")) == JSON.stringify([`+list+`])`)
}

// inPost presses a button of the post with a text.
func (m *memoryPage) inPost(text, selector string) {
	m.t.Helper()
	m.see("pressing "+selector, `(b => b && !b.disabled && (b.click(), true))([...document.querySelectorAll(".posts article")].find(p => p.querySelector(".text")?.innerText == `+jsString(text)+`)?.querySelector(`+jsString(selector)+`))`)
}

// TestPageCircle uses the feed as a person would: the first member, a post with a picture
// whose draft survives a reload, a like, a comment and a reply, a favourite, a rating, a
// filter, and a deletion; a post of another device appears by itself.
func TestPageCircle(t *testing.T) {
	m := openMemoryPage(t)
	m.slowCircle()
	click(t, m.ctx, "nav [href='#/circle']")
	m.see("that nobody takes part", pageText("No character takes part in the circle yet.")+` && `+pageText("No posts yet."))
	m.press("Choose members")
	click(t, m.ctx, "main li input")
	m.see("the character has joined", `document.querySelector("main li input").checked`)
	m.press("Feed")
	m.see("it can be posted as it", `[...document.querySelectorAll("form select option")].some(o => o.value == `+jsString(m.character)+`)`)

	m.fill("main form textarea", "The first snow!")
	if err := chromedp.Do(m.ctx, chromedp.SetUploadFiles("main form input[type=file]", []string{pictureFile(t, color.RGBA{255, 0, 0, 255})}, chromedp.NodeReady)); err != nil {
		t.Fatal(err)
	}
	m.see("the picture", `document.querySelector("main form li img")?.naturalWidth > 0`)
	if err := chromedp.Do(m.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	m.see("the draft is kept", `document.querySelector("main form textarea")?.value == "The first snow!" && document.querySelector("main form li img")?.naturalWidth > 0`)
	m.press("Remove the picture face.png")
	m.see("no picture", `!document.querySelector("main form li")`)
	dropped, err := os.ReadFile(pictureFile(t, color.RGBA{0, 255, 0, 255}))
	if err != nil {
		t.Fatal(err)
	}
	m.see("dropping a picture", fmt.Sprintf(`(files => (files.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], "dropped.png", {type: "image/png"})),
		document.querySelector("main form").dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})), true))(new DataTransfer())`, base64.StdEncoding.EncodeToString(dropped)))
	m.see("the dropped picture", `document.querySelector("main form li img")?.naturalWidth > 0`)
	m.press("Remove the picture dropped.png")
	m.see("no picture again", `!document.querySelector("main form li, dialog[open]")`)
	if err := chromedp.Do(m.ctx, chromedp.SetUploadFiles("main form input[type=file]", []string{pictureFile(t, color.RGBA{255, 0, 0, 255})}, chromedp.NodeReady)); err != nil {
		t.Fatal(err)
	}
	m.see("another picture", `document.querySelector("main form li img")?.naturalWidth > 0`)
	m.press("Post")
	m.posted("the post", "The first snow!")
	m.see("its picture", `document.querySelector("article li img")?.naturalWidth > 0`)
	m.press("Open the picture face.png")
	m.see("the whole picture, with its name", `(i => i?.naturalWidth == 300 && i.alt == "face.png")(document.querySelector("dialog[open] img"))`)
	m.press("Close")
	m.see("an empty form", `document.querySelector("main form textarea").value == "" && !document.querySelector("main form li")`)

	m.circlePost(m.character, "The lamp burned all night.")
	m.posted("a post of another device", "The lamp burned all night.", "The first snow!")
	m.inPost("The lamp burned all night.", ".tools [aria-pressed]")
	m.see("the like", `document.querySelector("article [aria-pressed=true]") && document.querySelector("article [aria-label='1 like']")`)
	m.press("1 like")
	m.see("who likes it", `document.querySelector("dialog[open] li")?.innerText.includes("You")`)
	m.press("Close")
	m.inPost("The lamp burned all night.", ".tools [aria-pressed]")
	m.see("no like", `!document.querySelector("article [aria-pressed=true]")`)

	m.inPost("The lamp burned all night.", ".tools [aria-expanded]")
	m.fill("article form textarea", "I saw it!")
	m.press("Send")
	m.see("the comment", `document.querySelector(".comment .text")?.innerText == "I saw it!"`)
	m.press("Reply to you")
	m.fill("article form textarea", "From the pier.")
	m.press("Send")
	m.see("the reply in the thread", `document.querySelector("ol ol .comment .text")?.innerText == "From the pier."`)
	m.press("More for the comment by You")
	m.press("Delete")
	m.press("Delete")
	m.see("a gap with its reply", `document.querySelector(".gone")?.innerText == "This comment was deleted." && document.querySelectorAll(".comment").length == 1`)

	m.inPost("The first snow!", "[title='4 stars'] input")
	m.see("the rating", `document.querySelectorAll("article")[1].querySelectorAll("fieldset label.on").length == 4`)
	m.press("More: The first snow!")
	m.press("Add to favourites")
	m.see("the mark", `document.querySelector("article .marked")`)
	m.press("Favourites")
	m.posted("only favourites", "The first snow!")
	m.press("Favourites")
	m.set("Posts by", m.character)
	m.posted("only one author", "The lamp burned all night.")
	m.set("Posts by", "")
	m.press("More: The first snow!")
	m.press("Delete")
	m.press("Delete")
	m.posted("deleted", "The lamp burned all night.")

	m.press("More: The lamp burned all night.")
	m.press("Forward to a chat")
	m.fill("dialog textarea", "Is that true?")
	m.press("Send")
	m.press("Open the chat")
	m.see("the message in the chat", `location.hash.startsWith("#/chats/") && [...document.querySelectorAll("article")].some(a => a.innerText.includes("The lamp burned all night.") && a.innerText.includes("Is that true?"))`)
	m.p.stop(t)
}

// TestPageCircleShowsWhatWasThought shows thoughts on request, and what is planned and has
// failed, with a way to try again; a digest and open offers are seen.
func TestPageCircleShowsWhatWasThought(t *testing.T) {
	inst := newPageInstallation(t, "NODEST_OFFLINE_DELAY=0s")
	m := &memoryPage{t: t, ctx: browser(t), p: inst.start(t)}
	var made struct{ Character struct{ ID string } }
	m.call(http.MethodPost, "/characters/sample", nil, &made)
	m.character = made.Character.ID
	m.call(http.MethodPost, "/circle/characters/"+m.character+"/init", nil, nil)
	post := m.circlePost("", "Who wants to go sailing?")
	var me struct{ ID string }
	m.call(http.MethodGet, "/me", nil, &me)
	m.p.stop(t)
	db, err := store.Open(t.Context(), inst.options())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := db.Circle().Update(t.Context(), me.ID, func(tx circle.Tx) error {
		id := op.NewID()
		if err := tx.InsertComment(&circle.Comment{ID: id, PostID: post, AuthorID: m.character, AuthorName: "Wren", Thread: id, Depth: 1, Text: "I do!", Thoughts: "At last.", CreatedAt: now}); err != nil {
			return err
		}
		digest := &circle.Post{ID: op.NewID(), AuthorID: m.character, AuthorName: "Wren", Kind: "digest", Text: "It was quiet.", CreatedAt: now}
		if err := tx.InsertPost(digest); err != nil {
			return err
		}
		offer := &circle.Action{ID: op.NewID(), CharacterID: m.character, Type: "gift", Text: "A jar of honey.", State: "pending", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		if err := tx.InsertAction(offer); err != nil {
			return err
		}
		for _, t := range []circle.Turn{
			{PostID: post, CommentID: id, Reason: "own_thread"},
			{Slot: "08:30", Day: now.Format(time.DateOnly), Reason: "scheduled"},
		} {
			t.ID, t.CharacterID, t.State, t.DueAt, t.CreatedAt, t.EndedAt = op.NewID(), m.character, circle.TurnFailed, now, now, &now
			t.Error = &op.Failure{Code: "upstream_unavailable", Detail: "The provider cannot be reached."}
			if _, err := tx.InsertTurn(&t); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	m.p = inst.start(t)
	if err := chromedp.Do(m.ctx, chromedp.Navigate(m.p.client.Base+"/signin#"+m.p.link)); err != nil {
		t.Fatal(err)
	}
	click(t, m.ctx, "nav [href='#/circle']")
	m.see("the comment without thoughts", `document.querySelector(".comment .text")?.innerText == "I do!" && !`+pageText("At last."))
	m.press("More: Who wants to go sailing?")
	m.press("Show thoughts")
	m.see("the thoughts", pageText("At last."))
	m.press("More: Who wants to go sailing?")
	m.press("Hide thoughts")
	m.see("no thoughts", `!`+pageText("At last."))
	m.see("that something failed", pageText("1 reaction failed"))
	m.inPost("Who wants to go sailing?", ".open button:last-child")
	m.see("what failed", `document.querySelector("dialog [data-turn=failed]")?.innerText.includes("The provider cannot be reached.")`)
	m.press("Try again: Wren Halloway")
	m.see("it is tried again", `!document.querySelector("dialog [data-turn=failed]") && document.querySelector("dialog [data-turn]")`)
	m.press("Close")

	m.see("what was written while the user was away", pageText("While you were away"))
	m.see("a post that failed", pageText("1 post failed"))
	m.press("Details: Posts that members are about to write")
	m.press("Try again: Wren Halloway")
	m.see("it is tried again", `!document.querySelector("dialog [data-turn=failed]") && !`+pageText("1 post failed"))
	m.press("Close")
	m.see("an open offer", `document.querySelector("[href='#/circle/members']")?.innerText.trim().endsWith("1")`)
	click(t, m.ctx, "[href='#/circle/members']")
	m.see("its part", `document.querySelector("[href='#/circle/actions']")?.innerText.trim().endsWith("1")`)
	click(t, m.ctx, "[href='#/circle/actions']")
	m.see("from whom to whom", pageText("Wren Halloway to you"))
	m.press("Accept")
	m.see("no open offer", `document.querySelector("[data-action=accepted]") && document.querySelector("[href='#/circle/actions']").innerText.trim() == "Gifts and invitations"`)
	m.p.stop(t)
}

// TestPageCircleParts changes a relationship, the settings of the circle and the habits of a
// member, and scrolls to the end of the feed, on a phone.
func TestPageCircleParts(t *testing.T) {
	m := openMemoryPage(t)
	if err := chromedp.Do(m.ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)); err != nil {
		t.Fatal(err)
	}
	m.slowCircle()
	m.call(http.MethodPost, "/circle/characters/"+m.character+"/init", nil, nil)
	part := func(name, ready string) {
		t.Helper()
		goTo(t, m.ctx, "/circle/"+name, ready)
		m.see(name+" fits a phone", `document.documentElement.scrollWidth <= 390`)
	}

	strength := func(n string) {
		t.Helper()
		m.see("setting the strength", `(f => f && (f.value = `+jsString(n)+`, f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("dialog [name=strength]"))`)
	}
	part("relationships", pageText("No relationships yet."))
	m.press("Set what a member thinks of another")
	strength("15")
	m.press("Save")
	m.see("the relationship", `document.querySelectorAll("main svg circle").length == 2 && `+pageText("acquaintance · 15"))
	m.press("Edit: Wren Halloway → You")
	strength("80")
	m.set("Type", "family")
	m.press("Save")
	m.see("the change", pageText("family · 80"))

	part("settings", `document.querySelector("main form")`)
	m.see("setting the limit", `(f => f && (f.value = "50", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("[data-path=callsPerDay]"))`)
	m.call(http.MethodPut, "/circle/settings", map[string]any{"everybody": true}, nil)
	m.see("what another device has set, beside what is typed", `document.querySelector("[data-path=everybody]").checked && document.querySelector("[data-path=callsPerDay]").value == "50"`)
	m.press("Save settings")
	m.see("stored", `!document.querySelector("main .save")`)
	part("cost", pageText("0 of 50"))
	part("messages", pageText("Nothing yet."))
	part("actions", pageText("No gifts or invitations yet."))
	part("members", `document.querySelector("main li input")?.checked`)
	for _, on := range []bool{false, true} {
		click(t, m.ctx, "main li input")
		eventually(t, "the membership is stored", func() error {
			var set struct{ Circle struct{ Enabled bool } }
			m.call(http.MethodGet, "/characters/"+m.character+"/settings", nil, &set)
			if set.Circle.Enabled != on {
				return errNotYet
			}
			return nil
		})
		m.see("it is shown", fmt.Sprintf(`document.querySelector("main li input").checked == %t`, on))
	}
	for i := range 45 {
		m.circlePost("", fmt.Sprintf("Day %d.", i+1))
	}
	part("", `document.querySelector(".posts article .text")?.innerText == "Day 45."`)
	m.see("the first posts, at the end of the feed", `(s => (s.scrollTop = s.scrollHeight, document.querySelectorAll(".posts article").length == 45 && `+pageText("These are all posts.")+`))(document.querySelector(".scroller"))`)

	goTo(t, m.ctx, "/characters/"+m.character+"/settings", pageText("Takes part in the circle"))
	m.see("a time", `(f => f && (f.value = "08:30", f.dispatchEvent(new Event("input", {bubbles: true})), true))(document.querySelector("[data-path='circle.scheduledTimes']"))`)
	m.press("Add time")
	m.press("Save")
	eventually(t, "the time is stored", func() error {
		var set struct {
			Circle struct{ ScheduledTimes []string }
		}
		m.call(http.MethodGet, "/characters/"+m.character+"/settings", nil, &set)
		if !slices.Equal(set.Circle.ScheduledTimes, []string{"08:30"}) {
			return errNotYet
		}
		return nil
	})
	m.p.stop(t)
}
