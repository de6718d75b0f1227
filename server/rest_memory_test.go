package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"nodest/internal/op"
	"nodest/internal/stream/outbox"
)

// items returns the objects of a page.
func (a *restResponse) items(t testing.TB) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, item := range a.wants(t, 200)["items"].([]any) {
		list = append(list, item.(map[string]any))
	}
	return list
}

// stringsAt returns the string at a path of every object.
func stringsAt(list []map[string]any, path string) []string {
	var out []string
	for _, item := range list {
		out = append(out, stringAt(item, path))
	}
	return out
}

// newMemoriesPath creates a character and returns the path of its memories.
func (h *testServer) newMemoriesPath() (path string) {
	return "/characters/" + h.newCharacter() + "/memories"
}

// memoriesOf returns the path of the memories of a conversation's character.
func (h *testServer) memoriesOf(chat string) string {
	h.t.Helper()
	return "/characters/" + h.characterOf(chat) + "/memories"
}

// addMemory stores a memory and returns its id; more holds further JSON fields.
func (h *testServer) addMemory(path, text, more string) string {
	h.t.Helper()
	return stringAt(h.rest("POST", path, `{"text":"`+text+`"`+more+`}`).wants(h.t, 201), "id")
}

// makeSuggestion causes a suggestion, by a message that contradicts a pinned memory,
// and returns its id.
func (h *testServer) makeSuggestion(p *wsClient, chat string) string {
	h.t.Helper()
	path := h.memoriesOf(chat)
	known := stringsAt(h.rest("GET", path, "").items(h.t), "id")
	says := func(text string) {
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`","reply":false}`).wants(h.t, 200)
		h.rest("POST", "/conversations/"+chat+"/memory/extract", "").wants(h.t, 202)
	}
	says("I live in Marseille.")
	learned := waitFor(p, "a fact", func(frames []*frame) *string {
		for _, f := range frames {
			if f.Ev == "memory.written" {
				if id := field[[]any](h.t, f, "memoryIds")[0].(string); !slices.Contains(known, id) {
					return &id
				}
			}
		}
		return nil
	})
	h.rest("PATCH", path+"/"+*learned, `{"pinned":true}`).wants(h.t, 200)
	says("I live in Lyon.")
	return field[string](h.t, p.event("memory.suggestion", ""), "suggestionId")
}

// makeSummaryAs is makeSummary for a conversation of another user.
func (h *testServer) makeSummaryAs(userID, chat string) string {
	h.t.Helper()
	token := h.token
	defer func() { h.token = token }()
	h.token = h.newToken(userID)
	return h.makeSummary(chat)
}

