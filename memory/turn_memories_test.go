package memory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// searchMemories searches ann's memories and returns the texts.
func searchMemories(s *nodesttest.Fixture, characterID string, q memory.SearchQuery) (texts []string) {
	s.T.Helper()
	found, err := s.Memory.Search(s.T.Context(), nodesttest.Ann, characterID, q)
	s.Must(err)
	for _, f := range found {
		if f.Memory != nil {
			texts = append(texts, f.Memory.Text)
		} else {
			texts = append(texts, f.Said.Text)
		}
	}
	return texts
}

func TestASearchExplainsItsScores(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	source := s.ChatWith(alice.ID)
	s.SayAndWait(source, nodesttest.Birthday)
	s.AddFact(alice.ID, "Clara has a birthday every year.")
	found, err := s.Memory.Search(t.Context(), nodesttest.Ann, alice.ID, memory.SearchQuery{Text: nodesttest.BirthdayQuestion})
	s.Must(err)
	if len(found) < 2 {
		t.Fatalf("found %+v, want a fact and a text", found)
	}
	for _, f := range found {
		sum := f.Parts.Vector + f.Parts.Lexical + f.Parts.Recency + f.Parts.Importance
		if f.Score <= 0 || f.Score > 1 || math.Abs(sum-f.Score) > 1e-3 || len(f.Signals) == 0 {
			t.Errorf("%s: score %g, parts %+v, signals %v", f.ID, f.Score, f.Parts, f.Signals)
		}
		if f.Layer == recall.Exchange && f.Said.Text == nodesttest.Birthday && (f.Said.Role != "user" || f.Said.ConversationID != source.ID || f.Said.At == "") {
			t.Errorf("said: %+v", f.Said)
		}
	}
	for name, q := range map[string]memory.SearchQuery{
		"facts alone": {Text: nodesttest.BirthdayQuestion, Layers: []recall.Layer{recall.Fact}},
		"texts alone": {Text: nodesttest.BirthdayQuestion, Layers: []recall.Layer{recall.Exchange}},
		"here":        {Text: nodesttest.BirthdayQuestion, ConversationID: source.ID, Layers: []recall.Layer{recall.Exchange}},
		"one":         {Text: nodesttest.BirthdayQuestion, Recall: true, Limit: 1},
	} {
		if texts := searchMemories(s, alice.ID, q); len(texts) == 0 || q.Limit == 1 && len(texts) != 1 {
			t.Errorf("%s: %q", name, texts)
		}
	}
	elsewhere := s.ChatWith(alice.ID)
	if texts := searchMemories(s, alice.ID, memory.SearchQuery{Text: nodesttest.BirthdayQuestion, ConversationID: elsewhere.ID, Layers: []recall.Layer{recall.Exchange}}); len(texts) != 0 {
		t.Errorf("said in another conversation: %q", texts)
	}
	for field, q := range map[string]memory.SearchQuery{
		"q": {Text: " "}, "limit": {Text: "x", Limit: 101},
	} {
		_, err := s.Memory.Search(t.Context(), nodesttest.Ann, alice.ID, q)
		nodesttest.WantError(t, err, fault.Invalid, field)
	}
	other := s.Chat()
	_, err = s.Memory.Search(t.Context(), nodesttest.Ann, alice.ID, memory.SearchQuery{Text: "x", ConversationID: other.ID})
	nodesttest.WantError(t, err, fault.NotFound, "")
}

