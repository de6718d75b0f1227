package card_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

func TestSampleIsAFullCharacter(t *testing.T) {
	ch := mustImport(t, string(card.SampleFile("")))
	if ch.Name == "" || len(ch.Greetings) != 2 || len(ch.Warnings) != 0 {
		t.Errorf("name %q, %d greetings, warnings %v", ch.Name, len(ch.Greetings), ch.Warnings)
	}
	role, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil || role.MesExample == "" || role.Scenario == "" {
		t.Errorf("no example dialogue or scenario: %v", err)
	}
	book, err := card.ParseWorldBook(ch.WorldBook, ch.Dialect)
	if err != nil || len(book.Entries) != 3 || book.Entries[0].Constant || len(book.Entries[0].Key) == 0 {
		t.Errorf("world book %+v, %v", book, err)
	}
	roundTrips(t, ch)
}

func TestImportRecognisesEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		dialect card.Dialect
		greets  []string
	}{
		"V2":                           {simpleV2, card.SillyTavern, []string{"Hi."}},
		"V3 with a BOM":                {"\ufeff" + strings.ReplaceAll(simpleV2, "v2", "v3"), card.SillyTavern, []string{"Hi."}},
		"a later version":              {strings.ReplaceAll(simpleV2, "card_v2", "card_v9"), card.SillyTavern, []string{"Hi."}},
		"V1":                           {`{"name":"Ada","first_mes":"Hi."}`, card.SillyTavern, []string{"Hi."}},
		"V1 without a text":            {`{"name":"Ada"}`, card.SillyTavern, []string{"Hello!"}},
		"Gradio":                       {`{"char_name":"Ada","char_greeting":"Hi."}`, card.SillyTavern, []string{"Hi."}},
		"NativeTavern":                 {`{"name":"Ada","firstMessage":"Hi.","alternateGreetings":["Ho."]}`, card.SillyTavern, []string{"Hi.", "Ho."}},
		"NodeST":                       {`{"roleCard":{"name":"Ada","first_mes":"Hi."},"extraGreetings":["Ho."]}`, card.NodeST, []string{"Hi.", "Ho."}},
		"NodeST, name beside the card": {`{"name":"Ada","roleCard":{"first_mes":"Hi."}}`, card.NodeST, []string{"Hi."}},
	} {
		t.Run(name, func(t *testing.T) {
			ch := mustImport(t, c.file)
			if ch.Name != "Ada" || ch.Dialect != c.dialect || fmt.Sprint(ch.Greetings) != fmt.Sprint(c.greets) {
				t.Errorf("%q, %s, %v", ch.Name, ch.Dialect, ch.Greetings)
			}
			roundTrips(t, ch)
		})
	}
}

