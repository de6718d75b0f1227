package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kitchen is an installation with two characters of one name, another one, and a
// resource of each kind.
func kitchen(t *testing.T) (f *folder, ids map[string]string) {
	t.Helper()
	f = emptyFolder(t)
	f.gets(t, "migrate")
	f.all = []string{"--local"}
	card := func(name string) string {
		return inFile(t, "card.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"`+name+`","first_mes":"Hello."}}`)
	}
	ids = map[string]string{}
	for key, args := range map[string][]string{
		"Mira": {card("Mira")}, "mira": {card("mira")}, "玄清": {card("玄清")},
		"tides":   {inFile(t, "tides.json", `{"name":"Tides","entries":{"0":{"uid":0,"key":["tide"],"content":"It is low."}}}`)},
		"preset":  {inFile(t, "long.json", `{"prompts":[{"identifier":"main","content":"Write long replies."}],"prompt_order":[]}`)},
		"scripts": {inFile(t, "stars.json", `[{"scriptName":"stars","findRegex":"/\\*/g","replaceString":"","placement":[2]}]`)},
		"persona": {inFile(t, "ann.json", `{"name":"Ann","description":"Sails."}`), "--as", "persona"},
	} {
		id, _, _ := strings.Cut(f.gets(t, append([]string{"import"}, args...)...), "  ")
		ids[key] = id
	}
	return f, ids
}

// TestNamesWhereIdsAre: names in any case, and beginnings of ids, are accepted;
// several that fit are listed, and what does not exist is told with what is near.
func TestNamesWhereIdsAre(t *testing.T) {
	t.Parallel()
	f, ids := kitchen(t)
	for _, word := range []string{"Mira", ids["Mira"], ids["Mira"][:35], strings.ToUpper(ids["Mira"])} {
		require.Contains(t, f.gets(t, "export", word), `"name": "Mira"`, word)
	}
	require.Contains(t, f.gets(t, "export", "玄清"), `"name": "玄清"`)
	require.Contains(t, f.gets(t, "export", "TIDES", "--as", "book"), "It is low.")
	require.Contains(t, f.gets(t, "export", "long", "--as", "preset"), "Write long replies.")

	out, code := f.types(t, "export", "MIRA")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, ids["Mira"])
	require.Contains(t, out, ids["mira"])
	require.NotContains(t, out, ids["玄清"])
	out, code = f.types(t, "export", ids["Mira"][:4])
	require.Equal(t, 2, code, "the beginning of all of them: %s", out)
	for word, want := range map[string]string{"Mirra": "did you mean Mira, mira?", "zzz": "nodest list characters", "0": "nodest list characters"} {
		out, code = f.types(t, "chat", word)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, want)
	}

	// Chats by title, by the character of the only one, and several of them.
	log := inFile(t, "boat.jsonl", `{"user_name":"Ann","character_name":"玄清"}`+"\n"+`{"name":"玄清","is_user":false,"mes":"The boat is gone."}`+"\n")
	require.Contains(t, f.gets(t, "import", log), "boat  (chat with 玄清)")
	for _, word := range []string{"boat", "BOAT", "玄清"} {
		require.Contains(t, f.gets(t, "prompt", word, "--text", "Where?"), "Where?", word)
		f.gets(t, "save", "create", word, "-d", "in the "+word)
	}
	require.Contains(t, f.gets(t, "save", "show", "in the boat"), "The boat is gone.")
	require.Contains(t, f.gets(t, "save", "restore", "in the 玄清", "--conversation", "boat"), " restored\n")
	_, code = f.types(t, "save", "delete", "in the bOAT")
	require.Equal(t, 2, code, "two are called so")
	f.gets(t, "save", "delete", "in the BOAT")
	require.NotContains(t, f.gets(t, "save", "list", "玄清"), "in the BOAT")
	f.gets(t, "import", log)
	for _, word := range []string{"boat", "玄清"} {
		out, code = f.types(t, "prompt", word)
		require.Equal(t, 2, code, out)
		require.Equal(t, 2, strings.Count(out, "The boat is gone."), out)
	}
	out, code = f.types(t, "prompt", "mira")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no chat with mira yet")
	out, code = f.types(t, "lint", "Tides")
	require.Contains(t, []int{0, 1}, code, out)
	require.NotContains(t, out, "no file")
}

