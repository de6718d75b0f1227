package nodest_test

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
	"nodest/fault"
	"nodest/jobs"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/op"
)

// searchMemories searches ann's memories and returns the texts.
func (s *fixture) searchMemories(characterID string, q memory.SearchQuery) (texts []string) {
	s.t.Helper()
	found, err := s.memory.Search(s.t.Context(), ann, characterID, q)
	s.must(err)
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
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	source := s.chatWith(alice.ID)
	s.sendAndWait(source, birthday)
	s.addFact(alice.ID, "Clara has a birthday every year.")
	found, err := s.memory.Search(t.Context(), ann, alice.ID, memory.SearchQuery{Text: birthdayQuestion})
	s.must(err)
	if len(found) < 2 {
		t.Fatalf("found %+v, want a fact and a text", found)
	}
	for _, f := range found {
		sum := f.Parts.Vector + f.Parts.Lexical + f.Parts.Recency + f.Parts.Importance
		if f.Score <= 0 || f.Score > 1 || math.Abs(sum-f.Score) > 1e-3 || len(f.Signals) == 0 {
			t.Errorf("%s: score %g, parts %+v, signals %v", f.ID, f.Score, f.Parts, f.Signals)
		}
		if f.Layer == recall.Exchange && f.Said.Text == birthday && (f.Said.Role != "user" || f.Said.ConversationID != source.ID || f.Said.At == "") {
			t.Errorf("said: %+v", f.Said)
		}
	}
	for name, q := range map[string]memory.SearchQuery{
		"facts alone": {Text: birthdayQuestion, Layers: []recall.Layer{recall.Fact}},
		"texts alone": {Text: birthdayQuestion, Layers: []recall.Layer{recall.Exchange}},
		"here":        {Text: birthdayQuestion, ConversationID: source.ID, Layers: []recall.Layer{recall.Exchange}},
		"one":         {Text: birthdayQuestion, Recall: true, Limit: 1},
	} {
		if texts := s.searchMemories(alice.ID, q); len(texts) == 0 || q.Limit == 1 && len(texts) != 1 {
			t.Errorf("%s: %q", name, texts)
		}
	}
	elsewhere := s.chatWith(alice.ID)
	if texts := s.searchMemories(alice.ID, memory.SearchQuery{Text: birthdayQuestion, ConversationID: elsewhere.ID, Layers: []recall.Layer{recall.Exchange}}); len(texts) != 0 {
		t.Errorf("said in another conversation: %q", texts)
	}
	for field, q := range map[string]memory.SearchQuery{
		"q": {Text: " "}, "limit": {Text: "x", Limit: 101},
	} {
		_, err := s.memory.Search(t.Context(), ann, alice.ID, q)
		wantError(t, err, fault.Invalid, field)
	}
	other := s.chat()
	_, err = s.memory.Search(t.Context(), ann, alice.ID, memory.SearchQuery{Text: "x", ConversationID: other.ID})
	wantError(t, err, fault.NotFound, "")
}

