package nodest_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/op"
	"nodest/store/storetest"
)

// Concurrent writes that name no version all succeed, and none is lost.
func TestConcurrentWritesWithoutAVersionAllSucceed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) { testConcurrentWrites(t, newChatFixtureOn(t, open)) })
}

func testConcurrentWrites(t *testing.T, h *fixture) {
	const writers = 4
	conv, all := h.newChat(t, 1)
	r, err := h.Characters.CreateResource(t.Context(), h.call(), character.WorldBook, character.ResourceInput{Document: documents[character.WorldBook]})
	must(t, err)
	var group sync.WaitGroup
	failed := make(chan error, 10*writers)
	for i := range writers {
		call := func(what string) *op.Call {
			return &op.Call{UserID: me, Key: what + strconv.Itoa(i), Hash: "h"}
		}
		title := "title " + strconv.Itoa(i)
		group.Go(func() {
			for _, do := range []func() error{
				func() error {
					return errOf(h.Characters.UpdateResource(t.Context(), call("r"), character.WorldBook, r.ID, character.ResourceInput{Name: title}, false, 0))
				},
				func() error {
					return errOf(h.Characters.Update(t.Context(), call("c"), conv.CharacterID, character.Input{Dialect: "nodest"}, false, 0))
				},
				func() error {
					return errOf(h.Characters.PutUserSettings(t.Context(), call("s"), character.UserSettings{UserName: title}, 0))
				},
				func() error {
					return errOf(h.Chats.UpdateConversation(t.Context(), call("u"), chat.ConversationPatch{ID: conv.ID, Title: &title}))
				},
				func() error {
					return errOf(h.Edit(t.Context(), call("e"), chat.EditInput{MessageID: all[1].ID, Text: title}))
				},
				func() error { // its script enables scripts in the same settings
					return errOf(h.Characters.Create(t.Context(), call("n"), character.Input{RoleCard: json.RawMessage(aliceWithGreetings)}))
				},
			} {
				failed <- do()
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		must(t, err)
	}
	r, err = h.Characters.Resource(t.Context(), me, character.WorldBook, r.ID)
	must(t, err)
	m, err := h.Chats.Message(t.Context(), me, all[1].ID)
	must(t, err)
	ch, err := h.Characters.Get(t.Context(), me, conv.CharacterID)
	must(t, err)
	if r.Version != 1+writers || m.Rev != 1+writers || ch.Version != 1+writers {
		t.Errorf("resource version %d, message rev %d, character version %d; want %d each", r.Version, m.Rev, ch.Version, 1+writers)
	}
}
