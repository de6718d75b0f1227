package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		require.Contains(t, f.mustRun(t, "export", word), `"name": "Mira"`, word)
	}
	require.Contains(t, f.mustRun(t, "export", "玄清"), `"name": "玄清"`)
	require.Contains(t, f.mustRun(t, "export", "TIDES", "--as", "book"), "It is low.")
	require.Contains(t, f.mustRun(t, "export", "long", "--as", "preset"), "Write long replies.")

	out, code := f.run(t, "export", "MIRA")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, ids["Mira"])
	require.Contains(t, out, ids["mira"])
	require.NotContains(t, out, ids["玄清"])
	out, code = f.run(t, "export", ids["Mira"][:4])
	require.Equal(t, 2, code, "the beginning of all of them: %s", out)
	for word, want := range map[string]string{"Mirra": "did you mean Mira, mira?", "zzz": "nodest list characters", "0": "nodest list characters"} {
		out, code = f.run(t, "chat", word)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, want)
	}

	// A chat by title, or by character if that has only one chat.
	log := tempFile(t, "boat.jsonl", `{"user_name":"Ann","character_name":"玄清"}`+"\n"+`{"name":"玄清","is_user":false,"mes":"The boat is gone."}`+"\n")
	require.Contains(t, f.mustRun(t, "import", log), "boat  (chat with 玄清)")
	for _, word := range []string{"boat", "BOAT", "玄清"} {
		require.Contains(t, f.mustRun(t, "prompt", word, "--text", "Where?"), "Where?", word)
		f.mustRun(t, "save", "create", word, "-d", "in the "+word)
	}
	require.Contains(t, f.mustRun(t, "save", "show", "in the boat"), "The boat is gone.")
	require.Contains(t, f.mustRun(t, "save", "restore", "in the 玄清", "--conversation", "boat"), " restored\n")
	_, code = f.run(t, "save", "delete", "in the bOAT")
	require.Equal(t, 2, code, "two have this name")
	f.mustRun(t, "save", "delete", "in the BOAT")
	require.NotContains(t, f.mustRun(t, "save", "list", "玄清"), "in the BOAT")
	f.mustRun(t, "import", log)
	for _, word := range []string{"boat", "玄清"} {
		out, code = f.run(t, "prompt", word)
		require.Equal(t, 2, code, out)
		require.Equal(t, 2, strings.Count(out, "The boat is gone."), out)
	}
	out, code = f.run(t, "prompt", "mira")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no chat with mira yet")
	out, code = f.run(t, "lint", "Tides")
	require.Contains(t, []int{0, 1}, code, out)
	require.NotContains(t, out, "no file")
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
		require.Contains(t, f.mustRun(t, "export", word), `"name": "`+want+`"`, word)
	}
	out, code := f.run(t, "export", "wre")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, `"wre" is ambiguous (2 matches)`)
	_, code = f.run(t, "export", " ")
	require.Equal(t, 1, code, "an empty name matches nothing")
	character("Wren")
	require.Contains(t, f.mustRun(t, "export", "wren"), `"name": "Wren"`, "the whole name wins")

	// A chat by title, else by character; whole names come before prefixes of either.
	log := tempFile(t, "Wren and the boat.jsonl", `{"user_name":"Ann","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"The boat is gone."}`+"\n")
	f.mustRun(t, "import", log, "--character", "玄")
	out, code = f.run(t, "prompt", "Wren")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no chat with Wren yet")
	require.Contains(t, f.mustRun(t, "prompt", "wren and", "--text", "Where?"), "The boat is gone.")
	require.Contains(t, f.mustRun(t, "prompt", "玄", "--text", "Where?"), "The boat is gone.")

	// A chat file must name the whole character.
	other := tempFile(t, "log.jsonl", `{"user_name":"Ann","character_name":"Wrenn"}`+"\n"+`{"name":"Wrenn","is_user":false,"mes":"Hello."}`+"\n")
	out, code = f.run(t, "import", other)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, `this is a chat with "Wrenn"`)

	f.mustRun(t, "save", "create", "Wren and the boat", "-d", "before the storm")
	for _, args := range [][]string{{"before", "--conversation", "Wren and the boat"}, {"before the storm", "--conversation", "Wren and"}} {
		require.Contains(t, f.mustRun(t, append([]string{"save", "show"}, args...)...), "The boat is gone.")
		out, code = f.run(t, append([]string{"save", "delete"}, args...)...)
		require.Equal(t, 1, code, out)
	}
	f.mustRun(t, "save", "delete", "Before the Storm", "--conversation", "wren and the boat")
	require.Empty(t, f.mustRun(t, "save", "list", "Wren and the boat"))
}