func TestForgettingEverythingAboutSomething(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	source := s.ChatWith(alice.ID)
	reply := s.SayAndWait(source, nodesttest.Birthday)
	s.SayAndWait(source, "The ferry to the island was late again.")
	// The text of a swipe that is not shown is forgotten too.
	s.Model.Enqueue(nodesttest.Reply("Clara will like the presents."), nodesttest.Reply("Good to know."))
	s.RegenerateReply(reply.ID, "")
	s.RegenerateReply(reply.ID, "")
	clara := s.AddFact(alice.ID, "Clara is the user's sister.")
	kept := s.AddFact(alice.ID, "The user likes ferries.")
	// So are retired memories and former texts of a memory; the preview shows its current text.
	aside := s.AddFact(alice.ID, "Clara plays the cello.")
	_, err := s.Memory.Edit(t.Context(), s.Call(), alice.ID, s.AddFact(alice.ID, "Clara lives in Rome.").ID, memory.Patch{Text: new("She lives in Oslo.")})
	s.Must(err)
	s.Must(s.Memory.Delete(t.Context(), s.Call(), alice.ID, aside.ID, false))

	in := memory.ForgetInput{Query: "Clara", DryRun: true}
	preview, err := s.Memory.Forget(t.Context(), s.Call(), alice.ID, in)
	s.Must(err)
	var texts []string
	for _, item := range preview.Memories {
		texts = append(texts, item.Text)
		if item.Score <= 0 || item.ID == "" || item.Layer == "" {
			t.Errorf("an item without its scores: %+v", item)
		}
	}
	slices.Sort(texts)
	want := []string{"Clara is the user's sister.", "Clara plays the cello.", "Clara will like the presents.", "She lives in Oslo.", nodesttest.Birthday}
	slices.Sort(want)
	if !slices.Equal(texts, want) || !preview.DryRun || preview.Truncated {
		t.Fatalf("the preview has %q, want %q", texts, want)
	}
	if texts := searchMemories(s, alice.ID, memory.SearchQuery{Text: "Clara", Recall: true}); len(texts) < 2 {
		t.Errorf("after the preview there is %q", texts)
	}

	in.DryRun = false
	call := s.Call()
	gone, err := s.Memory.Forget(t.Context(), call, alice.ID, in)
	s.Must(err)
	if len(gone.Memories) != len(want) || gone.DryRun {
		t.Errorf("forgotten: %+v", gone)
	}
	again, err := s.Memory.Forget(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash}, alice.ID, in)
	s.Must(err)
	if len(again.Memories) != len(want) || slices.ContainsFunc(again.Memories, func(item memory.ForgetItem) bool { return item.Text != "" }) {
		t.Errorf("the same call again, which must not keep the texts: %+v", again)
	}
	for _, text := range searchMemories(s, alice.ID, memory.SearchQuery{Text: "Clara presents birthday sister", Recall: true}) {
		if strings.Contains(text, "Clara") {
			t.Errorf("still there: %q", text)
		}
	}
	for _, id := range []string{clara.ID, aside.ID} {
		if _, err := s.Memory.History(t.Context(), nodesttest.Ann, alice.ID, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("the history of what was forgotten: %v", err)
		}
	}
	if versions, err := s.Memory.History(t.Context(), nodesttest.Ann, alice.ID, kept.ID); err != nil || len(versions) != 1 {
		t.Errorf("what has nothing to do with it: %v, %v", versions, err)
	}
	// The chat keeps its text, but the memory no longer recalls it.
	if s.Message(reply.ParentID).Text() != nodesttest.Birthday {
		t.Error("the chat has lost its text")
	}
	s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
	if strings.Contains(s.Model.LastRequest(), "Lisbon") {
		t.Errorf("recalled although it was forgotten:\n%s", s.Model.LastRequest())
	}
}

// A call repeated after its memory was purged neither reveals the memory nor brings
// it back.
func TestARepeatedCallDoesNotRevealAPurgedMemory(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	create, edit := s.Call(), s.Call()
	draft := memory.Draft{Text: "Clara is the user's sister."}
	fact, err := s.Memory.Create(t.Context(), create, alice.ID, draft)
	s.Must(err)
	patch := memory.Patch{Text: new("Clara is the user's cousin.")}
	_, err = s.Memory.Edit(t.Context(), edit, alice.ID, fact.ID, patch)
	s.Must(err)
	kept := s.Call()
	_, err = s.Memory.Create(t.Context(), kept, alice.ID, memory.Draft{Text: "The user likes ferries."})
	s.Must(err)
	s.Must(s.Memory.Delete(t.Context(), s.Call(), alice.ID, fact.ID, true))

	_, err = s.Memory.Create(t.Context(), create, alice.ID, draft)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = s.Memory.Edit(t.Context(), edit, alice.ID, fact.ID, patch)
	nodesttest.WantError(t, err, fault.NotFound, "")
	if again, err := s.Memory.Create(t.Context(), kept, alice.ID, memory.Draft{Text: "The user likes ferries."}); err != nil || !kept.Replayed {
		t.Errorf("what has nothing to do with it: %+v, %v", again, err)
	}
	if texts := searchMemories(s, alice.ID, memory.SearchQuery{Text: "Clara ferries", Recall: true}); !slices.Equal(texts, []string{"The user likes ferries."}) {
		t.Errorf("remembered: %q", texts)
	}
}

