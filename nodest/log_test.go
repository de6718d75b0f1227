package nodest_test

import (
	"testing"

	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// A device that comes later is sent the events that others got at once, whatever happened to the
// chat since. The fixture compares all events when a test ends, in this test those of every way
// in which a chat changes.
func TestTheLogRepeatsWhatWasPublished(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	save := w.Save()
	w.EditText(w.SecondReply, "Edited <b>twice</b> & \u2028.")
	w.EditAsBranch(w.Second, "Another way")
	w.DeleteMessage(w.First, "one")
	w.Must(nodesttest.ErrOf(w.Chats.RestoreMessage(t.Context(), w.Call(), w.First.ID)))
	w.Restore(save)
	w.ChooseHead(w.ThirdReply.ID)
	for _, text := range []string{" And on.", "I would say this."} {
		w.Model.Enqueue(nodesttest.Reply(text))
	}
	continued, err := w.Continue(t.Context(), w.Call(), nodest.GenerateInput{MessageID: w.ThirdReply.ID})
	w.Must(err)
	w.Await(continued.GenerationID)
	said, err := w.Impersonate(t.Context(), w.Call(), nodest.GenerateInput{ConversationID: w.ID})
	w.Must(err)
	w.Await(said)
	for _, m := range []*chat.Message{w.FirstReply, w.ThirdReply} {
		w.Must(nodesttest.ErrOf(w.Chats.Fork(t.Context(), w.Call(), chat.ForkInput{ConversationID: w.ID, MessageID: m.ID})))
	}
	file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportArchive, nodesttest.Ann, w.ID)
	w.Must(err)
	w.Must(nodesttest.ErrOf(w.Archives.ImportArchive(t.Context(), w.Call(), w.CharacterID, file)))
	(&fixture{w.Fixture}).importedChat(w.CharacterID, "From a file.")
	w.ResetGreeting()
	if n := len(w.Events.Types()); n < 600 {
		t.Errorf("the types of the events have %d characters: too few happened", n)
	}
}
