package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nodest/internal/account"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// The tests of this file hold one promise: after something was deleted permanently, its words are
// nowhere: in no column of any table, in no stored prompt, no event, no stored answer of a repeated
// command, and not in a backup that is made then (storetest.Words). On SQLite, maintenance also
// takes them out of the files. When that is, differs:
//
//   - a memory, and a user: at once;
//   - a document: with the job that the deletion enqueues;
//   - a message: 30 days later, with maintenance, because it can be restored until then;
//   - a chat with its summaries, save points and memories: 30 days later, or as soon as its user
//     needs the room. A summary that is deleted alone goes with its chat: save points bring it back.
//
// Each thing has words of its own, and each test first makes sure that they are where it looks.

// leaping is the clock of a store that leaps.
type leaping struct{ ahead atomic.Int64 }

func (l *leaping) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

func (l *leaping) leap(by time.Duration) { l.ahead.Add(int64(by)) }

// sent reports whether a request to the model had a word.
func (v *scriptedModel) sent(word string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.asked {
		for _, m := range r.Messages {
			if strings.Contains(m.Text, word) {
				return true
			}
		}
	}
	return false
}

// maintain lets the job of maintenance run once.
func (h *testServer) maintain() {
	h.t.Helper()
	done := make(chan error, 1)
	kind := h.db.Maintenance()
	run := kind.Run
	kind.Run = func(ctx context.Context, j *jobs.Job) error {
		err := run(ctx, j)
		done <- err
		return err
	}
	h.must(h.db.Enqueue(h.t.Context(), store.Upkeep))
	runner := jobs.New(h.db, jobs.Options{Alone: true, Lease: 1000 * time.Hour, Log: slog.New(slog.DiscardHandler)})
	runner.Handle(kind)
	runner.Start()
	h.must(await(h.t, done, "maintenance"))
	h.must(runner.Close(h.t.Context()))
}

// wantWords fails the test unless a word is in all of these places.
func (h *testServer) wantWords(word string, places ...string) {
	h.t.Helper()
	found := storetest.Words(h.t, h.db, word)[word]
	for _, place := range places {
		if !strings.Contains(strings.Join(found, " ")+" ", place) {
			h.t.Errorf("%q is not in %s, but in %q", word, place, found)
		}
	}
}

// wantGone fails the test if a word is left in any table now, or in any file after maintenance.
func (h *testServer) wantGone(clock *leaping, words []string) {
	h.t.Helper()
	for word, places := range storetest.Words(h.t, h.db, words...) {
		h.t.Errorf("%q is still in %q", word, places)
	}
	clock.leap(8 * 24 * time.Hour)
	h.maintain()
	for word, places := range storetest.Words(h.t, h.db, words...) {
		h.t.Errorf("after maintenance %q is still in %q", word, places)
	}
	storetest.WantFilesWithout(h.t, h.db, words...)
}

// rested waits until no job of the user is due.
func (h *testServer) rested() {
	h.t.Helper()
	eventually(h.t, "jobs that are due end", func() bool {
		for _, j := range h.rest("GET", "/jobs?limit=100", "").items(h.t) {
			at, err := time.Parse(time.RFC3339, stringAt(j, "notBefore"))
			if j["state"] == "running" || j["state"] == "queued" && (err != nil || !at.After(h.db.Now())) {
				return false
			}
		}
		return true
	})
}

// logAbout is a log in which the words of a source are everywhere that they can be.
func logAbout(id, word string) string {
	return `{"events":[
		{"type":"query","sequence":1,"query":"x","response":"","query_id":"q","source_ids":["` + id + `"],"sources":[{"id":"` + id + `","task":"` + word + `","content":"` + word + `"}]},
		{"type":"evaluation","query_sequence":1,"query_id":"q","knowledge_id":"` + id + `","eval_result":{"status":"helpful","reason":"It is about the ` + word + `."}},
		{"type":"extraction_pending","extraction_id":"pending-1","payload":{"content":"The ` + word + `."}},
		{"type":"extraction_reviewed","extraction_id":"pending-1","decision":"edit","edited_payload":{"content":"A ` + word + `."}},
		{"type":"extraction_committed","extraction_id":"pending-1","knowledge_id":"` + strings.TrimSuffix(id, ".1.0") + `"}]}`
}

