package nodest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/op"
)

func TestSendAnswersWhenTheMessageIsStored(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("Good ", "day.").gated()
	s.model.enqueue(reply)
	call := s.call()
	sent, err := s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Hello?", ClientMsgID: "mine-1"})
	s.must(err)

	// The model has not written anything yet, and the user's message is stored.
	said, place := s.message(sent.UserMessage.ID), s.message(sent.Message.ID)
	if said.Text() != "Hello?" || said.ParentID != c.HeadID || said.Role != chat.RoleUser || said.ClientMsgID != "mine-1" {
		t.Errorf("user message = %+v", said)
	}
	if place.Status != chat.StatusPending || place.ParentID != said.ID || len(place.Swipes) != 0 || place.Text() != "" || place.Name != "Alice" {
		t.Errorf("placeholder = %+v", place)
	}
	now, err := s.Chats.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	if now.HeadID != place.ID || now.Version != c.Version+1 {
		t.Errorf("head %s version %d, want %s and %d", now.HeadID, now.Version, place.ID, c.Version+1)
	}
	if g := s.generation(sent.GenerationID); g.Ended() || g.By != "phone" || g.Kind != chat.KindReply {
		t.Errorf("generation = %+v", g)
	}

	reply.release()
	g := s.wait(sent.GenerationID)
	if g.Status != chat.GenDone || g.Finish != "stop" || g.Text != "Good day." || g.Model != "scripted-1" {
		t.Errorf("generation = %+v", g)
	}
	m := s.message(place.ID)
	if m.Text() != "Good day." || m.Status != chat.StatusComplete || m.Chosen().Finish != "stop" || m.Chosen().Usage.PromptTokens != 10 {
		t.Errorf("reply = %+v", m)
	}
	want := "message.created gen.started gen.context message.updated gen.done"
	if got := s.events.typesOf(sent.GenerationID); got != want {
		t.Errorf("events = %s, want %s", got, want)
	}
	if got := s.events.deltas(t, sent.GenerationID, "text", 0); got != m.Text() {
		t.Errorf("deltas = %q, stored %q", got, m.Text())
	}
}

func TestAReplyContinuesWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("Still ", "here.").gated()
	s.model.enqueue(reply)
	caller, hangUp := context.WithCancel(t.Context())
	sent, err := s.Send(caller, s.call(), nodest.SendInput{ConversationID: c.ID, Text: "Bye"})
	s.must(err)
	hangUp()
	reply.release()
	s.wait(sent.GenerationID)
	if m := s.message(sent.Message.ID); m.Text() != "Still here." {
		t.Errorf("reply = %q", m.Text())
	}
}

func TestSendWithoutReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	sent, err := s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true,
		Options: character.TurnOptions{Provider: "missing"}})
	s.must(err)
	if sent.Message != nil || sent.GenerationID != "" {
		t.Errorf("a reply was begun: %+v", sent)
	}
	if n := len(s.model.allRequests()); n != 0 {
		t.Errorf("the model received %d requests", n)
	}
	if m := s.message(sent.UserMessage.ID); m.Text() != "A note." {
		t.Errorf("stored %q", m.Text())
	}
}

func TestSendRefusesBadInput(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	other := s.chat()
	bad := 3.0
	tests := []struct {
		name  string
		in    nodest.SendInput
		code  fault.Code
		field string
	}{
		{"no text", nodest.SendInput{}, fault.Invalid, "text"},
		{"blank text", nodest.SendInput{Text: " \n\t"}, fault.Invalid, "text"},
		{"NUL", nodest.SendInput{Text: "a\x00"}, fault.Invalid, "text"},
		{"invalid UTF-8", nodest.SendInput{Text: "a\xff"}, fault.Invalid, "text"},
		{"too long in code points", nodest.SendInput{Text: strings.Repeat("茶", chat.MaxText+1)}, fault.TooLarge, ""},
		{"whenBusy", nodest.SendInput{Text: "a", WhenBusy: "wait"}, fault.Invalid, "whenBusy"},
		{"clientMsgId", nodest.SendInput{Text: "a", ClientMsgID: "a b"}, fault.Invalid, "clientMsgId"},
		{"temperature", nodest.SendInput{Text: "a", Options: character.TurnOptions{Temperature: &bad}}, fault.Invalid, "options.temperature"},
		{"unknown parent", nodest.SendInput{Text: "a", ParentID: "nobody"}, fault.NotFound, ""},
		{"parent in another conversation", nodest.SendInput{Text: "a", ParentID: other.HeadID}, fault.NotFound, ""},
		{"unknown character", nodest.SendInput{Text: "a", Options: character.TurnOptions{CharacterID: "nobody"}}, fault.NotFound, ""},
		{"no key for the provider", nodest.SendInput{Text: "a", Options: character.TurnOptions{Provider: "missing"}}, fault.NotConfigured, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.ConversationID = c.ID
			_, err := s.Send(t.Context(), s.call(), tt.in)
			e := s.wantCode(err, tt.code)
			if tt.field != "" && (len(e.Fields) != 1 || e.Fields[0].Field != tt.field) {
				t.Errorf("fields = %v, want %s", e.Fields, tt.field)
			}
		})
	}
	if now, err := s.Chats.Conversation(t.Context(), ann, c.ID); err != nil || now.HeadID != c.HeadID || now.Version != c.Version {
		t.Errorf("something was stored: %+v, %v", now, err)
	}
	if _, err := s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: strings.Repeat("茶", 10)}); err != nil {
		t.Errorf("ten characters are allowed: %v", err)
	}
}