// A client can do everything with memories over a WebSocket, and the user's other
// devices get an event for each change.
func TestManagingMemoriesOverAWebSocket(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	character := strings.Split(path, "/")[2]
	phone, _ := h.connect(map[string]any{"deviceId": "d-1"})
	other, _ := h.connect(map[string]any{"deviceId": "d-2", "want": []string{"memory"}})
	wantEvent := func(op, id string) {
		t.Helper()
		waitFor(other, op+" "+id, func(frames []*frame) *frame {
			for _, f := range frames {
				if f.Ev == "memory.written" && f.By == "d-1" && field[string](t, f, "op") == op && field[string](t, f, "characterId") == character &&
					slices.Contains(field[[]any](t, f, "memoryIds"), any(id)) {
					return f
				}
			}
			return nil
		})
	}
	of := func(id string) map[string]any { return map[string]any{"characterId": character, "memoryId": id} }
	with := func(data map[string]any, name string, value any) map[string]any {
		data[name] = value
		return data
	}

	bees := field[string](t, phone.ok("memory.create", h.newKey(), map[string]any{"characterId": character, "text": "Mia keeps bees.", "kind": "profile"}), "id")
	wantEvent("added", bees)
	sea := field[string](t, phone.ok("memory.create", h.newKey(), map[string]any{"characterId": character, "text": "Mia is afraid of the sea."}), "id")
	wantEvent("added", sea)
	if got := stringsAt(h.rest("GET", path, "").items(t), "text"); !slices.Equal(got, []string{"Mia is afraid of the sea.", "Mia keeps bees."}) {
		t.Errorf("the list: %q", got)
	}
	found := phone.ok("memory.search", "", map[string]any{"characterId": character, "q": "Who keeps bees?"})
	if first := field[[]any](t, found, "items")[0].(map[string]any); stringAt(first, "memory.id") != bees || first["score"].(float64) <= 0 || first["layer"] != "fact" {
		t.Errorf("what was found: %s", found.Data)
	}

	pinned := phone.ok("memory.pin", h.newKey(), with(of(sea), "pinned", true))
	if !field[bool](t, pinned, "pinned") || len(h.rest("GET", path+"?pinned=true", "").items(t)) != 1 {
		t.Errorf("pinned: %s", pinned.Data)
	}
	wantEvent("updated", sea)
	edited := field[string](t, phone.ok("memory.edit", h.newKey(), with(of(sea), "text", "Mia loves the sea.")), "id")
	wantEvent("updated", edited)
	if history := h.rest("GET", path+"/"+edited+"/history", "").items(t); !slices.Equal(stringsAt(history, "status"), []string{"superseded", "active"}) || history[0]["supersededBy"] != edited {
		t.Errorf("history: %v", history)
	}
	phone.ok("memory.delete", h.newKey(), of(edited))
	wantEvent("retired", edited)
	if got := stringsAt(h.rest("GET", path+"?status=retired", "").items(t), "id"); !slices.Equal(got, []string{edited}) {
		t.Errorf("retired: %v", got)
	}
	phone.ok("memory.restore", h.newKey(), of(edited))
	wantEvent("restored", edited)

	preview := phone.ok("memory.forget", h.newKey(), map[string]any{"characterId": character, "query": "bees", "dryRun": true})
	if memories := field[[]any](t, preview, "memories"); len(memories) != 1 || memories[0].(map[string]any)["id"] != bees {
		t.Fatalf("what would be forgotten: %s", preview.Data)
	}
	phone.ok("memory.forget", h.newKey(), map[string]any{"characterId": character, "ids": []string{bees}})
	wantEvent("purged", bees)
	phone.fails("not_found", "memory.restore", h.newKey(), of(bees))
	if got := stringsAt(h.rest("GET", path+"?status=any", "").items(t), "text"); slices.Contains(got, "Mia keeps bees.") {
		t.Errorf("after forgetting: %q", got)
	}
	phone.ok("memory.forget", h.newKey(), map[string]any{"characterId": character, "all": true})
	if left := h.rest("GET", path+"?status=any", "").items(t); len(left) != 0 {
		t.Errorf("after forgetting everything: %v", left)
	}
	for _, f := range other.all() {
		if f.Ev != "" && f.Ev != "skip" && outbox.ClassOf(f.Ev) != "memory" && outbox.ClassOf(f.Ev) != "" {
			t.Errorf("a client that wants only memory events got %s", f.Ev)
		}
	}
}

// A client that did not ask for memory events gets none, and no gap in seq either.
func TestMemoryEventsGoOnlyToThoseWhoWantThem(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	p, hello := h.connect(map[string]any{"want": []string{"circle"}})
	last := int64(field[float64](t, hello, "seq"))
	h.addMemory(path, "Mia keeps bees.", "")
	h.addMemory(path, "Mia keeps hens.", "")
	h.newChat()
	p.event("chat.created", "")
	for _, f := range p.all() {
		switch {
		case f.Seq == 0:
		case outbox.ClassOf(f.Ev) == "memory":
			t.Errorf("it got %s", f.Ev)
		case f.Ev == "skip":
			last = f.Seq
		case f.Seq != last+1:
			t.Errorf("%s %d follows %d", f.Ev, f.Seq, last)
		default:
			last = f.Seq
		}
	}
}

