package nodest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
	"nodest/op"
)

// TestARepeatedCallGetsTheFirstAnswerWithoutACopyOfIt repeats calls after everything that they
// named has changed: the answers are the first ones, although the key records have none of
// the texts and are short.
func TestARepeatedCallGetsTheFirstAnswerWithoutACopyOfIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	secret := strings.Repeat("The lighthouse has a green door. ", 40)
	var repeat []func()
	call := func(do func(c *op.Call) (any, error)) {
		t.Helper()
		c := s.call()
		answer := func() string {
			again := &op.Call{UserID: c.UserID, Device: c.Device, Key: c.Key, Hash: c.Hash}
			got, err := do(again)
			s.must(err)
			b, err := json.Marshal(got)
			s.must(err)
			return string(b)
		}
		first := answer()
		repeat = append(repeat, func() {
			t.Helper()
			if second := answer(); second != first {
				t.Errorf("the repeated call got\n%s\nwant\n%s", second, first)
			}
		})
	}
	ctx := t.Context()
	var ch *character.Character
	call(func(c *op.Call) (got any, err error) {
		ch, err = s.Characters.Create(ctx, c, character.Input{Tags: []string{"sea"}, RoleCard: json.RawMessage(`{"name":"Alice","first_mes":"Hello.","description":"` + secret + `"}`)})
		return ch, err
	})
	conv := s.chatWith(ch.ID)
	var sent *nodest.Sent
	call(func(c *op.Call) (got any, err error) {
		sent, err = s.Send(ctx, c, nodest.SendInput{ConversationID: conv.ID, Text: secret, ClientMsgID: "m1"})
		return sent, err
	})
	s.wait(sent.GenerationID)
	userID, replyID := sent.UserMessage.ID, sent.Message.ID
	var again *chat.Changed
	call(func(c *op.Call) (got any, err error) {
		again, err = s.Regenerate(ctx, c, nodest.GenerateInput{MessageID: replyID})
		return again, err
	})
	s.wait(again.GenerationID)
	call(func(c *op.Call) (any, error) {
		return s.Swipe(ctx, c, chat.SwipeInput{MessageID: replyID, Swipe: "prev"})
	})
	call(func(c *op.Call) (any, error) {
		return s.Edit(ctx, c, chat.EditInput{MessageID: userID, Text: secret + "And a bell."})
	})
	call(func(c *op.Call) (any, error) {
		return s.Edit(ctx, c, chat.EditInput{MessageID: replyID, Text: secret + "It is blue."})
	})
	call(func(c *op.Call) (any, error) {
		return s.Characters.CreateResource(ctx, c, character.Persona, character.ResourceInput{Document: json.RawMessage(`{"name":"Me","description":"` + secret + `"}`)})
	})
	_, err := s.Characters.Update(ctx, s.call(), ch.ID, character.Input{RoleCard: json.RawMessage(`{"name":"Bea"}`)}, false, 0)
	s.must(err)
	_, err = s.Chats.DeleteMessage(ctx, s.call(), userID, chat.ScopeOne)
	s.must(err)
	s.must(s.DeleteConversation(ctx, s.call(), conv.ID))
	for _, again := range repeat {
		again()
	}
	var kept []string
	s.view(func(tx nodest.Tx) error {
		for i := range s.calls {
			r, err := tx.Key(fmt.Sprintf("key-%d", i+1))
			if err != nil {
				return err
			}
			kept = append(kept, string(r.Reply))
		}
		return nil
	})
	for _, k := range kept {
		if strings.Contains(k, "lighthouse") || len(k) > 1200 {
			t.Errorf("%d bytes are kept of an answer: %s", len(k), k)
		}
	}
	if !slices.ContainsFunc(kept, func(k string) bool { return strings.Contains(k, sent.GenerationID) && len(k) < 150 }) {
		t.Errorf("a send keeps more than ids: %q", kept)
	}
}