func TestAClientMessageIDNamesOneMessage(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	in := nodest.SendInput{ConversationID: c.ID, Text: "Hello", ClientMsgID: "m-1", NoReply: true}
	sent, err := s.Send(t.Context(), s.call(), in)
	s.must(err)
	_, err = s.Send(t.Context(), s.call(), in)
	if e := s.wantCode(err, fault.Conflict); e.Details["messageId"] != sent.UserMessage.ID {
		t.Errorf("details = %v", e.Details)
	}

	// Without a key the name serves as one.
	in.ClientMsgID = "m-2"
	first, err := s.Send(t.Context(), &op.Call{UserID: ann, Hash: "h"}, in)
	s.must(err)
	again := &op.Call{UserID: ann, Hash: "h"}
	second, err := s.Send(t.Context(), again, in)
	s.must(err)
	if !again.Replayed || second.UserMessage.ID != first.UserMessage.ID {
		t.Errorf("sent again: %+v, first %+v", second.UserMessage, first.UserMessage)
	}
	in.Text = "Hello again"
	_, err = s.Send(t.Context(), &op.Call{UserID: ann, Hash: "other"}, in)
	if e := s.wantCode(err, fault.Conflict); e.Details["messageId"] != first.UserMessage.ID {
		t.Errorf("details = %v", e.Details)
	}
}

func TestARepeatedCallHasOneEffect(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	call := s.call()
	in := nodest.SendInput{ConversationID: c.ID, Text: "Once"}
	first, err := s.Send(t.Context(), call, in)
	s.must(err)
	s.wait(first.GenerationID)
	for range 3 {
		again := &op.Call{UserID: ann, Device: "tablet", Key: call.Key, Hash: call.Hash}
		second, err := s.Send(t.Context(), again, in)
		s.must(err)
		if !again.Replayed || second.GenerationID != first.GenerationID || second.UserMessage.ID != first.UserMessage.ID {
			t.Errorf("the second answer is %+v, the first %+v", second, first)
		}
	}
	if n := len(s.model.allRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
	_, err = s.Send(t.Context(), &op.Call{UserID: ann, Key: call.Key, Hash: "other"}, in)
	s.wantCode(err, fault.KeyReused)

	// The first answer is also returned after its conversation was deleted.
	s.must(s.DeleteConversation(t.Context(), s.call(), c.ID))
	if _, err := s.Send(t.Context(), &op.Call{UserID: ann, Key: call.Key, Hash: call.Hash}, in); err != nil {
		t.Errorf("a repeated call: %v", err)
	}

	c = s.chat()
	reply := s.sendAndWait(c, "Hello")
	for name, do := range map[string]func(*op.Call) (string, error){
		"regenerate": func(c *op.Call) (string, error) {
			done, err := s.Regenerate(t.Context(), c, nodest.GenerateInput{MessageID: reply.ID})
			return done.GenerationID, err
		},
		"continue": func(c *op.Call) (string, error) {
			done, err := s.Continue(t.Context(), c, nodest.GenerateInput{MessageID: reply.ID})
			return done.GenerationID, err
		},
		"impersonate": func(call *op.Call) (string, error) {
			return s.Impersonate(t.Context(), call, nodest.GenerateInput{ConversationID: c.ID})
		},
	} {
		call, before := s.call(), len(s.model.allRequests())
		first, err := do(call)
		s.must(err)
		s.wait(first)
		second, err := do(&op.Call{UserID: ann, Key: call.Key, Hash: call.Hash})
		s.must(err)
		if second != first || len(s.model.allRequests()) != before+1 {
			t.Errorf("%s: generations %s and %s, %d requests", name, first, second, len(s.model.allRequests())-before)
		}
	}
}

func TestAnotherUsersTurnsAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "Hello")
	held := replyWith("…").gated()
	s.model.enqueue(held)
	sent := s.send(c, "More")
	<-held.started
	prompt := s.generation(reply.GenerationID).PromptID
	foreign := func() *op.Call { return &op.Call{UserID: bob} }
	for name, try := range map[string]func() error{
		"send": func() error {
			_, err := s.Send(t.Context(), foreign(), nodest.SendInput{ConversationID: c.ID, Text: "Hi"})
			return err
		},
		"regenerate": func() error {
			_, err := s.Regenerate(t.Context(), foreign(), nodest.GenerateInput{MessageID: reply.ID})
			return err
		},
		"continue": func() error {
			_, err := s.Continue(t.Context(), foreign(), nodest.GenerateInput{MessageID: reply.ID})
			return err
		},
		"impersonate": func() error {
			_, err := s.Impersonate(t.Context(), foreign(), nodest.GenerateInput{ConversationID: c.ID})
			return err
		},
		"cancel": func() error { _, err := s.Cancel(t.Context(), bob, sent.GenerationID); return err },
		"attach": func() error { _, err := s.Attach(t.Context(), bob, sent.GenerationID, 0); return err },
		"wait":   func() error { _, err := s.Wait(t.Context(), bob, sent.GenerationID); return err },
		"prompt": func() error { _, err := s.Prompt(t.Context(), bob, prompt); return err },
		"diff":   func() error { _, err := s.DiffPrompts(t.Context(), bob, prompt, prompt); return err },
		"preview": func() error {
			_, err := s.PreviewPrompt(t.Context(), bob, nodest.PreviewInput{ConversationID: c.ID})
			return err
		},
	} {
		if err := try(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if active, err := s.Active(t.Context(), bob); err != nil || len(active) != 0 {
		t.Errorf("active = %v, %v", active, err)
	}
	held.release()
	if g := s.wait(sent.GenerationID); g.Status != chat.GenDone {
		t.Errorf("status = %s", g.Status)
	}
}

func TestTheRequestToTheModel(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.sendAndWait(c, "My name is Ann.")
	temperature, tokens := 0.4, 77
	_, err := s.Characters.PutUserSettings(t.Context(), s.call(), character.UserSettings{
		UserName: "Ann", TurnOptions: character.TurnOptions{Temperature: &temperature, Model: "mine", Stop: []string{"END"}},
	}, 0)
	s.must(err)
	sent, err := s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: "Who am I?",
		Options: character.TurnOptions{MaxTokens: &tokens}})
	s.must(err)
	s.wait(sent.GenerationID)
	all := s.model.allRequests()
	req := all[len(all)-1]
	if req.Model != "mine" || *req.Temperature != 0.4 || req.MaxTokens != 77 || len(req.Stop) != 1 || req.CharName != "Alice" || req.UserName != "Ann" {
		t.Errorf("request = %+v", req)
	}
	for _, part := range []string{"A guide of few words.", "Hello, traveller.", "My name is Ann.", "Fine.", "Who am I?"} {
		if !strings.Contains(s.model.lastRequest(), part) {
			t.Errorf("the prompt lacks %q:\n%s", part, s.model.lastRequest())
		}
	}
	if m := s.message(sent.UserMessage.ID); m.Name != "Ann" {
		t.Errorf("the user is called %q", m.Name)
	}
}

