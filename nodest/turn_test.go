package nodest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestSendAnswersWhenTheMessageIsStored(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("Good ", "day.").Gated()
	s.Model.Enqueue(reply)
	call := s.Call()
	sent, err := s.Send(t.Context(), call, nodest.SendInput{ConversationID: c.ID, Text: "Hello?", ClientMsgID: "mine-1"})
	s.Must(err)

	// The model has not written anything yet, and the user's message is stored.
	said, place := s.Message(sent.UserMessage.ID), s.Message(sent.Message.ID)
	if said.Text() != "Hello?" || said.ParentID != c.HeadID || said.Role != chat.RoleUser || said.ClientMsgID != "mine-1" {
		t.Errorf("user message = %+v", said)
	}
	if place.Status != chat.StatusPending || place.ParentID != said.ID || len(place.Swipes) != 0 || place.Text() != "" || place.Name != "Alice" {
		t.Errorf("placeholder = %+v", place)
	}
	now, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
	s.Must(err)
	if now.HeadID != place.ID || now.Version != c.Version+1 {
		t.Errorf("head %s version %d, want %s and %d", now.HeadID, now.Version, place.ID, c.Version+1)
	}
	if g := s.Generation(sent.GenerationID); g.Ended() || g.By != "phone" || g.Kind != chat.KindReply {
		t.Errorf("generation = %+v", g)
	}

	reply.Release()
	g := s.Await(sent.GenerationID)
	if g.Status != chat.GenDone || g.Finish != "stop" || g.Text != "Good day." || g.Model != "scripted-1" {
		t.Errorf("generation = %+v", g)
	}
	m := s.Message(place.ID)
	if m.Text() != "Good day." || m.Status != chat.StatusComplete || m.Chosen().Finish != "stop" || m.Chosen().Usage.PromptTokens != 10 {
		t.Errorf("reply = %+v", m)
	}
	want := "message.created gen.started gen.context message.updated gen.done"
	if got := s.Events.TypesOf(sent.GenerationID); got != want {
		t.Errorf("events = %s, want %s", got, want)
	}
	if got := s.Events.Deltas(t, sent.GenerationID, "text", 0); got != m.Text() {
		t.Errorf("deltas = %q, stored %q", got, m.Text())
	}
}

func TestAReplyContinuesWhenItsCallerLeaves(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("Still ", "here.").Gated()
	s.Model.Enqueue(reply)
	caller, hangUp := context.WithCancel(t.Context())
	sent, err := s.Send(caller, s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Bye"})
	s.Must(err)
	hangUp()
	reply.Release()
	s.Await(sent.GenerationID)
	if m := s.Message(sent.Message.ID); m.Text() != "Still here." {
		t.Errorf("reply = %q", m.Text())
	}
}

func TestSendWithoutReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "A note.", NoReply: true,
		Options: character.TurnOptions{Provider: "missing"}})
	s.Must(err)
	if sent.Message != nil || sent.GenerationID != "" {
		t.Errorf("a reply was begun: %+v", sent)
	}
	if n := len(s.Model.AllRequests()); n != 0 {
		t.Errorf("the model received %d requests", n)
	}
	if m := s.Message(sent.UserMessage.ID); m.Text() != "A note." {
		t.Errorf("stored %q", m.Text())
	}
}

func TestSendRefusesBadInput(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	other := s.Chat()
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
			_, err := s.Send(t.Context(), s.Call(), tt.in)
			e := s.WantCode(err, tt.code)
			if tt.field != "" && (len(e.Fields) != 1 || e.Fields[0].Field != tt.field) {
				t.Errorf("fields = %v, want %s", e.Fields, tt.field)
			}
		})
	}
	if now, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID); err != nil || now.HeadID != c.HeadID || now.Version != c.Version {
		t.Errorf("something was stored: %+v, %v", now, err)
	}
	if _, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: strings.Repeat("茶", 10)}); err != nil {
		t.Errorf("ten characters are allowed: %v", err)
	}
}

func TestAClientMessageIDNamesOneMessage(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	in := nodest.SendInput{ConversationID: c.ID, Text: "Hello", ClientMsgID: "m-1", NoReply: true}
	sent, err := s.Send(t.Context(), s.Call(), in)
	s.Must(err)
	_, err = s.Send(t.Context(), s.Call(), in)
	if e := s.WantCode(err, fault.Conflict); e.Details["messageId"] != sent.UserMessage.ID {
		t.Errorf("details = %v", e.Details)
	}

	// Without a key the name serves as one.
	in.ClientMsgID = "m-2"
	first, err := s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Hash: "h"}, in)
	s.Must(err)
	again := &op.Call{UserID: nodesttest.Ann, Hash: "h"}
	second, err := s.Send(t.Context(), again, in)
	s.Must(err)
	if !again.Replayed || second.UserMessage.ID != first.UserMessage.ID {
		t.Errorf("sent again: %+v, first %+v", second.UserMessage, first.UserMessage)
	}
	in.Text = "Hello again"
	_, err = s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Hash: "other"}, in)
	if e := s.WantCode(err, fault.Conflict); e.Details["messageId"] != first.UserMessage.ID {
		t.Errorf("details = %v", e.Details)
	}
}

