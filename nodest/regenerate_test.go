package nodest_test

import (
	"strings"
	"testing"

	"nodest/fault"
	"nodest/llm"
	"nodest/nodest"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// regenerate asks for another swipe and waits for it.
func (s *studio) regenerate(messageID, wish string) *nodest.Message {
	s.t.Helper()
	done, err := s.Regenerate(s.t.Context(), s.call(), nodest.GenerateInput{MessageID: messageID, Wish: wish})
	s.must(err)
	s.wait(done.GenerationID)
	return s.message(messageID)
}

func TestRegenerateAddsASwipe(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	s.model.next(says("First."))
	reply := s.say(c, "Tell me")
	later := s.say(c, "And then?")
	s.model.next(says("Another."))
	m := s.regenerate(reply.ID, "shorter, please")
	if len(m.Swipes) != 2 || m.Text() != "Another." || m.SwipeIndex != 1 || m.Swipes[0].Text != "First." {
		t.Errorf("swipes = %+v, chosen %d", m.Swipes, m.SwipeIndex)
	}
	if contains(s.model.last(), "First.") || contains(s.model.last(), "And then?") {
		t.Errorf("the prompt has what stands at or behind the message:\n%s", s.model.last())
	}
	if !contains(s.model.last(), "【重写要求】shorter, please") {
		t.Errorf("the prompt lacks the wish:\n%s", s.model.last())
	}
	all := s.model.asked()
	if v := all[len(all)-1].Variant; v != 1 {
		t.Errorf("variant = %d", v)
	}
	said := s.message(reply.ParentID)
	if said.Text() != "Tell me" {
		t.Errorf("the user's message became %q", said.Text())
	}
	// The head stays, and the next prompt has the swipe that is shown.
	if now, _ := s.Conversation(t.Context(), ann, c.ID); now.HeadID != later.ID {
		t.Errorf("head = %s, want %s", now.HeadID, later.ID)
	}
	s.say(c, "Go on")
	if contains(s.model.last(), "First.") || !contains(s.model.last(), "Another.") || contains(s.model.last(), "重写要求") {
		t.Errorf("the next prompt:\n%s", s.model.last())
	}
}

func TestAFailedRegenerateChangesNothing(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	reply := s.say(c, "Tell me")
	down := llm.Upstream("puppet", fault.UpstreamDown, 503, nil)
	s.model.next(says().failing(down))
	m := s.regenerate(reply.ID, "")
	if m.Rev != reply.Rev || m.Status != nodest.StatusComplete || len(m.Swipes) != 1 || m.Error != nil {
		t.Errorf("after a failure: %+v", m)
	}
	// What came before the failure is kept, but not shown.
	s.model.next(says("Half").failing(down))
	m = s.regenerate(reply.ID, "")
	if m.Text() != "Fine." || len(m.Swipes) != 2 || m.Swipes[1].Text != "Half" || m.Swipes[1].Finish != "error" || m.Status != nodest.StatusComplete {
		t.Errorf("after half a failure: %+v", m)
	}
}

func TestRegenerateTheGreeting(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	ch := s.character(`{"spec":"chara_card_v2","data":{"name":"Alice","first_mes":"Hello.","alternate_greetings":["Hi."]}}`)
	c := s.chatWith(ch.ID)
	_, err := s.Edit(t.Context(), s.call(), nodest.EditInput{MessageID: c.HeadID, Text: "Go away."})
	s.must(err)
	_, err = s.Swipe(t.Context(), s.call(), nodest.SwipeInput{MessageID: c.HeadID, Swipe: "next"})
	s.must(err)
	before := s.message(c.HeadID)
	done, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: c.HeadID})
	s.must(err)
	m := s.message(c.HeadID)
	if done.GenerationID != "" || m.Text() != "Hello." || m.SwipeIndex != 0 || len(m.Swipes) != 2 || m.Rev != before.Rev+1 {
		t.Errorf("greeting = %+v, generation %q", m, done.GenerationID)
	}
	if m.Swipes[0].Rev != 3 || m.Swipes[1].Rev != 1 {
		t.Errorf("revisions %d and %d, want 3 (written, edited, reset) and 1", m.Swipes[0].Rev, m.Swipes[1].Rev)
	}
	if n := len(s.model.asked()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestOnlyCharactersAreRegenerated(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	reply := s.say(c, "Tell me")
	_, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.wants(err, fault.Invalid)
	_, err = s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.wants(err, fault.Invalid)
	_, err = s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: "nobody"})
	s.wants(err, fault.NotFound)
	_, err = s.DeleteMessage(t.Context(), s.call(), reply.ID, "one")
	s.must(err)
	_, err = s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.wants(err, fault.NotFound)
}