func TestUsageIsMetered(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("a", "b", "c"))
	s.sendAndWait(c, "Hello")
	s.sendAndWait(c, "Hello again")
	rows, err := s.Usage(t.Context(), ann, "2000-01-01", "2999-12-31")
	s.must(err)
	var requests, prompt, completion int64
	for _, r := range rows {
		if r.Provider != "scripted" || r.Model != "scripted-1" {
			t.Errorf("row = %+v", r)
		}
		requests, prompt, completion = requests+r.Requests, prompt+r.PromptTokens, completion+r.CompletionTokens
	}
	if requests != 2 || prompt != 20 || completion != 4 {
		t.Errorf("requests %d, tokens %d and %d; want 2, 20, 4", requests, prompt, completion)
	}
}

func TestGenStartedReportsTheBudget(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "Hello")
	for _, ev := range s.events.ofGeneration(reply.GenerationID) {
		if ev.Type != "gen.started" {
			continue
		}
		var d struct {
			Kind, Model, PromptID string
			Budget                struct{ Context, Used, Reserve int }
		}
		s.must(json.Unmarshal(ev.Data, &d))
		if d.Kind != chat.KindReply || d.PromptID == "" || d.Budget.Context != 8000 || d.Budget.Used <= 0 || d.Budget.Reserve != 2000 {
			t.Errorf("gen.started = %s", ev.Data)
		}
	}
}

func TestReasoningIsSeparatedFromTheText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWithChunks(llm.Chunk{Reasoning: "Hm, "}, llm.Chunk{Reasoning: "茶?"}, llm.Chunk{Text: "Tea."}))
	m := s.sendAndWait(c, "What?")
	if m.Text() != "Tea." || m.Chosen().Reasoning != "Hm, 茶?" {
		t.Errorf("text %q, reasoning %q", m.Text(), m.Chosen().Reasoning)
	}
	if got := s.events.deltas(t, m.GenerationID, "reasoning", 0); got != "Hm, 茶?" {
		t.Errorf("deltas of the reasoning = %q", got)
	}
	s.sendAndWait(c, "And?")
	if strings.Contains(s.model.lastRequest(), "Hm, ") {
		t.Error("the reasoning went into the next prompt")
	}
}
