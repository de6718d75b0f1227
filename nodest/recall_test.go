package nodest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestMemoriesOfOtherConversationsReachTheRequest(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	s.WithMemory(memory.Options{})
	alice := s.Character(nodesttest.PlainAlice)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("I see.") })
	first := s.Say(s.ChatWith(alice.ID), nodesttest.Birthday)
	s.Await(first.GenerationID)
	fact := s.AddFact(alice.ID, "The user is allergic to birthday candles made of beeswax.")

	sent := s.Say(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
	s.Await(sent.GenerationID)
	all := fake.Requests()
	last := all[len(all)-1].Messages
	user := last[len(last)-1]
	for _, m := range last {
		if strings.Contains(m.Text, "<mem>") {
			user = m
		}
	}
	if user.Role != "user" || !strings.HasPrefix(user.Text, nodesttest.BirthdayQuestion) || strings.Count(user.Text, "\n<mem>\n") != 1 {
		t.Fatalf("the memories are not in the user's message: %s %q", user.Role, user.Text)
	}
	for _, want := range []string{"User: " + nodesttest.Birthday, "beeswax"} {
		if !strings.Contains(user.Text, want) {
			t.Errorf("not in the request: %q\n%s", want, user.Text)
		}
	}

	revision := s.Message(first.UserMessage.ID).Chosen().RevisionID
	reply := s.Message(sent.Message.ID)
	ids := reply.Chosen().MemoryIDs
	if !slices.Contains(ids, revision) || !slices.Contains(ids, fact.ID) {
		t.Errorf("memory ids of the reply = %v, want %s and %s", ids, revision, fact.ID)
	}
	if used, err := s.Memory.History(t.Context(), nodesttest.Ann, alice.ID, fact.ID); err != nil || used[0].LastUsedAt == nil {
		t.Errorf("the use of the fact is not recorded: %v, %v", used, err)
	}
	if memories, warnings, stages := s.ContextOf(sent.GenerationID); !slices.Equal(memories, ids) || len(warnings) != 0 || !slices.Contains(stages, "memory") {
		t.Errorf("memories %v, warnings %v, stages %v; want the ids %v", memories, warnings, stages, ids)
	}
	found, err := s.RecalledFor(t.Context(), nodesttest.Ann, reply.ID)
	s.Must(err)
	if len(found) != len(ids) {
		t.Fatalf("recalled for the reply: %+v, want %v", found, ids)
	}
	for i, f := range found {
		if f.ID != ids[i] || f.Score <= 0 {
			t.Errorf("%d is %s with %g, want %s", i, f.ID, f.Score, ids[i])
		}
		if f.ID == revision && f.Said.Text != nodesttest.Birthday || f.Layer == recall.Fact && f.Memory.Text != fact.Text {
			t.Errorf("recalled: %+v", f)
		}
	}
	if _, err := s.RecalledFor(t.Context(), nodesttest.Bob, reply.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another user's question: %v, want NotFound", err)
	}
}

