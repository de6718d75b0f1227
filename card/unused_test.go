package card_test

import (
	"strings"
	"testing"

	"nodest/card"
)

// paths returns the paths and codes of warnings.
func paths(warnings []card.Warning) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Code+" "+w.Path)
	}
	return strings.Join(all, ", ")
}

// Fields of a card that no prompt uses are kept, and the import names them.
func TestImportNamesWhatHasNoEffect(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"everything is used": {`{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"A","nickname":"Al","description":"Tall and quiet.",
			"personality":"calm","scenario":"In a tea house.","first_mes":"Hi","mes_example":"<START>","system_prompt":"Be A.",
			"post_history_instructions":"Stay A.","alternate_greetings":["Ho"],"creator_notes":"Made for fun, with love.","tags":["tall man"],
			"creator":"Some One","character_version":"1.0 of today","source":["https://a.test"],"creation_date":1,
			"extensions":{"talkativeness":"0.5","fav":true,"world":"","depth_prompt":{"prompt":"Calm.","depth":4,"role":"system"}}}}`, ""},
		"an unknown text": {`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"A","backstory":"Born by the sea.","x_id":"0123456789","url":"https://a.test/long/address"}}`,
			"unknown_field data.backstory"},
		"of an old card": {`{"name":"A","first_mes":"Hi","backstory":"生于海边，长于山中。"}`, "unknown_field backstory"},
		"group greetings": {`{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"A","group_only_greetings":["Hi all"]}}`,
			"unused_field data.group_only_greetings"},
		"scripts of other programs": {`{"spec":"chara_card_v2","data":{"name":"A","extensions":{"TavernHelper_scripts":[{"a":1}],"risuai":{}}}}`,
			"unused_field data.extensions.TavernHelper_scripts"},
		"a book elsewhere": {`{"spec":"chara_card_v2","data":{"name":"A","extensions":{"world":"Eldoria"}}}`, "missing_book data.extensions.world"},
		"a book with more than we do": {`{"spec":"chara_card_v2","data":{"name":"A","character_book":{"entries":[
			{"keys":["a"],"secondary_keys":["b"],"selective":true,"content":"x","enabled":true,"position":"before_char","extensions":{"probability":50,"useProbability":true,"group":"g","sticky":2}},
			{"keys":["c"],"content":"y","enabled":true,"extensions":{"position":7}},
			{"keys":["d"],"content":"z","enabled":false,"extensions":{"position":7}}]}}}`,
			"unused_field worldBook.entries.group, unused_field worldBook.entries.keysecondary, unused_field worldBook.entries.probability, unused_field worldBook.entries.sticky, unused_field worldBook.entries.position"},
		"a file of the app": {`{"roleCard":{"name":"A","background":"Born by the sea."},"customUserName":"Mo","customUserSetting":null,
			"chatHistory":{"parts":[{"role":"model"},{"role":"user"}]}}`,
			"unknown_field background, unused_field chatHistory, unused_field customUserName"},
	} {
		ch, err := card.Import([]byte(c.file), "card.json", card.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := paths(ch.Warnings); got != c.want {
			t.Errorf("%s: warnings %q, want %q", name, got, c.want)
		}
	}
}

func TestImportOfABookNamesWhatHasNoEffect(t *testing.T) {
	book := `{"entries":{"0":{"uid":0,"key":["a"],"keysecondary":["b"],"content":"x","delay":3}}}`
	r, err := card.ImportWorldBook([]byte(book), "book.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := paths(r.Warnings); got != "unused_field entries.delay, unused_field entries.keysecondary" {
		t.Errorf("warnings %q", got)
	}
}