func TestImportRefuses(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for name, c := range map[string]struct {
		file  string
		code  fault.Code
		words string
	}{
		"nothing":              {"", fault.UnsupportedCard, "empty"},
		"plain text":           {"hello", fault.UnsupportedCard, "text/plain"},
		"a JPEG picture":       {string(jpegPicture(t)), fault.UnsupportedCard, "image/jpeg"},
		"cut JSON":             {simpleV2[:40], fault.UnsupportedCard, "invalid JSON"},
		"two documents":        {simpleV2 + simpleV2, fault.UnsupportedCard, "invalid JSON"},
		"an array":             {"[]", fault.UnsupportedCard, "a character card is"},
		"deep nesting":         {`{"name":"a","x":` + deep + `}`, fault.UnsupportedCard, "deep"},
		"no name in data":      {`{"spec":"chara_card_v2","data":{"description":"x"}}`, fault.UnsupportedCard, "needs a name"},
		"a blank name":         {`{"spec":"chara_card_v2","data":{"name":"  "}}`, fault.UnsupportedCard, "needs a name"},
		"a name of slashes":    {`{"name":"//"}`, fault.UnsupportedCard, "needs a name"},
		"no spec":              {`{"data":{"name":"x"}}`, fault.UnsupportedCard, "no spec with data"},
		"NodeST without name":  {`{"roleCard":{"first_mes":"Hi."}}`, fault.UnsupportedCard, "needs a name"},
		"NodeST, card is text": {`{"roleCard":"x"}`, fault.UnsupportedCard, "JSON object"},
		"NodeST, book is text": {`{"roleCard":{"name":"a"},"worldBook":"x"}`, fault.InvalidWorldBook, "worldBook"},
		"NodeST, entries odd":  {`{"roleCard":{"name":"a"},"worldBook":{"entries":5}}`, fault.InvalidWorldBook, "entries"},
		"NodeST, preset odd":   {`{"roleCard":{"name":"a"},"preset":[]}`, fault.InvalidImport, "preset"},
		"NodeST, note odd":     {`{"roleCard":{"name":"a"},"authorNote":1}`, fault.InvalidImport, "note"},
		"a world book":         {`{"name":"b","entries":{"0":{"uid":0,"key":["a"]}}}`, fault.UnsupportedCard, "worldbook"},
		"a preset":             {`{"name":"p","prompts":[]}`, fault.UnsupportedCard, "preset"},
		"a chat":               {`{"chat_metadata":{},"user_name":"a","character_name":"b"}`, fault.UnsupportedCard, "the file is a conversation"},
		"a regex script":       {`{"scriptName":"a","findRegex":"b"}`, fault.UnsupportedCard, "regexscript"},
		"too many entries": {`{"spec":"chara_card_v2","data":{"name":"a","character_book":{"entries":[` +
			strings.Repeat("{},", 20_000) + `{}]}}}`, fault.TooLarge, "20001 entries"},
		"too many keys": {`{"spec":"chara_card_v2","data":{"name":"x","character_book":{"entries":[{"keys":["` +
			strings.Repeat("k", 2<<20) + `"]}]}}}`, fault.TooLarge, "the keys up to entry 0"},
		"a long first message": {`{"name":"x","first_mes":"` + strings.Repeat("g", 2<<20+1) + `"}`, fault.TooLarge, "2097153 bytes of greetings"},
		"long greetings": {`{"spec":"chara_card_v2","data":{"name":"x","first_mes":"g","alternate_greetings":[` +
			strings.Repeat(`"`+strings.Repeat("g", 4<<10)+`",`, 511) + `"` + strings.Repeat("g", 4<<10) + `"]}}`, fault.TooLarge, "2097153 bytes of greetings"},
		"long extra greetings": {`{"roleCard":{"name":"x"},"extraGreetings":["` + strings.Repeat("g", 2<<20+1) + `"]}`, fault.TooLarge, "2097153 bytes of greetings"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.Import([]byte(c.file), "x", card.Limits{})
			wantCode(t, err, c.code, c.words)
		})
	}
}

func TestImportKeepsToItsLimits(t *testing.T) {
	for name, limits := range map[string]card.Limits{
		"bytes of the file": {FileBytes: 50}, "bytes of the document": {JSONBytes: 50}, "values": {Values: 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := card.Import([]byte(simpleV2), "x", limits)
			wantCode(t, err, fault.TooLarge, "")
		})
	}
}

func TestImportCleansTextsThatDatabasesRefuse(t *testing.T) {
	ch := mustImport(t, `{"name":"A\u0000da","description":"x\ud800y \ud83d\ude00 \\u0000 \ude00","first_mes":"`+"\xff"+`"}`)
	role, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil || role.Name != "Ada" || role.Description != `xy 😀 \u0000 ` || role.FirstMes != "\ufffd" {
		t.Errorf("%q %q %q %v", role.Name, role.Description, role.FirstMes, err)
	}
	if bytes.Contains(ch.RoleCard, []byte(`\ud800`)) || len(ch.Warnings) != 2 {
		t.Errorf("document %s, warnings %v", ch.RoleCard, ch.Warnings)
	}
}

