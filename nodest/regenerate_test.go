package nodest_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// describeBranch renders the messages of the shown branch and the chosen text of
// each.
func (s *fixture) describeBranch(conversationID string) string {
	s.T.Helper()
	page, err := s.Chats.History(s.T.Context(), nodesttest.Ann, conversationID, "", 200)
	s.Must(err)
	var b strings.Builder
	for _, m := range page.Items {
		fmt.Fprintf(&b, "%s %s: %s (%s, swipe %d)\n", m.ID, m.Role, m.Text(), m.Status, m.SwipeIndex)
	}
	return b.String()
}

func (s *fixture) head(conversationID string) string {
	s.T.Helper()
	c, err := s.Chats.Conversation(s.T.Context(), nodesttest.Ann, conversationID)
	s.Must(err)
	return c.HeadID
}

func TestRegenerateOfTheLastReplyAddsASwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("First."))
	reply := s.SayAndWait(c, "Tell me")
	s.Model.Enqueue(nodesttest.Reply("Another."))
	m := s.RegenerateReply(reply.ID, "shorter, please")
	if m.ID != reply.ID || len(m.Swipes) != 2 || m.Text() != "Another." || m.SwipeIndex != 1 || m.Swipes[0].Text != "First." {
		t.Errorf("swipes = %+v, chosen %d", m.Swipes, m.SwipeIndex)
	}
	if strings.Contains(s.Model.LastRequest(), "First.") || !strings.Contains(s.Model.LastRequest(), "[Rewrite request] shorter, please") {
		t.Errorf("the prompt has the old text, or lacks the wish:\n%s", s.Model.LastRequest())
	}
	all := s.Model.AllRequests()
	if v := all[len(all)-1].Variant; v != 1 {
		t.Errorf("variant = %d", v)
	}
	if said := s.Message(reply.ParentID); said.Text() != "Tell me" {
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
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("First."))
	reply := s.SayAndWait(c, "Tell me")
	later := s.SayAndWait(c, "And then?")
	before := s.describeBranch(c.ID)

	another := nodesttest.Reply("An", "other.").Gated()
	s.Model.Enqueue(another)
	done, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	place := done.Message
	if place.ID == reply.ID || place.ParentID != reply.ParentID || place.Status != chat.StatusPending || place.GenerationID != done.GenerationID {
		t.Errorf("the place is %+v", place)
	}
	another.Step(1)
	if s.head(c.ID) != later.ID || s.describeBranch(c.ID) != before {
		t.Errorf("while it is written the chat shows\n%s", s.describeBranch(c.ID))
	}
	another.Release()
	s.Await(done.GenerationID)

	m := s.Message(place.ID)
	if m.Text() != "Another." || m.Status != chat.StatusComplete || len(m.Swipes) != 1 {
		t.Errorf("the new reply = %+v", m)
	}
	now, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
	s.Must(err)
	if now.HeadID != m.ID || now.LastMessage.Text != "Another." {
		t.Errorf("the chat ends in %+v", now.LastMessage)
	}
	if strings.Contains(s.Model.LastRequest(), "First.") || strings.Contains(s.Model.LastRequest(), "And then?") {
		t.Errorf("the prompt has other branches or later messages:\n%s", s.Model.LastRequest())
	}
	if want := "message.created gen.started gen.context message.updated gen.done"; s.Events.TypesOf(done.GenerationID) != want {
		t.Errorf("events = %s, want %s", s.Events.TypesOf(done.GenerationID), want)
	}
	if old := s.Message(reply.ID); old.Rev != reply.Rev || old.Text() != "First." {
		t.Errorf("the old reply became %+v", old)
	}
	// The next turn continues the new branch; the old one can still be chosen.
	s.SayAndWait(c, "Go on")
	if strings.Contains(s.Model.LastRequest(), "First.") || strings.Contains(s.Model.LastRequest(), "And then?") || !strings.Contains(s.Model.LastRequest(), "Another.") {
		t.Errorf("the next prompt:\n%s", s.Model.LastRequest())
	}
	_, err = s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, later.ID)
	s.Must(err)
	if s.describeBranch(c.ID) != before {
		t.Errorf("the old branch reads\n%s", s.describeBranch(c.ID))
	}
}