func TestForgettingByIDAndAll(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	source := s.ChatWith(alice.ID)
	reply := s.SayAndWait(source, nodesttest.Birthday)
	fact := s.AddFact(alice.ID, "Clara is the user's sister.")
	s.AddFact(alice.ID, "The user likes ferries.")
	text := s.Message(reply.ParentID).Chosen().RevisionID
	ids := memory.ForgetInput{IDs: []string{fact.ID, text, fact.ID}, DryRun: true}
	for range 2 {
		items, err := s.Memory.Forget(t.Context(), s.Call(), alice.ID, ids)
		s.Must(err)
		if len(items.Memories) != 2 || items.Memories[0].Text != fact.Text || items.Memories[1].Text != nodesttest.Birthday {
			t.Fatalf("dry run %t: %+v", ids.DryRun, items.Memories)
		}
		ids.DryRun = false
	}
	if texts := searchMemories(s, alice.ID, memory.SearchQuery{Text: "Clara sister birthday", Recall: true, Limit: 100}); slices.Contains(texts, nodesttest.Birthday) || slices.Contains(texts, fact.Text) {
		t.Errorf("still there: %q", texts)
	}
	_, err := s.Memory.Forget(t.Context(), s.Call(), alice.ID, memory.ForgetInput{IDs: []string{fact.ID}})
	nodesttest.WantError(t, err, fault.NotFound, "")

	_, err = s.Memory.Forget(t.Context(), s.Call(), alice.ID, memory.ForgetInput{All: true})
	s.Must(err)
	if texts := searchMemories(s, alice.ID, memory.SearchQuery{Text: "ferries Fine island", Recall: true, Limit: 100}); len(texts) != 0 {
		t.Errorf("after forgetting all: %q", texts)
	}
	facts, err := s.Memory.List(t.Context(), nodesttest.Ann, alice.ID, memory.Filter{Status: memory.AnyStatus}, "", 0)
	s.Must(err)
	if len(facts.Items) != 0 {
		t.Errorf("after forgetting all: %v", facts.Items)
	}
	for field, in := range map[string]memory.ForgetInput{
		"query":  {},
		"query+": {Query: "x", All: true},
		"dryRun": {All: true, DryRun: true},
		"ids":    {IDs: make([]string, 201)},
	} {
		_, err := s.Memory.Forget(t.Context(), s.Call(), alice.ID, in)
		nodesttest.WantError(t, err, fault.Invalid, strings.TrimSuffix(field, "+"))
	}
}

// extraction returns the open extraction job of a conversation; nil = none.
func extraction(s *nodesttest.Fixture, conversationID string) (open *jobs.Job) {
	s.T.Helper()
	s.View(func(tx nodest.Tx) error {
		items, _, err := tx.Jobs.Jobs(jobs.Filter{Kind: memory.JobExtract, Subject: conversationID, Open: true}, "", 10)
		if len(items) > 0 {
			open = items[0]
		}
		return err
	})
	return open
}

