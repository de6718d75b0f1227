package nodest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/chat"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// After any change to a chat, an engine with a history cache builds the same prompt
// as one without.
func TestTheHistoryCacheMatchesTheDatabase(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	rng := rand.New(rand.NewPCG(seed(t), 2))
	c := s.Chat()
	n := 0
	pick := func() *chat.Message {
		page, err := s.Chats.History(t.Context(), nodesttest.Ann, c.ID, "", 6)
		s.Must(err)
		return page.Items[rng.IntN(len(page.Items))]
	}
	text := func() string { n++; return fmt.Sprintf("words number %d", n) }
	deleted := ""
	ops := []struct {
		name string
		do   func() (string, error)
	}{
		{"send", func() (string, error) {
			s.Model.Enqueue(nodesttest.Reply(text()))
			return s.Say(c, text()).GenerationID, nil
		}},
		{"send again", func() (string, error) {
			s.Model.Enqueue(nodesttest.Reply(text()))
			return s.Say(c, text()).GenerationID, nil
		}},
		{"fail", func() (string, error) {
			s.Model.Enqueue(nodesttest.Reply().Failing(llm.CutOff("scripted", nil)))
			return s.Say(c, text()).GenerationID, nil
		}},
		{"note", func() (string, error) {
			_, err := s.Send(t.Context(), s.Call(), nodest.SendInput{ConversationID: c.ID, Text: text(), NoReply: true})
			return "", err
		}},
		{"edit", func() (string, error) {
			_, err := s.Edit(t.Context(), s.Call(), chat.EditInput{MessageID: pick().ID, Text: text()})
			return "", err
		}},
		{"regenerate", func() (string, error) {
			m := pick()
			if m.Role != chat.RoleAssistant {
				return "", nil
			}
			s.Model.Enqueue(nodesttest.Reply(text()))
			done, err := s.Regenerate(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
			if err == nil && done.GenerationID == "" { // the greeting
				s.Model.Script = nil
			}
			return done.GenerationID, err
		}},
		{"continue", func() (string, error) {
			m := pick()
			if m.Role != chat.RoleAssistant || m.Text() == "" {
				return "", nil
			}
			s.Model.Enqueue(nodesttest.Reply(" " + text()))
			done, err := s.Continue(t.Context(), s.Call(), nodest.GenerateInput{MessageID: m.ID})
			return done.GenerationID, err
		}},
		{"swipe", func() (string, error) {
			_, err := s.Swipe(t.Context(), s.Call(), chat.SwipeInput{MessageID: pick().ID, Swipe: "prev"})
			return "", err
		}},
		{"delete", func() (string, error) {
			m := pick()
			if m.Greeting {
				return "", nil
			}
			deleted = m.ID
			_, err := s.Chats.DeleteMessage(t.Context(), s.Call(), m.ID, "one")
			return "", err
		}},
		{"restore", func() (string, error) {
			if deleted == "" {
				return "", nil
			}
			_, err := s.Chats.RestoreMessage(t.Context(), s.Call(), deleted)
			deleted = ""
			return "", err
		}},
		{"head", func() (string, error) {
			_, err := s.Chats.ChooseHead(t.Context(), s.Call(), c.ID, pick().ID)
			return "", err
		}},
	}
	preview := nodest.PreviewInput{ConversationID: c.ID, Text: "And now?"}
	for step := range nodesttest.Long(60, 600) {
		op := ops[rng.IntN(len(ops))]
		id, err := op.do()
		if err != nil {
			t.Logf("step %d, %s: %v", step, op.name, err)
			s.Model.Script = nil
		}
		if id != "" {
			s.Await(id)
		}
		got, err := s.PreviewPrompt(t.Context(), nodesttest.Ann, preview)
		s.Must(err)
		want, err := nodesttest.NewEngine(s.DB, s, s.Events, s.Options).PreviewPrompt(t.Context(), nodesttest.Ann, preview)
		s.Must(err)
		if !reflect.DeepEqual(got.Messages, want.Messages) {
			t.Fatalf("step %d, after %s: cached\n%v\nstored\n%v", step, op.name, got.Messages, want.Messages)
		}
		if id == "" || op.name == "fail" {
			continue
		}
		// The request that the model received is the stored one.
		all := s.Model.AllRequests()
		p, err := s.Prompt(t.Context(), nodesttest.Ann, s.Generation(id).PromptID)
		s.Must(err)
		if !reflect.DeepEqual(p.Prompt.Messages, all[len(all)-1].Messages) {
			t.Fatalf("step %d: the request of %s is not what was stored", step, op.name)
		}
	}
	t.Logf("%d requests", len(s.Model.AllRequests()))
}

// countingStore counts how often a branch is read.
type countingStore struct {
	nodest.Store
	paths atomic.Int64
}

type countingMessages struct {
	chat.MessageTx
	paths *atomic.Int64
}

func (c *countingStore) View(ctx context.Context, userID string, fn func(nodest.Tx) error) error {
	return c.Store.View(ctx, userID, func(tx nodest.Tx) error {
		tx.Chats.MessageTx = countingMessages{tx.Chats.MessageTx, &c.paths}
		return fn(tx)
	})
}

func (c countingMessages) Path(conversationID, headID, beforeID string, limit int) ([]*chat.Message, bool, error) {
	c.paths.Add(1)
	return c.MessageTx.Path(conversationID, headID, beforeID, limit)
}

// The cost of a further turn does not depend on the length of the chat: its history
// is not read again.
func TestFurtherTurnsReadNoHistory(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	c := s.Chat()
	store := &countingStore{Store: s.DB}
	s.Engine = nodesttest.NewEngine(store, s, s.Events, s.Options)
	defer func() { s.Must(s.Close(context.WithoutCancel(t.Context()))) }()
	reply := s.SayAndWait(c, "The first turn")
	read := store.paths.Load()
	for i := range 5 {
		reply = s.SayAndWait(c, fmt.Sprintf("turn %d", i))
	}
	s.RegenerateReply(reply.ID, "") // the newest reply
	if n := store.paths.Load() - read; read == 0 || n != 0 {
		t.Errorf("%d reads for the first turn, %d for six more", read, n)
	}
	for _, part := range []string{"The first turn", "turn 0", "turn 4", "Fine."} {
		if !strings.Contains(s.Model.LastRequest(), part) {
			t.Errorf("the prompt lacks %q:\n%s", part, s.Model.LastRequest())
		}
	}
}