func TestNothingIsLeftOfAPurgedMemory(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	chat := h.newChat()
	path := h.memoriesOf(chat)
	first := `{"text":"Mia keeps a zorbalik in the barn.","pinned":true}`
	fact := stringAt(h.rest("POST", path, first, "Idempotency-Key: first").wants(t, 201), "id")
	h.turn(chat, "What is in the barn?", "An animal.")
	second := `{"text":"Mia keeps a quavendo in the barn."}`
	h.rest("PATCH", path+"/"+fact, second, "Idempotency-Key: second").wants(t, 200)
	h.turn(chat, "And now?", "Another one.")
	h.rest("POST", path+"/bulk", `{"action":"lock","filter":{"q":"quavendo"}}`, "Idempotency-Key: third").wants(t, 200)
	h.rested()
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", logAbout(fact, "zorbalik")).wants(t, 200)
	h.wantWords("zorbalik", "cognition_events.body", "backup: tables/cognition_events.jsonl")
	for _, word := range []string{"zorbalik", "quavendo"} {
		h.wantWords(word, "memories.text", "backup: tables/memories.jsonl")
		if !h.model.sent(word) {
			t.Errorf("no prompt had %q", word)
		}
	}
	newest := stringAt(h.rest("GET", path, "").items(t)[0], "id")
	h.rest("DELETE", path+"/"+newest+"?purge=true", "", "Idempotency-Key: last").wants(t, 204)
	for i, body := range []string{first, second} {
		again := h.rest([]string{"POST", "PATCH"}[i], path+[]string{"", "/" + fact}[i], body, "Idempotency-Key: "+[]string{"first", "second"}[i])
		if again.status < 400 || strings.Contains(string(again.body), "barn") {
			t.Errorf("the command again: %d %s", again.status, again.body)
		}
	}
	h.wantGone(clock, []string{"zorbalik", "quavendo"})
}

func TestNothingIsLeftOfADeletedMessage(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	chat := h.newChat()
	h.model.enqueue(&script{pieces: []string{"A brundaflex, ", "of course."}})
	sent := h.rest("POST", "/conversations/"+chat+"/messages", `{"text":"What is a zorbalik?"}`, "Idempotency-Key: sent").wants(t, 200)
	messageID, replyID := stringAt(sent, "userMessage.id"), stringAt(sent, "message.id")
	h.model.enqueue(&script{pieces: []string{"A calomurk."}})
	h.rest("POST", "/messages/"+replyID+"/regenerate", "", "Idempotency-Key: again").wants(t, 200)
	h.rest("PATCH", "/messages/"+messageID, `{"text":"What is a quavendo?"}`, "Idempotency-Key: edited").wants(t, 200)
	h.turn(chat, "Go on.", "No.")
	h.rested()
	words := []string{"zorbalik", "quavendo", "brundaflex", "calomurk"}
	for _, word := range words {
		h.wantWords(word, "revisions.text", "backup: tables/revisions.jsonl")
	}
	for _, id := range []string{replyID, messageID} {
		h.rest("DELETE", "/messages/"+id, "", "Idempotency-Key: delete-"+id).wants(t, 200)
	}
	h.turn(h.newChatWith(h.characterOf(chat)), "What was it?", "I do not know.")
	clock.leap(31 * 24 * time.Hour)
	h.maintain()
	h.wantGone(clock, words)
}