func TestEveryRegenerateIsAnotherVariant(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "Tell me")
	s.SayAndWait(c, "And then?")
	first := s.RegenerateReply(reply.ID, "")  // on a new branch
	s.RegenerateReply(first.ID, "")           // a swipe of that reply
	second := s.RegenerateReply(reply.ID, "") // on a third branch
	_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), second.ID, "one")
	s.Must(err)
	s.RegenerateReply(reply.ID, "")
	var variants []int
	for _, r := range s.Model.AllRequests() {
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
	fails := func(s *fixture, done *chat.Changed) { s.Await(done.GenerationID) }
	cancels := func(s *fixture, done *chat.Changed) {
		_, err := s.Cancel(s.T.Context(), nodesttest.Ann, done.GenerationID)
		s.Must(err)
	}
	crashes := func(s *fixture, _ *chat.Changed) { s.Crash() }
	stops := func(s *fixture, _ *chat.Changed) {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Close(now) // returns the error of the cancelled context
	}
	tests := []struct {
		name     string
		line     *nodesttest.ScriptedReply
		pieces   int // passed before the end
		ends     func(s *fixture, done *chat.Changed)
		followed bool   // the reply was answered
		status   string // status of the kept text; "" = nothing is kept
	}{
		{"the last reply, before the first word", nodesttest.Reply().Failing(down), 0, fails, false, ""},
		{"the last reply, half-way", nodesttest.Reply("Half").Failing(down), 0, fails, false, chat.StatusError},
		{"the last reply, stopped before the first word", nodesttest.Reply("x").Gated(), 0, cancels, false, ""},
		{"the last reply, crashed before the first word", nodesttest.Reply("x").Gated(), 0, crashes, false, ""},
		{"an earlier reply, before the first word", nodesttest.Reply().Failing(down), 0, fails, true, ""},
		{"an earlier reply, nothing but blanks", nodesttest.Reply(" "), 0, fails, true, ""},
		{"an earlier reply, half-way", nodesttest.Reply("Half").Failing(down), 0, fails, true, chat.StatusError},
		{"an earlier reply, stopped before the first word", nodesttest.Reply("x").Gated(), 0, cancels, true, ""},
		{"an earlier reply, crashed before the first word", nodesttest.Reply("x").Gated(), 0, crashes, true, ""},
		{"an earlier reply, crashed half-way", nodesttest.Reply("Half", "x").Gated(), 1, crashes, true, chat.StatusInterrupted},
		{"an earlier reply, the server stops", nodesttest.Reply("Half", "x").Gated(), 1, stops, true, chat.StatusInterrupted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{CheckpointChars: 1})
			c := s.Chat()
			reply := s.SayAndWait(c, "Tell me")
			if tt.followed {
				s.SayAndWait(c, "And then?")
			}
			before, head := s.describeBranch(c.ID), s.head(c.ID)
			s.Model.Enqueue(tt.line)
			done, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
			s.Must(err)
			if tt.line.Gate != nil {
				tt.line.Step(tt.pieces)
				text := strings.Repeat("Half", tt.pieces)
				s.Eventually("start and checkpoint are stored and the start is published", func() bool {
					g := s.Generation(done.GenerationID)
					return g.StartedAt != nil && g.Text == text && strings.HasSuffix(s.Events.TypesOf(g.ID), "gen.context")
				})
			}
			tt.ends(s, done)

			if got := s.describeBranch(c.ID); got != before || s.head(c.ID) != head {
				t.Errorf("the chat reads\n%s\nwant\n%s", got, before)
			}
			m := s.Message(done.Message.ID)
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
				events := s.Events.TypesOf(done.GenerationID)
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
	ch := s.Character(`{"spec":"chara_card_v2","data":{"name":"Alice","first_mes":"Hello.","alternate_greetings":["Hi."]}}`)
	c := s.ChatWith(ch.ID)
	_, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: c.HeadID, Text: "Go away."})
	s.Must(err)
	_, err = s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: c.HeadID, Swipe: "next"})
	s.Must(err)
	before := s.Message(c.HeadID)
	done, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: c.HeadID})
	s.Must(err)
	m := s.Message(c.HeadID)
	if done.GenerationID != "" || m.Text() != "Hello." || m.SwipeIndex != 0 || len(m.Swipes) != 2 || m.Rev != before.Rev+1 {
		t.Errorf("greeting = %+v, generation %q", m, done.GenerationID)
	}
	if m.Swipes[0].Rev != 3 || m.Swipes[1].Rev != 1 {
		t.Errorf("revisions %d and %d, want 3 (written, edited, reset) and 1", m.Swipes[0].Rev, m.Swipes[1].Rev)
	}
	if n := len(s.Model.AllRequests()); n != 0 {
		t.Errorf("the model received %d requests", n)
	}
}

