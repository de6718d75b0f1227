package nodest_test

import (
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/offline"
	"nodest/llm/openai"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// withProvider is a fixture whose model is an OpenAI adapter that talks to a fake server.
func withProvider(t *testing.T) (*fixture, *llmtest.Fake) {
	t.Helper()
	fake := llmtest.NewOpenAI(t)
	s := newFixture(t, nodest.Options{})
	client, err := openai.New(llm.ParseKeys("sk-test"), openai.Options{BaseURL: fake.URL, Model: "m-1"})
	s.Must(err)
	s.RealModel = &nodest.Model{
		Generator: llm.Checked("openai", client), Provider: "openai", Name: "m-1", ContextTokens: 8000,
	}
	return s, fake
}

func TestCancelClosesTheProvidersRequest(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	gate := make(chan struct{})
	reply := llmtest.Say("One", " two", " three")
	reply.Gate = gate
	fake.Script(reply)
	c := s.Chat()
	sent := s.Say(c, "Count")
	gate <- struct{}{}
	s.Eventually("a piece arrives", func() bool { return s.Events.Deltas(t, sent.GenerationID, "text", 0) == "One" })
	began := time.Now()
	if status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("cancel: %s, %v", status, err)
	}
	select {
	case <-fake.Closed():
		t.Logf("the provider saw the end of its request after %v", time.Since(began))
	case <-time.After(nodesttest.WaitLimit):
		t.Fatal("the provider's request stayed open")
	}
	if m := s.Message(sent.Message.ID); m.Text() != "One" || m.Status != chat.StatusCancelled {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
}

func TestProviderFailuresReachTheMessage(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	c := s.Chat()
	cut := llmtest.Say("Half a")
	cut.End = llmtest.Cut
	safety := llmtest.Say()
	safety.Finish = llmtest.Safety
	tests := []struct {
		reply llmtest.Reply
		code  fault.Code
		text  string
	}{
		{llmtest.Fail(401), fault.UpstreamAuth, ""},
		{llmtest.Fail(503), fault.UpstreamDown, ""},
		{safety, fault.Blocked, ""},
		{cut, "", "Half a"},
	}
	for _, tt := range tests {
		fake.Script(tt.reply)
		m := s.SayAndWait(c, "Hello")
		if m.Status != chat.StatusError || m.Error == nil || tt.code != "" && m.Error.Code != tt.code || m.Text() != tt.text {
			t.Errorf("%+v: %s, %v, %q; want %s, %q", tt.reply, m.Status, m.Error, m.Text(), tt.code, tt.text)
		}
	}
	fake.Script(llmtest.Say("Well", " again."))
	if m := s.SayAndWait(c, "Hello"); m.Text() != "Well again." || m.Chosen().Usage == nil {
		t.Errorf("after the failures: %+v", m)
	}
}

func TestTheOfflineModelInAChat(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	c := s.Chat()
	reply := s.SayAndWait(c, "Tell me about the harbour.")
	if reply.Status != chat.StatusComplete || reply.Text() == "" {
		t.Fatalf("%s: %q", reply.Status, reply.Text())
	}
	if got := s.Events.Deltas(t, reply.GenerationID, "text", 0); got != reply.Text() {
		t.Errorf("deltas %q, stored %q", got, reply.Text())
	}
	other := s.RegenerateReply(reply.ID, "")
	if len(other.Swipes) != 2 || other.Swipes[1].Text == other.Swipes[0].Text {
		t.Errorf("another swipe says the same: %q", other.Text())
	}
	done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(done.GenerationID)
	longer := s.Message(reply.ID)
	if before := other.Text(); !strings.HasPrefix(longer.Text(), before) || len(longer.Text()) == len(before) {
		t.Errorf("continued %q to %q", before, longer.Text())
	}
	id, err := s.Impersonate(t.Context(), s.Call(), nodest.GenerateInput{ConversationID: c.ID})
	s.Must(err)
	if g := s.Await(id); g.Status != chat.GenDone || g.Text == "" {
		t.Errorf("impersonation: %s, %q", g.Status, g.Text)
	}
}
