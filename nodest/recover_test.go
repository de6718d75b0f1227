package nodest_test

import (
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestAfterACrash(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 3, GenerationsPerUser: 1})
	c, other := s.Chat(), s.Chat()
	reply := nodesttest.Reply("Half a", " sentence").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Tell me")
	queued := s.Say(other, "Me too")
	reply.Step(1)
	s.Eventually("the checkpoint is stored", func() bool { return s.Generation(sent.GenerationID).Text == "Half a" })

	s.Crash()
	g := s.Generation(sent.GenerationID)
	if g.Status != chat.GenInterrupted || g.Finish != "interrupted" || g.EndedAt == nil {
		t.Errorf("generation = %+v", g)
	}
	m := s.Message(sent.Message.ID)
	if m.Text() != "Half a" || m.Status != chat.StatusInterrupted || m.Chosen().Finish != "interrupted" {
		t.Errorf("%s: %+v", m.Status, m.Swipes)
	}
	if m := s.Message(queued.Message.ID); m.Status != chat.StatusInterrupted || len(m.Swipes) != 0 {
		t.Errorf("the queued one: %s, %+v", m.Status, m.Swipes)
	}
	if s.Message(sent.UserMessage.ID).Text() != "Tell me" || s.Message(queued.UserMessage.ID).Text() != "Me too" {
		t.Error("an acknowledged message is lost")
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.Events.TypesOf(g.ID) != want {
		t.Errorf("events = %s, want %s", s.Events.TypesOf(g.ID), want)
	}
	// Nothing is busy, and the interrupted reply can be continued.
	s.Model.Enqueue(nodesttest.Reply(" story."))
	done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
	s.Must(err)
	s.Await(done.GenerationID)
	if m := s.Message(m.ID); m.Text() != "Half a story." || m.Status != chat.StatusComplete {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
	// A second recovery finds nothing.
	rev := s.Message(m.ID).Rev
	s.Must(s.Recover(t.Context()))
	if now := s.Message(m.ID).Rev; now != rev {
		t.Errorf("rev grew from %d to %d", rev, now)
	}
}

// Nobody has checked the marks of what was written when the process died.
func TestAReplyThatACrashEndedHasNoMarks(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 3})
	reply := nodesttest.Reply("Tea is at five [^1].", " Or").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(s.Chat(), "When?")
	reply.Step(1)
	s.Eventually("the checkpoint is stored", func() bool { return s.Generation(sent.GenerationID).Text != "" })
	s.Crash()
	if m := s.Message(sent.Message.ID); m.Text() != "Tea is at five." || m.Status != chat.StatusInterrupted {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
}

// A process that lost its generation notices at its next checkpoint, closes its
// request and stores nothing.
func TestAProcessThatLostItsLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1})
	c := s.Chat()
	reply := nodesttest.Reply("One", " two", " three").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Count")
	reply.Step(1)
	s.Eventually("the checkpoint is stored", func() bool { return s.Generation(sent.GenerationID).Text == "One" })
	s.Crash()
	rev := s.Message(sent.Message.ID).Rev
	reply.Step(1) // the old process is still running
	s.Eventually("its request is closed", func() bool { return s.Model.ClosedRequests() == 1 })
	m := s.Message(sent.Message.ID)
	if m.Text() != "One" || m.Rev != rev {
		t.Errorf("the old process has stored %q at rev %d", m.Text(), m.Rev)
	}
}

// Both processes tell the end from the moment when it is stored, although the one that
// writes learns of it later.
func TestCancelOfAGenerationOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1})
	s.Options.Alone = false
	s.Engine = s.AnotherEngine()
	first := s.Engine
	c := s.Chat()
	reply := nodesttest.Reply("One", " two").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Count")
	reply.Step(1)
	s.Eventually("the checkpoint is stored", func() bool { return s.Generation(sent.GenerationID).Text == "One" })
	s.Options.Process = "second"
	s.Engine = s.AnotherEngine()

	attached, err := s.Attach(t.Context(), nodesttest.Ann, sent.GenerationID, 1)
	s.Must(err)
	if attached.Text != "ne" {
		t.Errorf("attached %q", attached.Text)
	}
	status, err := s.Cancel(t.Context(), nodesttest.Ann, sent.GenerationID)
	s.Must(err)
	if status != chat.GenCancelled {
		t.Errorf("status = %s", status)
	}
	if m := s.Message(sent.Message.ID); m.Status != chat.StatusCancelled || m.Text() != "One" {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
	if g := s.Await(sent.GenerationID); g.Status != chat.GenCancelled {
		t.Errorf("the generation is %s", g.Status)
	}
	attached, err = first.Attach(t.Context(), nodesttest.Ann, sent.GenerationID, 0)
	s.Must(err)
	if attached.Generation.Status != chat.GenCancelled || attached.Text != "One" {
		t.Errorf("the process that writes it says %s, %q", attached.Generation.Status, attached.Text)
	}
	reply.Step(1)
	s.Eventually("the other process closes its request", func() bool { return s.Model.ClosedRequests() == 1 })
}

// A process that is not alone does not take over a generation before its lease has
// expired.
func TestRecoverRespectsLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{Lease: time.Hour})
	c := s.Chat()
	reply := nodesttest.Reply("One").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Count")
	<-reply.Started
	first := s.Engine
	s.Must(first.Recover(t.Context())) // its own generation is still running

	s.Options.Alone = false
	second := s.AnotherEngine()
	s.Must(second.Recover(t.Context()))
	if g := s.Generation(sent.GenerationID); g.Ended() {
		t.Errorf("the generation of a living process is %s", g.Status)
	}
	reply.Release()
	if g := s.Await(sent.GenerationID); g.Status != chat.GenDone {
		t.Errorf("status = %s", g.Status)
	}
}

func TestRecoverEndsGenerationsWithExpiredLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	past, lost := time.Now().Add(-time.Hour), op.NewID()
	s.Must(s.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		return tx.InsertGeneration(&chat.Generation{ID: lost, UserID: nodesttest.Ann, ConversationID: c.ID, Kind: chat.KindImpersonate,
			Status: chat.GenStreaming, Writing: chat.Writing{Text: "so far"}, Lease: chat.Lease{LeaseOwner: "gone", LeaseUntil: past}, Moments: chat.Moments{CreatedAt: past}})
	}))
	s.Options.Alone = false
	s.Engine = s.AnotherEngine()
	s.Must(s.Recover(t.Context()))
	if g := s.Generation(lost); g.Status != chat.GenInterrupted || g.Text != "so far" {
		t.Errorf("generation = %+v", g)
	}
}
