package card_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/sharedtest"
)

// original imports a file and keeps of the character what a database keeps.
func original(t *testing.T, file []byte) *card.Character {
	t.Helper()
	ch, err := card.Import(file, "x.png", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(ch.Original)
	if err != nil {
		t.Fatal(err)
	}
	ch.Original = nil
	if err := json.Unmarshal(kept, &ch.Original); err != nil {
		t.Fatal(err)
	}
	return ch
}

// A card that was not changed is the file that it came in; a changed one is not.
func TestAnUnchangedCardIsItsFile(t *testing.T) {
	t.Parallel()
	made, err := card.Export(original(t, []byte(simpleV2)), card.PNG, "")
	if err != nil {
		t.Fatal(err)
	}
	original(t, made.Data)
	files := map[string][]byte{}
	for _, name := range sharedtest.Find("data/cards/*.png") {
		if files[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range files {
		ch := original(t, file)
		if got := ch.OriginalFile(); !bytes.Equal(got, file) {
			t.Errorf("%s: %d bytes, want the %d of the file", name, len(got), len(file))
			continue
		}
		kept, _ := json.Marshal(ch.Original)
		t.Logf("%s: %d bytes are kept beside the card of %d", name, len(kept), len(ch.RoleCard))
		for what, change := range map[string]func(*card.Character){
			"role card": func(ch *card.Character) {
				ch.RoleCard = json.RawMessage(strings.Replace(string(ch.RoleCard), `"spec"`, `"odd":1,"spec"`, 1))
			},
			"book": func(ch *card.Character) {
				ch.WorldBook = json.RawMessage(`{"entries":{"0":{"key":["x"],"content":"y"}}}`)
			},
			"preset":    func(ch *card.Character) { ch.Preset = json.RawMessage(`{"prompts":[]}`) },
			"picture":   func(ch *card.Character) { ch.Avatar = ch.Avatar[:len(ch.Avatar)-20] },
			"no memory": func(ch *card.Character) { ch.Original = nil },
		} {
			changed := *ch
			change(&changed)
			if changed.OriginalFile() != nil {
				t.Errorf("%s is the same with another %s", name, what)
			}
		}
	}
}
