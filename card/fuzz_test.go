package card_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/internal/fault"
)

// fuzzLimits keep each round short, and small enough that the limits are reached.
var fuzzLimits = card.Limits{FileBytes: 1 << 20, JSONBytes: 256 << 10, TotalBytes: 1 << 20, Values: 5000, Files: 50, Messages: 500}

// explained fails on an error that cannot be shown to a user.
func explained(t *testing.T, err error) {
	t.Helper()
	if fault.Is(err, fault.Internal) {
		t.Fatalf("an error without a code: %v", err)
	}
}

// checkCharacter exports what an import accepted and expects the same back.
func checkCharacter(t *testing.T, file []byte) {
	ch, err := card.Import(file, "fuzz", fuzzLimits)
	if err != nil {
		explained(t, err)
		return
	}
	if ch.Name == "" || len(ch.Greetings) == 0 || !json.Valid(ch.RoleCard) {
		t.Fatalf("an unusable character: %+v", ch)
	}
	for _, format := range []card.Format{card.JSON, card.PNG, card.CHARX} {
		out, err := card.Export(ch, format, "")
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		again, err := card.Import(out.Data, out.Name, card.Limits{})
		if err != nil {
			t.Fatalf("%s: the export is refused: %v", format, err)
		}
		if format != card.CHARX { // a hostile list of assets may not survive the archive, the rest does
			for name, docs := range map[string][2]json.RawMessage{
				"card": {ch.RoleCard, again.RoleCard}, "book": {ch.WorldBook, again.WorldBook}, "preset": {ch.Preset, again.Preset},
				"note": {ch.AuthorNote, again.AuthorNote}, "scripts": {ch.RegexScripts, again.RegexScripts}, "extra": {ch.Extra, again.Extra},
			} {
				if !bytes.Equal(docs[0], docs[1]) {
					t.Fatalf("%s changed the %s\nfrom %s\nto   %s", format, name, docs[0], docs[1])
				}
			}
		}
		if again.Name != ch.Name || again.Dialect != ch.Dialect {
			t.Fatalf("%s: %q %s became %q %s", format, ch.Name, ch.Dialect, again.Name, again.Dialect)
		}
	}
}

func FuzzCardJSON(f *testing.F) {
	for _, seed := range []string{
		simpleV2, nodestFile, `{"name":"a","tags":"x,y"}`, `{"char_name":"a"}`, `{"name":"a","firstMessage":"b","extensions":{"k":1}}`,
		`{"spec":"chara_card_v3","data":{"name":"a/b","character_book":{"entries":[{"id":1},{"id":1}]},"extensions":{"nodest":{"dialect":"nodest"}}}}`,
		`{"roleCard":{"spec":"chara_card_v2","data":{"name":"x"}},"dialect":"sillytavern"}`,
		webUICharacter, caiCharacter, agnaiCharacter, risuCharacter,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkCharacter)
}

// FuzzPNG mutates the bytes between the signature and the end.
func FuzzPNG(f *testing.F) {
	for _, chunks := range [][][]byte{
		{text("chara", simpleV2)}, {text("ccv3", nodestFile), text("chara", simpleV2)},
		{chunk("zTXt", "chara\x00\x00"+deflated(simpleV2))}, {chunk("iTXt", "ccv3\x00\x01\x00en\x00\x00"+deflated(simpleV2))},
		{text("chara-ext-asset_:x", "y"), text("chara", simpleV2)},
	} {
		f.Add(picture(f, chunks...))
	}
	f.Fuzz(checkCharacter)
}

func FuzzCHARX(f *testing.F) {
	f.Add(archive(f, "card.json", simpleV2))
	f.Add(archive(f, "card.json", `{"spec":"chara_card_v3","data":{"name":"a","assets":[{"type":"icon","uri":"embeded://i.png"}]}}`, "i.png", string(picture(f)), "../x", "y"))
	f.Add(append([]byte("MZ"), archive(f, "a", "b", "card.json", simpleV2)...))
	f.Fuzz(checkCharacter)
}