// A search of memories finds messages word for word, with their role and id;
// with mode=recall it ranks all of them.
func TestMemorySearchFindsMessages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	path := "/characters/" + character + "/memories"
	messageID, replyID := h.turn(chat, "My sister keeps bees in Marseille.", "How many hives?")
	h.turn(chat, "The weather is fine today.", "Yes.")
	search := func(query string) []map[string]any {
		t.Helper()
		return h.rest("GET", path+"?q="+url.QueryEscape("Where does the sister keep bees?")+query, "").items(t)
	}
	found := search("")
	if len(found) == 0 || found[0]["layer"] != "exchange" || stringAt(found[0], "said.messageId") != messageID || stringAt(found[0], "said.role") != "user" ||
		stringAt(found[0], "said.conversationId") != chat || found[0]["text"] != "My sister keeps bees in Marseille." {
		t.Fatalf("found: %v", found)
	}
	parts, sum := found[0]["parts"].(map[string]any), 0.0
	for _, part := range parts {
		sum += part.(float64)
	}
	if score := found[0]["score"].(float64); score <= 0 || score > 1 || sum < score-1e-6 || sum > score+1e-6 || len(found[0]["signals"].(map[string]any)) == 0 {
		t.Errorf("score %v of %v", found[0]["score"], parts)
	}
	if all := search("&mode=recall&limit=100"); len(all) != 5 { // the greeting included
		t.Errorf("recall ranks %d texts", len(all))
	}
	if got := search("&layer=fact"); len(got) != 0 {
		t.Errorf("facts: %v", got)
	}
	if got := search("&limit=1&layer=exchange"); len(got) != 1 {
		t.Errorf("one: %v", got)
	}
	if got := search("&conversation=" + h.newChatWith(character)); len(got) != 0 {
		t.Errorf("in another conversation: %v", got)
	}
	h.rest("PATCH", "/messages/"+messageID, `{"text":"My brother keeps hens in Lyon."}`).wants(t, 200)
	if got := search("&mode=recall"); slices.Contains(stringsAt(got, "text"), "My sister keeps bees in Marseille.") {
		t.Errorf("after an edit: %v", got)
	}
	h.rest("DELETE", "/messages/"+replyID, "").wants(t, 200)
	if got := search("&mode=recall"); slices.Contains(stringsAt(got, "said.messageId"), replyID) {
		t.Errorf("after a delete: %v", got)
	}
}

// newChatWith starts a conversation with a character.
func (h *testServer) newChatWith(character string) string {
	h.t.Helper()
	return stringAt(h.rest("POST", "/conversations", `{"characterId":"`+character+`"}`).wants(h.t, 201), "id")
}

// The memories recalled for a reply can be read, until they are purged.
func TestAReplyListsItsRecalledMemories(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	path := h.memoriesOf(chat)
	bees := h.addMemory(path, "Mia keeps bees in Marseille.", `,"pinned":true`)
	phone, _ := h.connect(nil)
	messageID, replyID := h.turn(chat, "What do you know of my bees?", "That they are in Marseille.")
	recalled := h.rest("GET", "/messages/"+replyID+"/memories", "").items(t)
	if !slices.Equal(stringsAt(recalled, "id"), []string{bees}) || stringAt(recalled[0], "memory.text") != "Mia keeps bees in Marseille." {
		t.Errorf("recalled: %v", recalled)
	}
	if signals := fmt.Sprint(recalled[0]["signals"]); signals != "map[profile:1]" {
		t.Errorf("a pinned fact was sent because of %s", signals)
	}
	message := h.rest("GET", "/messages/"+replyID, "").wants(t, 200)
	if fmt.Sprint(message["memoryIds"]) != "[]" || message["usedProfile"] != true {
		t.Errorf("the reply: %v", message)
	}
	for _, m := range h.rest("GET", "/conversations/"+chat+"/messages", "").items(t) {
		if used := m["usedProfile"] == true; used != (m["id"] == replyID) {
			t.Errorf("on the page, used the profile = %v: %v", used, m)
		}
	}
	if got := field[bool](t, phone.event("message.updated", ""), "message.usedProfile"); !got {
		t.Error("the event of the reply does not say that the profile was used")
	}
	if got := field[[]any](t, phone.event("gen.context", ""), "profile"); fmt.Sprint(got) != fmt.Sprint([]string{bees}) {
		t.Errorf("the context: %v", got)
	}
	if got := h.rest("GET", "/messages/"+messageID+"/memories", "").items(t); len(got) != 0 {
		t.Errorf("for the user message: %v", got)
	}
	fork := stringAt(h.rest("POST", "/conversations/"+chat+"/fork", `{}`).wants(t, 201), "id")
	for _, m := range h.rest("GET", "/conversations/"+fork+"/messages", "").items(t) {
		listed := fmt.Sprint(stringsAt(h.rest("GET", "/messages/"+stringAt(m, "id")+"/memories", "").items(t), "id"))
		if (m["usedProfile"] == true) != (listed == fmt.Sprint([]string{bees})) || (m["role"] == "assistant" && m["text"] == "That they are in Marseille." && m["usedProfile"] != true) {
			t.Errorf("in a fork, %v was written with %s", m, listed)
		}
	}
	h.rest("DELETE", path+"/"+bees+"?purge=true", "").wants(t, 204)
	if got := h.rest("GET", "/messages/"+replyID+"/memories", "").items(t); len(got) != 0 {
		t.Errorf("after a purge: %v", got)
	}
}