// A macro can copy a message into a variable of the chat. Later texts that build on it keep the variable, as they keep what
// a reply has said of the message.
func TestNothingOfADeletedMessageIsLeftInVariables(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	character := stringAt(h.rest("POST", "/characters", `{"dialect":"sillytavern","roleCard":{"name":"Alice","description":"{{setvar::last::{{lastUserMessage}}}}","first_mes":"Hello."}}`).wants(t, 201), "id")
	chat := h.newChatWith(character)
	messageID, replyID := h.turn(chat, "What is a zorbalik?", "An animal.")
	h.rested()
	h.wantWords("zorbalik", "play_states.document", "revisions.text")
	for _, id := range []string{replyID, messageID} {
		h.rest("DELETE", "/messages/"+id, "").wants(t, 200)
	}
	h.turn(chat, "Go on.", "No.")
	clock.leap(31 * 24 * time.Hour)
	h.maintain()
	h.wantGone(clock, []string{"zorbalik"})
	if last := stringAt(h.rest("GET", "/conversations/"+chat, "").wants(t, 200), "variables.last"); last != "Go on." {
		t.Errorf("the variable in force is %q", last)
	}
}

// A research has words of the chat that it was asked in: in its question, and in what it made of the end of the chat.
// One that was cancelled before its turn came has the question.
func TestNothingOfADeletedMessageIsLeftInAResearch(t *testing.T) {
	t.Parallel()
	clock, voice := &leaping{}, &scriptedModel{}
	h := newTestServerOf(t, parts{now: clock.now, models: alone(nodest.Model{Generator: voice, Provider: "openai", Name: "voice"})}, nil)
	h.researcher = &researcher{answer: "The zorbalik needs a quavendo."}
	h.web.search.Answer("")
	chat, p := h.searching()
	say := func(text, reply string) {
		voice.enqueue(&script{pieces: []string{reply}})
		h.reply(p, chat, text, nil)
	}
	say("My zorbalik is ill.", "A quavendo may help.")
	voice.enqueue(&script{pieces: []string{"Nothing came of it."}})
	ended := h.look(`"question":"What helps it?","conversationId":"` + chat + `"`)
	h.told(chat, 4)
	gate := make(chan struct{})
	h.researcher = &researcher{answer: "A tree is a plant.", gate: gate}
	other := ""
	for range 2 { // a third has to wait
		other = stringAt(h.rest("POST", "/research", `{"start":true,"question":"What is a tree?"}`).wants(t, 202), "research.id")
	}
	say("Please look into the brundaflex.", "I have begun.")
	waiting := stringAt(h.rest("GET", "/research?conversationId="+chat, "").items(t)[0], "id")
	if run := h.rest("POST", "/research/"+waiting+"/cancel", "").wants(t, 200); run["startedAt"] != nil {
		t.Errorf("it has begun: %v", run)
	}
	close(gate)
	h.rested()
	h.wantWords("zorbalik", "revisions.text", "research_runs.result", "backup: tables/research_runs.jsonl")
	h.wantWords("quavendo", "revisions.text", "research_runs.result")
	h.wantWords("brundaflex", "revisions.text", "research_runs.plan", "events.entries")
	messages := h.rest("GET", "/conversations/"+chat+"/messages", "").items(t)
	for _, m := range slices.Backward(messages[1:]) {
		h.rest("DELETE", "/messages/"+stringAt(m, "id"), "").wants(t, 200)
	}
	h.rest("GET", "/research/"+stringAt(ended, "id"), "").wants(t, 200) // the messages can be restored
	clock.leap(31 * 24 * time.Hour)
	h.maintain()
	for _, id := range []string{stringAt(ended, "id"), waiting} {
		h.rest("GET", "/research/"+id, "").wants(t, 404)
	}
	h.rest("GET", "/research/"+other, "").wants(t, 200)
	h.wantGone(clock, []string{"zorbalik", "quavendo", "brundaflex"})
}

