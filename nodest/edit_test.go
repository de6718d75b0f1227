package nodest_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// edit edits a message and waits for the answer, if there is one.
func (s *fixture) edit(in chat.EditInput) *chat.Changed {
	s.T.Helper()
	done, err := s.Edit(s.T.Context(), s.Call(), in)
	s.Must(err)
	if done.GenerationID != "" {
		s.Await(done.GenerationID)
	}
	return done
}

const hello = "Hello, traveller." // the greeting of Alice

// Each kind of edit in a chat of two exchanges leaves the expected branch.
func TestEdits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		at       int // 1 and 3 the user's messages, 2 and 4 the replies, 0 the greeting
		in       chat.EditInput
		reads    []string
		asked    []string // parts of the request to the model; nil = no request
		replaced bool     // the old messages from there on stay as a branch
	}{
		{"a user's message in place", 1, chat.EditInput{Text: "new"}, []string{hello, "new", "a1", "q2", "a2"}, nil, false},
		{"a reply in place", 2, chat.EditInput{Text: "new", Mode: "in_place"}, []string{hello, "q1", "new", "q2", "a2"}, nil, false},
		{"the newest user's message, and its reply", 3, chat.EditInput{Text: "new", Regenerate: true},
			[]string{hello, "q1", "a1", "new", "fresh"}, []string{"a1", "new"}, false},
		{"an earlier user's message, and its reply", 1, chat.EditInput{Text: "new", Regenerate: true},
			[]string{hello, "new", "fresh"}, []string{"new"}, false},
		{"a user's message as a branch", 3, chat.EditInput{Text: "new", Mode: "branch"}, []string{hello, "q1", "a1", "new"}, nil, true},
		{"a reply as a branch", 2, chat.EditInput{Text: "new", Mode: "branch"}, []string{hello, "q1", "new"}, nil, true},
		{"the greeting as a branch", 0, chat.EditInput{Text: "new", Mode: "branch"}, []string{"new"}, nil, true},
		{"a user's message as a branch with a reply", 1, chat.EditInput{Text: "new", Mode: "branch", Regenerate: true},
			[]string{hello, "new", "fresh"}, []string{hello, "new"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c := s.Chat()
			s.Model.Enqueue(nodesttest.Reply("a1"), nodesttest.Reply("a2"), nodesttest.Reply("fresh"))
			s.SayAndWait(c, "q1")
			end := s.SayAndWait(c, "q2")
			page, err := s.Chats.History(t.Context(), nodesttest.Ann, c.ID, "", 200)
			s.Must(err)
			old := page.Items[tt.at]
			before, requests := s.describeBranch(c.ID), len(s.Model.AllRequests())

			tt.in.MessageID, tt.in.IfRev = old.ID, old.Rev
			done := s.edit(tt.in)
			if got := s.BranchTexts(c.ID); !slices.Equal(got, tt.reads) {
				t.Errorf("the chat reads %q, want %q", got, tt.reads)
			}
			if asked := len(s.Model.AllRequests()) > requests; asked != (tt.asked != nil) || asked != (done.Reply != nil) || asked != (done.GenerationID != "") {
				t.Errorf("asked: %v; the answer is %+v", asked, done)
			}
			for _, part := range tt.asked {
				if !strings.Contains(s.Model.LastRequest(), part) {
					t.Errorf("the request lacks %q:\n%s", part, s.Model.LastRequest())
				}
			}
			if tt.asked != nil && (strings.Contains(s.Model.LastRequest(), old.Text()) || s.Message(done.Reply.ID).Text() != "fresh") {
				t.Errorf("%s was asked:\n%s", done.Reply.ID, s.Model.LastRequest())
			}
			m := s.Message(done.Message.ID)
			if m.Text() != "new" || m.Role != old.Role || m.ParentID != old.ParentID || m.Name != old.Name || m.Greeting != old.Greeting {
				t.Errorf("message = %+v", m)
			}
			if tt.replaced != (m.ID != old.ID) {
				t.Fatalf("the edited message is %s, the old one %s", m.ID, old.ID)
			}
			if tt.replaced { // the old branch is unchanged
				_, err := s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, end.ID)
				s.Must(err)
				if got := s.describeBranch(c.ID); got != before {
					t.Errorf("the old branch reads\n%s\nwant\n%s", got, before)
				}
			}
		})
	}
}

