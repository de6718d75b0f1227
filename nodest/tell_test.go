package nodest_test

import (
	"context"
	"testing"

	"nodest/chat"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm/offline"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestACharacterTellsSomethingOnceInItsOwnWords(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	s.SayAndWait(c, "How old is the bridge?")
	s.Model.Enqueue(nodesttest.Reply("It has stood since 1888, imagine!"))
	in := nodest.TellInput{GreetInput: nodest.GreetInput{ConversationID: c.ID, MessageID: op.NewID()}, Text: "Opened in 1888."}
	for range 2 {
		s.Must(s.Tell(t.Context(), nodesttest.Ann, in))
		s.Await(s.Message(in.MessageID).GenerationID)
	}
	if m := s.Message(in.MessageID); m.Text() != "It has stood since 1888, imagine!" || len(s.Model.AllRequests()) != 2 {
		t.Errorf("message %+v after %d requests", m, len(s.Model.AllRequests()))
	}
	if err := s.Tell(t.Context(), nodesttest.Bob, in); !fault.Is(err, fault.NotFound) {
		t.Errorf("for a stranger: %v", err)
	}
}

func TestWithoutAModelACharacterTellsItAsItIs(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	c := s.Chat()
	last := s.SayAndWait(c, "How old is the bridge?")
	in := nodest.TellInput{
		GreetInput: nodest.GreetInput{ConversationID: c.ID, MessageID: op.NewID()}, Text: "Opened in 1888.[^1]",
		Citations: &cite.Citations{References: []cite.Reference{{URL: "https://bridge.test/", ExactQuote: "opened in 1888", Marker: 1}}},
	}
	for range 2 {
		s.Must(s.Tell(t.Context(), nodesttest.Ann, in))
	}
	m := s.Message(in.MessageID)
	if m.Text() != in.Text || m.Name != "Alice" || m.Role != chat.RoleAssistant || m.ParentID != last.ID || m.Status != chat.StatusComplete || len(m.Chosen().Citations.References) != 1 {
		t.Errorf("message %+v", m)
	}
	s.SayAndWait(c, "Thanks.")
}

// A message that a crash has interrupted is written anew, into the same message, unless the chat has gone on.
func TestWhatACrashInterruptsIsToldAnew(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"at the end": false, "the chat has gone on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, nodest.Options{})
			c := s.Chat()
			s.SayAndWait(c, "How old is the bridge?")
			half := nodesttest.Reply("It has", " never").Gated()
			s.Model.Enqueue(half)
			in := nodest.TellInput{GreetInput: nodest.GreetInput{ConversationID: c.ID, MessageID: op.NewID()}, Text: "Opened in 1888."}
			ctx, stop := context.WithCancel(t.Context())
			ended, engine := make(chan error, 1), s.Engine
			go func() { ended <- engine.Tell(ctx, nodesttest.Ann, in) }()
			half.Step(1)
			s.Eventually("it is being told", func() bool {
				active, err := engine.Active(t.Context(), nodesttest.Ann)
				s.Must(err)
				return len(active) == 1
			})
			stop()
			if err := <-ended; err == nil {
				t.Error("it has ended before it was told")
			}
			s.Crash()
			if goesOn {
				s.SayAndWait(c, "Never mind.")
			}
			s.Model.Enqueue(nodesttest.Reply("It has stood since 1888!"))
			for range 2 {
				s.Must(s.Tell(t.Context(), nodesttest.Ann, in))
			}
			m := s.Message(in.MessageID)
			if told := m.Status == chat.StatusComplete && m.Text() == "It has stood since 1888!"; told == goesOn {
				t.Errorf("message %+v", m)
			}
			half.Release()
		})
	}
}

func TestWithoutTokensACharacterTellsItAsItIs(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{TokensPerDay: 1})
	c := s.Chat()
	s.SayAndWait(c, "How old is the bridge?")
	in := nodest.TellInput{GreetInput: nodest.GreetInput{ConversationID: c.ID, MessageID: op.NewID()}, Text: "Opened in 1888."}
	s.Must(s.Tell(t.Context(), nodesttest.Ann, in))
	if m := s.Message(in.MessageID); m.Text() != in.Text || len(s.Model.AllRequests()) != 1 {
		t.Errorf("message %+v", m)
	}
}