func TestForgettingEverythingAboutSomething(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	source := s.chatWith(alice.ID)
	reply := s.sendAndWait(source, birthday)
	s.sendAndWait(source, "The ferry to the island was late again.")
	// The text of a swipe that is not shown is forgotten too.
	s.model.enqueue(replyWith("Clara will like the presents."), replyWith("Good to know."))
	s.regenerate(reply.ID, "")
	s.regenerate(reply.ID, "")
	clara := s.addFact(alice.ID, "Clara is the user's sister.")
	kept := s.addFact(alice.ID, "The user likes ferries.")
	// So are retired memories and former texts of a memory; the preview shows its current text.
	aside := s.addFact(alice.ID, "Clara plays the cello.")
	_, err := s.memory.Edit(t.Context(), s.call(), alice.ID, s.addFact(alice.ID, "Clara lives in Rome.").ID, memory.Patch{Text: new("She lives in Oslo.")})
	s.must(err)
	s.must(s.memory.Delete(t.Context(), s.call(), alice.ID, aside.ID, false))

	in := memory.ForgetInput{Query: "Clara", DryRun: true}
	preview, err := s.memory.Forget(t.Context(), s.call(), alice.ID, in)
	s.must(err)
	var texts []string
	for _, item := range preview.Memories {
		texts = append(texts, item.Text)
		if item.Score <= 0 || item.ID == "" || item.Layer == "" {
			t.Errorf("an item without its scores: %+v", item)
		}
	}
	slices.Sort(texts)
	want := []string{"Clara is the user's sister.", "Clara plays the cello.", "Clara will like the presents.", "She lives in Oslo.", birthday}
	slices.Sort(want)
	if !slices.Equal(texts, want) || !preview.DryRun || preview.Truncated {
		t.Fatalf("the preview has %q, want %q", texts, want)
	}
	if texts := s.searchMemories(alice.ID, memory.SearchQuery{Text: "Clara", Recall: true}); len(texts) < 2 {
		t.Errorf("after the preview there is %q", texts)
	}

	in.DryRun = false
	call := s.call()
	gone, err := s.memory.Forget(t.Context(), call, alice.ID, in)
	s.must(err)
	if len(gone.Memories) != len(want) || gone.DryRun {
		t.Errorf("forgotten: %+v", gone)
	}
	again, err := s.memory.Forget(t.Context(), &op.Call{UserID: ann, Key: call.Key, Hash: call.Hash}, alice.ID, in)
	s.must(err)
	if len(again.Memories) != len(want) || slices.ContainsFunc(again.Memories, func(item memory.ForgetItem) bool { return item.Text != "" }) {
		t.Errorf("the same call again, which must not keep the texts: %+v", again)
	}
	for _, text := range s.searchMemories(alice.ID, memory.SearchQuery{Text: "Clara presents birthday sister", Recall: true}) {
		if strings.Contains(text, "Clara") {
			t.Errorf("still there: %q", text)
		}
	}
	for _, id := range []string{clara.ID, aside.ID} {
		if _, err := s.memory.History(t.Context(), ann, alice.ID, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("the history of what was forgotten: %v", err)
		}
	}
	if versions, err := s.memory.History(t.Context(), ann, alice.ID, kept.ID); err != nil || len(versions) != 1 {
		t.Errorf("what has nothing to do with it: %v, %v", versions, err)
	}
	// The chat keeps its text, but the memory no longer recalls it.
	if s.message(reply.ParentID).Text() != birthday {
		t.Error("the chat has lost its text")
	}
	s.sendAndWait(s.chatWith(alice.ID), birthdayQuestion)
	if strings.Contains(s.model.lastRequest(), "Lisbon") {
		t.Errorf("recalled although it was forgotten:\n%s", s.model.lastRequest())
	}
}

// A call repeated after its memory was purged neither reveals the memory nor brings
// it back.
func TestARepeatedCallDoesNotRevealAPurgedMemory(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	create, edit := s.call(), s.call()
	draft := memory.Draft{Text: "Clara is the user's sister."}
	fact, err := s.memory.Create(t.Context(), create, alice.ID, draft)
	s.must(err)
	patch := memory.Patch{Text: new("Clara is the user's cousin.")}
	_, err = s.memory.Edit(t.Context(), edit, alice.ID, fact.ID, patch)
	s.must(err)
	kept := s.call()
	_, err = s.memory.Create(t.Context(), kept, alice.ID, memory.Draft{Text: "The user likes ferries."})
	s.must(err)
	s.must(s.memory.Delete(t.Context(), s.call(), alice.ID, fact.ID, true))

	_, err = s.memory.Create(t.Context(), create, alice.ID, draft)
	wantError(t, err, fault.NotFound, "")
	_, err = s.memory.Edit(t.Context(), edit, alice.ID, fact.ID, patch)
	wantError(t, err, fault.NotFound, "")
	if again, err := s.memory.Create(t.Context(), kept, alice.ID, memory.Draft{Text: "The user likes ferries."}); err != nil || !kept.Replayed {
		t.Errorf("what has nothing to do with it: %+v, %v", again, err)
	}
	if texts := s.searchMemories(alice.ID, memory.SearchQuery{Text: "Clara ferries", Recall: true}); !slices.Equal(texts, []string{"The user likes ferries."}) {
		t.Errorf("remembered: %q", texts)
	}
}

