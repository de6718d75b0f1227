package card_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

func mustBook(t *testing.T, doc string, dialect card.Dialect) card.WorldBook {
	t.Helper()
	book, err := card.ParseWorldBook([]byte(doc), dialect)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func TestWorldBookOrderMatchesJavaScript(t *testing.T) {
	book := mustBook(t, `{"entries":{"b":{},"10":{},"a":{},"2":{},"01":{},"4294967295":{},"4294967294":{},"-1":{},"0":{},"b":{},"1.5":{}}}`, card.NodeST)
	var ids []string
	for _, e := range book.Entries {
		ids = append(ids, e.ID)
	}
	if got, want := strings.Join(ids, " "), "0 2 10 4294967294 b a 01 4294967295 -1 1.5"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestEntryDefaultsDependOnTheDialect(t *testing.T) {
	doc := `{"entries":{"x":{}}}`
	n, s := mustBook(t, doc, card.NodeST).Entries[0], mustBook(t, doc, card.SillyTavern).Entries[0]
	if !n.Constant || n.Order != 0 || n.Depth != 0 || n.Comment != "x" {
		t.Errorf("NodeST: %+v", n)
	}
	if s.Constant || s.Order != 100 || s.Depth != 4 || s.Comment != "" {
		t.Errorf("SillyTavern: %+v", s)
	}
	if n.Probability != 100 || !n.UseProbability || !n.Selective {
		t.Errorf("common: %+v", n)
	}
}

func TestEntryReadsOddTypes(t *testing.T) {
	doc := `{"entries":[{"key":"no list","constant":"false","disable":1,"position":"4","order":"7","depth":"3","content":12,
		"delayUntilRecursion":true,"role":2,"scanDepth":3,"caseSensitive":false,"sticky":1e99,"characterFilter":{"isExclude":true,"names":["a"]}},
		"not an entry",{"depth":2.9,"order":null,"key":["a",1,null,["x"]]}]}`
	e := mustBook(t, doc, card.SillyTavern).Entries
	if len(e) != 2 || fmt.Sprint(e[0].Key) != "[no list]" || e[0].Constant || !e[0].Disable || e[0].Position != card.AtDepth || e[0].Order != 7 || e[0].Depth != 3 ||
		e[0].Content != "12" ||
		*e[0].Sticky != 2147483647 || !e[0].Filtered || e[1].Depth != 2 || e[1].Order != 100 || fmt.Sprint(e[1].Key) != "[a 1]" {
		t.Errorf("%+v", e)
	}
	if n := mustBook(t, doc, card.NodeST).Entries[0]; !n.Constant || n.Depth != 0 {
		t.Errorf("NodeST takes only a plain false and a plain number: %+v", n)
	}
}

func TestKeysAreReadInEveryFormThatIsMeant(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		`["tower","sea"]`:            `["tower" "sea"]`,
		`"tower, sea"`:               `["tower" "sea"]`,
		`"tower,,  , sea,"`:          `["tower" "sea"]`,
		`"塔，海, /a，b/，船，"`:            `["塔" "海" "/a，b/" "船"]`,
		`"one word"`:                 `["one word"]`,
		`"/a{1,2}/i, sea,/b,c/"`:     `["/a{1,2}/i" "sea" "/b,c/"]`,
		`"/[/,]x/, sea"`:             `["/[/,]x/" "sea"]`,
		`"and/or, sea"`:              `["and/or" "sea"]`,
		`"/no pattern, sea"`:         `["/no pattern" "sea"]`,
		`[1984,"sea",null,["x"],{}]`: `["1984" "sea"]`,
		`1984`:                       `["1984"]`,
		`[]`:                         `[]`,
		`[""]`:                       `[]`,
		`""`:                         `[]`,
		`null`:                       `[]`,
		`{"a":1}`:                    `[]`,
		`["塔","` + strings.Repeat("海", 3) + `"]`: `["塔" "海海海"]`,
	} {
		info := `{"entries":{"0":{"uid":0,"key":` + key + `,"keysecondary":` + key + `,"content":"x"}}}`
		ofCard := `{"entries":[{"keys":` + key + `,"secondary_keys":` + key + `,"content":"x","enabled":true,"insertion_order":1}]}`
		ch := mustImport(t, `{"spec":"chara_card_v2","data":{"name":"Ada","character_book":`+ofCard+`}}`)
		for form, doc := range map[string]string{"world info": info, "card's book": ofCard, "in a card": string(ch.WorldBook)} {
			for _, dialect := range []card.Dialect{card.SillyTavern, card.NodeST} {
				e := mustBook(t, doc, dialect).Entries[0]
				if got := fmt.Sprintf("%q", e.Key); got != want {
					t.Errorf("%s, %s, key %s: %s, want %s", form, dialect, key, got, want)
				}
				e.KeySecondary = slices.DeleteFunc(e.KeySecondary, func(k string) bool { return k == "" })
				if got := fmt.Sprintf("%q", e.KeySecondary); got != want {
					t.Errorf("%s, %s, secondary key %s: %s, want %s", form, dialect, key, got, want)
				}
			}
		}
	}
	// SillyTavern finds a blank key in every text, and an empty secondary one in none.
	for dialect, want := range map[card.Dialect]string{card.SillyTavern: `[" " "\t"]`, card.NodeST: `[]`} {
		e := mustBook(t, `{"entries":{"0":{"uid":0,"key":[" ","","\t"],"keysecondary":[],"content":"x"}}}`, dialect).Entries[0]
		if got := fmt.Sprintf("%q", e.Key); got != want {
			t.Errorf("%s, blank keys: %s, want %s", dialect, got, want)
		}
	}
}

func TestABookIsReadInTheFormOfAnyProgram(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"card's book":          `{"entries":[{"keys":["tea"],"content":"Green.","enabled":true,"insertion_order":7,"extensions":{"position":4,"depth":2}}]}`,
		"card's book by name":  `{"entries":{"a":{"keys":["tea"],"content":"Green.","enabled":true,"insertion_order":7,"extensions":{"position":4,"depth":2}}}}`,
		"mixed":                `{"entries":{"0":{"uid":0,"key":["tea"],"content":"Green.","order":7,"position":4,"depth":2},"1":{"keys":[],"content":"No keys.","enabled":true}}}`,
		"lorebook_v3":          `{"spec":"lorebook_v3","data":{"entries":[{"keys":["tea"],"content":"Green.","enabled":true,"insertion_order":7,"extensions":{"position":4,"depth":2}}]}}`,
		"world info in a card": `{"entries":[{"key":["tea"],"content":"Green.","order":7,"position":4,"depth":2,"constant":false}]}`,
	} {
		e := mustBook(t, doc, card.BookDialect([]byte(doc))).Entries
		if e[0].Constant || fmt.Sprint(e[0].Key) != "[tea]" || e[0].Content != "Green." || e[0].Order != 7 || e[0].Position != card.AtDepth || e[0].Depth != 2 {
			t.Errorf("%s: %+v", name, e[0])
		}
		if len(e) > 1 && (e[1].Constant || e[1].Key != nil) {
			t.Errorf("%s: an entry without keys: %+v", name, e[1])
		}
	}
	for doc, want := range map[string]card.Dialect{
		`{"entries":{}}`: card.NodeST, `{"entries":{"a":{"key":["x"],"position":4}}}`: card.NodeST, `[]`: card.NodeST,
		`{"entries":{"0":{"uid":0,"key":[]}}}`: card.SillyTavern, `{"entries":[{"keys":[]}]}`: card.SillyTavern, `{"lorebookVersion":5,"entries":[]}`: card.SillyTavern,
	} {
		if got := card.BookDialect([]byte(doc)); got != want {
			t.Errorf("%s is %s, want %s", doc, got, want)
		}
	}
}

