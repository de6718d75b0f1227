package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nodest/internal/cli"
)

// importSamples imports two characters whose names differ in case, another one, and a
// resource of each kind; it returns their ids.
func importSamples(t *testing.T) (f *workDir, ids map[string]string) {
	t.Helper()
	f = newWorkDir(t)
	f.mustRun(t, "migrate")
	f.extraArgs = []string{"--local"}
	card := func(name string) string {
		return tempFile(t, "card.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"`+name+`","tags":["Sea","of `+name+`"],"first_mes":"Hello."}}`)
	}
	ids = map[string]string{}
	for key, args := range map[string][]string{
		"Mira": {card("Mira")}, "mira": {card("mira")}, "玄清": {card("玄清")},
		"tides":   {tempFile(t, "tides.json", `{"name":"Tides","entries":{"0":{"uid":0,"key":["tide"],"content":"It is low."}}}`)},
		"preset":  {tempFile(t, "long.json", `{"prompts":[{"identifier":"main","content":"Write long replies."}],"prompt_order":[]}`)},
		"scripts": {tempFile(t, "stars.json", `[{"scriptName":"stars","findRegex":"/\\*/g","replaceString":"","placement":[2]}]`)},
		"persona": {tempFile(t, "ann.json", `{"name":"Ann","description":"Sails."}`), "--as", "persona"},
	} {
		id, _, _ := strings.Cut(f.mustRun(t, append([]string{"import"}, args...)...), "  ")
		ids[key] = id
	}
	return f, ids
}

// TestNamesInsteadOfIDs: commands accept names in any case and prefixes of ids.
// Ambiguous ones are listed, and for unknown ones similar names are suggested.
func TestNamesInsteadOfIDs(t *testing.T) {
	t.Parallel()
	f, ids := importSamples(t)
	for _, word := range []string{"Mira", ids["Mira"], ids["Mira"][:35], strings.ToUpper(ids["Mira"])} {
		if got := f.mustRun(t, "export", word); !strings.Contains(got, `"name": "Mira"`) {
			t.Fatalf("%s: got %q, want it with %q", word, got, `"name": "Mira"`)
		}
	}
	if got := f.mustRun(t, "export", "玄清"); !strings.Contains(got, `"name": "玄清"`) {
		t.Fatalf("got %q, want it with %q", got, `"name": "玄清"`)
	}
	if got := f.mustRun(t, "export", "TIDES", "--as", "book"); !strings.Contains(got, "It is low.") {
		t.Fatalf("got %q, want it with %q", got, "It is low.")
	}
	if got := f.mustRun(t, "export", "long", "--as", "preset"); !strings.Contains(got, "Write long replies.") {
		t.Fatalf("got %q, want it with %q", got, "Write long replies.")
	}

	out, code := f.run(t, "export", "MIRA")
	if code != 2 {
		t.Fatalf("%s: code is %d, want %d", out, code, 2)
	}
	if !strings.Contains(out, ids["Mira"]) {
		t.Fatalf("out is %q, want it with %q", out, ids["Mira"])
	}
	if !strings.Contains(out, ids["mira"]) {
		t.Fatalf("out is %q, want it with %q", out, ids["mira"])
	}
	if strings.Contains(out, ids["玄清"]) {
		t.Fatalf("out is %q, want it without %q", out, ids["玄清"])
	}
	out, code = f.run(t, "export", ids["Mira"][:4])
	if code != 2 {
		t.Fatalf("the beginning of all of them: %s: code is %d, want %d", out, code, 2)
	}
	for word, want := range map[string]string{"Mirra": "did you mean Mira, mira?", "zzz": "nodest list characters", "0": "nodest list characters"} {
		out, code = f.run(t, "chat", word)
		if code != 1 {
			t.Fatalf("%s: code is %d, want %d", out, code, 1)
		}
		if !strings.Contains(out, want) {
			t.Fatalf("out is %q, want it with %q", out, want)
		}
	}

	// A chat by title, or by character if that has only one chat.
	log := tempFile(t, "boat.jsonl", `{"user_name":"Ann","character_name":"玄清"}`+"\n"+`{"name":"玄清","is_user":false,"mes":"The boat is gone."}`+"\n")
	if got := f.mustRun(t, "import", log); !strings.Contains(got, "boat  (chat with 玄清)") {
		t.Fatalf("got %q, want it with %q", got, "boat  (chat with 玄清)")
	}
	for _, word := range []string{"boat", "BOAT", "玄清"} {
		if got := f.mustRun(t, "prompt", word, "--text", "Where?"); !strings.Contains(got, "Where?") {
			t.Fatalf("%s: got %q, want it with %q", word, got, "Where?")
		}
		f.mustRun(t, "save", "create", word, "-d", "in the "+word)
	}
	if got := f.mustRun(t, "save", "show", "in the boat"); !strings.Contains(got, "The boat is gone.") {
		t.Fatalf("got %q, want it with %q", got, "The boat is gone.")
	}
	if got := f.mustRun(t, "save", "restore", "in the 玄清", "--conversation", "boat"); !strings.Contains(got, " restored\n") {
		t.Fatalf("got %q, want it with %q", got, " restored\n")
	}
	_, code = f.run(t, "save", "delete", "in the bOAT")
	if code != 2 {
		t.Fatalf("two have this name: code is %d, want %d", code, 2)
	}
	f.mustRun(t, "save", "delete", "in the BOAT")
	if got := f.mustRun(t, "save", "list", "玄清"); strings.Contains(got, "in the BOAT") {
		t.Fatalf("got %q, want it without %q", got, "in the BOAT")
	}
	f.mustRun(t, "import", log)
	for _, word := range []string{"boat", "玄清"} {
		out, code = f.run(t, "prompt", word)
		if code != 2 {
			t.Fatalf("%s: code is %d, want %d", out, code, 2)
		}
		if got := strings.Count(out, "The boat is gone."); got != 2 {
			t.Fatalf("%s: got %d, want %d", out, got, 2)
		}
	}
	out, code = f.run(t, "prompt", "mira")
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(out, "no chat with mira yet") {
		t.Fatalf("out is %q, want it with %q", out, "no chat with mira yet")
	}
	out, code = f.run(t, "lint", "Tides")
	if got := ([]int{0, 1}); !slices.Contains(got, code) {
		t.Fatalf("%s: []int{0, 1} is %+v, want it with %d", out, got, code)
	}
	if strings.Contains(out, "no file") {
		t.Fatalf("out is %q, want it without %q", out, "no file")
	}
}

// TestNamePrefixes: a unique prefix of a name is enough; whole words and whole names
// come first. Deleting requires the whole name.
func TestNamePrefixes(t *testing.T) {
	t.Parallel()
	f, _ := importSamples(t)
	character := func(name string) {
		f.mustRun(t, "import", tempFile(t, "card.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"`+name+`","first_mes":"I am `+name+`."}}`))
	}
	character("Wren Halloway")
	character("Wrenna Vale")
	for word, want := range map[string]string{"wren": "Wren Halloway", "Wren H": "Wren Halloway", "WRENN": "Wrenna Vale", "玄": "玄清"} {
		if got := f.mustRun(t, "export", word); !strings.Contains(got, `"name": "`+want+`"`) {
			t.Fatalf("%s: got %q, want it with %q", word, got, `"name": "`+want+`"`)
		}
	}
	out, code := f.run(t, "export", "wre")
	if code != 2 {
		t.Fatalf("%s: code is %d, want %d", out, code, 2)
	}
	if !strings.Contains(out, `"wre" is ambiguous (2 matches)`) {
		t.Fatalf("out is %q, want it with %q", out, `"wre" is ambiguous (2 matches)`)
	}
	_, code = f.run(t, "export", " ")
	if code != 1 {
		t.Fatalf("an empty name matches nothing: code is %d, want %d", code, 1)
	}
	character("Wren")
	if got := f.mustRun(t, "export", "wren"); !strings.Contains(got, `"name": "Wren"`) {
		t.Fatalf("the whole name wins: got %q, want it with %q", got, `"name": "Wren"`)
	}

	// A chat by title, else by character; whole names come before prefixes of either.
	log := tempFile(t, "Wren and the boat.jsonl", `{"user_name":"Ann","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"The boat is gone."}`+"\n")
	f.mustRun(t, "import", log, "--character", "玄")
	out, code = f.run(t, "prompt", "Wren")
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(out, "no chat with Wren yet") {
		t.Fatalf("out is %q, want it with %q", out, "no chat with Wren yet")
	}
	if got := f.mustRun(t, "prompt", "wren and", "--text", "Where?"); !strings.Contains(got, "The boat is gone.") {
		t.Fatalf("got %q, want it with %q", got, "The boat is gone.")
	}
	if got := f.mustRun(t, "prompt", "玄", "--text", "Where?"); !strings.Contains(got, "The boat is gone.") {
		t.Fatalf("got %q, want it with %q", got, "The boat is gone.")
	}

	// A chat file must name the whole character.
	other := tempFile(t, "log.jsonl", `{"user_name":"Ann","character_name":"Wrenn"}`+"\n"+`{"name":"Wrenn","is_user":false,"mes":"Hello."}`+"\n")
	out, code = f.run(t, "import", other)
	if code != 2 {
		t.Fatalf("%s: code is %d, want %d", out, code, 2)
	}
	if !strings.Contains(out, `this is a chat with "Wrenn"`) {
		t.Fatalf("out is %q, want it with %q", out, `this is a chat with "Wrenn"`)
	}

	f.mustRun(t, "save", "create", "Wren and the boat", "-d", "before the storm")
	for _, args := range [][]string{{"before", "--conversation", "Wren and the boat"}, {"before the storm", "--conversation", "Wren and"}} {
		if got := f.mustRun(t, append([]string{"save", "show"}, args...)...); !strings.Contains(got, "The boat is gone.") {
			t.Fatalf("got %q, want it with %q", got, "The boat is gone.")
		}
		out, code = f.run(t, append([]string{"save", "delete"}, args...)...)
		if code != 1 {
			t.Fatalf("%s: code is %d, want %d", out, code, 1)
		}
	}
	f.mustRun(t, "save", "delete", "Before the Storm", "--conversation", "wren and the boat")
	if got := f.mustRun(t, "save", "list", "Wren and the boat"); got != "" {
		t.Fatalf("got %q, want none", got)
	}
}

// TestLists checks that list prints every kind as a table and as JSON, and how to add
// the first one if there is none.
func TestLists(t *testing.T) {
	t.Parallel()
	empty := newWorkDir(t)
	empty.mustRun(t, "migrate")
	empty.extraArgs = []string{"--local"}
	for _, k := range cli.Kinds {
		if got := empty.mustRun(t, "list", k.List); !strings.Contains(got, "no "+k.Noun+" yet; add one with: ") {
			t.Fatalf("got %q, want it with %q", got, "no "+k.Noun+" yet; add one with: ")
		}
		if got := empty.mustRun(t, "list", k.List, "--json"); got != "" {
			t.Fatalf("got %q, want none", got)
		}
	}
	f, ids := importSamples(t)
	for list, want := range map[string][]string{
		"characters": {"Mira", "mira", "玄清"}, "books": {"tides", "Tides"}, "presets": {"preset", "long"}, "scripts": {"scripts", "stars"}, "personas": {"persona", "Ann"},
	} {
		out := f.mustRun(t, "list", list)
		if !regexp.MustCompile(`^ID +CHANGED +NAME`).MatchString(out) {
			t.Fatalf("got %q, want a match of %s", out, `^ID +CHANGED +NAME`)
		}
		id := ids[want[0]]
		if !strings.Contains(out, id) {
			t.Fatalf("out is %q, want it with %q", out, id)
		}
		for _, name := range want[min(1, len(want)-1):] {
			if !strings.Contains(out, name) {
				t.Fatalf("out is %q, want it with %q", out, name)
			}
		}
		found := false
		for line := range strings.Lines(f.mustRun(t, "list", list, "--json")) {
			var row struct{ ID string }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			found = found || row.ID == id
		}
		if !found {
			t.Fatal(list)
		}
	}
	out := f.mustRun(t, "list", "characters", "--tag", "sea")
	if !regexp.MustCompile(`(?s)^ID +CHANGED +NAME +TAGS\n.*玄清 +Sea, of 玄清\n`).MatchString(out) {
		t.Fatalf("got %q, want a match of %s", out, `(?s)^ID +CHANGED +NAME +TAGS\n.*玄清 +Sea, of 玄清\n`)
	}
	if got := strings.Count(out, "\n"); got != 4 {
		t.Fatalf("got %d, want %d", got, 4)
	}
	if got := strings.Count(f.mustRun(t, "list", "characters", "--tag", "of 玄清"), "\n"); got != 2 {
		t.Fatalf("got %d, want %d", got, 2)
	}
	if got := f.mustRun(t, "list", "chats", "--tag", "sea"); !strings.Contains(got, "no such chat") {
		t.Fatalf("got %q, want it with %q", got, "no such chat")
	}
}

// TestBind binds each kind of resource to characters and unbinds it.
func TestBind(t *testing.T) {
	t.Parallel()
	f, ids := importSamples(t)
	for name, noun := range map[string]string{"Tides": "book", "long": "preset", "stars": "script", "Ann": "persona"} {
		if got := f.mustRun(t, "bind", name, "玄清", ids["Mira"]); !strings.Contains(got, noun+" "+name+" is bound to 玄清, Mira") {
			t.Fatalf("%s: got %q, want it with %q", name, got, noun+" "+name+" is bound to 玄清, Mira")
		}
		if got := f.mustRun(t, "bind", name, "玄清"); !strings.Contains(got, "is bound to 玄清, Mira") {
			t.Fatalf("once more changes nothing: got %q, want it with %q", got, "is bound to 玄清, Mira")
		}
		if got := f.mustRun(t, "list", noun+"s"); !strings.Contains(got, "玄清, Mira") {
			t.Fatalf("got %q, want it with %q", got, "玄清, Mira")
		}
		if got := f.mustRun(t, "unbind", name, "玄清"); !strings.Contains(got, "is bound to Mira") {
			t.Fatalf("got %q, want it with %q", got, "is bound to Mira")
		}
		if got := f.mustRun(t, "bind", name, "--all"); !strings.Contains(got, "is bound to all characters") {
			t.Fatalf("got %q, want it with %q", got, "is bound to all characters")
		}
		if got := f.mustRun(t, "unbind", name, "--all", "--as", noun); !strings.Contains(got, "is bound to no character") {
			t.Fatalf("got %q, want it with %q", got, "is bound to no character")
		}
		_, code := f.run(t, "unbind", name, "玄清")
		if code != 2 {
			t.Fatalf("code is %d, want %d", code, 2)
		}
	}
	var r struct{ CharacterIDs []string }
	if err := json.Unmarshal([]byte(f.mustRun(t, "bind", ids["tides"], ids["玄清"], "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if want := ([]string{ids["玄清"]}); !reflect.DeepEqual(r.CharacterIDs, want) {
		t.Fatalf("r.CharacterIDs is %q, want %q", r.CharacterIDs, want)
	}

	// A bound book is in the prompt.
	f.mustRun(t, "import", "--character", "玄清", tempFile(t, "b.jsonl", `{"user_name":"A","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"Hi."}`+"\n"))
	if got := f.mustRun(t, "prompt", "玄清", "--text", "How is the tide?"); !strings.Contains(got, "It is low.") {
		t.Fatalf("got %q, want it with %q", got, "It is low.")
	}
	f.mustRun(t, "unbind", "Tides", "玄清")
	if got := f.mustRun(t, "prompt", "玄清", "--text", "How is the tide?"); strings.Contains(got, "It is low.") {
		t.Fatalf("got %q, want it without %q", got, "It is low.")
	}

	// A name that two kinds share is ambiguous.
	f.mustRun(t, "import", tempFile(t, "Tides.json", `{"prompts":[{"identifier":"main","content":"Go."}],"prompt_order":[]}`))
	out, code := f.run(t, "bind", "Tides", "玄清")
	if code != 2 {
		t.Fatalf("code is %d, want %d", code, 2)
	}
	if !regexp.MustCompile(`(?s)book.*preset|preset.*book`).MatchString(out) {
		t.Fatalf("got %q, want a match of %s", out, `(?s)book.*preset|preset.*book`)
	}
	if got := f.mustRun(t, "bind", "Tides", "玄清", "--as", "preset"); !strings.Contains(got, "preset Tides is bound") {
		t.Fatalf("got %q, want it with %q", got, "preset Tides is bound")
	}
}

// TestImportOfEveryKind exports files of every kind and imports them in one command.
func TestImportOfEveryKind(t *testing.T) {
	t.Parallel()
	f, _ := importSamples(t)
	log := tempFile(t, "boat.jsonl", `{"user_name":"Ann","character_name":"玄清"}`+"\n"+`{"name":"玄清","is_user":false,"mes":"The boat is gone."}`+"\n")
	f.mustRun(t, "import", log)
	f.mustRun(t, "save", "create", "boat", "-d", "ebb")
	out := func(name string) string { return filepath.Join(f.dir, name) }
	f.mustRun(t, "export", "boat", "--chat", "-o", out("archive.json"))
	f.mustRun(t, "export", "boat", "--chat", "--format", "jsonl", "-o", out("log.jsonl"))
	if got := f.mustRun(t, "export", "boat", "--chat", "-o", "-"); !strings.Contains(got, `"nodest.conversation"`) {
		t.Fatalf("- is standard output: got %q, want it with %q", got, `"nodest.conversation"`)
	}
	f.mustRun(t, "save", "export", "ebb", "-o", out("save.json"))
	f.mustRun(t, "export", "玄清", "--format", "png", "-o", out("card.png"))
	f.mustRun(t, "export", "玄清", "--format", "charx", "-o", out("card.charx"))
	memories := tempFile(t, "memories.jsonl", `{"type":"header","format":"memory-export","version":1}`+"\n"+`{"text":"Ann has a boat."}`+"\n")
	said := f.mustRun(t, "import", out("archive.json"), out("log.jsonl"), out("save.json"), out("card.png"))
	for _, want := range []string{"boat  (chat with 玄清)\n", "ebb  (save point of boat)\n", "  玄清\n"} {
		if !strings.Contains(said, want) {
			t.Fatalf("said is %q, want it with %q", said, want)
		}
	}
	// Two characters have this name now.
	said, code := f.run(t, "import", out("log.jsonl"))
	if code != 2 {
		t.Fatalf("code is %d, want %d", code, 2)
	}
	if !regexp.MustCompile(`choose the character with --character: "玄清" is ambiguous \(2 matches\)`).MatchString(said) {
		t.Fatalf("got %q, want a match of %s", said, `choose the character with --character: "玄清" is ambiguous \(2 matches\)`)
	}
	books := f.mustRun(t, "list", "books")
	_, code = f.run(t, "import", tempFile(t, "unbound.json", `{"entries":{}}`), "--character", "玄清")
	if code != 2 {
		t.Fatalf("code is %d, want %d", code, 2)
	}
	if got := f.mustRun(t, "list", "books"); got != books {
		t.Fatalf("nothing is stored without the character: got %q, want %q", got, books)
	}
	_, code = f.run(t, "import", out("log.jsonl"), out("card.charx"))
	if code != 1 {
		t.Fatalf("the others are imported: code is %d, want %d", code, 1)
	}
	said, code = f.run(t, "import", memories)
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(said, "--character NAME") {
		t.Fatalf("said is %q, want it with %q", said, "--character NAME")
	}
	if got := f.mustRun(t, "import", memories, "--character", "Mira"); !strings.Contains(got, "1 memories for Mira, 0 already known") {
		t.Fatalf("got %q, want it with %q", got, "1 memories for Mira, 0 already known")
	}
	if got := f.mustRun(t, "import", memories, "--character", "Mira"); !strings.Contains(got, "0 memories for Mira, 1 already known") {
		t.Fatalf("got %q, want it with %q", got, "0 memories for Mira, 1 already known")
	}

	if got := f.mustRun(t, "import", tempFile(t, "ann.json", `{"name":"Ann","description":"Sails."}`), "--character", "Mira"); !strings.Contains(got, "persona Ann is bound to Mira") {
		t.Fatalf("got %q, want it with %q", got, "persona Ann is bound to Mira")
	}
	stars := tempFile(t, "stars.json", `[{"scriptName":"stars","findRegex":"a","placement":[2]}]`)
	if got := f.mustRun(t, "import", stars, "--character", "Mira"); !strings.Contains(got, "regex scripts were off in your settings and have been turned on") {
		t.Fatalf("got %q, want it with %q", got, "regex scripts were off in your settings and have been turned on")
	}
	if got := f.mustRun(t, "import", stars, "--character", "Mira"); strings.Contains(got, "turned on") {
		t.Fatalf("got %q, want it without %q", got, "turned on")
	}
	if got := f.mustRun(t, "import", tempFile(t, "sea.json", `{"entries":{}}`), "--character", "Mira"); !strings.Contains(got, "book sea is bound to Mira") {
		t.Fatalf("got %q, want it with %q", got, "book sea is bound to Mira")
	}
	if got := f.mustRun(t, "import", tempFile(t, "odd.json", `{"name":"x","first_mes":"","entries":{}}`), "--as", "book"); !strings.Contains(got, "  (book)") {
		t.Fatalf("got %q, want it with %q", got, "  (book)")
	}
	for text, want := range map[string]string{`{"temperature":1}`: "--as character|book", `{"a":`: "invalid JSON", "hello": "unknown file type", `[1]`: "unknown file type"} {
		said, code := f.run(t, "import", tempFile(t, "odd.json", text))
		if code != 1 {
			t.Fatalf("code is %d, want %d", code, 1)
		}
		if !strings.Contains(said, want) {
			t.Fatalf("said is %q, want it with %q", said, want)
		}
	}
	said, code = f.run(t, "import", tempFile(t, "book.json", "\xff\xfe{\x00}\x00"))
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(said, "the file is UTF-16; save it as UTF-8") {
		t.Fatalf("said is %q, want it with %q", said, "the file is UTF-16; save it as UTF-8")
	}
	other := tempFile(t, "save.json", `{"id":"s","conversationId":"elsewhere","timestamp":1,"description":"d","messages":[],"nodestChatHistory":[]}`)
	said, code = f.run(t, "import", other)
	if code != 1 {
		t.Fatalf("code is %d, want %d", code, 1)
	}
	if !strings.Contains(said, "--conversation NAME") {
		t.Fatalf("said is %q, want it with %q", said, "--conversation NAME")
	}
}