func TestForgettingByIDAndAll(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	source := s.chatWith(alice.ID)
	reply := s.sendAndWait(source, birthday)
	fact := s.addFact(alice.ID, "Clara is the user's sister.")
	s.addFact(alice.ID, "The user likes ferries.")
	text := s.message(reply.ParentID).Chosen().RevisionID
	ids := memory.ForgetInput{IDs: []string{fact.ID, text, fact.ID}, DryRun: true}
	for range 2 {
		items, err := s.memory.Forget(t.Context(), s.call(), alice.ID, ids)
		s.must(err)
		if len(items.Memories) != 2 || items.Memories[0].Text != fact.Text || items.Memories[1].Text != birthday {
			t.Fatalf("dry run %t: %+v", ids.DryRun, items.Memories)
		}
		ids.DryRun = false
	}
	if texts := s.searchMemories(alice.ID, memory.SearchQuery{Text: "Clara sister birthday", Recall: true, Limit: 100}); slices.Contains(texts, birthday) || slices.Contains(texts, fact.Text) {
		t.Errorf("still there: %q", texts)
	}
	_, err := s.memory.Forget(t.Context(), s.call(), alice.ID, memory.ForgetInput{IDs: []string{fact.ID}})
	wantError(t, err, fault.NotFound, "")

	_, err = s.memory.Forget(t.Context(), s.call(), alice.ID, memory.ForgetInput{All: true})
	s.must(err)
	if texts := s.searchMemories(alice.ID, memory.SearchQuery{Text: "ferries Fine island", Recall: true, Limit: 100}); len(texts) != 0 {
		t.Errorf("after forgetting all: %q", texts)
	}
	facts, err := s.memory.List(t.Context(), ann, alice.ID, memory.Filter{Status: memory.AnyStatus}, "", 0)
	s.must(err)
	if len(facts.Items) != 0 {
		t.Errorf("after forgetting all: %v", facts.Items)
	}
	for field, in := range map[string]memory.ForgetInput{
		"query":  {},
		"query+": {Query: "x", All: true},
		"dryRun": {All: true, DryRun: true},
		"ids":    {IDs: make([]string, 201)},
	} {
		_, err := s.memory.Forget(t.Context(), s.call(), alice.ID, in)
		wantError(t, err, fault.Invalid, strings.TrimSuffix(field, "+"))
	}
}