func TestWorldBookRefuses(t *testing.T) {
	for doc, code := range map[string]fault.Code{
		`[]`: fault.InvalidWorldBook, `"x"`: fault.InvalidWorldBook, `{"entries":"x"}`: fault.InvalidWorldBook,
		`{"entries":[` + strings.Repeat("{},", 20_000) + `{}]}`: fault.TooLarge,
	} {
		_, err := card.ParseWorldBook([]byte(doc), card.NodeST)
		wantCode(t, err, code, "")
	}
	for _, file := range []string{``, `x`, `[]`, `{}`, `{"entries":3}`, simpleV2} {
		_, err := card.ImportWorldBook([]byte(file), "x.json", card.Limits{})
		wantCode(t, err, fault.InvalidWorldBook, "")
	}
	for _, doc := range []string{``, `null`, `{}`, `{"entries":null}`, `{"entries":{}}`} {
		if book := mustBook(t, doc, card.NodeST); len(book.Entries) != 0 {
			t.Errorf("%s: %v", doc, book)
		}
	}
}

func TestForeignWorldBooks(t *testing.T) {
	for format, c := range map[string]struct {
		file string
		want card.Entry
	}{
		"novelai": {`{"lorebookVersion":5,"entries":[{"text":"C","displayName":"T","keys":["k"],"enabled":true,"contextConfig":{"budgetPriority":400}}]}`,
			card.Entry{Comment: "T", Order: 400, Position: card.BeforeChar}},
		"agnai": {`{"kind":"memory","name":"B","entries":[{"name":"T","entry":"C","keywords":["k"],"weight":3,"enabled":false}]}`,
			card.Entry{Comment: "T", Order: 3, Disable: true}},
		"risu": {`{"type":"risu","ver":1,"data":[{"key":"k, l","secondkey":"s","comment":"T","content":"C","alwaysActive":true,"selective":true,"insertorder":50,"activationPercent":30}]}`,
			card.Entry{Comment: "T", Order: 50, Constant: true, Selective: true, KeySecondary: []string{"s"}, Probability: 30}},
		"nativetavern": {`{"name":"B","entries":[{"keys":["k"],"content":"C","enabled":true,"constant":false,"position":1,"insertionOrder":7,"comment":"T","scanDepth":5}]}`,
			card.Entry{Comment: "T", Order: 7, Position: card.AfterChar}},
		"character_book": {`{"name":"B","entries":[{"keys":["k"],"content":"C","insertion_order":2,"position":"after_char","comment":"T"}]}`,
			card.Entry{Comment: "T", Order: 2, Position: card.AfterChar}},
		"lorebook_v3": {`{"spec":"lorebook_v3","data":{"name":"B","entries":[{"keys":["k"],"content":"C","insertion_order":2,"comment":"T","extensions":{"position":4,"depth":6}}]}}`,
			card.Entry{Comment: "T", Order: 2, Position: card.AtDepth}},
		"sillytavern": {`{"entries":{"0":{"uid":0,"key":["k"],"keysecondary":[],"content":"C","comment":"T"}}}`, card.Entry{Comment: "T", Order: 100}},
	} {
		t.Run(format, func(t *testing.T) {
			book := resourceRoundTrip(t, "My Book.json", []byte(c.file), card.ImportWorldBook)
			if book == nil || book.Format != format || book.Dialect != card.SillyTavern || (book.Name != "B" && book.Name != "My Book") {
				t.Fatalf("%+v", book)
			}
			e := mustBook(t, string(book.Doc), card.SillyTavern).Entries[0]
			w := c.want
			if w.Probability == 0 {
				w.Probability = 100
			}
			if e.Content != "C" || e.Key[0] != "k" || e.Comment != w.Comment || e.Order != w.Order || e.Constant != w.Constant ||
				e.Disable != w.Disable || e.Position != w.Position || e.Probability != w.Probability || len(e.KeySecondary) != len(w.KeySecondary) {
				t.Errorf("entry %+v, want %+v", e, w)
			}
			if original := at(t, book.Doc, "originalData"); format != "sillytavern" && original == nil {
				t.Error("the original was not kept")
			}
		})
	}
	nodest := resourceRoundTrip(t, "b.json", []byte(`{"entries":{"List":{"content":"C","position":4}}}`), card.ImportWorldBook)
	if nodest == nil || nodest.Dialect != card.NodeST || nodest.Name != "b" {
		t.Errorf("NodeST book: %+v", nodest)
	}
}

