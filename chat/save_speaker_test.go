package chat_test

import (
	"encoding/json"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// A save point keeps the documents of the character that the conversation settings
// name.
func TestASavePointKeepsTheCharacterOfTheSettings(t *testing.T) {
	t.Parallel()
	w := nodesttest.NewFullChat(t, "5")
	other := w.Character(`{"name":"Bob","first_mes":"Well met.","description":"A baker."}`)
	rename := func(card string) {
		_, err := w.Characters.Update(t.Context(), w.Call(), other.ID, character.Input{RoleCard: json.RawMessage(card)}, false, 0)
		w.Must(err)
	}
	w.PatchChat(chat.ConversationPatch{Settings: json.RawMessage(`{"characterId":"` + other.ID + `"}`)})
	want, save := w.Preview(), w.Save()
	rename(`{"name":"Bobby","description":"A smith."}`)
	w.Crash()
	p, err := w.PreviewSave(t.Context(), nodesttest.Ann, save.ID, nodest.PreviewInput{Text: w.Question})
	w.Must(err)
	w.WantSamePrompt("preview of the save point", p.Messages, want)
	w.Restore(save)
	w.WantSamePrompt("preview", w.Preview(), want)

	// Files contain it too.
	file, _, err := nodesttest.Written(t.Context(), w.Archives.ExportSave, nodesttest.Ann, save.ID)
	w.Must(err)
	archive, _, err := nodesttest.Written(t.Context(), w.Archives.ExportArchive, nodesttest.Ann, w.ID)
	w.Must(err)
	rename(`{"name":"Bobbie","description":"A potter."}`)
	imported, err := w.Archives.ImportSave(t.Context(), w.Call(), w.ID, file)
	w.Must(err)
	w.Restore(imported)
	w.WantSamePrompt("preview of the imported one", w.Preview(), want)
	w.Conversation, err = w.Archives.ImportArchive(t.Context(), w.Call(), w.CharacterID, archive)
	w.Must(err)
	saves, err := w.Chats.Saves(t.Context(), nodesttest.Ann, w.ID, false, "", 0)
	w.Must(err)
	w.Restore(saves.Items[0])
	w.WantSamePrompt("preview in the archive", w.Preview(), want)

	// A change after the restore is used, and without the setting the chat's own character speaks.
	rename(`{"name":"Bobbie","description":"A potter."}`)
	now := w.Preview()
	w.PatchChat(chat.ConversationPatch{Settings: json.RawMessage(`{}`)})
	if alone := w.Preview(); len(now) == 0 || now[1].Text != "A potter." || alone[1].Text != "A guide." {
		t.Errorf("as it is now: %v\nwithout the setting: %v", now, alone)
	}
}