// TestLists checks that list prints every kind as a table and as JSON, and how to add
// the first one if there is none.
func TestLists(t *testing.T) {
	t.Parallel()
	empty := newWorkDir(t)
	empty.mustRun(t, "migrate")
	empty.extraArgs = []string{"--local"}
	for _, k := range cli.Kinds {
		require.Contains(t, empty.mustRun(t, "list", k.List), "no "+k.Noun+" yet; add one with: ")
		require.Empty(t, empty.mustRun(t, "list", k.List, "--json"))
	}
	f, ids := importSamples(t)
	for list, want := range map[string][]string{
		"characters": {"Mira", "mira", "玄清"}, "books": {"tides", "Tides"}, "presets": {"preset", "long"}, "scripts": {"scripts", "stars"}, "personas": {"persona", "Ann"},
	} {
		out := f.mustRun(t, "list", list)
		require.Regexp(t, `^ID +CHANGED +NAME`, out)
		id := ids[want[0]]
		require.Contains(t, out, id)
		for _, name := range want[min(1, len(want)-1):] {
			require.Contains(t, out, name)
		}
		found := false
		for line := range strings.Lines(f.mustRun(t, "list", list, "--json")) {
			var row struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			found = found || row.ID == id
		}
		require.True(t, found, list)
	}
	out := f.mustRun(t, "list", "characters", "--tag", "sea")
	require.Regexp(t, `(?s)^ID +CHANGED +NAME +TAGS\n.*玄清 +Sea, of 玄清\n`, out)
	require.Equal(t, 4, strings.Count(out, "\n"))
	require.Equal(t, 2, strings.Count(f.mustRun(t, "list", "characters", "--tag", "of 玄清"), "\n"))
	require.Contains(t, f.mustRun(t, "list", "chats", "--tag", "sea"), "no such chat")
}

