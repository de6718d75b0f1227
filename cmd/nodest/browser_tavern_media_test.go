package main

import (
	"net/http"
	"strings"
	"testing"

	"nodest/internal/cli"
	"nodest/internal/tavern/taverntest"
)

// TestPageShowsTheFilesOfAnImportedMessage: pictures of an imported chat stand in their message and open in full, other files
// are links that save them, and what only has the name of a picture is a link, too.
func TestPageShowsTheFilesOfAnImportedMessage(t *testing.T) {
	c := newChatPage(t)
	dot := taverntest.Card("Dot", "", "")
	archive := taverntest.Files{
		"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "user/images/Bo/harbour.png": dot, "user/images/Bo/boat.png": dot,
		"user/images/Bo/false.png": []byte("<svg onload=alert(1)>"), "user/files/17-log.txt": []byte("Monday: rain."),
		"chats/Bo/one.jsonl": []byte(strings.Join([]string{
			`{"chat_metadata":{},"user_name":"unused","character_name":"unused"}`,
			`{"name":"Ann","is_user":true,"mes":"Look at this.","extra":{"media":[{"url":"/user/images/Bo/harbour.png","type":"image"},{"url":"/user/images/Bo/boat.png","type":"image"},{"url":"/user/images/Bo/false.png","type":"image"},{"url":"/user/images/Bo/gone.png","type":"image"}],"files":[{"url":"/user/files/17-log.txt","name":"The log.txt","size":13}]}}`,
			`{"name":"Bo","is_user":false,"mes":"A harbour!"}`,
		}, "\n") + "\n"),
	}.Zip("default-user/")
	var imp folderImport
	if err := c.p.client.Upload(t.Context(), "/api/v1/sillytavern/imports", "folder.zip", archive, nil, &imp); err != nil {
		t.Fatal(err)
	}
	importDone(t, c.p.client, imp.ID)
	var chats struct{ Items []cli.Item }
	api(t, c.p, http.MethodGet, "/conversations", nil, &chats)
	openPage(t, c.ctx, c.p)
	goTo(t, c.ctx, "/chats/"+chats.Items[0].ID, shownAs("Look at this."))
	const message = `document.querySelector("article.user")`
	c.see("two pictures", `(all => all.length == 2 && [...all].every(i => i.complete && i.naturalWidth == 64))(`+message+`.querySelectorAll("ul img"))`)
	c.see("links to the rest", `[...`+message+`.querySelectorAll("ul a")].map(a => a.download).join("|") == "false.png|The log.txt"`)
	narrow(t, c.ctx, true)
	c.see("nothing is wider than a phone", `document.documentElement.scrollWidth <= 390 && document.querySelector("main").scrollWidth <= 390`)
	narrow(t, c.ctx, false)
	c.press("Open the picture harbour.png")
	c.see("the picture in full", `(i => i?.complete && i.naturalWidth == 64 && i.alt == "harbour.png")(document.querySelector("dialog img"))`)
	c.press("Next picture")
	c.see("the next one", `document.querySelector("dialog img")?.alt == "boat.png"`)
	c.p.stop(t)
}
