package card_test

import (
	"fmt"
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
			""},
		"the same in the NodeST dialect": {`{"roleCard":{"name":"A"},"worldBook":{"entries":{
			"1":{"uid":1,"key":["a"],"keysecondary":["b"],"selective":true,"content":"x","probability":50,"useProbability":true,"group":"g","sticky":2,"position":4,"role":1},
			"2":{"uid":2,"key":["c"],"content":"y","position":7},
			"3":{"uid":3,"key":["d"],"content":"z","disable":true,"position":7}}}}`,
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

// entriesOfTheApp is a file of the app with entries in its world book.
func entriesOfTheApp(entries string) string {
	return `{"roleCard":{"name":"A"},"worldBook":{"entries":{` + entries + `}}}`
}

func TestImportOfABookNamesWhatHasNoEffect(t *testing.T) {
	entry := `"0":{"uid":0,"key":["a"],"keysecondary":["b"],"content":"x","position":4,"role":1,"delay":3,"automationId":"z"}`
	r, err := card.ImportWorldBook([]byte(`{"entries":{`+entry+`}}`), "book.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := paths(r.Warnings); got != "unused_field entries.automationId" {
		t.Errorf("in the SillyTavern dialect: warnings %q", got)
	}
	meant := `"0":{"uid":0,"key":["a"],"vectorized":true,"content":"x"}`
	if got := paths(mustImport(t, entriesOfTheApp(meant)).Warnings); !strings.Contains(got, "unused_field worldBook.entries.vectorized") {
		t.Errorf("in the NodeST dialect: warnings %q", got)
	}
	if r, err := card.ImportWorldBook([]byte(`{"entries":{`+meant+`}}`), "book.json", card.Limits{}); err != nil || len(r.Warnings) > 0 {
		t.Errorf("a vectorised entry: warnings %q, %v", paths(r.Warnings), err)
	}
	want := "unused_field worldBook.entries.automationId, unused_field worldBook.entries.delay, unused_field worldBook.entries.keysecondary"
	if got := paths(mustImport(t, entriesOfTheApp(entry)).Warnings); got != want {
		t.Errorf("warnings %q", got)
	}
}

// An entry in the chat is sent as the user's, so any other role has no effect, also 0 (system),
// which most entries have. At other positions nobody expects one.
func TestTheRoleOfAnEntryInTheChatIsNamed(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`"position":4,"role":0`:     "unused_field worldBook.entries.role",
		`"position":4,"role":2`:     "unused_field worldBook.entries.role",
		`"position":4,"role":1`:     "",
		`"position":4,"role":null`:  "",
		`"position":4`:              "",
		`"position":0,"role":0`:     "",
		`"position":"1","role":"2"`: "",
	} {
		r := mustImport(t, entriesOfTheApp(`"0":{"uid":0,"key":["a"],"constant":true,"content":"x",`+entry+`}`))
		if got := paths(r.Warnings); got != want {
			t.Errorf("%s: warnings %q, want %q", entry, got, want)
		}
	}
}

// told returns the warnings as lines.
func told(warnings []card.Warning) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Path+": "+w.Detail)
	}
	return strings.Join(all, "\n")
}

// A book of a thousand entries gets one line for each thing that has no effect.
func TestWarningsAboutManyEntriesAreOneLine(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,"%d":{"uid":%d,"comment":"Entry %d","key":["/k%d/"],"constant":false,"position":4,"role":1,"content":"{{getvar::a}} {{setvar::b::%d}}","probability":50,"sticky":1,"x%d":1}`, i, i, i, i, i, i)
	}
	r := mustImport(t, entriesOfTheApp(b.String()[1:]))
	want := `worldBook.entries.probability: probabilities are ignored; a matching key always triggers the entry (1000 of 1000 entries: Entry 0, Entry 1, Entry 2 and 997 more)
worldBook.entries.sticky: the entry does not stay after its key is gone (1000 of 1000 entries: Entry 0, Entry 1, Entry 2 and 997 more)
worldBook.entries.x0: kept, not used: x0, x1, x10, x100, x101, x102, x103, x104 and 992 more
worldBook.entries.key: keys are plain text; these patterns are matched literally (1000 of 1000 entries: Entry 0, Entry 1, Entry 2 and 997 more)
worldBook.entries.0.content: unknown macro {{getvar:…}}; it is sent as written (in 1000 texts)
worldBook.entries.0.content: unknown macro {{setvar:…}}; it is sent as written (in 1000 texts)`
	if got := told(r.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Macros that stay as they are are named wherever a text is sent, each once.
func TestMacrosThatStayAreNamed(t *testing.T) {
	t.Parallel()
	ch := mustImport(t, `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","description":"{{char}} {{setvar::a::{{user}}}} {{// {{nope}} }}",
		"first_mes":"{{random:red,{{random:green,blue}},yellow}}","alternate_greetings":["{{GetVar::a}} {{getvar::b}}"],"system_prompt":"{{original}} <BOT>",
		"post_history_instructions":"{{ user }}","creator_notes":"{{unsent}}","extensions":{"depth_prompt":{"prompt":"{{trim}}"}},
		"character_book":{"entries":[{"keys":["{{user}}","a"],"content":"{{outlet::x}} {{getvar::c}}","enabled":true,"insertion_order":0,"extensions":{}}]}}}`)
	if got := told(ch.Warnings); got != "" {
		t.Errorf("the SillyTavern dialect has them all:\n%s", got)
	}
	ch = mustImport(t, `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","description":"{{nope::{{user}}}} {{original}} {{isMobile}} {{NOPE::b}}",
		"first_mes":"{{if 1}}x {{reverse}}","alternate_greetings":["{{nope:c}} {{time_UTC+2}}"],"system_prompt":"{{original}}"}}`)
	want := `data.description: unknown macro {{nope:…}}; it is sent as written (in 2 texts)