func TestExtractionIsScheduled(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	later, now, archived := s.ChatWith(alice.ID), s.ChatWith(alice.ID), s.ChatWith(alice.ID)
	for _, c := range []*chat.Conversation{later, now, archived} {
		s.SayAndWait(c, nodesttest.Birthday)
		if j := extraction(s, c.ID); j == nil || !j.NotBefore.After(j.CreatedAt) {
			t.Fatalf("after a reply the job is %+v, want one for later", j)
		}
	}
	s.Must(s.Memory.ExtractNow(t.Context(), s.Call(), now.ID))
	yes := true
	_, err := s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: archived.ID, Archived: &yes})
	s.Must(err)
	for _, c := range []*chat.Conversation{now, archived} {
		if j := extraction(s, c.ID); j == nil || j.NotBefore.After(j.UpdatedAt) {
			t.Errorf("the job is %+v, want one for now", j)
		}
		s.View(func(tx nodest.Tx) error {
			r, err := tx.Memory.Reading(c.ID)
			if r.Ordered == 0 {
				t.Errorf("the order is lost: %+v", r)
			}
			return err
		})
	}
	page, err := s.Memory.Jobs(t.Context(), nodesttest.Ann, alice.ID, "", 0)
	s.Must(err)
	kinds := map[string]int{}
	for _, j := range page.Items {
		kinds[j.Kind]++
		if j.Kind == memory.JobEmbed && !j.NotBefore.After(j.CreatedAt) {
			t.Errorf("texts are embedded at once, not together: %+v", j)
		}
	}
	if kinds[memory.JobExtract] != 3 || kinds[memory.JobEmbed] != 1 {
		t.Errorf("jobs about the character: %v", kinds)
	}
	// The user requests an extraction of messages that were already read.
	s.Must(s.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		said, err := tx.Memory.Said(later.ID, memory.SaidFilter{Unread: true})
		for _, one := range said {
			err = tx.Memory.MarkRead(later.ID, one.RevisionID)
		}
		return err
	}))
	s.Must(s.Memory.ExtractNow(t.Context(), s.Call(), later.ID))
	s.View(func(tx nodest.Tx) error {
		said, err := tx.Memory.Said(later.ID, memory.SaidFilter{Unread: true})
		if len(said) == 0 {
			t.Error("nothing is to be read again")
		}
		return err
	})
}

func TestMemoriesAreExportedAndImported(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice, other := s.Character(nodesttest.PlainAlice), s.Character(nodesttest.PlainAlice)
	s.AddFact(alice.ID, "Clara is the user's sister.")
	s.PutSettings(alice.ID, `{"memory":{"extractEvery":7},"retrieval":{"limit":3}}`)
	var file bytes.Buffer
	s.Must(s.Memory.Export(t.Context(), nodesttest.Ann, alice.ID, &file))
	if out := file.String(); !strings.Contains(out, `"type":"header"`) || !strings.Contains(out, `"type":"settings"`) || !strings.Contains(out, `"extractEvery":7`) {
		t.Fatalf("exported:\n%s", out)
	}
	lines := strings.Count(file.String(), "\n")
	file.WriteString("{broken\n")
	for i := range 2 {
		got, err := s.Memory.Import(t.Context(), s.Call(), other.ID, bytes.NewReader(file.Bytes()))
		s.Must(err)
		if got.Created != 1-i || got.Skipped != i || len(got.Failed) != 1 || got.Failed[0].Line != lines+1 {
			t.Errorf("import %d: %+v", i, got)
		}
	}
	if texts := searchMemories(s, other.ID, memory.SearchQuery{Text: "Clara"}); !slices.Equal(texts, []string{"Clara is the user's sister."}) {
		t.Errorf("after the import: %q", texts)
	}
}

