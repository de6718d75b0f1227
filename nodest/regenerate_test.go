package nodest_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/nodest"
)

// describeBranch renders the messages of the shown branch and the chosen text of
// each.
func (s *fixture) describeBranch(conversationID string) string {
	s.t.Helper()
	page, err := s.Chats.History(s.t.Context(), ann, conversationID, "", 200)
	s.must(err)
	var b strings.Builder
	for _, m := range page.Items {
		fmt.Fprintf(&b, "%s %s: %s (%s, swipe %d)\n", m.ID, m.Role, m.Text(), m.Status, m.SwipeIndex)
	}
	return b.String()
}

func (s *fixture) head(conversationID string) string {
	s.t.Helper()
	c, err := s.Chats.Conversation(s.t.Context(), ann, conversationID)
	s.must(err)
	return c.HeadID
}

func TestRegenerateOfTheLastReplyAddsASwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("First."))
	reply := s.sendAndWait(c, "Tell me")
	s.model.enqueue(replyWith("Another."))
	m := s.regenerate(reply.ID, "shorter, please")
	if m.ID != reply.ID || len(m.Swipes) != 2 || m.Text() != "Another." || m.SwipeIndex != 1 || m.Swipes[0].Text != "First." {
		t.Errorf("swipes = %+v, chosen %d", m.Swipes, m.SwipeIndex)
	}
	if strings.Contains(s.model.lastRequest(), "First.") || !strings.Contains(s.model.lastRequest(), "[Rewrite request] shorter, please") {
		t.Errorf("the prompt has the old text, or lacks the wish:\n%s", s.model.lastRequest())
	}
	all := s.model.allRequests()
	if v := all[len(all)-1].Variant; v != 1 {
		t.Errorf("variant = %d", v)
	}
	if said := s.message(reply.ParentID); said.Text() != "Tell me" {
		t.Errorf("the user's message became %q", said.Text())
	}
	if head := s.head(c.ID); head != reply.ID {
		t.Errorf("head = %s, want %s", head, reply.ID)
	}
}

// Regenerating a reply that was answered starts a new branch, which is shown as soon
// as it is complete; the old branch stays as it was.
func TestRegenerateOfAnEarlierReplyIsABranch(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("First."))
	reply := s.sendAndWait(c, "Tell me")
	later := s.sendAndWait(c, "And then?")
	before := s.describeBranch(c.ID)

	another := replyWith("An", "other.").gated()
	s.model.enqueue(another)
	done, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.must(err)
	place := done.Message
	if place.ID == reply.ID || place.ParentID != reply.ParentID || place.Status != chat.StatusPending || place.GenerationID != done.GenerationID {
		t.Errorf("the place is %+v", place)
	}
	another.step(1)
	if s.head(c.ID) != later.ID || s.describeBranch(c.ID) != before {
		t.Errorf("while it is written the chat shows\n%s", s.describeBranch(c.ID))
	}
	another.release()
	s.wait(done.GenerationID)

	m := s.message(place.ID)
	if m.Text() != "Another." || m.Status != chat.StatusComplete || len(m.Swipes) != 1 {
		t.Errorf("the new reply = %+v", m)
	}
	now, err := s.Chats.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	if now.HeadID != m.ID || now.LastMessage.Text != "Another." {
		t.Errorf("the chat ends in %+v", now.LastMessage)
	}
	if strings.Contains(s.model.lastRequest(), "First.") || strings.Contains(s.model.lastRequest(), "And then?") {
		t.Errorf("the prompt has other branches or later messages:\n%s", s.model.lastRequest())
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.events.typesOf(done.GenerationID) != want {
		t.Errorf("events = %s, want %s", s.events.typesOf(done.GenerationID), want)
	}
	if old := s.message(reply.ID); old.Rev != reply.Rev || old.Text() != "First." {
		t.Errorf("the old reply became %+v", old)
	}
	// The next turn continues the new branch; the old one can still be chosen.
	s.sendAndWait(c, "Go on")
	if strings.Contains(s.model.lastRequest(), "First.") || strings.Contains(s.model.lastRequest(), "And then?") || !strings.Contains(s.model.lastRequest(), "Another.") {
		t.Errorf("the next prompt:\n%s", s.model.lastRequest())
	}
	_, err = s.Chats.ChooseHead(t.Context(), s.call(), c.ID, later.ID)
	s.must(err)
	if s.describeBranch(c.ID) != before {
		t.Errorf("the old branch reads\n%s", s.describeBranch(c.ID))
	}
}