data.description: unknown macro {{original}}; it is sent as written
data.description: {{isMobile}} is the same for everybody here
data.first_mes: {{if …}} has no end; it is sent as written
data.first_mes: {{reverse}} has too few or too many arguments; it is sent as written`
	if got := told(ch.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ch = mustImport(t, `{"roleCard":{"name":"Ada","description":"{{char}} {{setvar::a::{{user}}}} {{// {{nope}} }}",
		"first_mes":"{{random:red,{{random:green,blue}},yellow}}","alternate_greetings":["{{GetVar::a}} {{getvar::b}}"],"system_prompt":"{{original}} <BOT>",
		"post_history_instructions":"{{ user }}","creator_notes":"{{unsent}}","extensions":{"depth_prompt":{"prompt":"{{trim}}"}}},
		"worldBook":{"entries":{"0":{"uid":0,"key":["{{user}}","a"],"constant":false,"position":4,"role":1,"content":"{{outlet::x}} {{getvar::c}}"}}}}`)
	want = `description: unknown macro {{setvar:…}}; it is sent as written
first_mes: {{random:…}} with a macro in its arguments is not read as it is meant
system_prompt: unknown macro <BOT>; it is sent as written
post_history_instructions: unknown macro {{ user }}; it is sent as written
alternate_greetings[0]: unknown macro {{GetVar:…}}; it is sent as written
extensions.depth_prompt.prompt: unknown macro {{trim}}; it is sent as written
worldBook.entries.key: macros in keys are not replaced (1 of 1 entries: {{user}})
worldBook.entries.0.content: unknown macro {{outlet:…}}; it is sent as written
worldBook.entries.0.content: unknown macro {{getvar:…}}; it is sent as written`
	if got := told(ch.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	many := ""
	for i := range 40 {
		many += fmt.Sprintf("{{m%d}}", i)
	}
	if got := mustImport(t, `{"name":"Ada","first_mes":"`+many+`"}`).Warnings; len(got) != 13 || !strings.Contains(got[12].Detail, "{{m12}}, {{m13}}") || !strings.Contains(got[12].Detail, "and 20 more") {
		t.Errorf("%d warnings: %s", len(got), told(got))
	}
}

func TestImportOfScriptsNamesWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	file := `[{"scriptName":"bold","findRegex":"/x/g","replaceString":"<b>{{match}}</b>","trimStrings":["y"],"placement":[2,6],"markdownOnly":true,"runOnEdit":true,"substituteRegex":1},
		{"scriptName":"plain","findRegex":"/x/g","replaceString":"$1$0{{getvar::a}}","trimStrings":[],"placement":[1,2],"markdownOnly":false,"runOnEdit":false,"substituteRegex":0,"minDepth":null},
		{"scriptName":"off","findRegex":"/x/g","replaceString":"{{match}}","disabled":true,"placement":[3]}]`
	tavern, err := card.ImportRegexScripts([]byte(file), "scripts.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := `placement: scripts apply to the user's messages (1), to replies (2) and, in the SillyTavern dialect, to world info (5) alone (1 of 2 scripts: bold)`
	if got := told(tavern.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r, err := card.ImportRegexScripts([]byte(`{"scripts":`+file+`}`), "scripts.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want += `
replaceString: {{match}} and $0 are put into the text as written; $& is the whole match (2 of 2 scripts: bold, plain)
runOnEdit: scripts do not run when a message is edited (1 of 2 scripts: bold)
substituteRegex: macros in a pattern are not replaced (1 of 2 scripts: bold)
trimStrings: nothing is taken out of a match (1 of 2 scripts: bold)
[1].replaceString: unknown macro {{getvar:…}}; it is sent as written`
	if got := told(r.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ch := mustImport(t, `{"spec":"chara_card_v2","data":{"name":"Ada","extensions":{"regex_scripts":[{"scriptName":"s","findRegex":"x","replaceString":"{{match}}{{nope}}"}]}}}`)
	if got := paths(ch.Warnings); got != "unknown_macro regexScripts[0].replaceString" {
		t.Errorf("in a card: %s", got)
	}
}

func TestImportOfAChatNamesWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	file := `{"chat_metadata":{"note_prompt":"Rain. {{getvar::a}}","note_interval":3,"note_position":0,"scenario":"At sea","system_prompt":"Be brief","variables":{"a":1},"integrity":"x","tainted":true,"own":{"a":1}}}
{"name":"Ada","is_user":false,"mes":"Hi","send_date":"2024-01-01","extra":{"api":"x","image":"a.png"}}
{"name":"Bob","is_user":false,"mes":"Ho","send_date":"2024-01-01","odd":1}
{"name":"Mia","is_user":true,"mes":"Hello","send_date":"2024-01-01"}
`
	want := `chat_metadata.own: kept, not used: own
chat_metadata.note_prompt: unknown macro {{getvar:…}}; it is sent as written
odd: kept, not used: odd
extra.image: files of a message are not imported; they are named in the exported log (1 of 3 messages)
name: a chat with 2 characters becomes one with a single character, who gets all replies: Ada, Bob`
	if got := told(mustChat(t, file).Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestImportOfAPresetNamesWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	file := `{"chat_completion_source":"claude","claude_model":"c-9","openai_model":"g-9","temperature":1,"names_behavior":2,"wi_format":"<{0}>","new_chat_prompt":"[Start a new Chat]","seed":-1,"squash_system_messages":true,
		"prompts":[{"identifier":"main","name":"Main","content":"{{nope}}","injection_order":50,"injection_trigger":["swipe"],"system_prompt":true}],"own":[1],"extensions":{"regex_scripts":[{}]}}`
	r, err := card.ImportPreset([]byte(file), "preset.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := `own: kept, not used: own
claude_model: the model (c-9) is a setting of the server, the user or the chat
prompts[0].content: unknown macro {{nope}}; it is sent as written`
	if got := told(r.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	file = strings.Replace(file, `"identifier"`, `"enable":true,"identifier"`, 1)
	if r, err = card.ImportPreset([]byte(file), "preset.json", card.Limits{}); err != nil {
		t.Fatal(err)
	}
	want = `extensions: its scripts run in the SillyTavern dialect, once the setting scripts.preset of the character allows them; other extensions of a preset are not used
names_behavior: names are not put before messages
squash_system_messages: system messages are not joined
wi_format: texts of world books have no frame
own: kept, not used: own
claude_model: the model (c-9) is a setting of the server, the user or the chat
prompts.injection_order: prompts at one depth are in the order of the preset (1 of 1 prompts: Main)
prompts.injection_trigger: the prompt is used whatever the reply is for (1 of 1 prompts: Main)
prompts[0].content: unknown macro {{nope}}; it is sent as written`
	if got := told(r.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnEntryWithoutKeysIsNamed(t *testing.T) {
	t.Parallel()
	r, err := card.ImportWorldBook([]byte(`{"entries":{"0":{"uid":0,"comment":"none","key":[],"content":"x"},"1":{"uid":1,"comment":"blank","key":[" "],"content":"x","position":4},
		"2":{"uid":2,"key":"tower, 5","content":"@@depth 5\nx"},"3":{"uid":3,"key":[],"constant":true,"content":"x"},"4":{"uid":4,"key":[],"disable":true,"content":"x"},"5":{"uid":5,"key":[1984],"content":"x"},
		"6":{"uid":6,"key":[],"vectorized":true,"content":"x"}}}`), "b.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := `entries.key: entries that are not constant and have no keys are never used (1 of 6 entries: none)
entries.key: keys in one text, or that are numbers, were read as a list of texts (2 of 6 entries: tower, 1984)`
	if got := told(r.Warnings); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Macros within each other cost no more than as many beside each other: quoting each with all
// that it holds would take gigabytes of a text of a megabyte.
func TestNestedMacrosAreQuotedWithinBounds(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for _, text := range []string{
		strings.Repeat("{{", n) + "x" + strings.Repeat("}}", n),
		strings.Repeat("{{x", n) + strings.Repeat("}}", n),
		strings.Repeat("{{setvar::魔", n) + strings.Repeat("}}", n),
		strings.Repeat("<USER>", n) + strings.Repeat("{{x}}", n),
	} {
		quoted := 0
		for _, macro := range card.UnknownMacros(text) {
			quoted += len(macro)
		}
		if quoted == 0 || quoted > 1<<20 {
			t.Errorf("%.20s…: %d bytes are quoted", text, quoted)
		}
		if got := mustImport(t, `{"name":"Ada","first_mes":"`+text+`"}`).Warnings; len(got) == 0 || len(told(got)) > 4000 {
			t.Errorf("%.20s…: %d warnings of %d bytes", text, len(got), len(told(got)))
		}
	}
}

// A warning stays short however long the names in the file are.
func TestWarningsQuoteLongNamesWithinBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 100_000)
	ch := mustImport(t, `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","extensions":{"world":"`+long+`"}}}`)
	book, err := card.ImportWorldBook([]byte(`{"entries":{"`+long+`":{"uid":1,"key":["a"],"content":"{{nope}}"}}}`), "b.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, warnings := range [][]card.Warning{ch.Warnings, book.Warnings} {
		if s := told(warnings); s == "" || len(s) > 1000 {
			t.Errorf("%d bytes: %.300s", len(s), s)
		}
	}
}
