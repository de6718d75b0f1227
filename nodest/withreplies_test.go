package nodest_test

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
)

func TestSwipingBeyondTheLastReplyWritesAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("First."))
	reply := s.sendAndWait(c, "Tell me")
	s.model.enqueue(replyWith("Second."))
	call := s.call()
	in := chat.SwipeInput{MessageID: reply.ID, Swipe: "next", GenerateIfLast: true}
	first, err := s.Swipe(t.Context(), call, in)
	s.must(err)
	if first.GenerationID == "" {
		t.Fatal("nothing is being written")
	}
	s.wait(first.GenerationID)
	if m := s.message(reply.ID); m.Text() != "Second." || len(m.Swipes) != 2 {
		t.Errorf("swipes = %+v", m.Swipes)
	}

	// Repeating the command returns the same answer although the message has changed.
	repeated := retryOf(call)
	second, err := s.Swipe(t.Context(), repeated, in)
	s.must(err)
	if !repeated.Replayed || second.GenerationID != first.GenerationID || len(s.model.allRequests()) != 2 {
		t.Errorf("repeated: %v, generation %s, the model was asked %d times", repeated.Replayed, second.GenerationID, len(s.model.allRequests()))
	}

	// No text is generated while there is one to swipe to.
	_, err = s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: reply.ID, Swipe: "prev", GenerateIfLast: true})
	s.must(err)
	out, err := s.Swipe(t.Context(), s.call(), in)
	s.must(err)
	if out.GenerationID != "" || out.Message.Text() != "Second." {
		t.Errorf("next shows %q and began %q", out.Message.Text(), out.GenerationID)
	}
}

func TestTheLastGreetingIsNotFollowedByAReply(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	out, err := s.Swipe(t.Context(), s.call(), chat.SwipeInput{MessageID: c.HeadID, Swipe: "next", GenerateIfLast: true})
	s.must(err)
	if out.GenerationID != "" || len(s.model.allRequests()) != 0 {
		t.Errorf("generation %q began", out.GenerationID)
	}
}

// Deleting a conversation or its character ends the reply that is being written in it
// and no other.
func TestDeletingAConversationCancelsItsReply(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(s *fixture, c *chat.Conversation) error{
		"the conversation": func(s *fixture, c *chat.Conversation) error {
			return s.DeleteConversation(s.t.Context(), s.call(), c.ID)
		},
		"its character": func(s *fixture, c *chat.Conversation) error {
			return s.DeleteCharacter(s.t.Context(), s.call(), c.CharacterID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, nodest.Options{})
			c, other := s.chat(), s.chat()
			reply, elsewhere := replyWith("Half", " a reply").gated(), replyWith("Whole.").gated()
			s.model.enqueue(reply, elsewhere)
			sent := s.send(c, "Tell me")
			<-reply.started
			reply.step(1)
			kept := s.send(other, "And you?")
			<-elsewhere.started
			s.must(remove(s, c))
			if g := s.wait(sent.GenerationID); !g.Ended() {
				t.Errorf("generation = %+v", g)
			}
			_, err := s.Chats.Conversation(t.Context(), ann, c.ID)
			s.wantCode(err, fault.NotFound)
			elsewhere.release()
			s.wait(kept.GenerationID)
			if m := s.message(kept.Message.ID); m.Text() != "Whole." {
				t.Errorf("the reply in the other conversation reads %q", m.Text())
			}
		})
	}
}

func TestAReplyBeingWrittenKeepsTheHead(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	reply := replyWith("Fine.").gated()
	s.model.enqueue(reply)
	sent := s.send(c, "Tell me")
	<-reply.started
	_, err := s.Chats.ChooseHead(t.Context(), s.call(), c.ID, c.HeadID)
	e := s.wantCode(err, fault.Busy)
	if e.Details["generationId"] != sent.GenerationID {
		t.Errorf("details = %v, want generation %s", e.Details, sent.GenerationID)
	}
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), sent.UserMessage.ID, "after")
	s.wantCode(err, fault.Busy)
	// The user's message may be deleted while its reply is being written.
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), sent.UserMessage.ID, "one")
	s.must(err)
	reply.release()
	s.wait(sent.GenerationID)
	if m := s.message(sent.Message.ID); m.Text() != "Fine." {
		t.Errorf("reply = %q", m.Text())
	}
}

func TestAnEditedTextIsWhatTheModelReads(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.chat()
	s.model.enqueue(replyWith("Green tea."), replyWith("Yes."), replyWith("Still yes."))
	reply := s.sendAndWait(c, "What do you drink?")
	_, err := s.Edit(t.Context(), s.call(), chat.EditInput{MessageID: reply.ID, Text: "Black tea."})
	s.must(err)
	s.sendAndWait(c, "Sure?")
	if p := s.model.lastRequest(); !strings.Contains(p, "Black tea.") || strings.Contains(p, "Green tea.") {
		t.Errorf("the prompt:\n%s", p)
	}
	_, err = s.Chats.DeleteMessage(t.Context(), s.call(), reply.ID, "one")
	s.must(err)
	s.sendAndWait(c, "Really?")
	if p := s.model.lastRequest(); strings.Contains(p, "Black tea.") || !strings.Contains(p, "What do you drink?") {
		t.Errorf("the prompt after the delete:\n%s", p)
	}
}

func TestHiddenLinesOfALogAreNotSent(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.character(alicesCard)
	log := `{"chat_metadata":{}}
{"name":"Mia","is_user":true,"is_system":false,"mes":"Said aloud","extra":{}}
{"name":"Alice","is_user":false,"is_system":true,"mes":"Kept to herself","extra":{}}
`
	imported, err := s.Archives.ImportChat(t.Context(), s.call(), ch.ID, []byte(log), "x.jsonl")
	s.must(err)
	s.sendAndWait(imported.Conversation, "Go on")
	if p := s.model.lastRequest(); !strings.Contains(p, "Said aloud") || strings.Contains(p, "Kept to herself") {
		t.Errorf("the prompt:\n%s", p)
	}
}

func TestACardsScriptsApplyToItsReplies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	ch := s.character(aliceWithGreetings) // its script replaces a by A
	c := s.chatWith(ch.ID)
	s.model.enqueue(replyWith("a cat"), replyWith("a cat"))
	if m := s.sendAndWait(c, "Tell me"); m.Text() != "A cAt" {
		t.Errorf("reply = %q, want the script to have worked", m.Text())
	}
	settings, err := s.Characters.UserSettings(t.Context(), ann)
	s.must(err)
	settings.GlobalRegexEnabled = false
	_, err = s.Characters.PutUserSettings(t.Context(), s.call(), *settings, 0)
	s.must(err)
	if m := s.sendAndWait(c, "Again"); m.Text() != "a cat" {
		t.Errorf("reply = %q, want it as the model wrote it", m.Text())
	}
}