func TestEveryRegenerateIsAnotherVariant(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "Tell me")
	s.sendAndWait(c, "And then?")
	first := s.regenerate(reply.ID, "")  // on a new branch
	s.regenerate(first.ID, "")           // a swipe of that reply
	second := s.regenerate(reply.ID, "") // on a third branch
	_, err := s.Chats.DeleteMessage(t.Context(), s.call(), second.ID, "one")
	s.must(err)
	s.regenerate(reply.ID, "")
	var variants []int
	for _, r := range s.model.allRequests() {
		variants = append(variants, r.Variant)
	}
	if !slices.Equal(variants, []int{0, 0, 1, 2, 3, 4}) {
		t.Errorf("variants = %v", variants)
	}
}

// A regenerate that fails, is cancelled or is cut off leaves the shown chat
// unchanged.
func TestAFailedRegenerateChangesNothing(t *testing.T) {
	t.Parallel()
	down := llm.Upstream("scripted", fault.UpstreamDown, 503, nil)
	fails := func(s *fixture, done *chat.Changed) { s.wait(done.GenerationID) }
	cancels := func(s *fixture, done *chat.Changed) {
		_, err := s.Cancel(s.t.Context(), ann, done.GenerationID)
		s.must(err)
	}
	crashes := func(s *fixture, _ *chat.Changed) { s.crash() }
	stops := func(s *fixture, _ *chat.Changed) {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Close(now) // returns the error of the cancelled context
	}
	tests := []struct {
		name     string
		line     *scriptedReply
		pieces   int // passed before the end
		ends     func(s *fixture, done *chat.Changed)
		followed bool   // the reply was answered
		status   string // status of the kept text; "" = nothing is kept
	}{
		{"the last reply, before the first word", replyWith().failing(down), 0, fails, false, ""},
		{"the last reply, half-way", replyWith("Half").failing(down), 0, fails, false, chat.StatusError},
		{"the last reply, stopped before the first word", replyWith("x").gated(), 0, cancels, false, ""},
		{"the last reply, crashed before the first word", replyWith("x").gated(), 0, crashes, false, ""},
		{"an earlier reply, before the first word", replyWith().failing(down), 0, fails, true, ""},
		{"an earlier reply, nothing but blanks", replyWith(" "), 0, fails, true, ""},
		{"an earlier reply, half-way", replyWith("Half").failing(down), 0, fails, true, chat.StatusError},
		{"an earlier reply, stopped before the first word", replyWith("x").gated(), 0, cancels, true, ""},
		{"an earlier reply, crashed before the first word", replyWith("x").gated(), 0, crashes, true, ""},
		{"an earlier reply, crashed half-way", replyWith("Half", "x").gated(), 1, crashes, true, chat.StatusInterrupted},
		{"an earlier reply, the server stops", replyWith("Half", "x").gated(), 1, stops, true, chat.StatusInterrupted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{CheckpointChars: 1})
			c := s.chat()
			reply := s.sendAndWait(c, "Tell me")
			if tt.followed {
				s.sendAndWait(c, "And then?")
			}
			before, head := s.describeBranch(c.ID), s.head(c.ID)
			s.model.enqueue(tt.line)
			done, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
			s.must(err)
			if tt.line.gate != nil {
				tt.line.step(tt.pieces)
				text := strings.Repeat("Half", tt.pieces)
				s.eventually("start and checkpoint are stored and the start is published", func() bool {
					g := s.generation(done.GenerationID)
					return g.StartedAt != nil && g.Text == text && strings.HasSuffix(s.events.typesOf(g.ID), "gen.context")
				})
			}
			tt.ends(s, done)

			if got := s.describeBranch(c.ID); got != before || s.head(c.ID) != head {
				t.Errorf("the chat reads\n%s\nwant\n%s", got, before)
			}
			m := s.message(done.Message.ID)
			switch {
			case !tt.followed && tt.status == "":
				if m.Rev != reply.Rev {
					t.Errorf("the reply became %+v", m)
				}
			case !tt.followed: // kept, but not shown
				if len(m.Swipes) != 2 || m.Swipes[1].Text != "Half" || m.Swipes[1].Finish != tt.status {
					t.Errorf("the reply became %+v", m)
				}
			case tt.status == "":
				events := s.events.typesOf(done.GenerationID)
				if want := "message.created gen.started gen.context message.deleted gen."; m.DeletedAt == nil || !strings.HasPrefix(events, want) {
					t.Errorf("the place is %+v after %s", m, events)
				}
			default:
				if m.DeletedAt != nil || m.Text() != "Half" || m.Status != tt.status {
					t.Errorf("the place is %+v", m)
				}
			}
		})
	}
}