func TestWhatIsNotRecalled(t *testing.T) {
	t.Parallel()
	off := false
	for _, tt := range []struct {
		name string
		ask  func(s *fixture, alice *character.Character, source *chat.Conversation) *nodest.Sent
	}{
		{"what the prompt shows anyway", func(s *fixture, _ *character.Character, source *chat.Conversation) *nodest.Sent {
			return s.Say(source, nodesttest.BirthdayQuestion)
		}},
		{"what was said to another character", func(s *fixture, _ *character.Character, _ *chat.Conversation) *nodest.Sent {
			return s.Say(s.Chat(), nodesttest.BirthdayQuestion)
		}},
		{"with memory:false", func(s *fixture, alice *character.Character, _ *chat.Conversation) *nodest.Sent {
			sent, err := s.Send(s.T.Context(), s.Call(), nodest.SendInput{
				ConversationID: s.ChatWith(alice.ID).ID, Text: nodesttest.BirthdayQuestion, Options: character.TurnOptions{Memory: &off},
			})
			s.Must(err)
			return sent
		}},
		{"with memory:false of the conversation", func(s *fixture, alice *character.Character, _ *chat.Conversation) *nodest.Sent {
			c := s.ChatWith(alice.ID)
			_, err := s.Chats.UpdateConversation(s.T.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, Settings: json.RawMessage(`{"memory":false}`)})
			s.Must(err)
			return s.Say(c, nodesttest.BirthdayQuestion)
		}},
		{"with retrieval off", func(s *fixture, alice *character.Character, _ *chat.Conversation) *nodest.Sent {
			s.PutSettings(alice.ID, `{"retrieval":{"enabled":false}}`)
			return s.Say(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
		}},
		{"from other conversations that are not shared", func(s *fixture, alice *character.Character, _ *chat.Conversation) *nodest.Sent {
			s.PutSettings(alice.ID, `{"retrieval":{"shareAcrossConversations":false}}`)
			return s.Say(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
		}},
		{"what was deleted", func(s *fixture, alice *character.Character, source *chat.Conversation) *nodest.Sent {
			s.Must(s.DeleteConversation(s.T.Context(), s.Call(), source.ID))
			return s.Say(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
		}},
		{"what has nothing to do with it", func(s *fixture, alice *character.Character, _ *chat.Conversation) *nodest.Sent {
			return s.Say(s.ChatWith(alice.ID), "Good evening!")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newMemoryFixture(t)
			alice := s.Character(nodesttest.PlainAlice)
			source := s.ChatWith(alice.ID)
			s.SayAndWait(source, nodesttest.Birthday)
			sent := tt.ask(s, alice, source)
			s.Await(sent.GenerationID)
			if last := s.Model.LastRequest(); strings.Contains(last, "<mem>") {
				t.Errorf("there are memories in the request:\n%s", last)
			}
			if ids := s.Message(sent.Message.ID).Chosen().MemoryIDs; len(ids) != 0 {
				t.Errorf("memory ids = %v, want none", ids)
			}
			if memories, warnings, _ := s.ContextOf(sent.GenerationID); memories == nil || len(memories) != 0 || len(warnings) != 0 {
				t.Errorf("memories %v, warnings %v; want empty lists", memories, warnings)
			}
		})
	}
}

// Nothing said to one user's copy of a card is recalled by another user's copy.
func TestAnotherUsersWordsAreNotRecalled(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	s.SayAndWait(s.Chat(), nodesttest.Birthday)
	call := func() *op.Call { return &op.Call{UserID: nodesttest.Bob} }
	ch, err := s.Characters.Create(t.Context(), call(), character.Input{RoleCard: json.RawMessage(nodesttest.PlainAlice)})
	s.Must(err)
	c, err := s.Chats.CreateConversation(t.Context(), call(), chat.ConversationInput{CharacterID: ch.ID})
	s.Must(err)
	sent, err := s.Send(t.Context(), call(), nodest.SendInput{ConversationID: c.ID, Text: nodesttest.BirthdayQuestion})
	s.Must(err)
	_, err = s.Wait(t.Context(), nodesttest.Bob, sent.GenerationID)
	s.Must(err)
	if last := s.Model.LastRequest(); !strings.Contains(last, nodesttest.BirthdayQuestion) || strings.Contains(last, "Lisbon") {
		t.Errorf("bob's request:\n%s", last)
	}
}

// failingEmbedder is an embedder whose provider is down.
type failingEmbedder struct{ offline.Embedder }

func (failingEmbedder) ModelID() string { return "broken" }

func (failingEmbedder) Embed(context.Context, llm.EmbedTask, []string) (llm.Embeddings, error) {
	return llm.Embeddings{}, fault.New(fault.UpstreamDown, "no embeddings today")
}

func TestRecallWorksWithoutTheEmbedder(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.WithMemory(memory.Options{
		Embedder: func(context.Context, string) (llm.Embedder, error) { return failingEmbedder{}, nil },
	})
	alice := s.Character(nodesttest.PlainAlice)
	s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
	reply := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
	if len(reply.Chosen().MemoryIDs) == 0 {
		t.Error("nothing was recalled")
	}
	if _, warnings, _ := s.ContextOf(reply.GenerationID); len(warnings) != 0 {
		t.Errorf("warnings = %v, want none", warnings)
	}
}

// brokenMemoryStore is a store whose reads end as view does.
type brokenMemoryStore struct {
	memory.Store
	view func(context.Context) error
}

func (u brokenMemoryStore) View(ctx context.Context, _ string, _ func(memory.Tx) error) error {
	return u.view(ctx)
}

func TestATurnGoesOnWithoutItsMemories(t *testing.T) {
	t.Parallel()
	for name, view := range map[string]func(context.Context) error{
		"the memory fails": func(context.Context) error { return errors.New("disk on fire") },
		"the memory hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			s.UseMemory(memory.New(brokenMemoryStore{s.DB.Memory(), view}, memory.Options{Log: nodesttest.DiscardLog}), 10*time.Millisecond)
			alice := s.Character(nodesttest.PlainAlice)
			s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
			reply := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
			if reply.Status != chat.StatusComplete || reply.Text() != "Fine." {
				t.Errorf("the reply is %s: %q", reply.Status, reply.Text())
			}
			memories, warnings, _ := s.ContextOf(reply.GenerationID)
			if len(memories) != 0 || !slices.Equal(warnings, []string{"memory_unavailable"}) {
				t.Errorf("memories %v, warnings %v; want the warning alone", memories, warnings)
			}
			if strings.Contains(s.Model.LastRequest(), "<mem>") {
				t.Errorf("there is a block in the request:\n%s", s.Model.LastRequest())
			}
		})
	}
}

