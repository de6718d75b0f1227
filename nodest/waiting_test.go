package nodest_test

import (
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/nodest"
)

func (s *fixture) sendBusy(c *chat.Conversation, text, whenBusy string) (*nodest.Sent, error) {
	return s.Send(s.t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: text, WhenBusy: whenBusy})
}

func TestOneReplyAtATimeInAConversation(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	first := replyWith("First.").gated()
	s.model.enqueue(first)
	sent := s.send(c, "one")
	<-first.started
	_, err := s.sendBusy(c, "two", "")
	if e := s.wantCode(err, fault.Busy); e.Details["generationId"] != sent.GenerationID {
		t.Errorf("details = %v, want %s", e.Details, sent.GenerationID)
	}
	if now, _ := s.Chats.Conversation(t.Context(), ann, c.ID); now.HeadID != sent.Message.ID {
		t.Error("the refused message was stored")
	}

	// A queued message is stored now and answered later, with the first reply in its prompt.
	s.model.enqueue(replyWith("Second."))
	queued, err := s.sendBusy(c, "two", "queue")
	s.must(err)
	if g := s.generation(queued.GenerationID); g.Status != chat.GenQueued {
		t.Errorf("status = %s", g.Status)
	}
	if m := s.message(queued.UserMessage.ID); m.Text() != "two" || m.ParentID != sent.Message.ID {
		t.Errorf("queued message = %+v", m)
	}
	if n := len(s.model.allRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
	first.release()
	s.wait(queued.GenerationID)
	if m := s.message(queued.Message.ID); m.Text() != "Second." {
		t.Errorf("the queued reply = %q", m.Text())
	}
	texts := promptText(s.model.allRequests()[1].Messages)
	for _, part := range []string{"one\n", "First.\n", "two"} {
		if !strings.Contains(texts, part) {
			t.Errorf("the second prompt lacks %q:\n%s", part, texts)
		}
	}
}

func TestANewMessageReplacesTheRunningReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	first := replyWith("First", " and more").gated()
	s.model.enqueue(first, replyWith("Second."))
	sent := s.send(c, "one")
	first.step(1)
	s.eventually("a piece arrives", func() bool { return s.events.deltas(t, sent.GenerationID, "text", 0) == "First" })
	next, err := s.sendBusy(c, "two", "cancel")
	s.must(err)
	s.wait(next.GenerationID)
	if m := s.message(sent.Message.ID); m.Status != chat.StatusCancelled || m.Text() != "First" {
		t.Errorf("the first reply: %s, %q", m.Status, m.Text())
	}
	if m := s.message(next.Message.ID); m.Status != chat.StatusComplete || m.Text() != "Second." {
		t.Errorf("the second reply: %s, %q", m.Status, m.Text())
	}
	if s.model.closedRequests() != 1 {
		t.Errorf("%d requests were closed", s.model.closedRequests())
	}
}

func TestReplyLimitAndQueueOfAUser(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{GenerationsPerUser: 2, QueuePerUser: 1})
	chats := []*chat.Conversation{s.chat(), s.chat(), s.chat(), s.chat()}
	a, b := replyWith("a").gated(), replyWith("b").gated()
	s.model.enqueue(a)
	one := s.send(chats[0], "hi")
	<-a.started
	s.model.enqueue(b)
	two := s.send(chats[1], "hi")
	<-b.started
	three := s.send(chats[2], "hi")
	if g := s.generation(three.GenerationID); g.Status != chat.GenQueued {
		t.Errorf("the third is %s", g.Status)
	}
	_, err := s.sendBusy(chats[3], "hi", "")
	s.wantCode(err, fault.TooManyGenerations)
	if now, _ := s.Chats.Conversation(t.Context(), ann, chats[3].ID); now.HeadID != chats[3].HeadID {
		t.Error("the refused message was stored")
	}
	b.release()
	s.wait(two.GenerationID)
	s.wait(three.GenerationID)
	if m := s.message(three.Message.ID); m.Text() != "Fine." {
		t.Errorf("the third reply = %q", m.Text())
	}
	a.release()
	s.wait(one.GenerationID)
}

func TestCancelOfAQueuedGeneration(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{GenerationsPerUser: 1})
	c, other := s.chat(), s.chat()
	a := replyWith("a").gated()
	s.model.enqueue(a)
	one := s.send(c, "hi")
	<-a.started
	two := s.send(other, "hi")
	if status, err := s.Cancel(t.Context(), ann, two.GenerationID); status != chat.GenCancelled || err != nil {
		t.Errorf("cancel: %s, %v", status, err)
	}
	if m := s.message(two.Message.ID); m.Status != chat.StatusCancelled {
		t.Errorf("its message is %s", m.Status)
	}
	a.release()
	s.wait(one.GenerationID)
	if n := len(s.model.allRequests()); n != 1 {
		t.Errorf("the model received %d requests", n)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := newFixtureWithClock(t, nodest.Options{TokensPerDay: 11}, func() time.Time { return noon })
	c := s.chat()
	s.sendAndWait(c, "one") // 10 + 1 tokens
	_, err := s.sendBusy(c, "two", "")
	e := s.wantCode(err, fault.QuotaExceeded)
	if e.RetryAfter != 12*time.Hour {
		t.Errorf("retry after %v, want until midnight", e.RetryAfter)
	}
	if used, limit, err := s.TokensToday(t.Context(), ann); used != 11 || limit != 11 || err != nil {
		t.Errorf("%d of %d tokens, %v", used, limit, err)
	}
	if now, _ := s.Chats.Conversation(t.Context(), ann, c.ID); s.message(now.HeadID).Text() != "Fine." {
		t.Error("the refused message was stored")
	}
	// A message without a reply costs nothing.
	_, err = s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: "two", NoReply: true})
	s.must(err)
}

func TestRunningRepliesCountToTheTokensOfTheDay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 30_000, GenerationsPerUser: 9})
	a := replyWith("a").gated()
	s.model.enqueue(a)
	first := s.send(s.chat(), "hi") // may cost 32,768
	<-a.started
	_, err := s.sendBusy(s.chat(), "hi", "")
	if e := s.wantCode(err, fault.QuotaExceeded); e.RetryAfter > time.Minute {
		t.Errorf("retry after %v, want soon: a reply ends", e.RetryAfter)
	}
	a.release()
	s.wait(first.GenerationID)
}

func TestRequestsInTheBackgroundCountToTheTokensOfTheDay(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 4000})
	model, err := s.MemoryModel(t.Context(), ann, "")
	s.must(err)
	a := replyWith("a").gated()
	s.model.enqueue(a)
	asked := make(chan error)
	go func() {
		_, err := model.Ask(t.Context(), llm.Prompt{Text: "What is new?", MaxTokens: 5000})
		asked <- err
	}()
	<-a.started
	_, err = model.Ask(t.Context(), llm.Prompt{Text: "And what else?", MaxTokens: 10})
	s.wantCode(err, fault.QuotaExceeded)
	_, err = s.sendBusy(s.chat(), "hi", "")
	if e := s.wantCode(err, fault.QuotaExceeded); e.RetryAfter > time.Minute || e.Retry() != "later" {
		t.Errorf("retry %s after %v, want later and soon: a request ends", e.Retry(), e.RetryAfter)
	}
	a.release()
	s.must(<-asked)
	s.sendAndWait(s.chat(), "hi")
}