func TestImportReportsWhatItChanged(t *testing.T) {
	for name, c := range map[string]struct{ file, code, path string }{
		"a newer version":     {`{"spec":"chara_card_v3","spec_version":"3.5","data":{"name":"a"}}`, "newer_version", "spec_version"},
		"an unknown spec":     {`{"spec":"chara_card_v7","data":{"name":"a"}}`, "unknown_spec", "spec"},
		"a name outside data": {`{"spec":"chara_card_v2","name":"a","data":{}}`, "name_mirrored", "data.name"},
		"a name like a path":  {`{"spec":"chara_card_v2","data":{"name":"a/b"}}`, "name_changed", "data.name"},
		"a book that is none": {`{"spec":"chara_card_v2","data":{"name":"a","character_book":7}}`, "invalid_world_book", "data.character_book"},
	} {
		t.Run(name, func(t *testing.T) {
			ch := mustImport(t, c.file)
			if len(ch.Warnings) != 1 || ch.Warnings[0].Code != c.code || ch.Warnings[0].Path != c.path {
				t.Errorf("warnings %v, want %s at %s", ch.Warnings, c.code, c.path)
			}
			roundTrips(t, ch)
		})
	}
}

func TestUnknownFieldsKeyOrderAndOddTypesSurvive(t *testing.T) {
	ch := mustImport(t, `{"zeta":1,"spec":"chara_card_v2","spec_version":"2.0","data":{"odd":{"b":1e400,"a":[null]},
		"name":"Ada","tags":"one, two","extensions":{"z":{"y":0.10},"a":"<&>"},"alternate_greetings":"none","first_mes":["x"],
		"character_book":{"entries":[{"id":"seven","keys":"k","content":5,"mine":true,"extensions":{"own":[1]}}],"other":1}}}`)
	want := `{"zeta":1,"spec":"chara_card_v3","spec_version":"3.0","data":{"odd":{"b":1e400,"a":[null]},` +
		`"name":"Ada","tags":"one, two","extensions":{"z":{"y":0.10},"a":"<&>","fav":false},"alternate_greetings":"none","first_mes":["x"],` +
		`"character_book":{"entries":[{"id":"seven","keys":"k","content":5,"mine":true,"extensions":{"own":[1]}}],"other":1}},` +
		`"name":"Ada","first_mes":["x"],"tags":"one, two"}`
	if string(ch.RoleCard) != want {
		t.Errorf("stored\n%s\nwant\n%s", ch.RoleCard, want)
	}
	roundTrips(t, ch)
}

func TestEditedCopiesAreWrittenBackIntoTheCard(t *testing.T) {
	ch := mustImport(t, `{"spec":"chara_card_v2","data":{"name":"Ada","extensions":{"regex_scripts":[{"scriptName":"a","findRegex":"x"}]},
		"character_book":{"name":"Lore","scan_depth":3,"entries":[
		{"id":4,"keys":["a"],"content":"old","priority":10,"insertion_order":1,"enabled":true,"extensions":{"mine":1}},
		{"id":5,"keys":["b"],"content":"gone","insertion_order":2,"enabled":true,"extensions":{}}]}}}`)
	ch.WorldBook = []byte(`{"name":"Lore","entries":{"4":{"uid":4,"key":["a"],"content":"new","position":4,"depth":2},"9":{"uid":9,"key":["c"],"content":"added"}}}`)
	ch.RegexScripts = nil
	file := mustExport(t, ch, card.JSON, card.SpecV2)

	book := at(t, file.Data, "data", "character_book").(map[string]any)
	entries := book["entries"].([]any)
	first, second := entries[0].(map[string]any), entries[1].(map[string]any)
	extensions := first["extensions"].(map[string]any)
	if book["scan_depth"] != 3.0 || first["priority"] != 10.0 || extensions["mine"] != 1.0 {
		t.Errorf("what the world book does not know was lost: %v", book)
	}
	if len(entries) != 2 || first["content"] != "new" || extensions["position"] != 4.0 || extensions["depth"] != 2.0 ||
		first["position"] != "after_char" || second["content"] != "added" || second["id"] != 9.0 || second["enabled"] != true {
		t.Errorf("entries %v", entries)
	}
	if scripts := at(t, file.Data, "data", "extensions", "regex_scripts").([]any); len(scripts) != 0 {
		t.Errorf("deleted scripts came back: %v", scripts)
	}
	again := mustImport(t, string(file.Data))
	if string(again.WorldBook) != string(ch.WorldBook) || again.RegexScripts != nil {
		t.Errorf("book after the round trip %s, scripts %s", again.WorldBook, again.RegexScripts)
	}

	ch.WorldBook = nil
	if book := at(t, mustExport(t, ch, card.JSON, card.SpecV3).Data, "data", "character_book"); book != nil {
		t.Errorf("a deleted book came back: %v", book)
	}
}