// slowMemoryStore loads a memory change by change, and takes more than half of the time that
// there is after the first one.
type slowMemoryStore struct{ memory.Store }

func (s slowMemoryStore) View(ctx context.Context, userID string, fn func(memory.Tx) error) error {
	return s.Store.View(ctx, userID, func(tx memory.Tx) error {
		tx.ScopeTx = slowScope{tx.ScopeTx, ctx}
		return fn(tx)
	})
}

type slowScope struct {
	memory.ScopeTx
	ctx context.Context
}

func (s slowScope) MemoryChanges(characterID string, since, base int64, _ int) (*memory.Changes, error) {
	if since > 0 {
		until, _ := s.ctx.Deadline()
		<-time.After(time.Until(until) * 11 / 20)
	}
	return s.ScopeTx.MemoryChanges(characterID, since, base, 1)
}

func TestATurnSaysWhenOnlyAPartOfTheMemoryWasSearched(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	first := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
	s.SayAndWait(s.ChatWith(alice.ID), "I like tea.")
	s.UseMemory(memory.New(slowMemoryStore{s.DB.Memory()}, memory.Options{Log: nodesttest.DiscardLog}), 3*time.Second)
	reply := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
	memories, warnings, _ := s.ContextOf(reply.GenerationID)
	if !slices.Equal(warnings, []string{"memory_incomplete"}) || len(memories) == 0 {
		t.Errorf("memories %v, warnings %v; want those of %s with a warning", memories, warnings, first.ID)
	}
}

// A reply that repeats the memories it was given does not create new ones.
func TestAnEchoedMemoryBlockIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
	fact := s.AddFact(alice.ID, "Clara collects porcelain owls.")
	s.Model.Enqueue(nodesttest.Reply("<mem>\n系统检索到的记忆内容：\n1. Clara collects porcelain owls.\n</mem>\n", "How lovely, in spring!"))
	c := s.ChatWith(alice.ID)
	reply := s.SayAndWait(c, "Which porcelain does Clara collect?")
	if len(reply.Chosen().MemoryIDs) == 0 {
		t.Fatal("nothing was recalled")
	}
	found, err := s.Memory.Search(t.Context(), nodesttest.Ann, alice.ID, memory.SearchQuery{Text: "porcelain owls", Recall: true})
	s.Must(err)
	owls := 0
	for _, f := range found {
		if f.Layer == recall.Fact && f.ID == fact.ID {
			owls++
		}
		if f.Said != nil && (strings.Contains(f.Said.Text, "owls") || strings.Contains(f.Said.Text, "<mem>")) {
			t.Errorf("the echo is a memory: %q", f.Said.Text)
		}
	}
	if owls != 1 {
		t.Errorf("the fact was found %d times, want once: %+v", owls, found)
	}
}