// An edit and the start of its answer are one change: if the answer cannot start, the
// text is not changed either.
func TestAnEditThatCannotBeAnsweredChangesNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "q1")
	said := s.Message(reply.ParentID)
	held := nodesttest.Reply("x").Gated()
	s.Model.Enqueue(held)
	sent := s.Say(c, "q2")
	<-held.Started
	before := s.describeBranch(c.ID)
	tests := []struct {
		name  string
		in    chat.EditInput
		code  fault.Code
		field string
	}{
		{"another reply is being written", chat.EditInput{MessageID: said.ID, Regenerate: true}, fault.Busy, ""},
		{"also as a branch", chat.EditInput{MessageID: said.ID, Regenerate: true, Mode: "branch"}, fault.Busy, ""},
		{"also as a branch without a reply", chat.EditInput{MessageID: said.ID, Mode: "branch"}, fault.Busy, ""},
		{"the message is being answered", chat.EditInput{MessageID: sent.UserMessage.ID, Regenerate: true}, fault.Busy, ""},
		{"the message is being written", chat.EditInput{MessageID: sent.Message.ID}, fault.Busy, ""},
		{"a stale revision", chat.EditInput{MessageID: said.ID, Regenerate: true, IfRev: 7}, fault.Conflict, ""},
		{"a stale revision as a branch", chat.EditInput{MessageID: said.ID, Regenerate: true, Mode: "branch", IfRev: 7}, fault.Conflict, ""},
		{"a reply is not answered", chat.EditInput{MessageID: reply.ID, Regenerate: true}, fault.Invalid, "regenerate"},
		{"the mode", chat.EditInput{MessageID: said.ID, Mode: "over"}, fault.Invalid, "mode"},
		{"an unknown message", chat.EditInput{MessageID: "nobody", Regenerate: true}, fault.NotFound, ""},
	}
	for _, tt := range tests {
		tt.in.Text = "new"
		_, err := s.Edit(t.Context(), s.Call(), tt.in)
		e := s.WantCode(err, tt.code)
		if tt.field != "" && e.Fields[0].Field != tt.field {
			t.Errorf("%s: fields %v", tt.name, e.Fields)
		}
		if tt.code == fault.Conflict && e.Details["current"] == nil {
			t.Errorf("%s: details %v", tt.name, e.Details)
		}
		if got := s.describeBranch(c.ID); got != before {
			t.Errorf("%s: the chat reads\n%s\nwant\n%s", tt.name, got, before)
		}
	}
	_, err := s.Edit(t.Context(), &op.Call{UserID: nodesttest.Bob}, chat.EditInput{MessageID: said.ID, Text: "new", Regenerate: true})
	s.WantCode(err, fault.NotFound)
	held.Release()
	s.Await(sent.GenerationID)
}

// An edit regenerates the shown reply, or else the newest one; if there is none, it
// writes a first reply.
func TestWhichReplyAnEditRegenerates(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	first := s.SayAndWait(c, "q1")
	said := first.ParentID
	s.SayAndWait(c, "q2")
	second := s.RegenerateReply(first.ID, "") // it is the end of the shown branch
	again := chat.EditInput{MessageID: said, Text: "new", Regenerate: true}

	if done := s.edit(again); done.Reply.ID != second.ID || len(s.Message(second.ID).Swipes) != 2 {
		t.Errorf("%s was written, want the shown one, %s", done.Reply.ID, second.ID)
	}
	_, err := s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, first.ID)
	s.Must(err)
	third := s.edit(again).Reply
	if third.ID == first.ID || third.ID == second.ID || s.head(c.ID) != third.ID {
		t.Errorf("%s was written, want one beside %s, which is shown and has been answered", third.ID, first.ID)
	}
	_, err = s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, said)
	s.Must(err)
	if done := s.edit(again); done.Reply.ID != third.ID || s.head(c.ID) != said {
		t.Errorf("%s was written, want the newest, %s; the head is %s", done.Reply.ID, third.ID, s.head(c.ID))
	}
	for _, id := range []string{first.ID, second.ID, third.ID} {
		_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), id, "one")
		s.Must(err)
	}
	done := s.edit(again)
	if done.Reply.ParentID != said || s.head(c.ID) != done.Reply.ID || s.Message(done.Reply.ID).Text() != "Fine." {
		t.Errorf("the first reply is %+v", done.Reply)
	}
}

// Editing a message whose reply failed writes the new reply in place of the failed
// one.
func TestAnEditRepairsAFailedReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply().Failing(llm.Upstream("scripted", fault.UpstreamDown, 503, nil)))
	failed := s.SayAndWait(c, "q1")
	done := s.edit(chat.EditInput{MessageID: failed.ParentID, Text: "new", Regenerate: true})
	if m := s.Message(failed.ID); done.Reply.ID != failed.ID || m.Text() != "Fine." || m.Status != chat.StatusComplete {
		t.Errorf("the reply is %+v", m)
	}
}

func TestARepeatedEditIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "q1")
	for _, mode := range []string{"in_place", "branch"} {
		in := chat.EditInput{MessageID: reply.ParentID, Text: "new", Mode: mode, Regenerate: true}
		call := s.Call()
		first, err := s.Edit(t.Context(), call, in)
		s.Must(err)
		s.Await(first.GenerationID)
		requests := len(s.Model.AllRequests())
		second, err := s.Edit(t.Context(), nodesttest.RetryOf(call), in)
		s.Must(err)
		if second.GenerationID != first.GenerationID || second.Message.ID != first.Message.ID || second.Reply.ID != first.Reply.ID || len(s.Model.AllRequests()) != requests {
			t.Errorf("%s: the second answer is %+v, the first %+v", mode, second, first)
		}
	}
}

// A message at the end of the shown branch is announced by its own event alone; when
// another branch is shown, chat.updated follows.
func TestEventsWhenAnotherBranchIsShown(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := s.SayAndWait(c, "q1")
	end := s.SayAndWait(c, "q2")
	note := func(parent string) error {
		_, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: "note", ParentID: parent, NoReply: true})
		return err
	}
	edit := func(in chat.EditInput) error {
		in.Text = "new"
		_, err := s.Edit(t.Context(), s.Call(), in)
		return err
	}
	tests := []struct {
		name   string
		do     func() error
		events string
	}{
		{"a message at the end", func() error { return note("") }, "gen.done message.created"},
		{"a message elsewhere", func() error { return note(reply.ID) }, "message.created chat.updated"},
		{"an edit in place", func() error { return edit(chat.EditInput{MessageID: end.ID}) }, "chat.updated message.updated"},
		{"an edit as a branch", func() error { return edit(chat.EditInput{MessageID: end.ID, Mode: "branch"}) }, "message.created chat.updated"},
	}
	for _, tt := range tests {
		s.Must(tt.do())
		if got := s.Events.LastTypes(2); got != tt.events {
			t.Errorf("%s: events = %s, want %s", tt.name, got, tt.events)
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.Character(`{"spec":"chara_card_v2","data":{"name":"Alice","first_mes":"Hello, {{user}}.","alternate_greetings":["Hi."]}}`)
	c := s.ChatWith(ch.ID)
	old := s.SayAndWait(c, "q1")
	before := s.describeBranch(c.ID)
	call := s.Call()
	now, err := s.Chats.Reset(t.Context(), call, c.ID)
	s.Must(err)
	first := s.Message(now.HeadID)
	if !first.Greeting || first.ParentID != "" || first.Text() != "Hello, User." || len(first.Swipes) != 2 || now.LastMessage.ID != first.ID {
		t.Errorf("the greeting is %+v", first)
	}
	if got := s.BranchTexts(c.ID); !slices.Equal(got, []string{"Hello, User."}) || s.head(c.ID) != first.ID {
		t.Errorf("the chat reads %q", got)
	}
	if got := s.Events.LastTypes(2); got != "message.created chat.updated" {
		t.Errorf("events = %s", got)
	}
	if twice, err := s.Chats.Reset(t.Context(), nodesttest.RetryOf(call), c.ID); err != nil || twice.HeadID != now.HeadID || s.head(c.ID) != now.HeadID {
		t.Errorf("repeated: %+v, %v", twice, err)
	}
	s.SayAndWait(c, "q2")
	if strings.Contains(s.Model.LastRequest(), "q1") {
		t.Errorf("the prompt has what was said before:\n%s", s.Model.LastRequest())
	}
	// The old history can still be chosen.
	_, err = s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, old.ID)
	s.Must(err)
	if got := s.describeBranch(c.ID); got != before {
		t.Errorf("the old branch reads\n%s\nwant\n%s", got, before)
	}

	held := nodesttest.Reply("x").Gated()
	s.Model.Enqueue(held)
	sent := s.Say(c, "q3")
	<-held.Started
	_, err = s.Chats.Reset(t.Context(), s.Call(), c.ID)
	s.WantCode(err, fault.Busy)
	held.Release()
	s.Await(sent.GenerationID)
	_, err = s.Chats.Reset(t.Context(), &op.Call{UserID: nodesttest.Bob}, c.ID)
	s.WantCode(err, fault.NotFound)
}

func TestResetWithoutAGreeting(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.ChatWith(s.Character(`{"name":"Alice"}`).ID)
	_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), c.HeadID, "after") // nothing is left
	s.Must(err)
	_, err = s.Chats.Reset(t.Context(), s.Call(), c.ID)
	s.Must(err)
	if got := s.BranchTexts(c.ID); !slices.Equal(got, []string{"Hello!"}) {
		t.Errorf("the chat reads %q", got)
	}
}