// An invalid request is refused with the name of the wrong field, and nothing is
// stored or changed.
func TestInvalidMemoryRequests(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	id := h.addMemory(path, "Mia keeps bees.", "")
	before := string(h.rest("GET", path+"?status=any", "").body)
	long := strings.Repeat("a", 2001)
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "", `{}`, "text"},
		{"POST", "", `{"text":" \n"}`, "text"},
		{"POST", "", `{"text":"a\u0000b"}`, "text"},
		{"POST", "", `{"text":"` + long + `"}`, "text"},
		{"POST", "", `{"text":7}`, "text"},
		{"POST", "", `{"text":"x","subject":"dog"}`, "subject"},
		{"POST", "", `{"text":"x","kind":"rumour"}`, "kind"},
		{"POST", "", `{"text":"x","importance":1.01}`, "importance"},
		{"POST", "", `{"text":"x","importance":-0.01}`, "importance"},
		{"POST", "", `{"text":"x","importance":"high"}`, "importance"},
		{"POST", "", `{"text":"x","eventTime":"yesterday"}`, "eventTime"},
		{"POST", "", `{"text":"x","pinned":1}`, "pinned"},
		{"POST", "", `{"text":"x","status":"retired"}`, "status"},
		{"POST", "", `{"text":"x","characterId":"y"}`, "characterId"},
		{"PATCH", "/" + id, `{"text":""}`, "text"},
		{"PATCH", "/" + id, `{"text":"` + long + `"}`, "text"},
		{"PATCH", "/" + id, `{"importance":2}`, "importance"},
		{"PATCH", "/" + id, `{"kind":"rumour"}`, "kind"},
		{"PATCH", "/" + id, `{"origin":"user"}`, "origin"},
		{"DELETE", "/" + id + "?purge=maybe", "", "purge"},
		{"DELETE", "/" + id + "?force=true", "", "force"},
		{"GET", "?limit=0", "", "limit"},
		{"GET", "?limit=201", "", "limit"},
		{"GET", "?q=x&limit=101", "", "limit"},
		{"GET", "?limit=ten", "", "limit"},
		{"GET", "?kind=rumour", "", "kind"},
		{"GET", "?subject=dog", "", "subject"},
		{"GET", "?status=deleted", "", "status"},
		{"GET", "?pinned=yes", "", "pinned"},
		{"GET", "?layer=dream", "", "layer"},
		{"GET", "?layer=exchange", "", "layer"},
		{"GET", "?mode=recall", "", "mode"},
		{"GET", "?q=x&mode=guess", "", "mode"},
		{"GET", "?q=x&layer=fact,dream", "", "layer"},
		{"GET", "?q=x&layer=exchange&kind=profile", "", "layer"},
		{"GET", "?q=x&status=retired", "", "status"},
		{"GET", "?q=x&cursor=y", "", "cursor"},
		{"GET", "?q=%20", "", "q"},
		{"GET", "?q=a%00b", "", "q"},
		{"GET", "?q=%ff", "", "q"},
		{"GET", "?cursor=nonsense", "", "cursor"},
		{"GET", "?colour=red", "", "colour"},
		{"GET", "?kind=profile&kind=event", "", "kind"},
		{"GET", "/suggestions?state=lost", "", "state"},
		{"GET", "/suggestions?limit=201", "", "limit"},
		{"POST", "/forget", `{}`, "query"},
		{"POST", "/forget", `{"query":"x","ids":["y"]}`, "query"},
		{"POST", "/forget", `{"query":" "}`, "query"},
		{"POST", "/forget", `{"ids":"` + id + `"}`, "ids"},
		{"POST", "/forget", `{"all":true,"dryRun":true}`, "dryRun"},
		{"POST", "/forget", `{"everything":true}`, "everything"},
		{"POST", "/bulk", `{}`, "action"},
		{"POST", "/bulk", `{"action":"purge"}`, "filter.all"},
		{"POST", "/bulk", `{"action":"purge","filter":{}}`, "filter.all"},
		{"POST", "/bulk", `{"action":"purge","filter":{"all":false}}`, "filter.all"},
		{"POST", "/bulk", `{"action":"purge","filter":{"status":"any"}}`, "filter.all"},
		{"POST", "/bulk", `{"action":"purge","filter":{"all":true,"q":"bees"}}`, "filter.all"},
		{"POST", "/bulk", `{"action":"delete","filter":{"all":true}}`, "action"},
		{"POST", "/bulk", `{"action":"purge","filter":{"kind":"rumour"}}`, "filter.kind"},
		{"POST", "/bulk", `{"action":"purge","filter":{"q":" "}}`, "filter.q"},
		{"POST", "/bulk", `{"action":"purge","filter":{"q":"a\u0000b"}}`, "filter.q"},
		{"POST", "/bulk", `{"action":"purge","filter":{"pinned":"yes"}}`, "filter.pinned"},
		{"POST", "/bulk", `{"action":"purge","filter":{"colour":"red"}}`, "filter.colour"},
		{"POST", "/suggestions/" + id, `{"decision":"perhaps"}`, "decision"},
	} {
		t.Run(c.method+" "+c.path+" "+c.body[:min(len(c.body), 60)], func(t *testing.T) {
			h.rest(c.method, path+c.path, c.body).refuses(t, 400, "invalid_field", c.field)
		})
	}
	h.rest("POST", path, `{"text":"`+strings.Repeat("a", 1<<20)+`"}`).refuses(t, 413, "too_large")
	h.rest("POST", path, `["text"]`).refuses(t, 400, "bad_request")
	h.rest("POST", path, `text=x`, "Content-Type: application/x-www-form-urlencoded").refuses(t, 415, "unsupported_media_type")
	h.rest("DELETE", path+"/"+id, "", `If-Match: "1"`).refuses(t, 400, "bad_request")
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/" + op.NewID(), `{"text":"x"}`}, {"DELETE", "/" + op.NewID(), ""}, {"DELETE", "/" + op.NewID() + "?purge=true", ""},
		{"POST", "/" + op.NewID() + "/restore", ""}, {"GET", "/" + op.NewID() + "/history", ""},
		{"POST", "/forget", `{"ids":["` + id + `","` + op.NewID() + `"]}`}, {"POST", "/suggestions/" + op.NewID(), `{"decision":"accept"}`},
		{"GET", "?conversation=" + op.NewID() + "&q=x", ""}, {"GET", "?conversation=" + op.NewID(), ""},
		{"GET", "?conversation=" + h.newChat(), ""}, // a chat of another character
		{"POST", "/bulk", `{"action":"purge","filter":{"conversation":"` + op.NewID() + `"}}`},
		{"POST", "/bulk", `{"action":"purge","filter":{"ids":["` + id + `","` + op.NewID() + `"]}}`},
	} {
		h.rest(c.method, path+c.path, c.body).refuses(t, 404, "not_found")
	}
	if after := string(h.rest("GET", path+"?status=any", "").body); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("a bad request is not a server error:\n%s", h.log.String())
	}
}