const nodestFile = `{"id":"7","roleCard":{"first_mes":"Hi.","name":"Who?","background":"b","data":{"extensions":{"regex_scripts":[{"findRegex":"x"}]}}},
	"worldBook":{"entries":{"Alist":{"content":"c","position":4},"2":{"content":"two","constant":false,"key":["k"]}}},
	"preset":{"prompts":[{"name":"p"}],"prompt_order":[]},"authorNote":{"content":"n","injection_depth":1},"chatHistory":{"parts":[]}}`

func TestNodeSTCharacterSurvivesEveryForm(t *testing.T) {
	ch := mustImport(t, nodestFile)
	if ch.Name != "Who?" || paths(ch.Warnings) != "unknown_field background, unused_field worldBook.entries.key" || at(t, ch.Extra, "id") != "7" || ch.RegexScripts == nil {
		t.Errorf("%q, %v, extra %s, scripts %s", ch.Name, ch.Warnings, ch.Extra, ch.RegexScripts)
	}
	roundTrips(t, ch)
	ch.RegexScripts = []byte(`[{"findRegex":"edited"}]`)
	again := mustImport(t, string(mustExport(t, ch, card.JSON, "").Data))
	sameCharacter(t, "edited scripts", ch, again)
}

func TestEditsOfAnotherProgramWinOverOurBundle(t *testing.T) {
	file := mustExport(t, mustImport(t, nodestFile), card.JSON, card.SpecV3).Data
	edited := strings.Replace(string(file), `"description": ""`, `"description": "edited"`, 1)
	edited = strings.Replace(edited, `"content": "two"`, `"content": "three"`, 1)
	if edited == string(file) {
		t.Fatalf("nothing was edited in %s", file)
	}
	ch := mustImport(t, edited)
	role, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil || role.Description != "edited" {
		t.Errorf("role card %s", ch.RoleCard)
	}
	book, err := card.ParseWorldBook(ch.WorldBook, ch.Dialect)
	if err != nil || len(book.Entries) != 2 {
		t.Fatalf("%v, %v", book, err)
	}
	found := fmt.Sprint(book.Entries[0].Content, book.Entries[1].Content)
	if !strings.Contains(found, "three") || ch.Dialect != card.NodeST || ch.Preset == nil || ch.AuthorNote == nil {
		t.Errorf("contents %s, dialect %s", found, ch.Dialect)
	}
}

func TestPresetAndNoteOfASillyTavernCharacterTravelWithIt(t *testing.T) {
	ch := mustImport(t, simpleV2)
	ch.Preset, ch.AuthorNote = []byte(`{"prompts":[]}`), []byte(`{"content":"n"}`)
	roundTrips(t, ch)
}