// The memory of the character has a segment, the search the words of the chat, and the prompt of
// another chat an excerpt, when the room is needed.
func TestNothingIsLeftOfADeletedChat(t *testing.T) {
	t.Parallel()
	const most = 1500
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now, quotas: account.Quotas{Messages: most}}, nil)
	character := h.newCharacter()
	log := &strings.Builder{}
	log.WriteString(`{"user_name":"You","character_name":"Alice","create_date":"2026-01-01","chat_metadata":{"note_prompt":"Speak of a yonderquip."}}` + "\n")
	for n := range 1400 {
		text := fmt.Sprintf("The ferry brought parcel %d to the island.", n)
		if n == 20 {
			text = "My sister keeps a zorbalik in the lighthouse of Tarn."
		}
		fmt.Fprintf(log, `{"name":"You","is_user":true,"send_date":"2026-01-01T10:00:00Z","mes":%q}`+"\n", text)
	}
	chat := stringAt(h.upload("POST", "/conversations/import", "log.jsonl", []byte(log.String()), "characterId="+character, "Idempotency-Key: import").wants(t, 201), "id")
	h.rest("PATCH", "/conversations/"+chat, `{"title":"The vexatrill"}`, "Idempotency-Key: title").wants(t, 200)
	summary := stringAt(h.rest("POST", "/conversations/"+chat+"/summaries?wait=1", "").wants(t, 201), "id")
	for i, text := range []string{"They met a brundaflex.", "They met a calomurk."} {
		h.rest("PATCH", "/conversations/"+chat+"/summaries/"+summary, `{"summary":"`+text+`"}`, fmt.Sprint("Idempotency-Key: summary-", i)).wants(t, 200)
		h.turn(chat, "Go on.", "No.")
	}
	h.rest("POST", "/conversations/"+chat+"/saves", `{"description":"At the drolimant"}`, "Idempotency-Key: save").wants(t, 201)
	h.rest("POST", "/conversations/"+chat+"/memory/extract", "").wants(t, 202)
	h.rested()
	clock.leap(time.Hour) // the vectors and the segment are due
	h.jobs.Changed(nil)
	h.rested()
	other := h.newChatWith(character)
	h.turn(other, "What does my sister keep in the lighthouse of Tarn?", "An animal.")
	h.wantWords("zorbalik", "revisions.text", "message_words.words", "memory_segment_parts.data", "backup: tables/memory_segment_parts.jsonl")
	h.wantWords("brundaflex", "summary_texts.document")
	h.wantWords("calomurk", "summary_texts.document", "backup: tables/summary_texts.jsonl")
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", logAbout("x", "zorbalik")).wants(t, 200)
	h.researcher = &researcher{answer: "The tarvanik is a lamp."}
	h.web.search.Answer("")
	if run := h.look(`"question":"What is a tarvanik?","conversationId":"` + chat + `"`); run["state"] != "done" {
		t.Errorf("the research: %v", run)
	}
	h.wantWords("tarvanik", "research_runs.plan", "research_runs.result", "research_steps.step", "events.entries", "backup: tables/research_runs.jsonl")
	h.wantWords("drolimant", "saves.description")
	h.wantWords("vexatrill", "conversations.title")
	h.wantWords("yonderquip", "conversations.author_note")
	for _, word := range []string{"zorbalik", "calomurk", "yonderquip"} {
		if !h.model.sent(word) {
			t.Errorf("no prompt had %q", word)
		}
	}
	h.rest("DELETE", "/conversations/"+chat, "", "Idempotency-Key: delete").wants(t, 204)
	clock.leap(2 * time.Minute) // rows are counted again after one
	for range most - 1400 {
		h.rest("POST", "/conversations/"+other+"/messages", `{"text":"More.","reply":false}`).wants(t, 200)
	}
	h.rested()
	h.wantGone(clock, []string{"zorbalik", "brundaflex", "calomurk", "drolimant", "vexatrill", "yonderquip", "tarvanik"})
}