// A bulk request changes all memories that its filter selects, once, and sends one
// event.
func TestBulkChangesOfMemories(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	bees, hens := h.addMemory(path, "Mia keeps bees.", ""), h.addMemory(path, "Mia keeps hens.", "")
	h.addMemory(path, "Mia sails.", "")
	phone, _ := h.connect(nil)
	body := `{"action":"retire","filter":{"q":"keep"}`
	preview := h.rest("POST", path+"/bulk", body+`,"dryRun":true}`).wants(t, 200)
	if fmt.Sprint(preview["ids"]) != fmt.Sprint([]string{hens, bees}) || preview["dryRun"] != true {
		t.Errorf("preview: %v", preview)
	}
	shown := func() (all []any) {
		for _, m := range h.rest("GET", path+"?status=any", "").items(t) {
			all = append(all, m["shown"])
		}
		return all
	}
	if got := shown(); !slices.Equal(got, []any{true, true, true}) {
		t.Errorf("after the preview: %v", got)
	}
	for range 2 {
		if done := h.rest("POST", path+"/bulk", body+`}`, "Idempotency-Key: a").wants(t, 200); done["changed"] != 2.0 || done["matched"] != 2.0 || done["truncated"] != false {
			t.Errorf("done: %v", done)
		}
	}
	h.rest("POST", path+"/bulk", `{"action":"purge","filter":{"q":"keep"}}`, "Idempotency-Key: a").refuses(t, 422, "key_reused")
	event := phone.event("memory.written", "")
	if ids := field[[]any](t, event, "memoryIds"); field[string](t, event, "op") != "retired" || len(ids) != 2 {
		t.Errorf("event: %s", event.Data)
	}
	if got := shown(); !slices.Equal(got, []any{true, false, false}) {
		t.Errorf("what counts: %v", got)
	}
	back := h.rest("POST", path+"/bulk", `{"action":"restore","filter":{"all":true}}`).wants(t, 200)
	if back["changed"] != 2.0 || len(h.rest("GET", path, "").items(t)) != 3 {
		t.Errorf("back: %v", back)
	}
}