// Every operation on another user's character, memory, message or conversation
// answers NotFound and changes nothing.
func TestAnotherUsersMemoriesAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := nodesttest.NewWithMemory(t)
	alice := s.Character(nodesttest.PlainAlice)
	c := s.ChatWith(alice.ID)
	s.SayAndWait(c, nodesttest.Birthday)
	fact := s.AddFact(alice.ID, "Clara is the user's sister.")
	bobs, err := s.Characters.Create(t.Context(), &op.Call{UserID: nodesttest.Bob}, character.Input{RoleCard: json.RawMessage(nodesttest.PlainAlice)})
	s.Must(err)
	state := func() string {
		var out bytes.Buffer
		s.Must(s.Memory.Export(t.Context(), nodesttest.Ann, alice.ID, &out))
		_, rest, _ := strings.Cut(out.String(), "\n") // the header contains the time
		return rest
	}
	before := state()
	n := 0
	call := func() *op.Call {
		n++
		return &op.Call{UserID: nodesttest.Bob, Key: fmt.Sprint("bob-", n), Hash: "h"}
	}
	text := "mine"
	for name, try := range map[string]func(characterID, id string) error{
		"list": func(ch, _ string) error {
			_, err := s.Memory.List(t.Context(), nodesttest.Bob, ch, memory.Filter{}, "", 0)
			return err
		},
		"search": func(ch, _ string) error {
			_, err := s.Memory.Search(t.Context(), nodesttest.Bob, ch, memory.SearchQuery{Text: "Clara"})
			return err
		},
		"create": func(ch, _ string) error {
			_, err := s.Memory.Create(t.Context(), call(), ch, memory.Draft{Text: "x"})
			return err
		},
		"edit": func(ch, id string) error {
			_, err := s.Memory.Edit(t.Context(), call(), ch, id, memory.Patch{Text: &text})
			return err
		},
		"retire":  func(ch, id string) error { return s.Memory.Delete(t.Context(), call(), ch, id, false) },
		"purge":   func(ch, id string) error { return s.Memory.Delete(t.Context(), call(), ch, id, true) },
		"restore": func(ch, id string) error { _, err := s.Memory.Restore(t.Context(), call(), ch, id); return err },
		"history": func(ch, id string) error { _, err := s.Memory.History(t.Context(), nodesttest.Bob, ch, id); return err },
		"forget": func(ch, id string) error {
			_, err := s.Memory.Forget(t.Context(), call(), ch, memory.ForgetInput{IDs: []string{id}})
			return err
		},
		"forget all": func(ch, _ string) error {
			_, err := s.Memory.Forget(t.Context(), call(), ch, memory.ForgetInput{All: true})
			return err
		},
		"bulk": func(ch, id string) error {
			_, err := s.Memory.Bulk(t.Context(), call(), ch, memory.Bulk{Action: memory.BulkPurge, Filter: memory.Selection{IDs: []string{id}}})
			return err
		},
		"bulk of all": func(ch, _ string) error {
			_, err := s.Memory.Bulk(t.Context(), call(), ch, memory.Bulk{Action: memory.BulkRetire, Filter: memory.Selection{All: true}})
			return err
		},
		"bulk of a chat": func(string, string) error {
			_, err := s.Memory.Bulk(t.Context(), call(), bobs.ID, memory.Bulk{Action: memory.BulkPin, Filter: memory.Selection{Conversation: new(c.ID)}})
			return err
		},
		"list of a chat": func(string, string) error {
			_, err := s.Memory.List(t.Context(), nodesttest.Bob, bobs.ID, memory.Filter{ConversationID: c.ID}, "", 0)
			return err
		},
		"suggestions": func(ch, _ string) error {
			_, err := s.Memory.Suggestions(t.Context(), nodesttest.Bob, ch, "", "", 0)
			return err
		},
		"decide": func(ch, id string) error {
			_, err := s.Memory.Decide(t.Context(), call(), ch, id, "accept")
			return err
		},
		"export": func(ch, _ string) error { return s.Memory.Export(t.Context(), nodesttest.Bob, ch, &bytes.Buffer{}) },
		"import": func(ch, _ string) error {
			_, err := s.Memory.Import(t.Context(), call(), ch, strings.NewReader(`{"text":"x"}`))
			return err
		},
		"jobs": func(ch, _ string) error { _, err := s.Memory.Jobs(t.Context(), nodesttest.Bob, ch, "", 0); return err },
	} {
		if err := try(alice.ID, fact.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
		// The id of ann's memory with one of bob's characters.
		switch name {
		case "edit", "retire", "purge", "restore", "history", "forget", "bulk", "decide":
			if err := try(bobs.ID, fact.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s under his own character: %v, want NotFound", name, err)
			}
		}
	}
	if err := s.Memory.ExtractNow(t.Context(), call(), c.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("extract: %v, want NotFound", err)
	}
	if after := state(); after != before {
		t.Errorf("ann's memories were\n%s\nand are\n%s", before, after)
	}
}