func TestRegenerateTheGreeting(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.character(`{"spec":"chara_card_v2","data":{"name":"Alice","first_mes":"Hello.","alternate_greetings":["Hi."]}}`)
	c := s.chatWith(ch.ID)
	_, err := s.Edit(t.Context(), s.call(), chat.EditInput{MessageID: c.HeadID, Text: "Go away."})
	s.must(err)
	_, err = s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: c.HeadID, Swipe: "next"})
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
	if n := len(s.model.allRequests()); n != 0 {
		t.Errorf("the model received %d requests", n)
	}
}

func TestOnlyRepliesAreRegenerated(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "Tell me")
	_, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.wantCode(err, fault.Invalid)
	_, err = s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.wantCode(err, fault.Invalid)
	_, err = s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: "nobody"})
	s.wantCode(err, fault.NotFound)
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), reply.ID, "one")
	s.must(err)
	_, err = s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.wantCode(err, fault.NotFound)
}

func TestContinueExtendsTheSwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("Once upon 茶").failing(llm.CutOff("scripted", nil)))
	m := s.sendAndWait(c, "A story")
	before := *m.Chosen()
	s.model.enqueue(replyWith(" a", " time."))
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: m.ID})
	s.must(err)
	s.wait(done.GenerationID)
	m = s.message(m.ID)
	chosen := m.Chosen()
	if m.Text() != "Once upon 茶 a time." || len(m.Swipes) != 1 || chosen.Rev != 2 || chosen.ID != before.ID || chosen.RevisionID == before.RevisionID {
		t.Errorf("swipes = %+v", m.Swipes)
	}
	if m.Status != chat.StatusComplete || chosen.Finish != "stop" || m.Error != nil {
		t.Errorf("status %s, finish %s, error %v", m.Status, chosen.Finish, m.Error)
	}
	if got := s.events.deltas(t, done.GenerationID, "text", len([]rune("Once upon 茶"))); got != " a time." {
		t.Errorf("deltas = %q", got)
	}
	all := s.model.allRequests()
	if task := all[len(all)-1].Task; task != llm.Continue || !strings.Contains(s.model.lastRequest(), "Once upon 茶") {
		t.Errorf("task %q with:\n%s", task, s.model.lastRequest())
	}
	s.view(func(tx nodest.Tx) error { // the old text can still be read
		r, err := tx.Chats.Revision(before.RevisionID)
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
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith().failing(llm.CutOff("scripted", nil)))
	m := s.sendAndWait(c, "A story")
	_, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: m.ID})
	s.wantCode(err, fault.Invalid)
}

func TestContinueOfAReplyThatIsStillBeingWritten(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	first := replyWith("One").gated()
	s.model.enqueue(first, replyWith(", two."))
	sent := s.send(c, "Count")
	<-first.started
	_, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: sent.Message.ID})
	s.wantCode(err, fault.Busy)
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: sent.Message.ID, WhenBusy: "queue"})
	s.must(err)
	first.release()
	s.wait(done.GenerationID)
	if m := s.message(sent.Message.ID); m.Text() != "One, two." {
		t.Errorf("text = %q", m.Text())
	}
}

func TestImpersonate(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.sendAndWait(c, "Hello")
	before, err := s.Chats.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	s.model.enqueue(replyWith("I would", " say this."))
	id, err := s.Impersonate(t.Context(), s.call(), nodest.GenerateInput{ConversationID: c.ID})
	s.must(err)
	g := s.wait(id)
	if g.Text != "I would say this." || g.Status != chat.GenDone || g.MessageID != "" {
		t.Errorf("generation = %+v", g)
	}
	if got := s.events.deltas(t, id, "text", 0); got != g.Text {
		t.Errorf("deltas = %q", got)
	}
	if want := "gen.started gen.context gen.done"; s.events.typesOf(id) != want {
		t.Errorf("events = %s", s.events.typesOf(id))
	}
	now, err := s.Chats.Conversation(t.Context(), ann, c.ID)
	s.must(err)
	if now.HeadID != before.HeadID || now.Version != before.Version {
		t.Errorf("the conversation has changed: %+v", now)
	}
	all := s.model.allRequests()
	if task := all[len(all)-1].Task; task != llm.Impersonate {
		t.Errorf("task = %q", task)
	}
}