func TestAContinuationKeepsTheMemoriesOfTheReply(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	s.SayAndWait(s.ChatWith(alice.ID), nodesttest.Birthday)
	reply := s.SayAndWait(s.ChatWith(alice.ID), nodesttest.BirthdayQuestion)
	before := reply.Chosen().MemoryIDs
	sent, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(sent.GenerationID)
	longer := s.Message(reply.ID).Chosen()
	found, err := s.RecalledFor(t.Context(), nodesttest.Ann, reply.ID)
	s.Must(err)
	if longer.Text != "Fine.Fine." || !slices.Equal(longer.MemoryIDs, before) || len(before) == 0 || len(found) != len(before) {
		t.Errorf("%q has memories %v (%d are reported), want %v", longer.Text, longer.MemoryIDs, len(found), before)
	}
	edited, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: reply.ID, Text: "In Lisbon."})
	s.Must(err)
	found, err = s.RecalledFor(t.Context(), nodesttest.Ann, reply.ID)
	s.Must(err)
	if !slices.Equal(edited.Message.Chosen().MemoryIDs, before) || len(found) != len(before) {
		t.Errorf("after an edit: %v (%d are reported), want %v", edited.Message.Chosen().MemoryIDs, len(found), before)
	}
}

func TestPreviewsShowMemories(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	source := s.ChatWith(alice.ID)
	s.SayAndWait(source, nodesttest.Birthday)
	c := s.ChatWith(alice.ID)
	p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: nodesttest.BirthdayQuestion})
	s.Must(err)
	if !strings.Contains(p.Messages[p.Base].Text, nodesttest.Birthday) {
		t.Errorf("the preview has no memory: %q", p.Messages[p.Base].Text)
	}
	// A preview of an earlier save point does not recall what was said after it.
	alone := s.ChatWith(s.Character(nodesttest.PlainAlice).ID)
	save, err := s.Chats.CreateSave(t.Context(), s.Call(), chat.SaveInput{ConversationID: alone.ID})
	s.Must(err)
	s.SayAndWait(alone, nodesttest.Birthday)
	then, err := s.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: nodesttest.BirthdayQuestion})
	s.Must(err)
	if text := then.Messages[then.Base].Text; !strings.HasPrefix(text, nodesttest.BirthdayQuestion) || strings.Contains(text, "<mem>") {
		t.Errorf("the preview of the save point knows what was said later: %q", text)
	}
}

func TestMemoryScene(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	c := s.ChatWith(alice.ID)
	persona, err := s.Characters.CreateResource(t.Context(), s.Call(), character.Persona, character.ResourceInput{
		Name: "Sam", Document: json.RawMessage(`{"name":"Sam"}`),
	})
	s.Must(err)
	_, err = s.Chats.UpdateConversation(t.Context(), s.Call(), chat.ConversationPatch{ID: c.ID, PersonaID: &persona.ID})
	s.Must(err)
	want := memory.Scene{
		Names: lang.Names{User: "User", Character: "Alice"}, Enabled: true, ExtractEvery: 5, Recall: true, Limit: 10, Feedback: true, Share: true, Zone: time.UTC,
	}
	got, err := s.Chats.MemoryScene(t.Context(), nodesttest.Ann, alice.ID, "")
	if err != nil || got != want {
		t.Errorf("scene without a conversation: %+v, %v; want %+v", got, err, want)
	}
	s.PutSettings(alice.ID, `{"memory":{"enabled":false,"extractEvery":9},"retrieval":{"enabled":false,"limit":2,"shareAcrossConversations":false}}`)
	want = memory.Scene{Names: lang.Names{User: "Sam", Character: "Alice"}, ExtractEvery: 9, Limit: 2, Feedback: true, Zone: time.UTC}
	if got, err = s.Chats.MemoryScene(t.Context(), nodesttest.Ann, alice.ID, c.ID); err != nil || got != want {
		t.Errorf("scene of the conversation: %+v, %v; want %+v", got, err, want)
	}
	if _, err := s.Chats.MemoryScene(t.Context(), nodesttest.Bob, alice.ID, c.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another user's: %v, want NotFound", err)
	}
	if _, err := s.Chats.MemoryScene(t.Context(), nodesttest.Bob, alice.ID, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("another user's character: %v, want NotFound", err)
	}
}

