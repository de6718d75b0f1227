package nodest_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/op"
	"nodest/nodest/nodesttest"
	"nodest/store/storetest"
)

// Concurrent writes that name no version all succeed, and none is lost.
func TestConcurrentWritesWithoutAVersionAllSucceed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		testConcurrentWrites(t, nodesttest.NewWithoutModelOn(t, open))
	})
}

func testConcurrentWrites(t *testing.T, h *nodesttest.Fixture) {
	const writers = 4
	conv, all := h.NewChat(t, 1)
	r, err := h.Characters.CreateResource(t.Context(), h.Call(), character.WorldBook, character.ResourceInput{Document: nodesttest.Documents[character.WorldBook]})
	nodesttest.Must(t, err)
	var group sync.WaitGroup
	failed := make(chan error, 10*writers)
	for i := range writers {
		call := func(what string) *op.Call {
			return &op.Call{UserID: nodesttest.Ann, Key: what + strconv.Itoa(i), Hash: "h"}
		}
		title := "title " + strconv.Itoa(i)
		group.Go(func() {
			for _, do := range []func() error{
				func() error {
					return nodesttest.ErrOf(h.Characters.UpdateResource(t.Context(), call("r"), character.WorldBook, r.ID, character.ResourceInput{Name: title}, false, 0))
				},
				func() error {
					return nodesttest.ErrOf(h.Characters.Update(t.Context(), call("c"), conv.CharacterID, character.Input{Dialect: "nodest"}, false, 0))
				},
				func() error {
					return nodesttest.ErrOf(h.Characters.PutUserSettings(t.Context(), call("s"), character.UserSettings{UserName: title}, 0))
				},
				func() error {
					return nodesttest.ErrOf(h.Chats.UpdateConversation(t.Context(), call("u"), chat.ConversationPatch{ID: conv.ID, Title: &title}))
				},
				func() error {
					return nodesttest.ErrOf(h.Edit(t.Context(), call("e"), chat.EditInput{MessageID: all[1].ID, Text: title}))
				},
				func() error { // its script enables scripts in the same settings
					return nodesttest.ErrOf(h.Characters.Create(t.Context(), call("n"), character.Input{RoleCard: json.RawMessage(nodesttest.AliceWithGreetings)}))
				},
			} {
				failed <- do()
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		nodesttest.Must(t, err)
	}
	r, err = h.Characters.Resource(t.Context(), nodesttest.Ann, character.WorldBook, r.ID)
	nodesttest.Must(t, err)
	m, err := h.Chats.Message(t.Context(), nodesttest.Ann, all[1].ID)
	nodesttest.Must(t, err)
	ch, err := h.Characters.Get(t.Context(), nodesttest.Ann, conv.CharacterID)
	nodesttest.Must(t, err)
	if r.Version != 1+writers || m.Rev != 1+writers || ch.Version != 1+writers {
		t.Errorf("resource version %d, message rev %d, character version %d; want %d each", r.Version, m.Rev, ch.Version, 1+writers)
	}
}
