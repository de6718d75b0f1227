package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/nodest"
)

// What a device is sent later is what others were sent at once, whatever happened to the chat
// afterwards. The fixture compares all events when a test ends, in this test those of every way
// in which a chat changes.
func TestTheLogRepeatsWhatWasPublished(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	save := w.save()
	w.edit(w.secondReply, "Edited <b>twice</b> & \u2028.")
	w.editAsBranch(w.second, "Another way")
	w.deleteMessage(w.first, "one")
	w.must(errOf(w.Chats.RestoreMessage(t.Context(), w.call(), w.first.ID)))
	w.restore(save)
	w.chooseHead(w.thirdReply.ID)
	for _, text := range []string{" And on.", "I would say this."} {
		w.model.enqueue(replyWith(text))
	}
	continued, err := w.Continue(t.Context(), w.call(), nodest.GenerateInput{MessageID: w.thirdReply.ID})
	w.must(err)
	w.wait(continued.GenerationID)
	said, err := w.Impersonate(t.Context(), w.call(), nodest.GenerateInput{ConversationID: w.ID})
	w.must(err)
	w.wait(said)
	for _, m := range []*chat.Message{w.firstReply, w.thirdReply} {
		w.must(errOf(w.Chats.Fork(t.Context(), w.call(), chat.ForkInput{ConversationID: w.ID, MessageID: m.ID})))
	}
	file, _, err := written(t.Context(), w.Archives.ExportArchive, ann, w.ID)
	w.must(err)
	w.must(errOf(w.Archives.ImportArchive(t.Context(), w.call(), w.CharacterID, file)))
	w.importedChat(w.CharacterID, "From a file.")
	w.resetGreeting()
	if n := len(w.events.types()); n < 600 {
		t.Errorf("the types of the events have %d characters: too few happened", n)
	}
}
