package nodest_test

import (
	"testing"
	"time"

	"nodest/chat"
	"nodest/nodest"
	"nodest/op"
)

func TestAfterACrash(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 3, GenerationsPerUser: 1})
	c, other := s.chat(), s.chat()
	reply := replyWith("Half a", " sentence").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Tell me")
	queued := s.send(other, "Me too")
	reply.step(1)
	s.eventually("the checkpoint is stored", func() bool { return s.generation(sent.GenerationID).Text == "Half a" })

	s.crash()
	g := s.generation(sent.GenerationID)
	if g.Status != chat.GenInterrupted || g.Finish != "interrupted" || g.EndedAt == nil {
		t.Errorf("generation = %+v", g)
	}
	m := s.message(sent.Message.ID)
	if m.Text() != "Half a" || m.Status != chat.StatusInterrupted || m.Chosen().Finish != "interrupted" {
		t.Errorf("%s: %+v", m.Status, m.Swipes)
	}
	if m := s.message(queued.Message.ID); m.Status != chat.StatusInterrupted || len(m.Swipes) != 0 {
		t.Errorf("the queued one: %s, %+v", m.Status, m.Swipes)
	}
	if s.message(sent.UserMessage.ID).Text() != "Tell me" || s.message(queued.UserMessage.ID).Text() != "Me too" {
		t.Error("an acknowledged message is lost")
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.events.typesOf(g.ID) != want {
		t.Errorf("events = %s, want %s", s.events.typesOf(g.ID), want)
	}
	// Nothing is busy, and the interrupted reply can be continued.
	s.model.enqueue(replyWith(" story."))
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: m.ID})
	s.must(err)
	s.wait(done.GenerationID)
	if m := s.message(m.ID); m.Text() != "Half a story." || m.Status != chat.StatusComplete {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
	// A second recovery finds nothing.
	rev := s.message(m.ID).Rev
	s.must(s.Recover(t.Context()))
	if now := s.message(m.ID).Rev; now != rev {
		t.Errorf("rev grew from %d to %d", rev, now)
	}
}

// Nobody has checked the marks of what was written when the process died.
func TestAReplyThatACrashEndedHasNoMarks(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 3})
	reply := replyWith("Tea is at five [^1].", " Or").gated()
	s.model.enqueue(reply)
	sent := s.send(s.chat(), "When?")
	reply.step(1)
	s.eventually("the checkpoint is stored", func() bool { return s.generation(sent.GenerationID).Text != "" })
	s.crash()
	if m := s.message(sent.Message.ID); m.Text() != "Tea is at five." || m.Status != chat.StatusInterrupted {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
}

// A process that lost its generation notices at its next checkpoint, closes its
// request and stores nothing.
func TestAProcessThatLostItsLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1})
	c := s.chat()
	reply := replyWith("One", " two", " three").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Count")
	reply.step(1)
	s.eventually("the checkpoint is stored", func() bool { return s.generation(sent.GenerationID).Text == "One" })
	s.crash()
	rev := s.message(sent.Message.ID).Rev
	reply.step(1) // the old process is still running
	s.eventually("its request is closed", func() bool { return s.model.closedRequests() == 1 })
	m := s.message(sent.Message.ID)
	if m.Text() != "One" || m.Rev != rev {
		t.Errorf("the old process has stored %q at rev %d", m.Text(), m.Rev)
	}
}

// Both processes tell the end from the moment when it is stored, although the one that
// writes learns of it later.
func TestCancelOfAGenerationOfAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{CheckpointChars: 1})
	s.opts.Alone = false
	s.Engine = s.engine()
	first := s.Engine
	c := s.chat()
	reply := replyWith("One", " two").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Count")
	reply.step(1)
	s.eventually("the checkpoint is stored", func() bool { return s.generation(sent.GenerationID).Text == "One" })
	s.opts.Process = "second"
	s.Engine = s.engine()

	attached, err := s.Attach(t.Context(), ann, sent.GenerationID, 1)
	s.must(err)
	if attached.Text != "ne" {
		t.Errorf("attached %q", attached.Text)
	}
	status, err := s.Cancel(t.Context(), ann, sent.GenerationID)
	s.must(err)
	if status != chat.GenCancelled {
		t.Errorf("status = %s", status)
	}
	if m := s.message(sent.Message.ID); m.Status != chat.StatusCancelled || m.Text() != "One" {
		t.Errorf("%s: %q", m.Status, m.Text())
	}
	if g := s.wait(sent.GenerationID); g.Status != chat.GenCancelled {
		t.Errorf("the generation is %s", g.Status)
	}
	attached, err = first.Attach(t.Context(), ann, sent.GenerationID, 0)
	s.must(err)
	if attached.Generation.Status != chat.GenCancelled || attached.Text != "One" {
		t.Errorf("the process that writes it says %s, %q", attached.Generation.Status, attached.Text)
	}
	reply.step(1)
	s.eventually("the other process closes its request", func() bool { return s.model.closedRequests() == 1 })
}

// A process that is not alone does not take over a generation before its lease has
// expired.
func TestRecoverRespectsLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{Lease: time.Hour})
	c := s.chat()
	reply := replyWith("One").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Count")
	<-reply.started
	first := s.Engine
	s.must(first.Recover(t.Context())) // its own generation is still running

	s.opts.Alone = false
	second := s.engine()
	s.must(second.Recover(t.Context()))
	if g := s.generation(sent.GenerationID); g.Ended() {
		t.Errorf("the generation of a living process is %s", g.Status)
	}
	reply.release()
	if g := s.wait(sent.GenerationID); g.Status != chat.GenDone {
		t.Errorf("status = %s", g.Status)
	}
}

func TestRecoverEndsGenerationsWithExpiredLeases(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	past, lost := time.Now().Add(-time.Hour), op.NewID()
	s.must(s.db.Update(t.Context(), ann, func(tx nodest.Tx) error {
		return tx.InsertGeneration(&chat.Generation{ID: lost, UserID: ann, ConversationID: c.ID, Kind: chat.KindImpersonate,
			Status: chat.GenStreaming, Text: "so far", LeaseOwner: "gone", LeaseUntil: past, CreatedAt: past})
	}))
	s.opts.Alone = false
	s.Engine = s.engine()
	s.must(s.Recover(t.Context()))
	if g := s.generation(lost); g.Status != chat.GenInterrupted || g.Text != "so far" {
		t.Errorf("generation = %+v", g)
	}
}