func TestContinueLengthensTheSwipe(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	s.model.next(says("Once upon 茶").failing(llm.CutOff("puppet", nil)))
	m := s.say(c, "A story")
	before := *m.Chosen()
	s.model.next(says(" a", " time."))
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: m.ID})
	s.must(err)
	s.wait(done.GenerationID)
	m = s.message(m.ID)
	chosen := m.Chosen()
	if m.Text() != "Once upon 茶 a time." || len(m.Swipes) != 1 || chosen.Rev != 2 || chosen.ID != before.ID || chosen.RevisionID == before.RevisionID {
		t.Errorf("swipes = %+v", m.Swipes)
	}
	if m.Status != nodest.StatusComplete || chosen.Finish != "stop" || m.Error != nil {
		t.Errorf("status %s, finish %s, error %v", m.Status, chosen.Finish, m.Error)
	}
	if got := s.ears.deltas(t, done.GenerationID, "text", len([]rune("Once upon 茶"))); got != " a time." {
		t.Errorf("deltas = %q", got)
	}
	all := s.model.asked()
	if task := all[len(all)-1].Task; task != llm.Continue || !contains(s.model.last(), "Once upon 茶") {
		t.Errorf("task %q with:\n%s", task, s.model.last())
	}
	s.view(func(tx nodest.Tx) error { // the old text stays readable
		r, err := tx.Revision(before.RevisionID)
		if err == nil && r.Text != "Once upon 茶" {
			t.Errorf("the first revision is %q", r.Text)
		}
		return err
	})
	attached, err := s.Attach(t.Context(), ann, done.GenerationID, 5)
	s.must(err)
	if attached.Text != "upon 茶 a time." {
		t.Errorf("attach from 5 = %q", attached.Text)
	}
}

func TestContinueWithoutText(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	s.model.next(says().failing(llm.CutOff("puppet", nil)))
	m := s.say(c, "A story")
	_, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: m.ID})
	s.wants(err, fault.Invalid)
}

func TestContinueOfAReplyThatIsStillBeingWritten(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	first := says("One").gated()
	s.model.next(first, says(", two."))
	sent := s.send(c, "Count")
	<-first.begun
	_, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: sent.Message.ID})
	s.wants(err, fault.Busy)
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: sent.Message.ID, WhenBusy: "queue"})
	s.must(err)
	first.release()
	s.wait(done.GenerationID)
	if m := s.message(sent.Message.ID); m.Text() != "One, two." {
		t.Errorf("text = %q", m.Text())
	}
}

func TestImpersonate(t *testing.T) {
	s := newStudio(t, nodest.Options{})
	c := s.chat()
	s.say(c, "Hello")
	before, err := s.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	s.model.next(says("I would", " say this."))
	id, err := s.Impersonate(t.Context(), s.call(), nodest.GenerateInput{ConversationID: c.ID})
	s.must(err)
	g := s.wait(id)
	if g.Text != "I would say this." || g.Status != nodest.GenDone || g.MessageID != "" {
		t.Errorf("generation = %+v", g)
	}
	if got := s.ears.deltas(t, id, "text", 0); got != g.Text {
		t.Errorf("deltas = %q", got)
	}
	if want := "gen.started gen.context gen.done"; s.ears.durable(id) != want {
		t.Errorf("events = %s", s.ears.durable(id))
	}
	now, err := s.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	if now.HeadID != before.HeadID || now.Version != before.Version {
		t.Errorf("the conversation has changed: %+v", now)
	}
	all := s.model.asked()
	if task := all[len(all)-1].Task; task != llm.Impersonate {
		t.Errorf("task = %q", task)
	}
}