func TestExportIsDeterministicAndNamesItsFiles(t *testing.T) {
	ch := mustImport(t, nodestFile)
	ch.Avatar, ch.AvatarType = picture(t), "image/png"
	for format, want := range map[card.Format]string{card.PNG: "Who.png image/png", card.JSON: "Who.json application/json", card.CHARX: "Who.charx application/zip"} {
		a, b := mustExport(t, ch, format, ""), mustExport(t, ch, format, "")
		if !bytes.Equal(a.Data, b.Data) || a.Name+" "+a.ContentType != want {
			t.Errorf("%s: %s %s, same bytes %v", format, a.Name, a.ContentType, bytes.Equal(a.Data, b.Data))
		}
	}
	_, err := card.Export(ch, "webp", "")
	wantCode(t, err, fault.Invalid, "format")
	_, err = card.Export(ch, card.PNG, "nodest")
	wantCode(t, err, fault.Invalid, "spec")
}

func TestACharacterWithoutARoleCardCanBeExported(t *testing.T) {
	for _, book := range []string{"", `{"entries":{"0":{"uid":0,"key":["a"],"content":"b"}}}`} {
		ch := &card.Character{Name: "Ada", Dialect: card.NodeST, WorldBook: json.RawMessage(book)}
		if again := mustImport(t, string(mustExport(t, ch, card.JSON, card.SpecNodeST).Data)); again.Name != "Ada" {
			t.Errorf("nodest: the name is %q", again.Name)
		}
		for _, format := range []card.Format{card.PNG, card.JSON, card.CHARX} {
			for _, spec := range []card.Spec{"", card.SpecV2, card.SpecV3} {
				if again := mustImport(t, string(mustExport(t, ch, format, spec).Data)); again.Name != "Ada" {
					t.Errorf("%s %s: the name is %q", format, spec, again.Name)
				}
			}
		}
	}
}

func TestFileNameIsSafeEverywhere(t *testing.T) {
	for name, want := range map[string]string{
		"": "character.png", "..": "character.png", "CON": "charactercon.png", "a/b\\c:d": "abcd.png",
		"灵脉": "灵脉.png", "x.": "x.png", strings.Repeat("界", 100): strings.Repeat("界", 33) + ".png", "\xff\x00a": "a.png", "a\u202egnp.exe\u2066": "agnp.exe.png",
	} {
		if got := card.FileName(name, ".png"); got != want {
			t.Errorf("FileName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRoleCardDefaults(t *testing.T) {
	missing, err := card.ParseRoleCard(nil)
	if err != nil || missing.Name != "Unnamed Character" || missing.FirstMes != "Hello!" || missing.Description == "" {
		t.Errorf("missing card: %+v, %v", missing, err)
	}
	empty, err := card.ParseRoleCard([]byte(`{"name":"","first_mes":null,"description":[1]}`))
	if err != nil || empty.Name != "Unnamed Character" || empty.FirstMes != "Hello!" || empty.Description != "" {
		t.Errorf("empty card: %+v, %v", empty, err)
	}
	full, err := card.ParseRoleCard([]byte(`{"spec":"chara_card_v2","name":"top","personality":"kept","data":{"name":"inner","tags":"a, b",
		"alternate_greetings":["x","",3],"extensions":{"talkativeness":"0.8","depth_prompt":{"prompt":"p","role":2}}}}`))
	if err != nil || full.Name != "inner" || full.Personality != "kept" || fmt.Sprint(full.AlternateGreetings, full.Tags) != "[x 3] [a b]" ||
		full.DepthPrompt != (card.DepthPrompt{Prompt: "p", Depth: 4, Role: "assistant"}) {
		t.Errorf("full card: %+v, %v", full, err)
	}
	_, err = card.ParseRoleCard([]byte(`"x"`))
	wantCode(t, err, fault.UnsupportedCard, "object")
}

func TestADeletedBookStaysDeletedInNodeSTJSON(t *testing.T) {
	ch := mustImport(t, `{"spec":"chara_card_v2","data":{"name":"Ada","character_book":{"entries":[{"content":"x"}]}}}`)
	ch.WorldBook = nil
	again := mustImport(t, string(mustExport(t, ch, card.JSON, card.SpecNodeST).Data))
	if book := mustBook(t, string(again.WorldBook), card.SillyTavern); len(book.Entries) != 0 {
		t.Errorf("the book in the card came back: %s", again.WorldBook)
	}
}