func TestARepeatedCallHasOneEffect(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	call := s.Call()
	in := nodest.SendInput{ConversationID: c.ID, Text: "Once"}
	first, err := s.Send(t.Context(), call, in)
	s.Must(err)
	s.Await(first.GenerationID)
	for range 3 {
		again := &op.Call{UserID: nodesttest.Ann, Device: "tablet", Key: call.Key, Hash: call.Hash}
		second, err := s.Send(t.Context(), again, in)
		s.Must(err)
		if !again.Replayed || second.GenerationID != first.GenerationID || second.UserMessage.ID != first.UserMessage.ID {
			t.Errorf("the second answer is %+v, the first %+v", second, first)
		}
	}
	if n := len(s.Model.AllRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
	_, err = s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: "other"}, in)
	s.WantCode(err, fault.KeyReused)

	// The first answer is also returned after its conversation was deleted.
	s.Must(s.DeleteConversation(t.Context(), s.Call(), c.ID))
	if _, err := s.Send(t.Context(), &op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash}, in); err != nil {
		t.Errorf("a repeated call: %v", err)
	}

	c = s.Chat()
	reply := s.SayAndWait(c, "Hello")
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
		call, before := s.Call(), len(s.Model.AllRequests())
		first, err := do(call)
		s.Must(err)
		s.Await(first)
		second, err := do(&op.Call{UserID: nodesttest.Ann, Key: call.Key, Hash: call.Hash})
		s.Must(err)
		if second != first || len(s.Model.AllRequests()) != before+1 {
			t.Errorf("%s: generations %s and %s, %d requests", name, first, second, len(s.Model.AllRequests())-before)
		}
	}
}

func TestAnotherUsersTurnsAnswerNotFound(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "Hello")
	held := nodesttest.Reply("…").Gated()
	s.Model.Enqueue(held)
	sent := s.Say(c, "More")
	<-held.Started
	prompt := s.Generation(reply.GenerationID).PromptID
	foreign := func() *op.Call { return &op.Call{UserID: nodesttest.Bob} }
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
		"cancel": func() error { _, err := s.Cancel(t.Context(), nodesttest.Bob, sent.GenerationID); return err },
		"attach": func() error { _, err := s.Attach(t.Context(), nodesttest.Bob, sent.GenerationID, 0); return err },
		"wait":   func() error { _, err := s.Wait(t.Context(), nodesttest.Bob, sent.GenerationID); return err },
		"prompt": func() error { _, err := s.Prompt(t.Context(), nodesttest.Bob, prompt); return err },
		"diff":   func() error { _, err := s.DiffPrompts(t.Context(), nodesttest.Bob, prompt, prompt); return err },
		"preview": func() error {
			_, err := s.PreviewPrompt(t.Context(), nodesttest.Bob, nodest.PreviewInput{ConversationID: c.ID})
			return err
		},
	} {
		if err := try(); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", name, err)
		}
	}
	if active, err := s.Active(t.Context(), nodesttest.Bob); err != nil || len(active) != 0 {
		t.Errorf("active = %v, %v", active, err)
	}
	held.Release()
	if g := s.Await(sent.GenerationID); g.Status != chat.GenDone {
		t.Errorf("status = %s", g.Status)
	}
}

func TestTheRequestToTheModel(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.SayAndWait(c, "My name is Ann.")
	temperature, tokens := 0.4, 77
	_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{
		UserName: "Ann", TurnOptions: character.TurnOptions{Temperature: &temperature, Model: "mine", Stop: []string{"END"}},
	}, 0)
	s.Must(err)
	sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "Who am I?",
		Options: character.TurnOptions{MaxTokens: &tokens}})
	s.Must(err)
	s.Await(sent.GenerationID)
	all := s.Model.AllRequests()
	req := all[len(all)-1]
	if req.Model != "mine" || *req.Temperature != 0.4 || req.MaxTokens != 77 || len(req.Stop) != 1 || req.CharName != "Alice" || req.UserName != "Ann" {
		t.Errorf("request = %+v", req)
	}
	for _, part := range []string{"A guide of few words.", "Hello, traveller.", "My name is Ann.", "Fine.", "Who am I?"} {
		if !strings.Contains(s.Model.LastRequest(), part) {
			t.Errorf("the prompt lacks %q:\n%s", part, s.Model.LastRequest())
		}
	}
	if m := s.Message(sent.UserMessage.ID); m.Name != "Ann" {
		t.Errorf("the user is called %q", m.Name)
	}
}

func TestUsageIsMetered(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("a", "b", "c"))
	s.SayAndWait(c, "Hello")
	s.SayAndWait(c, "Hello again")
	rows, err := s.Usage(t.Context(), nodesttest.Ann, "2000-01-01", "2999-12-31")
	s.Must(err)
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
	c := s.Chat()
	reply := s.SayAndWait(c, "Hello")
	for _, ev := range s.Events.OfGeneration(reply.GenerationID) {
		if ev.Type != "gen.started" {
			continue
		}
		var d struct {
			Kind, Model, PromptID string
			Budget                struct{ Context, Used, Reserve int }
		}
		s.Must(json.Unmarshal(ev.Data, &d))
		if d.Kind != chat.KindReply || d.PromptID == "" || d.Budget.Context != 8000 || d.Budget.Used <= 0 || d.Budget.Reserve != 2000 {
			t.Errorf("gen.started = %s", ev.Data)
		}
	}
}

func TestReasoningIsSeparatedFromTheText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.ReplyOfChunks(llm.Chunk{Reasoning: "Hm, "}, llm.Chunk{Reasoning: "茶?"}, llm.Chunk{Text: "Tea."}))
	m := s.SayAndWait(c, "What?")
	if m.Text() != "Tea." || m.Chosen().Reasoning != "Hm, 茶?" {
		t.Errorf("text %q, reasoning %q", m.Text(), m.Chosen().Reasoning)
	}
	if got := s.Events.Deltas(t, m.GenerationID, "reasoning", 0); got != "Hm, 茶?" {
		t.Errorf("deltas of the reasoning = %q", got)
	}
	s.SayAndWait(c, "And?")
	if strings.Contains(s.Model.LastRequest(), "Hm, ") {
		t.Error("the reasoning went into the next prompt")
	}
}
