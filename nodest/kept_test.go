package nodest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// TestARepeatedCallGetsTheFirstAnswer repeats calls after everything that they named has changed or
// was deleted: the answers are the first ones.
func TestARepeatedCallGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	secret := strings.Repeat("The lighthouse has a <green> door. ", 40)
	var repeat []func()
	call := func(do func(c *op.Call) (any, error)) {
		t.Helper()
		c := s.Call()
		answer := func() string {
			again := &op.Call{UserID: c.UserID, Device: c.Device, Key: c.Key, Hash: c.Hash}
			got, err := do(again)
			s.Must(err)
			b, err := json.Marshal(got)
			s.Must(err)
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
	conv := s.ChatWith(ch.ID)
	var sent *nodest.Sent
	call(func(c *op.Call) (got any, err error) {
		sent, err = s.Send(ctx, c, nodest.SendInput{ConversationID: conv.ID, Text: secret, ClientMsgID: "m1"})
		return sent, err
	})
	s.Await(sent.GenerationID)
	userID, replyID := sent.UserMessage.ID, sent.Message.ID
	var again *chat.Changed
	call(func(c *op.Call) (got any, err error) {
		again, err = s.Regenerate(ctx, c, nodest.GenerateInput{MessageID: replyID})
		return again, err
	})
	s.Await(again.GenerationID)
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
	_, err := s.Characters.Update(ctx, s.Call(), ch.ID, character.Input{RoleCard: json.RawMessage(`{"name":"Bea"}`)}, false, 0)
	s.Must(err)
	_, err = s.Chats.DeleteMessage(ctx, s.Call(), userID, chat.ScopeOne)
	s.Must(err)
	s.Must(s.DeleteConversation(ctx, s.Call(), conv.ID))
	for _, again := range repeat {
		again()
	}
}

// The answer of an import that is longer than 256 KB is not stored: a repeat reads the character as it is
// now, until that is gone for good. Nothing is imported a second time.
func TestARepeatedLongImportReadsWhatItMade(t *testing.T) {
	t.Parallel()
	s := newFixture(t, nodest.Options{})
	file, err := json.Marshal(map[string]any{"name": "Alice", "first_mes": "Hello.", "description": strings.Repeat("The lighthouse has a <green> door. ", 10_000)})
	s.Must(err)
	first := s.Call()
	again := func() (*character.Imported, error) {
		return s.Characters.Import(t.Context(), &op.Call{UserID: first.UserID, Key: first.Key, Hash: first.Hash}, file, "alice.json")
	}
	made, err := again()
	s.Must(err)
	s.View(func(tx nodest.Tx) error {
		r, err := tx.Key(first.Key)
		if err == nil && (len(r.JSON) > 200 || !strings.Contains(string(r.JSON), made.Character.ID)) {
			t.Errorf("stored: %.300s", r.JSON)
		}
		return err
	})
	_, err = s.Characters.Update(t.Context(), s.Call(), made.Character.ID, character.Input{RoleCard: json.RawMessage(`{"name":"Bea"}`)}, false, 0)
	s.Must(err)
	if got, err := again(); err != nil || got.Character.ID != made.Character.ID || got.Character.Name != "Bea" {
		t.Errorf("%+v, %v", got, err)
	}
	list, err := s.Characters.List(t.Context(), nodesttest.Ann, character.Filter{}, "", 0)
	if s.Must(err); len(list.Items) != 1 {
		t.Errorf("%d characters", len(list.Items))
	}
	s.Must(s.DeleteCharacter(t.Context(), s.Call(), made.Character.ID))
	_, err = again()
	nodesttest.WantError(t, err, fault.NotFound, "")
}

// A repeated forget says what the first one did, without the words.
func TestARepeatedForgetHasNoTexts(t *testing.T) {
	t.Parallel()
	s := newMemoryFixture(t)
	alice := s.Character(nodesttest.PlainAlice)
	fact := s.AddFact(alice.ID, "Clara is the user's sister.")
	c := s.Call()
	in := memory.ForgetInput{IDs: []string{fact.ID}}
	first, err := s.Memory.Forget(t.Context(), c, alice.ID, in)
	if s.Must(err); first.Memories[0].Text != fact.Text {
		t.Errorf("first: %+v", first)
	}
	again, err := s.Memory.Forget(t.Context(), c, alice.ID, in)
	if s.Must(err); !c.Replayed || len(again.Memories) != 1 || again.Memories[0].ID != fact.ID || again.Memories[0].Text != "" {
		t.Errorf("again: %+v", again)
	}
}