// TestBeginningsOfNames: the beginning of a name is enough where only one fits, whole
// words first; whole names win, and what deletes wants the whole name.
func TestBeginningsOfNames(t *testing.T) {
	t.Parallel()
	f, _ := kitchen(t)
	character := func(name string) {
		f.gets(t, "import", inFile(t, "card.json", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"`+name+`","first_mes":"I am `+name+`."}}`))
	}
	character("Wren Halloway")
	character("Wrenna Vale")
	for word, want := range map[string]string{"wren": "Wren Halloway", "Wren H": "Wren Halloway", "WRENN": "Wrenna Vale", "玄": "玄清"} {
		require.Contains(t, f.gets(t, "export", word), `"name": "`+want+`"`, word)
	}
	out, code := f.types(t, "export", "wre")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, `"wre" is ambiguous (2 matches)`)
	_, code = f.types(t, "export", " ")
	require.Equal(t, 1, code, "nothing begins with nothing")
	character("Wren")
	require.Contains(t, f.gets(t, "export", "wren"), `"name": "Wren"`, "the whole name wins")

	// A chat by its title, else by its character; whole names come before beginnings of either.
	log := inFile(t, "Wren and the boat.jsonl", `{"user_name":"Ann","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"The boat is gone."}`+"\n")
	f.gets(t, "import", log, "--character", "玄")
	out, code = f.types(t, "prompt", "Wren")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no chat with Wren yet")
	require.Contains(t, f.gets(t, "prompt", "wren and", "--text", "Where?"), "The boat is gone.")
	require.Contains(t, f.gets(t, "prompt", "玄", "--text", "Where?"), "The boat is gone.")

	// A file that names only the beginning of a character is not imported for it.
	other := inFile(t, "log.jsonl", `{"user_name":"Ann","character_name":"Wrenn"}`+"\n"+`{"name":"Wrenn","is_user":false,"mes":"Hello."}`+"\n")
	out, code = f.types(t, "import", other)
	require.Equal(t, 2, code, out)
	require.Contains(t, out, `this is a chat with "Wrenn"`)

	f.gets(t, "save", "create", "Wren and the boat", "-d", "before the storm")
	for _, args := range [][]string{{"before", "--conversation", "Wren and the boat"}, {"before the storm", "--conversation", "Wren and"}} {
		require.Contains(t, f.gets(t, append([]string{"save", "show"}, args...)...), "The boat is gone.")
		out, code = f.types(t, append([]string{"save", "delete"}, args...)...)
		require.Equal(t, 1, code, out)
	}
	f.gets(t, "save", "delete", "Before the Storm", "--conversation", "wren and the boat")
	require.Empty(t, f.gets(t, "save", "list", "Wren and the boat"))
}

// TestLists shows every kind as a table and as JSON, and tells how to get the
// first of what is missing.
func TestLists(t *testing.T) {
	t.Parallel()
	empty := emptyFolder(t)
	empty.gets(t, "migrate")
	empty.all = []string{"--local"}
	for _, k := range kinds {
		require.Contains(t, empty.gets(t, "list", k.list), "no "+k.noun+" yet; add one with: ")
		require.Empty(t, empty.gets(t, "list", k.list, "--json"))
	}
	f, ids := kitchen(t)
	for list, want := range map[string][]string{
		"characters": {"Mira", "mira", "玄清"}, "books": {"tides", "Tides"}, "presets": {"preset", "long"}, "scripts": {"scripts", "stars"}, "personas": {"persona", "Ann"},
	} {
		out := f.gets(t, "list", list)
		require.Regexp(t, `^ID +CHANGED +NAME`, out)
		id := ids[want[0]]
		require.Contains(t, out, id)
		for _, name := range want[min(1, len(want)-1):] {
			require.Contains(t, out, name)
		}
		found := false
		for line := range strings.Lines(f.gets(t, "list", list, "--json")) {
			var row struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			found = found || row.ID == id
		}
		require.True(t, found, list)
	}
}

// TestBind binds each kind of resource to characters and takes it away again.
func TestBind(t *testing.T) {
	t.Parallel()
	f, ids := kitchen(t)
	for name, noun := range map[string]string{"Tides": "book", "long": "preset", "stars": "script", "Ann": "persona"} {
		require.Contains(t, f.gets(t, "bind", name, "玄清", ids["Mira"]), noun+" "+name+" is bound to 玄清, Mira", name)
		require.Contains(t, f.gets(t, "bind", name, "玄清"), "is bound to 玄清, Mira", "once more changes nothing")
		require.Contains(t, f.gets(t, "list", noun+"s"), "玄清, Mira")
		require.Contains(t, f.gets(t, "unbind", name, "玄清"), "is bound to Mira")
		require.Contains(t, f.gets(t, "bind", name, "--all"), "is bound to all characters")
		require.Contains(t, f.gets(t, "unbind", name, "--all", "--as", noun), "is bound to no character")
		_, code := f.types(t, "unbind", name, "玄清")
		require.Equal(t, 2, code)
	}
	var r struct{ CharacterIDs []string }
	require.NoError(t, json.Unmarshal([]byte(f.gets(t, "bind", ids["tides"], ids["玄清"], "--json")), &r))
	require.Equal(t, []string{ids["玄清"]}, r.CharacterIDs)

	// What is bound counts: the book is in the prompt, the scripts are on.
	f.gets(t, "import", "--character", "玄清", inFile(t, "b.jsonl", `{"user_name":"A","character_name":"x"}`+"\n"+`{"name":"x","is_user":false,"mes":"Hi."}`+"\n"))
	require.Contains(t, f.gets(t, "prompt", "玄清", "--text", "How is the tide?"), "It is low.")
	f.gets(t, "unbind", "Tides", "玄清")
	require.NotContains(t, f.gets(t, "prompt", "玄清", "--text", "How is the tide?"), "It is low.")

	// A name that two kinds share is listed with both.
	f.gets(t, "import", inFile(t, "Tides.json", `{"prompts":[{"identifier":"main","content":"Go."}],"prompt_order":[]}`))
	out, code := f.types(t, "bind", "Tides", "玄清")
	require.Equal(t, 2, code)
	require.Regexp(t, `(?s)book.*preset|preset.*book`, out)
	require.Contains(t, f.gets(t, "bind", "Tides", "玄清", "--as", "preset"), "preset Tides is bound")
}

// TestImportOfEveryKind takes files of every kind in one go, and out again.
func TestImportOfEveryKind(t *testing.T) {
	t.Parallel()
	f, _ := kitchen(t)
	log := inFile(t, "boat.jsonl", `{"user_name":"Ann","character_name":"玄清"}`+"\n"+`{"name":"玄清","is_user":false,"mes":"The boat is gone."}`+"\n")
	f.gets(t, "import", log)
	f.gets(t, "save", "create", "boat", "-d", "ebb")
	out := func(name string) string { return filepath.Join(f.dir, name) }
	f.gets(t, "export", "boat", "--chat", "-o", out("archive.json"))
	f.gets(t, "export", "boat", "--chat", "--format", "jsonl", "-o", out("log.jsonl"))
	require.Contains(t, f.gets(t, "export", "boat", "--chat", "-o", "-"), `"nodest.conversation"`, "- is standard output")
	f.gets(t, "save", "export", "ebb", "-o", out("save.json"))
	f.gets(t, "export", "玄清", "--format", "png", "-o", out("card.png"))
	f.gets(t, "export", "玄清", "--format", "charx", "-o", out("card.charx"))
	memories := inFile(t, "memories.jsonl", `{"type":"header","format":"memory-export","version":1}`+"\n"+`{"text":"Ann has a boat."}`+"\n")
	said := f.gets(t, "import", out("archive.json"), out("log.jsonl"), out("save.json"), out("card.png"))
	for _, want := range []string{"boat  (chat with 玄清)\n", "ebb  (save point of boat)\n", "  玄清\n"} {
		require.Contains(t, said, want)
	}
	// There are two of this name now.
	_, code := f.types(t, "import", out("log.jsonl"))
	require.Equal(t, 2, code)
	_, code = f.types(t, "import", out("log.jsonl"), out("card.charx"))
	require.Equal(t, 1, code, "the others are imported")
	said, code = f.types(t, "import", memories)
	require.Equal(t, 1, code)
	require.Contains(t, said, "--character NAME")
	require.Contains(t, f.gets(t, "import", memories, "--character", "Mira"), "1 memories for Mira, 0 already known")
	require.Contains(t, f.gets(t, "import", memories, "--character", "Mira"), "0 memories for Mira, 1 already known")

	require.Contains(t, f.gets(t, "import", inFile(t, "sea.json", `{"entries":{}}`), "--character", "Mira"), "book sea is bound to Mira")
	require.Contains(t, f.gets(t, "import", inFile(t, "odd.json", `{"name":"x","first_mes":"","entries":{}}`), "--as", "book"), "  (book)")
	for text, want := range map[string]string{`{"temperature":1}`: "--as character|book", `{"a":`: "invalid JSON", "hello": "unknown file type", `[1]`: "unknown file type"} {
		said, code := f.types(t, "import", inFile(t, "odd.json", text))
		require.Equal(t, 1, code)
		require.Contains(t, said, want)
	}
	said, code = f.types(t, "import", inFile(t, "book.json", "\xff\xfe{\x00}\x00"))
	require.Equal(t, 1, code)
	require.Contains(t, said, "the file is UTF-16; save it as UTF-8")
	other := inFile(t, "save.json", `{"id":"s","conversationId":"elsewhere","timestamp":1,"description":"d","messages":[],"nodestChatHistory":[]}`)
	said, code = f.types(t, "import", other)
	require.Equal(t, 1, code)
	require.Contains(t, said, "--conversation NAME")
}

// TestSharedFilesAreRecognised imports every sample file without being told what
// it is.
func TestSharedFilesAreRecognised(t *testing.T) {
	t.Parallel()
	const data = "../../../shared/data"
	if _, err := os.Stat(data); err != nil {
		t.Skip("skipped: there is no " + data)
	}
	for folder, want := range map[string][]string{
		"cards": {"character"}, "worldbooks": {"book"}, "presets": {"preset", "script"}, "chats": {"chat"},
	} {
		n := 0
		require.NoError(t, filepath.WalkDir(filepath.Join(data, folder), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || strings.Contains(path, "invalid") {
				return err
			}
			n++
			require.Contains(t, want, detect(text), path)
			return nil
		}))
		require.Positive(t, n)
	}
}