func TestOnlyRepliesAreRegenerated(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "Tell me")
	_, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.WantCode(err, fault.Invalid)
	_, err = s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ParentID})
	s.WantCode(err, fault.Invalid)
	_, err = s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: "nobody"})
	s.WantCode(err, fault.NotFound)
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), reply.ID, "one")
	s.Must(err)
	_, err = s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.WantCode(err, fault.NotFound)
}

func TestContinueExtendsTheSwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("Once upon 茶").Failing(llm.CutOff("scripted", nil)))
	m := s.SayAndWait(c, "A story")
	before := *m.Chosen()
	s.Model.Enqueue(nodesttest.Reply(" a", " time."))
	done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
	s.Must(err)
	s.Await(done.GenerationID)
	m = s.Message(m.ID)
	chosen := m.Chosen()
	if m.Text() != "Once upon 茶 a time." || len(m.Swipes) != 1 || chosen.Rev != 2 || chosen.ID != before.ID || chosen.RevisionID == before.RevisionID {
		t.Errorf("swipes = %+v", m.Swipes)
	}
	if m.Status != chat.StatusComplete || chosen.Finish != "stop" || m.Error != nil {
		t.Errorf("status %s, finish %s, error %v", m.Status, chosen.Finish, m.Error)
	}
	if got := s.Events.Deltas(t, done.GenerationID, "text", len([]rune("Once upon 茶"))); got != " a time." {
		t.Errorf("deltas = %q", got)
	}
	all := s.Model.AllRequests()
	if task := all[len(all)-1].Task; task != llm.Continue || !strings.Contains(s.Model.LastRequest(), "Once upon 茶") {
		t.Errorf("task %q with:\n%s", task, s.Model.LastRequest())
	}
	s.View(func(tx nodest.Tx) error { // the old text can still be read
		r, err := tx.Chats.Revision(before.RevisionID)
		if err == nil && r.Text != "Once upon 茶" {
			t.Errorf("the first revision is %q", r.Text)
		}
		return err
	})
	attached, err := s.Attach(t.Context(), nodesttest.Ann, done.GenerationID, 5)
	s.Must(err)
	if attached.Text != "upon 茶 a time." {
		t.Errorf("attach from 5 = %q", attached.Text)
	}
}

func TestContinueWithoutText(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.CutOff("scripted", nil)))
	m := s.SayAndWait(c, "A story")
	_, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
	s.WantCode(err, fault.Invalid)
}

func TestContinueOfAReplyThatIsStillBeingWritten(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	first := nodesttest.Reply("One").Gated()
	s.Model.Enqueue(first, nodesttest.Reply(", two."))
	sent := s.Say(c, "Count")
	<-first.Started
	_, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: sent.Message.ID})
	s.WantCode(err, fault.Busy)
	done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: sent.Message.ID, WhenBusy: "queue"})
	s.Must(err)
	first.Release()
	s.Await(done.GenerationID)
	if m := s.Message(sent.Message.ID); m.Text() != "One, two." {
		t.Errorf("text = %q", m.Text())
	}
}

func TestImpersonate(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.SayAndWait(c, "Hello")
	before, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
	s.Must(err)
	s.Model.Enqueue(nodesttest.Reply("I would", " say this."))
	id, err := s.Impersonate(t.Context(), s.Call(), nodest.GenerateInput{ConversationID: c.ID})
	s.Must(err)
	g := s.Await(id)
	if g.Text != "I would say this." || g.Status != chat.GenDone || g.MessageID != "" {
		t.Errorf("generation = %+v", g)
	}
	if got := s.Events.Deltas(t, id, "text", 0); got != g.Text {
		t.Errorf("deltas = %q", got)
	}
	if want := "gen.started gen.context gen.done"; s.Events.TypesOf(id) != want {
		t.Errorf("events = %s", s.Events.TypesOf(id))
	}
	now, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
	s.Must(err)
	if now.HeadID != before.HeadID || now.Version != before.Version {
		t.Errorf("the conversation has changed: %+v", now)
	}
	all := s.Model.AllRequests()
	if task := all[len(all)-1].Task; task != llm.Impersonate {
		t.Errorf("task = %q", task)
	}
}

