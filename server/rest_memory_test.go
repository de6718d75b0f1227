package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"nodest/op"
	"nodest/stream/outbox"
)

// items are the objects of a page.
func (a *restAnswer) items(t testing.TB) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, item := range a.wants(t, 200)["items"].([]any) {
		list = append(list, item.(map[string]any))
	}
	return list
}

// each is one member of all objects.
func each(list []map[string]any, path string) []string {
	var out []string
	for _, item := range list {
		out = append(out, member(item, path))
	}
	return out
}

// remembered is where a character's memories are, of one that is made for it.
func (h *house) remembered() (path string) { return "/characters/" + h.character() + "/memories" }

// tell stores a memory and returns its id; more is members besides the text.
func (h *house) tell(path, text, more string) string {
	h.t.Helper()
	return member(h.rest("POST", path, `{"text":"`+text+`"`+more+`}`).wants(h.t, 201), "id")
}

// suggests brings about a suggestion: the user says something else than what is
// pinned. It returns its id.
func (h *house) suggests(p *phone, chat string) string {
	h.t.Helper()
	path := "/characters/" + member(h.rest("GET", "/conversations/"+chat, "").wants(h.t, 200), "characterId") + "/memories"
	known := each(h.rest("GET", path, "").items(h.t), "id")
	says := func(text string) {
		h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"`+text+`","reply":false}`).wants(h.t, 200)
		h.rest("POST", "/conversations/"+chat+"/memory/extract", "").wants(h.t, 202)
	}
	says("I live in Marseille.")
	learned := wait(p, "a fact", func(frames []*frame) *string {
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

// summaryOf is summary for a conversation of a user.
func (h *house) summaryOf(userID, chat string) string {
	h.t.Helper()
	token := h.token
	defer func() { h.token = token }()
	h.token = h.newToken(userID)
	return h.summary(chat)
}

// A phone has all rights over what is remembered, and hears of everything that
// another device does to it.
func TestAPhoneAndWhatIsRemembered(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
	character := strings.Split(path, "/")[2]
	phone, _ := h.phone(map[string]any{"deviceId": "d-1"})
	other, _ := h.phone(map[string]any{"deviceId": "d-2", "want": []string{"memory"}})
	hears := func(op, id string) {
		t.Helper()
		wait(other, op+" "+id, func(frames []*frame) *frame {
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

	bees := field[string](t, phone.ok("memory.create", h.key(), map[string]any{"characterId": character, "text": "Mia keeps bees.", "kind": "profile"}), "id")
	hears("added", bees)
	sea := field[string](t, phone.ok("memory.create", h.key(), map[string]any{"characterId": character, "text": "Mia is afraid of the sea."}), "id")
	hears("added", sea)
	if got := each(h.rest("GET", path, "").items(t), "text"); !slices.Equal(got, []string{"Mia is afraid of the sea.", "Mia keeps bees."}) {
		t.Errorf("the list: %q", got)
	}
	found := phone.ok("memory.search", "", map[string]any{"characterId": character, "q": "Who keeps bees?"})
	if first := field[[]any](t, found, "items")[0].(map[string]any); member(first, "memory.id") != bees || first["score"].(float64) <= 0 || first["layer"] != "fact" {
		t.Errorf("what was found: %s", found.Data)
	}

	pinned := phone.ok("memory.pin", h.key(), with(of(sea), "pinned", true))
	if !field[bool](t, pinned, "pinned") || len(h.rest("GET", path+"?pinned=true", "").items(t)) != 1 {
		t.Errorf("pinned: %s", pinned.Data)
	}
	hears("updated", sea)
	edited := field[string](t, phone.ok("memory.edit", h.key(), with(of(sea), "text", "Mia loves the sea.")), "id")
	hears("updated", edited)
	if history := h.rest("GET", path+"/"+edited+"/history", "").items(t); !slices.Equal(each(history, "status"), []string{"superseded", "active"}) || history[0]["supersededBy"] != edited {
		t.Errorf("history: %v", history)
	}
	phone.ok("memory.delete", h.key(), of(edited))
	hears("retired", edited)
	if got := each(h.rest("GET", path+"?status=retired", "").items(t), "id"); !slices.Equal(got, []string{edited}) {
		t.Errorf("retired: %v", got)
	}
	phone.ok("memory.restore", h.key(), of(edited))
	hears("restored", edited)

	preview := phone.ok("memory.forget", h.key(), map[string]any{"characterId": character, "query": "bees", "dryRun": true})
	if memories := field[[]any](t, preview, "memories"); len(memories) != 1 || memories[0].(map[string]any)["id"] != bees {
		t.Fatalf("what would be forgotten: %s", preview.Data)
	}
	phone.ok("memory.forget", h.key(), map[string]any{"characterId": character, "ids": []string{bees}})
	hears("purged", bees)
	phone.fails("not_found", "memory.restore", h.key(), of(bees))
	if got := each(h.rest("GET", path+"?status=any", "").items(t), "text"); slices.Contains(got, "Mia keeps bees.") {
		t.Errorf("after forgetting: %q", got)
	}
	phone.ok("memory.forget", h.key(), map[string]any{"characterId": character, "all": true})
	if left := h.rest("GET", path+"?status=any", "").items(t); len(left) != 0 {
		t.Errorf("after forgetting everything: %v", left)
	}
	for _, f := range other.all() {
		if f.Ev != "" && f.Ev != "skip" && outbox.ClassOf(f.Ev) != "memory" && outbox.ClassOf(f.Ev) != "" {
			t.Errorf("a phone that wants memory hears %s", f.Ev)
		}
	}
}

// Whoever does not want events of memories gets none, and no hole either.
func TestMemoriesAreToldToThoseWhoWant(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
	p, hello := h.phone(map[string]any{"want": []string{"circle"}})
	last := int64(field[float64](t, hello, "seq"))
	h.tell(path, "Mia keeps bees.", "")
	h.tell(path, "Mia keeps hens.", "")
	h.chat()
	p.event("chat.created", "")
	for _, f := range p.all() {
		switch {
		case f.Seq == 0:
		case outbox.ClassOf(f.Ev) == "memory":
			t.Errorf("it hears %s", f.Ev)
		case f.Ev == "skip":
			last = f.Seq
		case f.Seq != last+1:
			t.Errorf("%s %d follows %d", f.Ev, f.Seq, last)
		default:
			last = f.Seq
		}
	}
}

// What was said is found word for word, with who said it; with mode=recall all of
// it is ranked.
func TestWhatWasSaidIsFound(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	character := member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId")
	path := "/characters/" + character + "/memories"
	said, replied := h.says(chat, "My sister keeps bees in Marseille.", "How many hives?")
	h.says(chat, "The weather is fine today.", "Yes.")
	search := func(query string) []map[string]any {
		t.Helper()
		return h.rest("GET", path+"?q="+url.QueryEscape("Where does the sister keep bees?")+query, "").items(t)
	}
	found := search("")
	if len(found) == 0 || found[0]["layer"] != "exchange" || member(found[0], "said.messageId") != said || member(found[0], "said.role") != "user" ||
		member(found[0], "said.conversationId") != chat || found[0]["text"] != "My sister keeps bees in Marseille." {
		t.Fatalf("found: %v", found)
	}
	parts, sum := found[0]["parts"].(map[string]any), 0.0
	for _, part := range parts {
		sum += part.(float64)
	}
	if score := found[0]["score"].(float64); score <= 0 || score > 1 || sum < score-1e-6 || sum > score+1e-6 || len(found[0]["signals"].(map[string]any)) == 0 {
		t.Errorf("score %v of %v", found[0]["score"], parts)
	}
	if all := search("&mode=recall&limit=100"); len(all) != 5 { // with the greeting
		t.Errorf("recall ranks %d texts", len(all))
	}
	if got := search("&layer=fact"); len(got) != 0 {
		t.Errorf("facts: %v", got)
	}
	if got := search("&limit=1&layer=exchange"); len(got) != 1 {
		t.Errorf("one: %v", got)
	}
	if got := search("&conversation=" + h.chatWith(character)); len(got) != 0 {
		t.Errorf("in another conversation: %v", got)
	}
	h.rest("PATCH", "/messages/"+said, `{"text":"My brother keeps hens in Lyon."}`).wants(t, 200)
	if got := search("&mode=recall"); slices.Contains(each(got, "text"), "My sister keeps bees in Marseille.") {
		t.Errorf("after an edit: %v", got)
	}
	h.rest("DELETE", "/messages/"+replied, "").wants(t, 200)
	if got := search("&mode=recall"); slices.Contains(each(got, "said.messageId"), replied) {
		t.Errorf("after a delete: %v", got)
	}
}

// chatWith begins a conversation with a character.
func (h *house) chatWith(character string) string {
	h.t.Helper()
	return member(h.rest("POST", "/conversations", `{"characterId":"`+character+`"}`).wants(h.t, 201), "id")
}

// A reply tells what was recalled for it.
func TestWhyAReplyKnowsSomething(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	path := "/characters/" + member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId") + "/memories"
	bees := h.tell(path, "Mia keeps bees in Marseille.", `,"pinned":true`)
	phone, _ := h.phone(nil)
	said, replied := h.says(chat, "What do you know of my bees?", "That they are in Marseille.")
	recalled := h.rest("GET", "/messages/"+replied+"/memories", "").items(t)
	if !slices.Equal(each(recalled, "id"), []string{bees}) || member(recalled[0], "memory.text") != "Mia keeps bees in Marseille." {
		t.Errorf("recalled: %v", recalled)
	}
	if signals := fmt.Sprint(recalled[0]["signals"]); signals != "map[profile:1]" {
		t.Errorf("a pinned fact was sent because of %s", signals)
	}
	message := h.rest("GET", "/messages/"+replied, "").wants(t, 200)
	if fmt.Sprint(message["memoryIds"]) != "[]" {
		t.Errorf("the reply: %v", message)
	}
	if got := field[[]any](t, phone.event("gen.context", ""), "profile"); fmt.Sprint(got) != fmt.Sprint([]string{bees}) {
		t.Errorf("the context: %v", got)
	}
	if got := h.rest("GET", "/messages/"+said+"/memories", "").items(t); len(got) != 0 {
		t.Errorf("for what the user said: %v", got)
	}
	h.rest("DELETE", path+"/"+bees+"?purge=true", "").wants(t, 204)
	if got := h.rest("GET", "/messages/"+replied+"/memories", "").items(t); len(got) != 0 {
		t.Errorf("after a purge: %v", got)
	}
}

// What is wrong is named, and nothing is stored or changed.
func TestMemoriesThatCannotBe(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
	id := h.tell(path, "Mia keeps bees.", "")
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
	h.rest("PATCH", path+"/"+id, `{"pinned":true}`, `If-Match: "1"`).refuses(t, 400, "bad_request")
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/" + op.NewID(), `{"text":"x"}`}, {"DELETE", "/" + op.NewID(), ""}, {"DELETE", "/" + op.NewID() + "?purge=true", ""},
		{"POST", "/" + op.NewID() + "/restore", ""}, {"GET", "/" + op.NewID() + "/history", ""},
		{"POST", "/forget", `{"ids":["` + id + `","` + op.NewID() + `"]}`}, {"POST", "/suggestions/" + op.NewID(), `{"decision":"accept"}`},
		{"GET", "?conversation=" + op.NewID() + "&q=x", ""}, {"GET", "?conversation=" + op.NewID(), ""},
		{"GET", "?conversation=" + h.chat(), ""}, // with another character
		{"POST", "/bulk", `{"action":"purge","filter":{"conversation":"` + op.NewID() + `"}}`},
		{"POST", "/bulk", `{"action":"purge","filter":{"ids":["` + id + `","` + op.NewID() + `"]}}`},
	} {
		h.rest(c.method, path+c.path, c.body).refuses(t, 404, "not_found")
	}
	if after := string(h.rest("GET", path+"?status=any", "").body); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("a bad request is no error of ours:\n%s", h.log.String())
	}
}

// One request does the same to all that a filter selects, once, and tells it.
func TestManyMemoriesAtOnce(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
	bees, hens := h.tell(path, "Mia keeps bees.", ""), h.tell(path, "Mia keeps hens.", "")
	h.tell(path, "Mia sails.", "")
	phone, _ := h.phone(nil)
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
	told := phone.event("memory.written", "")
	if ids := field[[]any](t, told, "memoryIds"); field[string](t, told, "op") != "retired" || len(ids) != 2 {
		t.Errorf("told: %s", told.Data)
	}
	if got := shown(); !slices.Equal(got, []any{true, false, false}) {
		t.Errorf("what counts: %v", got)
	}
	back := h.rest("POST", path+"/bulk", `{"action":"restore","filter":{"all":true}}`).wants(t, 200)
	if back["changed"] != 2.0 || len(h.rest("GET", path, "").items(t)) != 3 {
		t.Errorf("back: %v", back)
	}
}

// One's own other character is another memory: an id of it opens nothing.
func TestMemoriesBelongToOneCharacter(t *testing.T) {
	h := build(t, nil)
	path, other := h.remembered(), h.remembered()
	id := h.tell(path, "Mia keeps bees.", "")
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
	h := build(t, nil)
	path := h.remembered()
	var want []string
	for i := range 7 {
		kind := []string{"event", "plan"}[i%2]
		id := h.tell(path, fmt.Sprintf("Mia went to town %d.", i), `,"kind":"`+kind+`"`)
		if kind == "event" {
			want = append([]string{id}, want...)
		}
	}
	var got []string
	for cursor := ""; ; {
		page := h.rest("GET", path+"?kind=event&limit=3&cursor="+url.QueryEscape(cursor), "").wants(t, 200)
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["id"].(string))
		}
		next, more := page["nextCursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages %v\nwant  %v", got, want)
	}
}

// A key makes each write one write.
func TestAMemoryIsWrittenOnce(t *testing.T) {
	h := build(t, nil)
	path := h.remembered()
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

// Background work is seen, and a conversation can be read at once.
func TestWorkOnAMemoryIsSeen(t *testing.T) {
	h := build(t, nil)
	chat := h.chat()
	character := member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId")
	phone, _ := h.phone(nil)
	h.says(chat, "My name is Mia and I live in Marseille.", "A good town.")
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
	if len(facts) == 0 || facts[0]["origin"] != "rule" || member(facts[0], "conversationId") != chat || len(facts[0]["evidence"].([]any)) == 0 {
		t.Errorf("facts: %v", facts)
	}
	var kinds []string
	for _, job := range h.rest("GET", "/characters/"+character+"/memory/jobs", "").items(t) {
		kinds = append(kinds, member(job, "kind"))
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

// What is pinned changes by the user's decision alone.
func TestWhatOnlyTheUserMayChange(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct{ decision, state, text string }{
		{"accept", "accepted", "Lyon"}, {"reject", "rejected", "Marseille"},
	} {
		t.Run(c.decision, func(t *testing.T) {
			chat := h.chat()
			p, _ := h.phone(nil)
			path := "/characters/" + member(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "characterId") + "/memories"
			id := h.suggests(p, chat)
			open := h.rest("GET", path+"/suggestions", "").items(t)
			if len(open) != 1 || open[0]["id"] != id || open[0]["event"] != "UPDATE" || open[0]["state"] != "open" || len(open[0]["evidence"].([]any)) == 0 {
				t.Fatalf("suggestions: %v", open)
			}
			if got := h.rest("GET", path, "").items(t); len(got) != 1 || !strings.Contains(member(got[0], "text"), "Marseille") {
				t.Errorf("before the decision: %v", got)
			}
			for range 2 {
				if got := h.rest("POST", path+"/suggestions/"+id, `{"decision":"`+c.decision+`"}`, "Idempotency-Key: "+c.decision).wants(t, 200); got["state"] != c.state {
					t.Errorf("decided: %v", got)
				}
			}
			other := map[string]string{"accept": "reject", "reject": "accept"}[c.decision]
			h.rest("POST", path+"/suggestions/"+id, `{"decision":"`+other+`"}`).refuses(t, 409, "conflict")
			if got := h.rest("GET", path, "").items(t); len(got) != 1 || !strings.Contains(member(got[0], "text"), c.text) || got[0]["pinned"] != true {
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