func TestNothingIsLeftOfADeletedDocument(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	chat := h.newChat()
	base := h.newBase("Harbour")
	text := "# The vexatrill\n\nThe zorbalik of the harbour was automated in March 1987.\n"
	file := h.addFile("drolimant.md", text, "knowledgeBaseId="+base, "Idempotency-Key: file")["id"].(string)
	h.processed(file)
	character := "/characters/" + h.characterOf(chat)
	h.rest("PUT", character+"/knowledge/"+base, "").wants(t, 200)
	h.rest("PUT", character+"/files/"+file, "", "Idempotency-Key: bound").wants(t, 200)
	h.turn(chat, "When was the harbour automated?", "In March 1987.")
	reader := h.newMember("tom")
	h.rest("PUT", "/knowledge-bases/"+base+"/grants/tom", `{"role":"read"}`).wants(t, 200)
	h.rest("POST", "/conversations/"+chat+"/cognition-log/import", logAbout(file+".1.0", "zorbalik")).wants(t, 200)
	ask := func(word string) {
		h.model.enqueue(&script{pieces: []string{"The " + word + ", in 1987."}})
		h.rest("POST", "/knowledge/ask", `{"question":"When was the harbour automated?"}`, "Idempotency-Key: ask").wants(t, 200)
		h.wantWords(word, "knowledge_queries.answer", "call_keys.reply")
	}
	ask("brundaflex")
	h.as(reader, func() { ask("calomurk") })
	h.rested()
	h.wantWords("zorbalik", "file_parts.data", "knowledge_texts.text", "knowledge_segments.data", "backup: tables/knowledge_texts.jsonl")
	h.wantWords("vexatrill", "knowledge_chunks.heading")
	h.wantWords("drolimant", "files.name")
	if !h.model.sent("zorbalik") {
		t.Error("no prompt had the document")
	}
	h.rest("DELETE", "/files/"+file, "", "Idempotency-Key: delete").wants(t, 204)
	h.rested()
	h.wantGone(clock, []string{"zorbalik", "vexatrill", "drolimant", "brundaflex", "calomurk"})
}

func TestNothingIsLeftOfADeletedUser(t *testing.T) {
	t.Parallel()
	clock := &leaping{}
	h := newTestServerOf(t, parts{now: clock.now}, nil)
	member := h.newMember("zorbalik")
	var id string
	h.as(member, func() {
		id = stringAt(h.rest("GET", "/me", "").wants(t, 200), "id")
		card := `{"roleCard":{"name":"Zorbalik","description":"Of zorbalik.","first_mes":"Hello, zorbalik."}}`
		character := stringAt(h.rest("POST", "/characters", card, "Idempotency-Key: card").wants(t, 201), "id")
		h.rest("PUT", "/settings", `{"userName":"Zorbalik"}`).wants(t, 200)
		h.rest("POST", "/personas", `{"document":{"name":"Zorbalik","description":"zorbalik"}}`).wants(t, 201)
		h.rest("POST", "/circle/posts", `{"text":"zorbalik"}`, "Idempotency-Key: post").wants(t, 201)
		h.upload("POST", "/attachments", "zorbalik.png", onePixel).wants(t, 201)
		h.processed(h.addFile("zorbalik.md", "# Zorbalik\n\nAll about zorbalik.\n")["id"].(string))
		chat := h.newChatWith(character)
		h.addMemory(h.memoriesOf(chat), "The zorbalik is old.", "")
		h.turn(chat, "Is there a zorbalik?", "There is a zorbalik.")
		h.rest("POST", "/research", `{"question":"What is a zorbalik?"}`).wants(t, 202)
		h.rested()
	})
	h.wantWords("zorbalik", "users.username", "character_versions.role_card", "settings.document", "resource_versions.document", "circle_posts.text",
		"attachments.name", "files.name", "research_runs.plan", "knowledge_segments.data", "memories.text", "revisions.text", "backup: tables/users.jsonl")
	h.rest("DELETE", "/users/"+id, "").wants(t, 204)
	h.wantGone(clock, []string{"zorbalik"})
}
