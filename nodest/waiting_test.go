package nodest_test

import (
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func (s *fixture) sendBusy(c *chat.Conversation, text, whenBusy string) (*nodest.Sent, error) {
	return s.Send(s.T.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: text, WhenBusy: whenBusy})
}

func TestOneReplyAtATimeInAConversation(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	first := nodesttest.Reply("First.").Gated()
	s.Model.Enqueue(first)
	sent := s.Say(c, "one")
	<-first.Started
	_, err := s.sendBusy(c, "two", "")
	if e := s.WantCode(err, fault.Busy); e.Details["generationId"] != sent.GenerationID {
		t.Errorf("details = %v, want %s", e.Details, sent.GenerationID)
	}
	if now, _ := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID); now.HeadID != sent.Message.ID {
		t.Error("the refused message was stored")
	}

	// A queued message is stored now and answered later, with the first reply in its prompt.
	s.Model.Enqueue(nodesttest.Reply("Second."))
	queued, err := s.sendBusy(c, "two", "queue")
	s.Must(err)
	if g := s.Generation(queued.GenerationID); g.Status != chat.GenQueued {
		t.Errorf("status = %s", g.Status)
	}
	if m := s.Message(queued.UserMessage.ID); m.Text() != "two" || m.ParentID != sent.Message.ID {
		t.Errorf("queued message = %+v", m)
	}
	if n := len(s.Model.AllRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
	first.Release()
	s.Await(queued.GenerationID)
	if m := s.Message(queued.Message.ID); m.Text() != "Second." {
		t.Errorf("the queued reply = %q", m.Text())
	}
	texts := nodesttest.PromptText(s.Model.AllRequests()[1].Messages)
	for _, part := range []string{"one\n", "First.\n", "two"} {
		if !strings.Contains(texts, part) {
			t.Errorf("the second prompt lacks %q:\n%s", part, texts)
		}
	}
}

func TestANewMessageReplacesTheRunningReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	first := nodesttest.Reply("First", " and more").Gated()
	s.Model.Enqueue(first, nodesttest.Reply("Second."))
	sent := s.Say(c, "one")
	first.Step(1)
	s.Eventually("a piece arrives", func() bool { return s.Events.Deltas(t, sent.GenerationID, "text", 0) == "First" })
	next, err := s.sendBusy(c, "two", "cancel")
	s.Must(err)
	s.Await(next.GenerationID)
	if m := s.Message(sent.Message.ID); m.Status != chat.StatusCancelled || m.Text() != "First" {
		t.Errorf("the first reply: %s, %q", m.Status, m.Text())
	}
	if m := s.Message(next.Message.ID); m.Status != chat.StatusComplete || m.Text() != "Second." {
		t.Errorf("the second reply: %s, %q", m.Status, m.Text())
	}
	if s.Model.ClosedRequests() != 1 {
		t.Errorf("%d requests were closed", s.Model.ClosedRequests())
	}
}

func TestReplyLimitAndQueueOfAUser(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{GenerationsPerUser: 2, QueuePerUser: 1})
	chats := []*chat.Conversation{s.Chat(), s.Chat(), s.Chat(), s.Chat()}
	a, b := nodesttest.Reply("a").Gated(), nodesttest.Reply("b").Gated()
	s.Model.Enqueue(a)
	one := s.Say(chats[0], "hi")
	<-a.Started
	s.Model.Enqueue(b)
	two := s.Say(chats[1], "hi")
	<-b.Started
	three := s.Say(chats[2], "hi")
	if g := s.Generation(three.GenerationID); g.Status != chat.GenQueued {
		t.Errorf("the third is %s", g.Status)
	}
	_, err := s.sendBusy(chats[3], "hi", "")
	s.WantCode(err, fault.TooManyGenerations)
	if now, _ := s.Chats.Conversation(t.Context(), nodesttest.Ann, chats[3].ID); now.HeadID != chats[3].HeadID {
		t.Error("the refused message was stored")
	}
	b.Release()
	s.Await(two.GenerationID)
	s.Await(three.GenerationID)
	if m := s.Message(three.Message.ID); m.Text() != "Fine." {
		t.Errorf("the third reply = %q", m.Text())
	}
	a.Release()
	s.Await(one.GenerationID)
}

func TestCancelOfAQueuedGeneration(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{GenerationsPerUser: 1})
	c, other := s.Chat(), s.Chat()
	a := nodesttest.Reply("a").Gated()
	s.Model.Enqueue(a)
	one := s.Say(c, "hi")
	<-a.Started
	two := s.Say(other, "hi")
	if status, err := s.Cancel(t.Context(), nodesttest.Ann, two.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("cancel: %s, %v", status, err)
	}
	if m := s.Message(two.Message.ID); m.Status != chat.StatusCancelled {
		t.Errorf("its message is %s", m.Status)
	}
	a.Release()
	s.Await(one.GenerationID)
	if n := len(s.Model.AllRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := newFixtureWithClock(t, nodest.Options{TokensPerDay: 11}, func() time.Time { return noon })
	c := s.Chat()
	s.SayAndWait(c, "one") // 10 + 1 tokens
	_, err := s.sendBusy(c, "two", "")
	e := s.WantCode(err, fault.QuotaExceeded)
	if e.RetryAfter != 12*time.Hour {
		t.Errorf("retry after %v, want until midnight", e.RetryAfter)
	}
	if used, limit, err := s.TokensToday(t.Context(), nodesttest.Ann); used != 11 || limit != 11 || err != nil {
		t.Errorf("%d of %d tokens, %v", used, limit, err)
	}
	if now, _ := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID); s.Message(now.HeadID).Text() != "Fine." {
		t.Error("the refused message was stored")
	}
	// A message without a reply costs nothing.
	_, err = s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "two", NoReply: true})
	s.Must(err)
}

func TestRunningRepliesCountToTheTokensOfTheDay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 30_000, GenerationsPerUser: 9})
	a := nodesttest.Reply("a").Gated()
	s.Model.Enqueue(a)
	first := s.Say(s.Chat(), "hi") // may cost 32,768
	<-a.Started
	_, err := s.sendBusy(s.Chat(), "hi", "")
	if e := s.WantCode(err, fault.QuotaExceeded); e.RetryAfter > time.Minute {
		t.Errorf("retry after %v, want soon: a reply ends", e.RetryAfter)
	}
	a.Release()
	s.Await(first.GenerationID)
}

func TestRequestsInTheBackgroundCountToTheTokensOfTheDay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 4000})
	model, err := s.MemoryModel(t.Context(), nodesttest.Ann, "")
	s.Must(err)
	a := nodesttest.Reply("a").Gated()
	s.Model.Enqueue(a)
	asked := make(chan error)
	go func() {
		_, err := model.Ask(t.Context(), llm.Prompt{Text: "What is new?", MaxTokens: 5000})
		asked <- err
	}()
	<-a.Started
	_, err = model.Ask(t.Context(), llm.Prompt{Text: "And what else?", MaxTokens: 10})
	s.WantCode(err, fault.QuotaExceeded)
	_, err = s.sendBusy(s.Chat(), "hi", "")
	if e := s.WantCode(err, fault.QuotaExceeded); e.RetryAfter > time.Minute || e.Retry() != "later" {
		t.Errorf("retry %s after %v, want later and soon: a request ends", e.Retry(), e.RetryAfter)
	}
	a.Release()
	s.Must(<-asked)
	s.SayAndWait(s.Chat(), "hi")
}