// FuzzResources gives the same bytes to every importer of documents.
func FuzzResources(f *testing.F) {
	for _, seed := range []string{
		`{"entries":{"1":{"uid":1,"key":["a"]},"x":{}}}`, `{"entries":[{"keys":["a"],"insertionOrder":1}]}`,
		`{"lorebookVersion":1,"entries":[{"text":"a"}]}`, `{"kind":"memory","entries":[{"entry":"a"}]}`,
		`{"type":"risu","data":[{"key":"a,b","activationPercent":5}]}`, `{"spec":"lorebook_v3","data":{"entries":[]}}`,
		`{"prompts":[{"name":"a"}],"prompt_order":[{"order":[{"identifier":"x"}]}],"main_prompt":"x","proxy_password":"y"}`,
		`{"name":"a","content":"b","post_history":"c"}`, `{"preset_settings":{"main_prompt":"x"}}`,
		`[{"findRegex":"a","placement":[1]}]`, `{"scripts":[{"findRegex":"a"}]}`,
		"{ \"name\":\"a\",\r\n \"story_string\":\"{{system}}\\u0000\"}", `{"temperature":1,"tail_free_sampling":1}`, `{"instruct":{"name":1},"context":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		card.Detect(data)
		for kind, load := range map[string]func([]byte, string, card.Limits) (*card.Resource, error){
			"book": card.ImportWorldBook, "preset": card.ImportPreset, "scripts": card.ImportRegexScripts, "template": card.ImportTemplate,
		} {
			first, err := load(data, "fuzz.json", fuzzLimits)
			if err != nil {
				explained(t, err)
				continue
			}
			file, err := card.ExportDocument(first.Doc, first.Name)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if kind == "template" {
				file.Data = first.Doc // as it is exported
			}
			again, err := load(file.Data, "fuzz.json", card.Limits{})
			if err != nil || !bytes.Equal(first.Doc, again.Doc) {
				t.Fatalf("%s changed (%v)\nfrom %s\nto   %v", kind, err, first.Doc, again)
			}
		}
	})
}

// FuzzViews gives any document to the parsers of stored documents.
func FuzzViews(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","data":{"extensions":{"depth_prompt":{"depth":"3"}}}}`, `{"entries":[{"depth":1e99,"order":"x","key":[1]}]}`,
		`{"prompts":[{"injection_depth":null}],"prompt_order":[{"character_id":"100001","order":[1]}]}`, `[1]`, `null`, ``, `{`, `"x"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 64<<10 {
			return
		}
		role, err := card.ParseRoleCard(doc)
		if err == nil && (role.Name == "" || len(role.Greetings()) == 0) {
			t.Fatalf("a card without name or greeting: %+v", role)
		}
		explained(t, err)
		for _, dialect := range []card.Dialect{card.NodeST, card.SillyTavern} {
			_, err = card.ParseWorldBook(doc, dialect)
			explained(t, err)
		}
		preset, err := card.ParsePreset(doc)
		for _, p := range preset.Prompts {
			if p.Identifier == "" || p.Name == "" {
				t.Fatalf("a prompt without identifier: %+v", p)
			}
		}
		explained(t, err)
		_, err = card.ParseAuthorNote(doc)
		explained(t, err)
		_, err = card.ParseRegexScripts(doc)
		explained(t, err)
	})
}

func FuzzChat(f *testing.F) {
	for _, seed := range []string{
		someChat, `{"":1,"mes":"","":2}`, `{"data_visible":[["a","b"]]}`, `{"messages":[{"msg":"x","userId":1}]}`, `{"histories":{"histories":[{"msgs":[{"text":"a"}]}]}}`,
		`{"savedsettings":{"chatname":"a"},"actions":["{{[INPUT]}}x"]}`, `{"type":"risuChat","data":{"message":[{"data":"x","time":1}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := card.ImportChat(data, card.ChatNames{}, fuzzLimits)
		if err != nil {
			explained(t, err)
			return
		}
		file := exportChat(first)
		again, err := card.ImportChat(file, card.ChatNames{}, card.Limits{})
		if err != nil {
			t.Fatalf("the export is refused: %v\n%s", err, file)
		}
		if diff := cmp.Diff(first.Messages, again.Messages, rawAsText); diff != "" {
			t.Fatalf("(-before +after)\n%s", diff)
		}
	})
}