// TestBind binds each kind of resource to characters and unbinds it.
func TestBind(t *testing.T) {
	t.Parallel()
	f, ids := importSamples(t)
	for name, noun := range map[string]string{"Tides": "book", "long": "preset", "stars": "script", "Ann": "persona"} {
		require.Contains(t, f.mustRun(t, "bind", name, "玄清", ids["Mira"]), noun+" "+name+" is bound to 玄清, Mira", name)
		require.Contains(t, f.mustRun(t, "bind", name, "玄清"), "is bound to 玄清, Mira", "once more changes nothing")
		require.Contains(t, f.mustRun(t, "list", noun+"s"), "玄清, Mira")
		require.Contains(t, f.mustRun(t, "unbind", name, "玄清"), "is bound to Mira")
		require.Contains(t, f.mustRun(t, "bind", name, "--all"), "is bound to all characters")
		require.Contains(t, f.mustRun(t, "unbind", name, "--all", "--as", noun), "is bound to no character")
		_, code := f.run(t, "unbind", name, "玄清")
		require.Equal(t, 2, code)
	}
	var r struct{ CharacterIDs []string }
	require.NoError(t, json.Unmarshal([]byte(f.mustRun(t, "bind", ids["tides"], ids["玄清"], "--json")), &r))
	require.Equal(t, []string{ids["玄清"]}, r.CharacterIDs)

	// A bound book is in the prompt.
	f.mustRun(t, "import", "--character", "玄清", tempFile(t, "b.jsonl", `{"user_name":"A","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"Hi."}`+"\n"))
	require.Contains(t, f.mustRun(t, "prompt", "玄清", "--text", "How is the tide?"), "It is low.")
	f.mustRun(t, "unbind", "Tides", "玄清")
	require.NotContains(t, f.mustRun(t, "prompt", "玄清", "--text", "How is the tide?"), "It is low.")

	// A name that two kinds share is ambiguous.
	f.mustRun(t, "import", tempFile(t, "Tides.json", `{"prompts":[{"identifier":"main","content":"Go."}],"prompt_order":[]}`))
	out, code := f.run(t, "bind", "Tides", "玄清")
	require.Equal(t, 2, code)
	require.Regexp(t, `(?s)book.*preset|preset.*book`, out)
	require.Contains(t, f.mustRun(t, "bind", "Tides", "玄清", "--as", "preset"), "preset Tides is bound")
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
	require.Contains(t, f.mustRun(t, "export", "boat", "--chat", "-o", "-"), `"nodest.conversation"`, "- is standard output")
	f.mustRun(t, "save", "export", "ebb", "-o", out("save.json"))
	f.mustRun(t, "export", "玄清", "--format", "png", "-o", out("card.png"))
	f.mustRun(t, "export", "玄清", "--format", "charx", "-o", out("card.charx"))
	memories := tempFile(t, "memories.jsonl", `{"type":"header","format":"memory-export","version":1}`+"\n"+`{"text":"Ann has a boat."}`+"\n")
	said := f.mustRun(t, "import", out("archive.json"), out("log.jsonl"), out("save.json"), out("card.png"))
	for _, want := range []string{"boat  (chat with 玄清)\n", "ebb  (save point of boat)\n", "  玄清\n"} {
		require.Contains(t, said, want)
	}
	// Two characters have this name now.
	said, code := f.run(t, "import", out("log.jsonl"))
	require.Equal(t, 2, code)
	require.Regexp(t, `choose the character with --character: "玄清" is ambiguous \(2 matches\)`, said)
	books := f.mustRun(t, "list", "books")
	_, code = f.run(t, "import", tempFile(t, "unbound.json", `{"entries":{}}`), "--character", "玄清")
	require.Equal(t, 2, code)
	require.Equal(t, books, f.mustRun(t, "list", "books"), "nothing is stored without the character")
	_, code = f.run(t, "import", out("log.jsonl"), out("card.charx"))
	require.Equal(t, 1, code, "the others are imported")
	said, code = f.run(t, "import", memories)
	require.Equal(t, 1, code)
	require.Contains(t, said, "--character NAME")
	require.Contains(t, f.mustRun(t, "import", memories, "--character", "Mira"), "1 memories for Mira, 0 already known")
	require.Contains(t, f.mustRun(t, "import", memories, "--character", "Mira"), "0 memories for Mira, 1 already known")

	require.Contains(t, f.mustRun(t, "import", tempFile(t, "ann.json", `{"name":"Ann","description":"Sails."}`), "--character", "Mira"), "persona Ann is bound to Mira")
	stars := tempFile(t, "stars.json", `[{"scriptName":"stars","findRegex":"a","placement":[2]}]`)
	require.Contains(t, f.mustRun(t, "import", stars, "--character", "Mira"), "regex scripts were off in your settings and have been turned on")
	require.NotContains(t, f.mustRun(t, "import", stars, "--character", "Mira"), "turned on")
	require.Contains(t, f.mustRun(t, "import", tempFile(t, "sea.json", `{"entries":{}}`), "--character", "Mira"), "book sea is bound to Mira")
	require.Contains(t, f.mustRun(t, "import", tempFile(t, "odd.json", `{"name":"x","first_mes":"","entries":{}}`), "--as", "book"), "  (book)")
	for text, want := range map[string]string{`{"temperature":1}`: "--as character|book", `{"a":`: "invalid JSON", "hello": "unknown file type", `[1]`: "unknown file type"} {
		said, code := f.run(t, "import", tempFile(t, "odd.json", text))
		require.Equal(t, 1, code)
		require.Contains(t, said, want)
	}
	said, code = f.run(t, "import", tempFile(t, "book.json", "\xff\xfe{\x00}\x00"))
	require.Equal(t, 1, code)
	require.Contains(t, said, "the file is UTF-16; save it as UTF-8")
	other := tempFile(t, "save.json", `{"id":"s","conversationId":"elsewhere","timestamp":1,"description":"d","messages":[],"nodestChatHistory":[]}`)
	said, code = f.run(t, "import", other)
	require.Equal(t, 1, code)
	require.Contains(t, said, "--conversation NAME")
}
