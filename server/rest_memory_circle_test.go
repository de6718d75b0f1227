package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
)

// happened lets a character remember something of yesterday's circle.
func (h *testServer) happened(character, text string) {
	h.t.Helper()
	h.must(h.db.Update(context.Background(), h.user.ID, func(tx nodest.Tx) error {
		return memory.AddHappenings(tx.Memory, memory.Happening{CharacterID: character, Text: text, At: time.Now().AddDate(0, 0, -1), Source: op.NewID()})
	}))
}

// A private chat recalls a comment of yesterday, with its day, until the user switches that off.
func TestAChatRecallsTheCircle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	const comment = `User commented in the circle on Mia's post "The lantern burns again": "I painted its roof red"`
	h.happened(character, comment)
	ask := func() string {
		h.turn(chat, "Which roof did I paint red?", "Mine.")
		return h.model.last()
	}
	if sent, want := ask(), comment+time.Now().UTC().AddDate(0, 0, -1).Format(" (2006-01-02)"); !strings.Contains(sent, want) {
		t.Errorf("the model was sent %q, without %q", sent, want)
	}
	listed := h.rest("GET", "/characters/"+character+"/memories?kind=event", "").items(t)
	if len(listed) != 1 || listed[0]["origin"] != "circle" || listed[0]["shown"] != true || stringAt(listed[0], "source") == "" {
		t.Errorf("the list has %v", listed)
	}
	h.rest("PUT", "/characters/"+character+"/settings", `{"retrieval":{"includeCircle":false}}`).wants(t, 200)
	if sent := ask(); strings.Contains(sent, "circle") {
		t.Errorf("switched off, the model was sent %q", sent)
	}
}

func TestTheUserMarksWhatMayBeToldInTheCircle(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	character := strings.Split(path, "/")[2]
	shared := func(path, text string) any {
		t.Helper()
		for _, m := range h.rest("GET", path, "").items(t) {
			if m["text"] == text {
				return m["shareable"]
			}
		}
		return "no such memory"
	}
	h.addMemory(path, "Mia keeps bees.", `,"shareable":true`)
	sea := h.addMemory(path, "Mia fears the sea.", "")
	if bees, sea := shared(path, "Mia keeps bees."), shared(path, "Mia fears the sea."); bees != true || sea != false {
		t.Errorf("as created: %v, %v", bees, sea)
	}
	h.rest("PATCH", path+"/"+sea, `{"shareable":true}`).wants(t, 200)
	if got := shared(path, "Mia fears the sea."); got != true {
		t.Errorf("after a PATCH: %v", got)
	}
	phone, _ := h.connect(nil)
	phone.ok("memory.edit", h.newKey(), map[string]any{"characterId": character, "memoryId": sea, "shareable": false})
	if got := shared(path, "Mia fears the sea."); got != false {
		t.Errorf("after memory.edit: %v", got)
	}
	h.rest("PATCH", path+"/"+sea, `{"shareable":"yes"}`).wants(t, 400)

	h.happened(character, "Mia posted in the circle: \"Rain\"")
	file := h.rest("GET", path+"/export", "")
	other := h.newMemoriesPath()
	h.rest("POST", other+"/import", string(file.body), "Content-Type: application/x-ndjson").wants(t, 200)
	if got := shared(other, "Mia keeps bees."); got != true {
		t.Errorf("imported: %v", got)
	}
	for _, m := range h.rest("GET", other+"?kind=event", "").items(t) {
		if m["origin"] != "circle" || stringAt(m, "source") == "" {
			t.Errorf("imported: %v", m)
		}
	}
	wrong := h.rest("POST", other+"/import", `{"text":"x","origin":"circle","source":"post\u0000"}`, "Content-Type: application/x-ndjson")
	if wrong.status != 400 && wrong.status != 422 {
		t.Errorf("a wrong source: %d %s", wrong.status, wrong.body)
	}
}