// The wish of a regenerate belongs to the swipe it produced: later prompts include it
// at its place while that swipe is chosen.
func TestAWishStaysWithItsSwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "Tell me")
	m := s.regenerate(reply.ID, " shorter, please\n")
	if w := m.Chosen().Wish; w != "shorter, please" {
		t.Errorf("the swipe keeps the wish %q", w)
	}
	wished := func(what, wish string) {
		t.Helper()
		p, err := s.PreviewPrompt(t.Context(), ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And?"})
		s.must(err)
		want := "Tell me"
		if wish != "" {
			want += "\n\n[Rewrite request] " + wish
		}
		if got := promptText(p.Messages); !strings.Contains(got, want+"\n") || strings.Count(got, "[Rewrite request]") != min(len(wish), 1) {
			t.Errorf("%s: the prompt is\n%s\nwant %q in it", what, got, want)
		}
	}
	wished("the new text", "shorter, please")
	_, err := s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "prev"})
	s.must(err)
	wished("the first text again", "")
	_, err = s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "next"})
	s.must(err)
	done, err := s.Continue(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.must(err)
	s.wait(done.GenerationID)
	wished("lengthened", "shorter, please")
	s.edit(chat.EditInput{MessageID: reply.ID, Text: "By hand."})
	wished("edited", "shorter, please")

	// The stored prompt has the wish although no message has it.
	next := s.sendAndWait(c, "Go on")
	p, err := s.Prompt(t.Context(), ann, s.generation(next.GenerationID).PromptID)
	s.must(err)
	all := s.model.allRequests()
	if !reflect.DeepEqual(p.Prompt.Messages, all[len(all)-1].Messages) || !strings.Contains(s.model.lastRequest(), "[Rewrite request] shorter, please") {
		t.Errorf("sent:\n%s\nstored: %v", s.model.lastRequest(), p.Prompt.Messages)
	}

	// Another wish replaces it, also on a new branch.
	s.regenerate(reply.ID, "in verse")
	if strings.Contains(s.model.lastRequest(), "shorter") {
		t.Errorf("the request has both wishes:\n%s", s.model.lastRequest())
	}
	wished("another wish", "in verse")
	s.regenerate(s.head(c.ID), "")
	wished("without a wish", "")
}

// A message sent during a regenerate follows the branch that its sender saw, and that
// branch stays shown.
func TestAMessageSentDuringARegenerateStaysShown(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := s.sendAndWait(c, "q1")
	later := s.sendAndWait(c, "q2")
	another := replyWith("Another.").gated()
	s.model.enqueue(another)
	done, err := s.Regenerate(t.Context(), s.call(), nodest.GenerateInput{MessageID: reply.ID})
	s.must(err)
	<-another.started
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), done.Message.ID, "one")
	s.wantCode(err, fault.Busy)
	sent, err := s.Send(t.Context(), s.call(), nodest.SendInput{ConversationID: c.ID, Text: "q3", WhenBusy: "queue"})
	s.must(err)
	another.release()
	s.wait(sent.GenerationID)
	if said := s.message(sent.UserMessage.ID); said.ParentID != later.ID || s.head(c.ID) != sent.Message.ID {
		t.Errorf("q3 follows %s, the head is %s", said.ParentID, s.head(c.ID))
	}
	if m := s.message(done.Message.ID); m.Text() != "Another." || m.Status != chat.StatusComplete {
		t.Errorf("the regenerated reply is %+v", m)
	}
}

// The offline model gives a different reply each time, also on a new branch.
func TestTheOfflineModelVariesItsReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.realModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	c := s.chat()
	reply := s.sendAndWait(c, "Tell me about the harbour.")
	s.sendAndWait(c, "And then?")
	done, err := s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "next", GenerateIfLast: true})
	s.must(err)
	s.wait(done.GenerationID)
	m := s.message(done.Message.ID)
	if m.ID == reply.ID || m.Text() == "" || m.Text() == reply.Text() || s.head(c.ID) != m.ID {
		t.Errorf("the new branch of %q has %+v", reply.Text(), m)
	}
}