// The id of one character's memory does not work on another character, even of the
// same user.
func TestMemoriesBelongToOneCharacter(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path, other := h.newMemoriesPath(), h.newMemoriesPath()
	id := h.addMemory(path, "Mia keeps bees.", "")
	before := string(h.rest("GET", path+"?status=any", "").body)
	h.rest("PATCH", other+"/"+id, `{"text":"x"}`).refuses(t, 404, "not_found")
	h.rest("DELETE", other+"/"+id+"?purge=true", "").refuses(t, 404, "not_found")
	h.rest("POST", other+"/"+id+"/restore", "").refuses(t, 404, "not_found")
	h.rest("GET", other+"/"+id+"/history", "").refuses(t, 404, "not_found")
	h.rest("POST", other+"/forget", `{"ids":["`+id+`"]}`).refuses(t, 404, "not_found")
	h.rest("POST", other+"/forget", `{"all":true}`).wants(t, 200)
	if got := h.rest("GET", other+"?q=bees&mode=recall", "").items(t); len(got) != 0 {
		t.Errorf("found: %v", got)
	}
	if got := h.rest("GET", other, "").items(t); len(got) != 0 {
		t.Errorf("listed: %v", got)
	}
	if after := string(h.rest("GET", path+"?status=any", "").body); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
}

func TestMemoriesInPages(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	var want []string
	for i := range 7 {
		kind := []string{"event", "plan"}[i%2]
		id := h.addMemory(path, fmt.Sprintf("Mia went to town %d.", i), `,"kind":"`+kind+`"`)
		if kind == "event" {
			want = append([]string{id}, want...)
		}
	}
	got := stringsAt(slices.Concat(h.pages(path+"?kind=event&limit=3")...), "id")
	if !slices.Equal(got, want) {
		t.Errorf("pages %v\nwant  %v", got, want)
	}
}

// Repeating a write under the same idempotency key has no further effect.
func TestMemoryWritesAreIdempotent(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	path := h.newMemoriesPath()
	key := "Idempotency-Key: "
	first := h.rest("POST", path, `{"text":"Mia keeps bees."}`, key+"a").wants(t, 201)
	again := h.rest("POST", path, `{"text":"Mia keeps bees."}`, key+"a")
	if again.wants(t, 201)["id"] != first["id"] || again.header.Get("Idempotency-Replayed") != "true" || again.object(t)["seenCount"] != 1.0 {
		t.Errorf("again: %s", again.body)
	}
	h.rest("POST", path, `{"text":"Mia keeps hens."}`, key+"a").refuses(t, 422, "key_reused")
	same := h.rest("POST", path, `{"text":"mia keeps bees"}`, key+"b").wants(t, 201)
	if same["id"] != first["id"] || same["seenCount"] != 2.0 || same["text"] != "Mia keeps bees." {
		t.Errorf("the same words: %v", same)
	}
	id := first["id"].(string)
	edit := h.rest("PATCH", path+"/"+id, `{"text":"Mia keeps hens."}`, key+"c").wants(t, 200)
	if h.rest("PATCH", path+"/"+id, `{"text":"Mia keeps hens."}`, key+"c").wants(t, 200)["id"] != edit["id"] {
		t.Error("an edit is done twice")
	}
	for range 2 {
		h.rest("DELETE", path+"/"+id+"?purge=true", "", key+"d").wants(t, 204)
	}
	h.rest("DELETE", path+"/"+id, "", key+"d").refuses(t, 422, "key_reused")
	file := []byte(`{"text":"Mia sails."}`)
	for range 2 {
		if got := h.upload("POST", path+"/import", "a.jsonl", file, key+"e").wants(t, 200)["memories"].(map[string]any); got["created"] != 1.0 {
			t.Errorf("import: %v", got)
		}
	}
	h.upload("POST", path+"/import", "a.jsonl", []byte(`{"text":"Mia swims."}`), key+"e").refuses(t, 422, "key_reused")
}