func TestEntriesWithTheSameIDAreAllKept(t *testing.T) {
	ch := mustImport(t, `{"spec":"chara_card_v2","data":{"name":"a","character_book":{"entries":[
		{"id":1,"content":"x"},{"id":1,"content":"y"},{"content":"z"},{"id":"one","content":"w","enabled":false}]}}}`)
	book := mustBook(t, string(ch.WorldBook), card.SillyTavern)
	if len(book.Entries) != 4 || !book.Entries[3].Disable || book.Entries[0].Disable {
		t.Errorf("%+v", book)
	}
	roundTrips(t, ch)
}

func TestPresetOrderAndIdentifiers(t *testing.T) {
	p, err := card.ParsePreset([]byte(`{"prompts":[{"content":"a"},{"name":"B","identifier":"prompt-3","enable":false},{"name":""},7],
		"prompt_order":[{"character_id":100000,"order":[{"identifier":"old"}]},{"character_id":100001,"order":[{"identifier":"x"},{"identifier":"y","enabled":false}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Prompts) != 3 || p.Prompts[0].Identifier != "prompt-1" || p.Prompts[2].Identifier != "prompt-3-x" || p.Prompts[2].Name != "Unnamed Prompt" ||
		p.Prompts[0].Role != "user" || p.Prompts[1].Enable || p.Prompts[0].InjectionDepth != nil {
		t.Errorf("%+v", p.Prompts)
	}
	if fmt.Sprint(p.Order) != "[{x true} {y false}]" {
		t.Errorf("order %v", p.Order)
	}
	p, err = card.ParsePreset([]byte(`{"prompts":[{"identifier":"a"},{"identifier":"b","enable":false}],"prompt_order":[{"order":[]}]}`))
	if err != nil || fmt.Sprint(p.Order) != "[{a true} {b false}]" || p.BuiltIn {
		t.Errorf("order without a list %v, %v", p.Order, err)
	}
	for _, doc := range []string{``, `null`, `{}`, `{"prompts":null}`} {
		p, err = card.ParsePreset([]byte(doc))
		if err != nil || !p.BuiltIn || len(p.Prompts) != 6 || len(p.Order) != 13 || *p.Prompts[3].InjectionDepth != 3 {
			t.Errorf("%q: %+v, %v", doc, p, err)
		}
	}
	_, err = card.ParsePreset([]byte(`[]`))
	wantCode(t, err, fault.InvalidImport, "object")
}

func TestPresetImportDropsSecretsAndMovesOldTexts(t *testing.T) {
	p, err := card.ImportPreset([]byte(`{"temperature":1,"reverse_proxy":"https://me:pw@host","proxy_password":"","vertexai_project":"p","vertexai_model":"m",
		"main_prompt":"M","jailbreak_prompt":"J","prompts":[{"identifier":"main","content":""},{"identifier":"nsfw","content":"N"}]}`), "Old.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(p.Doc), "pw@host") || strings.Contains(string(p.Doc), "vertexai_project") || at(t, p.Doc, "vertexai_model") != "m" || paths(p.Warnings) != "private_field reverse_proxy, private_field vertexai_project" {
		t.Errorf("%s, %v", p.Doc, p.Warnings)
	}
	view, err := card.ParsePreset(p.Doc)
	if err != nil || len(view.Prompts) != 3 || view.Prompts[0].Content != "M" || view.Prompts[2].Identifier != "jailbreak" || view.Prompts[2].Content != "J" || p.Name != "Old" {
		t.Errorf("%+v, %v", view.Prompts, err)
	}
}

func TestPresetDialectsAndRefusals(t *testing.T) {
	for file, want := range map[string]card.Dialect{
		`{"prompts":[{"name":"a","enable":true}],"prompt_order":[{"order":[]}]}`:         card.NodeST,
		`{"prompts":[{"name":"a"}],"prompt_order":[{"character_id":100001,"order":[]}]}`: card.SillyTavern,
		`{"name":"S","content":"You are","post_history":"Stay"}`:                         card.SillyTavern,
	} {
		p, err := card.ImportPreset([]byte(file), "x.json", card.Limits{})
		if err != nil || p.Dialect != want {
			t.Errorf("%s: %v, %v", file, p, err)
		}
	}
	for file, words := range map[string]string{
		`{"story_string":"x"}`: "context", `{"a":1}`: "not a preset", `[]`: "object", `{`: "JSON", simpleV2: "not a preset",
	} {
		_, err := card.ImportPreset([]byte(file), "x.json", card.Limits{})
		wantCode(t, err, fault.InvalidImport, words)
	}
}

func TestAuthorNote(t *testing.T) {
	note, err := card.ParseAuthorNote([]byte(`{"content":"c","injection_depth":2}`))
	if err != nil || *note != (card.AuthorNote{Text: "c", Role: "user", Depth: 2, Position: 1, Interval: 1}) {
		t.Errorf("%+v %v", note, err)
	}
	if note, err := card.ParseAuthorNote(nil); note != nil || err != nil {
		t.Errorf("no note: %v %v", note, err)
	}
	if note, err := card.ParseAuthorNote([]byte(`{}`)); note == nil || err != nil {
		t.Errorf("an empty note is an anchor: %v %v", note, err)
	}
	_, err = card.ParseAuthorNote([]byte(`"x"`))
	wantCode(t, err, fault.InvalidImport, "object")
}

func TestRegexScripts(t *testing.T) {
	one := `{"id":"1","scriptName":"S","findRegex":"/a/g","replaceString":null,"placement":[1,"2","x"],"minDepth":null,"maxDepth":3,"substituteRegex":2,"trimStrings":["","t"]}`
	for name, doc := range map[string]string{"one": one, "array": "[" + one + ",null]", "group": `{"name":"G","scripts":[` + one + `]}`} {
		t.Run(name, func(t *testing.T) {
			scripts, err := card.ParseRegexScripts([]byte(doc))
			if err != nil || len(scripts) != 1 {
				t.Fatalf("%v, %v", scripts, err)
			}
			s := scripts[0]
			if s.Name != "S" || s.Replace != "" || fmt.Sprint(s.Placement) != "[1 2]" || s.MinDepth != nil || *s.MaxDepth != 3 {
				t.Errorf("%+v", s)
			}
		})
	}
	r := resourceRoundTrip(t, "x.json", []byte(`{"name":"G","scripts":[`+one+`]}`), card.ImportRegexScripts)
	if r == nil || r.Name != "G" || !json.Valid(r.Doc) || r.Doc[0] != '[' {
		t.Errorf("%+v", r)
	}
	for _, file := range []string{`7`, `{"scriptName":"no pattern"}`, `[{"findRegex":"a"},{}]`, simpleV2, `[`} {
		_, err := card.ImportRegexScripts([]byte(file), "x.json", card.Limits{})
		wantCode(t, err, fault.InvalidImport, "")
	}
	for _, file := range []string{`[]`, `{"name":"G","scripts":[]}`} {
		_, err := card.ImportRegexScripts([]byte(file), "x.json", card.Limits{})
		wantCode(t, err, fault.InvalidImport, "no regex scripts")
	}
	_, err := card.ParseRegexScripts([]byte("[" + strings.Repeat("{},", 20_000) + "{}]"))
	wantCode(t, err, fault.TooLarge, "")
}

func TestDetect(t *testing.T) {
	for file, want := range map[string]card.Kind{
		simpleV2: card.KindCharacter, `{"name":"V1"}`: card.KindCharacter, `{"roleCard":{}}`: card.KindCharacter,
		`{"entries":{}}`: card.KindWorldBook, `{"lorebookVersion":1}`: card.KindWorldBook, `{"prompts":[]}`: card.KindPreset,
		`{"temp":1,"rep_pen":1}`: card.KindTemplate, `{"content":"x","post_history":""}`: card.KindPreset, `{"instruct":{},"context":{}}`: card.KindTemplate, `[{"findRegex":"x"}]`: card.KindRegex, `{"findRegex":"x"}`: card.KindRegex,
		"{\"chat_metadata\":{}}\n{\"mes\":\"x\"}": card.KindChat, `{"data_visible":[]}`: card.KindChat,
		`{"name":"Ann","description":"Sails."}`: card.KindPersona, `{"name":"Ann","description":"Sails.","position":4,"depth":2,"role":0}`: card.KindPersona, `{"name":"Ann","description":"Sails.","tags":[]}`: card.KindCharacter,
		`{"format":"nodest.conversation"`: card.KindChat, `{"formatVersion":1,"format":"nodest.save"}`: card.KindSave,
		`{"nodestChatHistory":[]}`: card.KindSave, "\ufeff{\"type\":\"header\",\"format\":\"memory-export\"}\n{}": card.KindMemories,
		`{}`: card.KindUnknown, `[]`: card.KindUnknown, `x`: card.KindUnknown, ``: card.KindUnknown,
		string(picture(t)): card.KindCharacter, string(archive(t)): card.KindUnknown, string(archive(t, "a", "")): card.KindCharacter,
	} {
		if got := card.Detect([]byte(file)); got != want {
			t.Errorf("Detect(%.40q) = %q, want %q", file, got, want)
		}
	}
}

func TestScriptsOfACardApplyToRepliesByDefault(t *testing.T) {
	for doc, want := range map[string]string{
		`null`:                              ``,
		`[{}, 1]`:                           `{"placement":[2],"flags":"g"}`,
		`{"findRegex":"a","flags":null}`:    `{"findRegex":"a","flags":"g","placement":[2]}`,
		`{"scripts":[{"flags":"i","x":1}]}`: `{"flags":"i","x":1,"placement":[2]}`,
		`[{"a":{"flags":1}}]`:               `{"a":{"flags":1},"placement":[2],"flags":"g"}`,
	} {
		scripts, err := card.ScriptsAsOfCard(json.RawMessage(doc), card.NodeST)
		if err != nil || len(scripts) > 1 || string(slices.Concat(scripts...)) != want {
			t.Errorf("ScriptsAsOfCard(%s) = %s, %v; want %s", doc, scripts, err, want)
		}
	}
	if scripts, err := card.ScriptsAsOfCard(json.RawMessage(`[{}]`), card.SillyTavern); err != nil || string(slices.Concat(scripts...)) != `{"placement":[2]}` {
		t.Errorf("in the SillyTavern dialect: %s, %v", scripts, err)
	}
	if _, err := card.ScriptsAsOfCard(json.RawMessage(`"x"`), card.NodeST); err == nil {
		t.Error("a text is taken for scripts")
	}
}