// extraction returns the open extraction job of a conversation; nil = none.
func (s *fixture) extraction(conversationID string) (open *jobs.Job) {
	s.t.Helper()
	s.view(func(tx nodest.Tx) error {
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
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	later, now, archived := s.chatWith(alice.ID), s.chatWith(alice.ID), s.chatWith(alice.ID)
	for _, c := range []*chat.Conversation{later, now, archived} {
		s.sendAndWait(c, birthday)
		if j := s.extraction(c.ID); j == nil || !j.NotBefore.After(j.CreatedAt) {
			t.Fatalf("after a reply the job is %+v, want one for later", j)
		}
	}
	s.must(s.memory.ExtractNow(t.Context(), s.call(), now.ID))
	yes := true
	_, err := s.Chats.UpdateConversation(t.Context(), s.call(), chat.ConversationPatch{ID: archived.ID, Archived: &yes})
	s.must(err)
	for _, c := range []*chat.Conversation{now, archived} {
		if j := s.extraction(c.ID); j == nil || j.NotBefore.After(j.UpdatedAt) {
			t.Errorf("the job is %+v, want one for now", j)
		}
		s.view(func(tx nodest.Tx) error {
			r, err := tx.Memory.Reading(c.ID)
			if r.Ordered == 0 {
				t.Errorf("the order is lost: %+v", r)
			}
			return err
		})
	}
	page, err := s.memory.Jobs(t.Context(), ann, alice.ID, "", 0)
	s.must(err)
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
	s.must(s.db.Update(t.Context(), ann, func(tx nodest.Tx) error {
		said, err := tx.Memory.Said(later.ID, memory.SaidFilter{Unread: true})
		for _, one := range said {
			err = tx.Memory.MarkRead(later.ID, one.RevisionID)
		}
		return err
	}))
	s.must(s.memory.ExtractNow(t.Context(), s.call(), later.ID))
	s.view(func(tx nodest.Tx) error {
		said, err := tx.Memory.Said(later.ID, memory.SaidFilter{Unread: true})
		if len(said) == 0 {
			t.Error("nothing is to be read again")
		}
		return err
	})
}

func TestMemoriesAreExportedAndImported(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice, other := s.character(alicesCard), s.character(alicesCard)
	s.addFact(alice.ID, "Clara is the user's sister.")
	s.putSettings(alice.ID, `{"memory":{"extractEvery":7},"retrieval":{"limit":3}}`)
	var file bytes.Buffer
	s.must(s.memory.Export(t.Context(), ann, alice.ID, &file))
	if out := file.String(); !strings.Contains(out, `"type":"header"`) || !strings.Contains(out, `"type":"settings"`) || !strings.Contains(out, `"extractEvery":7`) {
		t.Fatalf("exported:\n%s", out)
	}
	lines := strings.Count(file.String(), "\n")
	file.WriteString("{broken\n")
	for i := range 2 {
		got, err := s.memory.Import(t.Context(), s.call(), other.ID, bytes.NewReader(file.Bytes()))
		s.must(err)
		if got.Created != 1-i || got.Skipped != i || len(got.Failed) != 1 || got.Failed[0].Line != lines+1 {
			t.Errorf("import %d: %+v", i, got)
		}
	}
	if texts := s.searchMemories(other.ID, memory.SearchQuery{Text: "Clara"}); !slices.Equal(texts, []string{"Clara is the user's sister."}) {
		t.Errorf("after the import: %q", texts)
	}
}

// Every operation on another user's character, memory, message or conversation
// answers NotFound and changes nothing.
func TestAnotherUsersMemoriesAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.character(alicesCard)
	c := s.chatWith(alice.ID)
	s.sendAndWait(c, birthday)
	fact := s.addFact(alice.ID, "Clara is the user's sister.")
	bobs, err := s.Characters.Create(t.Context(), &op.Call{UserID: bob}, character.Input{RoleCard: json.RawMessage(alicesCard)})
	s.must(err)
	state := func() string {
		var out bytes.Buffer
		s.must(s.memory.Export(t.Context(), ann, alice.ID, &out))
		_, rest, _ := strings.Cut(out.String(), "\n") // the header contains the time
		return rest
	}
	before := state()
	n := 0
	call := func() *op.Call {
		n++
		return &op.Call{UserID: bob, Key: fmt.Sprint("bob-", n), Hash: "h"}
	}
	text := "mine"
	for name, try := range map[string]func(characterID, id string) error{
		"list": func(ch, _ string) error {
			_, err := s.memory.List(t.Context(), bob, ch, memory.Filter{}, "", 0)
			return err
		},
		"search": func(ch, _ string) error {
			_, err := s.memory.Search(t.Context(), bob, ch, memory.SearchQuery{Text: "Clara"})
			return err
		},
		"create": func(ch, _ string) error {
			_, err := s.memory.Create(t.Context(), call(), ch, memory.Draft{Text: "x"})
			return err
		},
		"edit": func(ch, id string) error {
			_, err := s.memory.Edit(t.Context(), call(), ch, id, memory.Patch{Text: &text})
			return err
		},
		"retire":  func(ch, id string) error { return s.memory.Delete(t.Context(), call(), ch, id, false) },
		"purge":   func(ch, id string) error { return s.memory.Delete(t.Context(), call(), ch, id, true) },
		"restore": func(ch, id string) error { _, err := s.memory.Restore(t.Context(), call(), ch, id); return err },
		"history": func(ch, id string) error { _, err := s.memory.History(t.Context(), bob, ch, id); return err },
		"forget": func(ch, id string) error {
			_, err := s.memory.Forget(t.Context(), call(), ch, memory.ForgetInput{IDs: []string{id}})
			return err
		},
		"forget all": func(ch, _ string) error {
			_, err := s.memory.Forget(t.Context(), call(), ch, memory.ForgetInput{All: true})
			return err
		},
		"bulk": func(ch, id string) error {
			_, err := s.memory.Bulk(t.Context(), call(), ch, memory.Bulk{Action: memory.BulkPurge, Filter: memory.Selection{IDs: []string{id}}})
			return err
		},
		"bulk of all": func(ch, _ string) error {
			_, err := s.memory.Bulk(t.Context(), call(), ch, memory.Bulk{Action: memory.BulkRetire, Filter: memory.Selection{All: true}})
			return err
		},
		"bulk of a chat": func(string, string) error {
			_, err := s.memory.Bulk(t.Context(), call(), bobs.ID, memory.Bulk{Action: memory.BulkPin, Filter: memory.Selection{Conversation: new(c.ID)}})
			return err
		},
		"list of a chat": func(string, string) error {
			_, err := s.memory.List(t.Context(), bob, bobs.ID, memory.Filter{ConversationID: c.ID}, "", 0)
			return err
		},
		"suggestions": func(ch, _ string) error {
			_, err := s.memory.Suggestions(t.Context(), bob, ch, "", "", 0)
			return err
		},
		"decide": func(ch, id string) error {
			_, err := s.memory.Decide(t.Context(), call(), ch, id, "accept")
			return err
		},
		"export": func(ch, _ string) error { return s.memory.Export(t.Context(), bob, ch, &bytes.Buffer{}) },
		"import": func(ch, _ string) error {
			_, err := s.memory.Import(t.Context(), call(), ch, strings.NewReader(`{"text":"x"}`))
			return err
		},
		"jobs": func(ch, _ string) error { _, err := s.memory.Jobs(t.Context(), bob, ch, "", 0); return err },
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
	if err := s.memory.ExtractNow(t.Context(), call(), c.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("extract: %v, want NotFound", err)
	}
	if after := state(); after != before {
		t.Errorf("ann's memories were\n%s\nand are\n%s", before, after)
	}
}