// Background calls use the user's model and are metered; without a real model or
// tokens there is none.
func TestBackgroundCallsUseTheUsersModel(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	s.Model.Enqueue(nodesttest.Reply("A", " reply."))
	model, err := s.MemoryModel(t.Context(), nodesttest.Ann, "")
	s.Must(err)
	text, err := model.Ask(t.Context(), llm.Prompt{Text: "Read this."})
	if text != "A reply." || err != nil {
		t.Errorf("reply = %q, %v", text, err)
	}
	rows, err := s.Usage(t.Context(), nodesttest.Ann, "", "")
	s.Must(err)
	if len(rows) != 1 || rows[0].Requests != 1 || rows[0].PromptTokens != 10 || rows[0].CompletionTokens != 2 {
		t.Errorf("usage = %+v, want 10 and 2 tokens", rows)
	}
	s.Model.Enqueue(nodesttest.Reply("half").Failing(fault.New(fault.UpstreamDown, "gone")))
	if _, err := model.Ask(t.Context(), llm.Prompt{Text: "Read this."}); !fault.Is(err, fault.UpstreamDown) {
		t.Errorf("a reply that broke off: %v", err)
	}
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	if model, err := s.MemoryModel(t.Context(), nodesttest.Ann, ""); model != nil || err != nil {
		t.Errorf("with the offline demo alone: %v, %v; want none", model, err)
	}
	s.RealModel = nil
	s.Options.TokensPerDay = 5
	s.Engine = s.AnotherEngine()
	if model, err := s.MemoryModel(t.Context(), nodesttest.Ann, ""); model != nil || err != nil {
		t.Errorf("when the day's tokens are used up: %v, %v; want none", model, err)
	}
}

// A question is searched together with the previous turn, so that "she" is found, and
// small talk recalls nothing.
func TestRecallUsesThePreviousTurn(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	s.WithMemory(memory.Options{})
	alice := s.Character(nodesttest.PlainAlice)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say("I see.") })
	s.Await(s.Say(s.ChatWith(alice.ID), nodesttest.Birthday).GenerationID)
	chat := s.ChatWith(alice.ID)
	for _, c := range []struct {
		text   string
		recall bool
	}{
		{"hmm", false}, {"Let me tell you about Clara then.", true}, {"And where does she celebrate?", true}, {"Good morning!", false},
	} {
		sent := s.Say(chat, c.text)
		s.Await(sent.GenerationID)
		if memories, _, _ := s.ContextOf(sent.GenerationID); (len(memories) > 0) != c.recall {
			t.Errorf("%q recalls %v", c.text, memories)
		}
	}
}

// A background call has a token limit of its own. If the model spends it on
// reasoning, that answer is empty, and further calls are made without the limit, or with
// room for as much reasoning as the caller allows.
func TestThinkingDoesNotUseUpTheLimitOfABackgroundCall(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	s.WithMemory(memory.Options{})
	limits := make(chan string, 8)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		var body struct {
			MaxTokens      json.RawMessage       `json:"max_tokens"`
			ResponseFormat struct{ Type string } `json:"response_format"`
		}
		s.Must(json.Unmarshal(r.Body, &body))
		limits <- string(body.MaxTokens) + body.ResponseFormat.Type
		if body.MaxTokens != nil {
			return llmtest.Reply{Parts: []llmtest.Part{{Reasoning: "Hm, so many facts."}}, Finish: llmtest.Length}
		}
		return llmtest.Say(`{"facts":[]}`)
	})
	model, err := s.MemoryModel(t.Context(), nodesttest.Ann, "")
	s.Must(err)
	prompt := llm.Prompt{Text: "Facts?", JSON: true, MaxTokens: 100}
	if _, err := model.Ask(t.Context(), prompt); !fault.Is(err, fault.EmptyReply) {
		t.Errorf("the first answer: %v, want an empty one", err)
	}
	for range 2 {
		text, err := model.Ask(t.Context(), prompt)
		if text != `{"facts":[]}` || err != nil {
			t.Errorf("reply = %q, %v", text, err)
		}
	}
	prompt.MaxThought = 1_000
	if _, err := model.Ask(t.Context(), prompt); !fault.Is(err, fault.EmptyReply) {
		t.Errorf("with little room: %v, want an empty answer", err)
	}
	var got []string
	for range 4 {
		got = append(got, <-limits)
	}
	if want := []string{"100json_object", "json_object", "json_object", "1100json_object"}; !slices.Equal(got, want) || len(limits) != 0 {
		t.Errorf("asked with %v and %d more, want %v", got, len(limits), want)
	}
}
