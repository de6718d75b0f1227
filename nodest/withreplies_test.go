package nodest_test

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestSwipingBeyondTheLastReplyWritesAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("First."))
	reply := s.SayAndWait(c, "Tell me")
	s.Model.Enqueue(nodesttest.Reply("Second."))
	call := s.Call()
	in := chat.SwipeInput{MessageID: reply.ID, Swipe: "next", GenerateIfLast: true}
	first, err := s.Swipe(t.Context(), call, in)
	s.Must(err)
	if first.GenerationID == "" {
		t.Fatal("nothing is being written")
	}
	s.Await(first.GenerationID)
	if m := s.Message(reply.ID); m.Text() != "Second." || len(m.Swipes) != 2 {
		t.Errorf("swipes = %+v", m.Swipes)
	}

	// Repeating the command returns the same answer although the message has changed.
	repeated := nodesttest.RetryOf(call)
	second, err := s.Swipe(t.Context(), repeated, in)
	s.Must(err)
	if !repeated.Replayed || second.GenerationID != first.GenerationID || len(s.Model.AllRequests()) != 2 {
		t.Errorf("repeated: %v, generation %s, the model was asked %d times", repeated.Replayed, second.GenerationID, len(s.Model.AllRequests()))
	}

	// No text is generated while there is one to swipe to.
	_, err = s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "prev", GenerateIfLast: true})
	s.Must(err)
	out, err := s.Swipe(t.Context(), s.Call(), in)
	s.Must(err)
	if out.GenerationID != "" || out.Message.Text() != "Second." {
		t.Errorf("next shows %q and began %q", out.Message.Text(), out.GenerationID)
	}
}

func TestTheLastGreetingIsNotFollowedByAReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	out, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: c.HeadID, Swipe: "next", GenerateIfLast: true})
	s.Must(err)
	if out.GenerationID != "" || len(s.Model.AllRequests()) != 0 {
		t.Errorf("generation %q began", out.GenerationID)
	}
}

// Deleting a conversation or its character ends the reply that is being written in it
// and no other.
func TestDeletingAConversationCancelsItsReply(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(s *fixture, c *chat.Conversation) error{
		"the conversation": func(s *fixture, c *chat.Conversation) error {
			return s.DeleteConversation(s.T.Context(), s.Call(), c.ID)
		},
		"its character": func(s *fixture, c *chat.Conversation) error {
			return s.DeleteCharacter(s.T.Context(), s.Call(), c.CharacterID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c, other := s.Chat(), s.Chat()
			reply, elsewhere := nodesttest.Reply("Half", " a reply").Gated(), nodesttest.Reply("Whole.").Gated()
			s.Model.Enqueue(reply, elsewhere)
			sent := s.Say(c, "Tell me")
			<-reply.Started
			reply.Step(1)
			kept := s.Say(other, "And you?")
			<-elsewhere.Started
			s.Must(remove(s, c))
			if g := s.Await(sent.GenerationID); !g.Ended() {
				t.Errorf("generation = %+v", g)
			}
			_, err := s.Chats.Conversation(t.Context(), nodesttest.Ann, c.ID)
			s.WantCode(err, fault.NotFound)
			elsewhere.Release()
			s.Await(kept.GenerationID)
			if m := s.Message(kept.Message.ID); m.Text() != "Whole." {
				t.Errorf("the reply in the other conversation reads %q", m.Text())
			}
		})
	}
}

func TestAReplyBeingWrittenKeepsTheHead(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	reply := nodesttest.Reply("Fine.").Gated()
	s.Model.Enqueue(reply)
	sent := s.Say(c, "Tell me")
	<-reply.Started
	_, err := s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, c.HeadID)
	e := s.WantCode(err, fault.Busy)
	if e.Details["generationId"] != sent.GenerationID {
		t.Errorf("details = %v, want generation %s", e.Details, sent.GenerationID)
	}
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), sent.UserMessage.ID, "after")
	s.WantCode(err, fault.Busy)
	// The user's message may be deleted while its reply is being written.
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), sent.UserMessage.ID, "one")
	s.Must(err)
	reply.Release()
	s.Await(sent.GenerationID)
	if m := s.Message(sent.Message.ID); m.Text() != "Fine." {
		t.Errorf("reply = %q", m.Text())
	}
}

func TestAnEditedTextIsWhatTheModelReads(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.Model.Enqueue(nodesttest.Reply("Green tea."), nodesttest.Reply("Yes."), nodesttest.Reply("Still yes."))
	reply := s.SayAndWait(c, "What do you drink?")
	_, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: reply.ID, Text: "Black tea."})
	s.Must(err)
	s.SayAndWait(c, "Sure?")
	if p := s.Model.LastRequest(); !strings.Contains(p, "Black tea.") || strings.Contains(p, "Green tea.") {
		t.Errorf("the prompt:\n%s", p)
	}
	_, err = s.Chats.DeleteMessage(t.Context(), s.Call(), reply.ID, "one")
	s.Must(err)
	s.SayAndWait(c, "Really?")
	if p := s.Model.LastRequest(); strings.Contains(p, "Black tea.") || !strings.Contains(p, "What do you drink?") {
		t.Errorf("the prompt after the delete:\n%s", p)
	}
}

func TestHiddenLinesOfALogAreNotSent(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.Character(nodesttest.PlainAlice)
	log := `{"chat_metadata":{}}
{"name":"Mia","is_user":true,"is_system":false,"mes":"Said aloud","extra":{}}
{"name":"Alice","is_user":false,"is_system":true,"mes":"Kept to herself","extra":{}}
`
	imported, err := s.Archives.ImportChat(t.Context(), s.Call(), ch.ID, []byte(log), "x.jsonl")
	s.Must(err)
	s.SayAndWait(imported.Conversation, "Go on")
	if p := s.Model.LastRequest(); !strings.Contains(p, "Said aloud") || strings.Contains(p, "Kept to herself") {
		t.Errorf("the prompt:\n%s", p)
	}
}

func TestACardsScriptsApplyToItsReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.Character(nodesttest.AliceWithGreetings) // its script replaces a by A
	c := s.ChatWith(ch.ID)
	s.Model.Enqueue(nodesttest.Reply("a cat"), nodesttest.Reply("a cat"))
	if m := s.SayAndWait(c, "Tell me"); m.Text() != "A cAt" {
		t.Errorf("reply = %q, want the script to have worked", m.Text())
	}
	settings, err := s.Characters.UserSettings(t.Context(), nodesttest.Ann)
	s.Must(err)
	settings.GlobalRegexEnabled = false
	_, err = s.Characters.PutUserSettings(t.Context(), s.Call(), *settings, 0)
	s.Must(err)
	if m := s.SayAndWait(c, "Again"); m.Text() != "a cat" {
		t.Errorf("reply = %q, want it as the model wrote it", m.Text())
	}
}
