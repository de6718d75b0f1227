package nodest_test

import (
	"encoding/json"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/nodest"
)

// A save point keeps the documents of the character that the conversation settings
// name.
func TestASavePointKeepsTheCharacterOfTheSettings(t *testing.T) {
	t.Parallel()
	w := newFullChat(t, "5")
	other := w.character(`{"name":"Bob","first_mes":"Well met.","description":"A baker."}`)
	rename := func(card string) {
		_, err := w.Characters.Update(t.Context(), w.call(), other.ID, character.Input{RoleCard: json.RawMessage(card)}, false, 0)
		w.must(err)
	}
	w.patchChat(chat.ConversationPatch{Settings: json.RawMessage(`{"characterId":"` + other.ID + `"}`)})
	want, save := w.preview(), w.save()
	rename(`{"name":"Bobby","description":"A smith."}`)
	w.crash()
	p, err := w.PreviewSave(t.Context(), ann, save.ID, nodest.PreviewInput{Text: w.question})
	w.must(err)
	w.wantSamePrompt("preview of the save point", p.Messages, want)
	w.restore(save)
	w.wantSamePrompt("preview", w.preview(), want)

	// Files contain it too.
	file, _, err := written(t.Context(), w.Archives.ExportSave, ann, save.ID)
	w.must(err)
	archive, _, err := written(t.Context(), w.Archives.ExportArchive, ann, w.ID)
	w.must(err)
	rename(`{"name":"Bobbie","description":"A potter."}`)
	imported, err := w.Archives.ImportSave(t.Context(), w.call(), w.ID, file)
	w.must(err)
	w.restore(imported)
	w.wantSamePrompt("preview of the imported one", w.preview(), want)
	w.Conversation, err = w.Archives.ImportArchive(t.Context(), w.call(), w.CharacterID, archive)
	w.must(err)
	saves, err := w.Chats.Saves(t.Context(), ann, w.ID, false, "", 0)
	w.must(err)
	w.restore(saves.Items[0])
	w.wantSamePrompt("preview in the archive", w.preview(), want)

	// A change after the restore is used, and without the setting the chat's own character speaks.
	rename(`{"name":"Bobbie","description":"A potter."}`)
	now := w.preview()
	w.patchChat(chat.ConversationPatch{Settings: json.RawMessage(`{}`)})
	if alone := w.preview(); len(now) == 0 || now[1].Text != "A potter." || alone[1].Text != "A guide." {
		t.Errorf("as it is now: %v\nwithout the setting: %v", now, alone)
	}
}