// Extraction can be requested at once, and its job is listed.
func TestMemoryJobsAreListed(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	chat := h.newChat()
	character := h.characterOf(chat)
	phone, _ := h.connect(nil)
	h.turn(chat, "My name is Mia and I live in Marseille.", "A good town.")
	for range 2 {
		if got := h.rest("POST", "/conversations/"+chat+"/memory/extract", "", "Idempotency-Key: now").wants(t, 202); got["queued"] != true {
			t.Errorf("extract: %v", got)
		}
	}
	written := phone.event("memory.written", "")
	if written.By != "server" || field[string](t, written, "op") != "added" {
		t.Errorf("written: %+v %s", written, written.Data)
	}
	facts := h.rest("GET", "/characters/"+character+"/memories", "").items(t)
	if len(facts) == 0 || facts[0]["origin"] != "rule" || stringAt(facts[0], "conversationId") != chat || len(facts[0]["evidence"].([]any)) == 0 {
		t.Errorf("facts: %v", facts)
	}
	var kinds []string
	for _, job := range h.rest("GET", "/characters/"+character+"/memory/jobs", "").items(t) {
		kinds = append(kinds, stringAt(job, "kind"))
		if job["kind"] == "memory.extract" && job["subject"] != chat {
			t.Errorf("job: %v", job)
		}
	}
	if !slices.Contains(kinds, "memory.extract") {
		t.Errorf("jobs: %v", kinds)
	}
	if got := h.rest("GET", "/characters/"+character+"/memory/jobs?limit=1", "").items(t); len(got) != 1 {
		t.Errorf("one job: %v", got)
	}
	h.rest("GET", "/characters/"+character+"/memory/jobs?limit=0", "").refuses(t, 400, "invalid_field", "limit")
	h.rest("GET", "/characters/"+character+"/memory/jobs?cursor=x", "").refuses(t, 400, "invalid_field", "cursor")
}

// A pinned memory changes only after the user has accepted a suggestion.
func TestAPinnedMemoryNeedsTheUsersDecision(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	for _, c := range []struct{ decision, state, text string }{
		{"accept", "accepted", "Lyon"}, {"reject", "rejected", "Marseille"},
	} {
		t.Run(c.decision, func(t *testing.T) {
			chat := h.newChat()
			p, _ := h.connect(nil)
			path := h.memoriesOf(chat)
			id := h.makeSuggestion(p, chat)
			open := h.rest("GET", path+"/suggestions", "").items(t)
			if len(open) != 1 || open[0]["id"] != id || open[0]["event"] != "UPDATE" || open[0]["state"] != "open" || len(open[0]["evidence"].([]any)) == 0 {
				t.Fatalf("suggestions: %v", open)
			}
			if got := h.rest("GET", path, "").items(t); len(got) != 1 || !strings.Contains(stringAt(got[0], "text"), "Marseille") {
				t.Errorf("before the decision: %v", got)
			}
			for range 2 {
				if got := h.rest("POST", path+"/suggestions/"+id, `{"decision":"`+c.decision+`"}`, "Idempotency-Key: "+c.decision).wants(t, 200); got["state"] != c.state {
					t.Errorf("decided: %v", got)
				}
			}
			other := map[string]string{"accept": "reject", "reject": "accept"}[c.decision]
			h.rest("POST", path+"/suggestions/"+id, `{"decision":"`+other+`"}`).refuses(t, 409, "conflict")
			if got := h.rest("GET", path, "").items(t); len(got) != 1 || !strings.Contains(stringAt(got[0], "text"), c.text) || got[0]["pinned"] != true {
				t.Errorf("after it: %v", got)
			}
			if got := h.rest("GET", path+"/suggestions", "").items(t); len(got) != 0 {
				t.Errorf("still open: %v", got)
			}
			if got := h.rest("GET", path+"/suggestions?state="+c.state, "").items(t); len(got) != 1 {
				t.Errorf("%s: %v", c.state, got)
			}
		})
	}
}