// The wish of a regenerate belongs to the swipe it produced: later prompts include it
// at its place while that swipe is chosen.
func TestAWishStaysWithItsSwipe(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "Tell me")
	m := s.RegenerateReply(reply.ID, " shorter, please\n")
	if w := m.Chosen().Wish; w != "shorter, please" {
		t.Errorf("the swipe keeps the wish %q", w)
	}
	wished := func(what, wish string) {
		t.Helper()
		p, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, nodest.PreviewInput{ConversationID: c.ID, Text: "And?"})
		s.Must(err)
		want := "Tell me"
		if wish != "" {
			want += "\n\n[Rewrite request] " + wish
		}
		if got := nodesttest.PromptText(p.Messages); !strings.Contains(got, want+"\n") || strings.Count(got, "[Rewrite request]") != min(len(wish), 1) {
			t.Errorf("%s: the prompt is\n%s\nwant %q in it", what, got, want)
		}
	}
	wished("the new text", "shorter, please")
	_, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "prev"})
	s.Must(err)
	wished("the first text again", "")
	_, err = s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "next"})
	s.Must(err)
	done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	s.Await(done.GenerationID)
	wished("lengthened", "shorter, please")
	s.edit(chat.EditInput{MessageID: reply.ID, Text: "By hand."})
	wished("edited", "shorter, please")

	// The stored prompt has the wish although no message has it.
	next := s.SayAndWait(c, "Go on")
	p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(next.GenerationID).PromptID)
	s.Must(err)
	all := s.Model.AllRequests()
	if !reflect.DeepEqual(p.Prompt.Messages, all[len(all)-1].Messages) || !strings.Contains(s.Model.LastRequest(), "[Rewrite request] shorter, please") {
		t.Errorf("sent:\n%s\nstored: %v", s.Model.LastRequest(), p.Prompt.Messages)
	}

	// Another wish replaces it, also on a new branch.
	s.RegenerateReply(reply.ID, "in verse")
	if strings.Contains(s.Model.LastRequest(), "shorter") {
		t.Errorf("the request has both wishes:\n%s", s.Model.LastRequest())
	}
	wished("another wish", "in verse")
	s.RegenerateReply(s.head(c.ID), "")
	wished("without a wish", "")
}

// A message sent during a regenerate follows the branch that its sender saw, and that
// branch stays shown.
func TestAMessageSentDuringARegenerateStaysShown(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "q1")
	later := s.SayAndWait(c, "q2")
	another := nodesttest.Reply("Another.").Gated()
	s.Model.Enqueue(another)
	done, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: reply.ID})
	s.Must(err)
	<-another.Started
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), done.Message.ID, "one")
	s.WantCode(err, fault.Busy)
	sent, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "q3", WhenBusy: "queue"})
	s.Must(err)
	another.Release()
	s.Await(sent.GenerationID)
	if said := s.Message(sent.UserMessage.ID); said.ParentID != later.ID || s.head(c.ID) != sent.Message.ID {
		t.Errorf("q3 follows %s, the head is %s", said.ParentID, s.head(c.ID))
	}
	if m := s.Message(done.Message.ID); m.Text() != "Another." || m.Status != chat.StatusComplete {
		t.Errorf("the regenerated reply is %+v", m)
	}
}

// The offline model gives a different reply each time, also on a new branch.
func TestTheOfflineModelVariesItsReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	c := s.Chat()
	reply := s.SayAndWait(c, "Tell me about the harbour.")
	s.SayAndWait(c, "And then?")
	done, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "next", GenerateIfLast: true})
	s.Must(err)
	s.Await(done.GenerationID)
	m := s.Message(done.Message.ID)
	if m.ID == reply.ID || m.Text() == "" || m.Text() == reply.Text() || s.head(c.ID) != m.ID {
		t.Errorf("the new branch of %q has %+v", reply.Text(), m)
	}
}
