package card_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/sharedtest"
)

// oddCards are characters that lack what the specifications require, or have it in other types.
var oddCards = map[string]string{
	"V1":    `{"name":"Ada","description":"d","personality":"p","scenario":"s","first_mes":"Hi.","mes_example":""}`,
	"empty": `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada"}}`,
	"texts": `{"spec":"chara_card_v2","spec_version":"2.0","tags":"top","description":"older","data":{"name":"Ada","tags":"a, b","alternate_greetings":"Hey.",
		"creator":7,"nickname":null,"source":"here","creation_date":"1700000000","modification_date":"yesterday","extensions":{"own":{"a":1}},
		"creator_notes_multilingual":{"de":"Hallo","fr":5,"es":[]},"assets":[{"type":"icon","uri":"ccdefault:"},"x"],"post_history_instructions":null,"unknown":[1]}}`,
	"book": `{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Ada","group_only_greetings":null,"character_book":{"name":5,"scan_depth":"4","recursive_scanning":"yes","unknown":{"x":1},
		"entries":[{"content":"A"},{"keys":"tower, sea","content":7,"enabled":"false","insertion_order":"3","id":"a","case_sensitive":null,"position":4,"own":1},
		{"key":["x"],"content":"B","constant":1,"secondary_keys":null},{"keys":["/dra?gon/i"],"content":"C","extensions":[]},"no entry"]}}}`,
	"book by name": `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","character_book":{"entries":{"7":{"keys":["a"],"content":"A"},"2":{"keys":[3],"content":"B"}}}}}`,
	"no book":      `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","character_book":"none"}}`,
	"NodeST":       `{"roleCard":{"name":"Ada","description":5,"first_mes":"Hi."},"worldBook":{"entries":{"a":{"key":"one, two","content":"A"},"b":{"content":"B","position":4}}}}`,
}

// exportsOf are the documents in all card files that a character can be exported as, by the
// version that they claim.
func exportsOf(t *testing.T, name string, ch *card.Character) (docs []validated) {
	t.Helper()
	for _, spec := range []card.Spec{card.SpecV2, card.SpecV3} {
		docs = append(docs, validated{name + " JSON", string(spec), mustExport(t, ch, card.JSON, spec).Data})
		bare := *ch
		bare.Assets, bare.Avatar = nil, nil
		docs = append(docs, validated{name + " CHARX", string(spec), unzipped(t, mustExport(t, &bare, card.CHARX, spec).Data, "card.json")})
	}
	file := mustExport(t, ch, card.PNG, "").Data
	for keyword, spec := range map[string]string{"chara": "v2", "ccv3": "v3"} {
		docs = append(docs, validated{name + " PNG", spec, textChunk(t, file, keyword)})
	}
	return docs
}

type validated struct {
	Name string          `json:"name"`
	Spec string          `json:"spec"`
	Card json.RawMessage `json:"card"`
}

// textChunk is the document in a text chunk of a PNG file.
func textChunk(t *testing.T, file []byte, keyword string) []byte {
	t.Helper()
	_, after, ok := bytes.Cut(file, []byte("tEXt"+keyword+"\x00"))
	if !ok {
		t.Fatalf("no chunk %s", keyword)
	}
	end := bytes.IndexFunc(after, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", r)
	})
	for ; end > 0; end-- { // the checksum behind it may look like a part of it
		if doc, err := base64.StdEncoding.DecodeString(string(after[:end])); err == nil && json.Valid(doc) {
			return doc
		}
	}
	t.Fatalf("chunk %s is no card", keyword)
	return nil
}

// unzipped is a file of an archive.
func unzipped(t *testing.T, file []byte, name string) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// everyCard are the odd cards, the sample, and the cards beside the project.
func everyCard(t *testing.T) map[string]*card.Character {
	t.Helper()
	all := map[string]*card.Character{}
	for name, file := range oddCards {
		all[name] = mustImport(t, file)
	}
	all["sample"] = mustImport(t, string(card.SampleFile("")))
	all["sample_zh"] = mustImport(t, string(card.SampleFile("zh")))
	own := mustImport(t, `{"roleCard":{"name":"Ada"}}`)
	own.WorldBook = []byte(`{"entries":[{"keys":["a"],"content":"A","enabled":true,"insertion_order":1,"extensions":{}}]}`)
	all["made here, book of a card"] = own
	edited := mustImport(t, oddCards["book"])
	edited.WorldBook = []byte(`{"entries":{"0":{"uid":0,"key":"tower, sea","keysecondary":"x","content":"T","constant":false}}}`)
	all["edited book"] = edited
	files := sharedtest.Find("data/cards/*")
	if len(files) == 0 {
		t.Log("no cards beside the project: only those of the test are checked")
	}
	for _, f := range files {
		name := filepath.Base(f)
		if ch, err := card.Import(read(t, f), name, card.Limits{}); err == nil {
			all[name] = ch
		}
	}
	return all
}

func TestEveryExportIsValid(t *testing.T) {
	t.Parallel()
	for name, ch := range everyCard(t) {
		for _, doc := range exportsOf(t, name, ch) {
			for _, problem := range invalidMembers(doc) {
				t.Errorf("%s %s: %s", doc.Name, doc.Spec, problem)
			}
		}
	}
}

// specification is the type of each member by the specifications of V2 and V3, required where
// it begins with "!", and by V3 alone where it begins with "3".
var specification = map[string]map[string]string{
	"data": {
		"name": "!text", "description": "!text", "personality": "!text", "scenario": "!text", "first_mes": "!text", "mes_example": "!text",
		"creator_notes": "!text", "system_prompt": "!text", "post_history_instructions": "!text", "alternate_greetings": "!texts",
		"tags": "!texts", "creator": "!text", "character_version": "!text", "extensions": "!object", "group_only_greetings": "3texts",
		"character_book": "book", "nickname": "text", "source": "texts", "creation_date": "number", "modification_date": "number",
		"creator_notes_multilingual": "object", "assets": "list",
	},
	"book": {"name": "text", "description": "text", "scan_depth": "number", "token_budget": "number", "recursive_scanning": "flag", "extensions": "!object", "entries": "!entries"},
	"entry": {
		"keys": "!texts", "content": "!text", "extensions": "!object", "enabled": "!flag", "insertion_order": "!number", "use_regex": "3flag",
		"case_sensitive": "flag", "name": "text", "priority": "number", "id": "number", "comment": "text", "selective": "flag",
		"secondary_keys": "texts", "constant": "flag", "position": "text",
	},
}

func invalidMembers(doc validated) (problems []string) {
	var check func(path, kind string, v any)
	object := func(path, kind string, v any) {
		o, ok := v.(map[string]any)
		if !ok {
			problems = append(problems, path+" is no object")
			return
		}
		for key, want := range specification[kind] {
			value, there := o[key]
			required := want[0] == '!' || want[0] == '3' && doc.Spec == "v3"
			if there {
				check(path+"."+key, strings.TrimLeft(want, "!3"), value)
			} else if required {
				problems = append(problems, path+"."+key+" is missing")
			}
		}
	}
	check = func(path, kind string, v any) {
		ok := true
		switch kind {
		case "text":
			_, ok = v.(string)
		case "number":
			_, ok = v.(float64)
		case "flag":
			_, ok = v.(bool)
		case "object":
			_, ok = v.(map[string]any)
		case "list":
			_, ok = v.([]any)
		case "book":
			object(path, "book", v)
		case "texts", "entries":
			var list []any
			list, ok = v.([]any)
			for i, element := range list {
				if kind == "entries" {
					object(fmt.Sprintf("%s[%d]", path, i), "entry", element)
				} else if _, text := element.(string); !text {
					ok = false
				}
			}
		}
		if !ok {
			problems = append(problems, fmt.Sprintf("%s is %v, want %s", path, v, kind))
		}
	}
	var file struct {
		Spec    string
		Version string `json:"spec_version"`
		Data    any
	}
	if err := json.Unmarshal(doc.Card, &file); err != nil {
		return []string{err.Error()}
	}
	if file.Spec != "chara_card_"+doc.Spec || file.Version != doc.Spec[1:]+".0" {
		problems = append(problems, "spec "+file.Spec+" "+file.Version)
	}
	object("data", "data", file.Data)
	return problems
}

func TestAnImportOfAnExportGivesTheCardAsItWas(t *testing.T) {
	t.Parallel()
	for name, file := range oddCards {
		t.Run(name, func(t *testing.T) { roundTrips(t, mustImport(t, file)) })
	}
}

func TestAnExportKeepsMeaningAndUnknownMembers(t *testing.T) {
	t.Parallel()
	file := mustExport(t, mustImport(t, oddCards["book"]), card.JSON, card.SpecV3).Data
	var got struct {
		Data struct {
			Book struct {
				Unknown any
				Entries []struct {
					Keys    []string
					Content string
					Enabled bool
					Regex   bool `json:"use_regex"`
					Own     any
				}
			} `json:"character_book"`
		}
	}
	if err := json.Unmarshal(file, &got); err != nil {
		t.Fatal(err)
	}
	want := "{map[x:1] [{[] A true false <nil>} {[tower sea] 7 false false 1} {[x] B true false <nil>} {[/dra?gon/i] C true true <nil>}]}"
	if s := fmt.Sprint(got.Data.Book); s != want {
		t.Errorf("book %s\nwant %s", s, want)
	}
	file = mustExport(t, mustImport(t, oddCards["texts"]), card.JSON, card.SpecV2).Data
	if tags := fmt.Sprintln(at(t, file, "data", "tags"), at(t, file, "data", "description"), at(t, file, "data", "unknown"), at(t, file, "data", "extensions", "own")); tags != "[a b] older [1] map[a:1]\n" {
		t.Errorf("tags, description, unknown members: %s", tags)
	}
}

func TestAnEditOfAnotherProgramIsNotTakenBack(t *testing.T) {
	t.Parallel()
	file := string(mustExport(t, mustImport(t, oddCards["texts"]), card.JSON, card.SpecV3).Data)
	edited := strings.Replace(file, `"a",`, `"new",`, 1)
	if edited == file {
		t.Fatal("nothing was edited")
	}
	if tags := fmt.Sprint(at(t, mustImport(t, edited).RoleCard, "data", "tags")); tags != "[new b]" {
		t.Errorf("tags %s", tags)
	}
}

// The libraries that other programs read cards with are installed with the tools of the page
// (npm ci in web).
func TestLibrariesOfTheFormatsAcceptEveryExport(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: there is no node on this machine")
	}
	web, err := filepath.Abs(filepath.Join("..", "web"))
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"@risuai/ccardlib", "character-card-utils"} {
		if _, err := os.Stat(filepath.Join(web, "node_modules", library)); err != nil {
			t.Skipf("skipped: %s is not installed; run npm ci in web", library)
		}
	}
	var lines bytes.Buffer
	n := 0
	for name, ch := range everyCard(t) {
		for _, doc := range exportsOf(t, name, ch) {
			n++
			if err := json.NewEncoder(&lines).Encode(doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "validate.mjs"), web)
	cmd.Stdin = &lines
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if len(out) > 0 || !strings.Contains(said.String(), fmt.Sprintf("%d cards checked", n)) {
		t.Errorf("%s%s", said.String(), out)
	}
	t.Logf("%s", said.String())
}

// Notes about an export that another program has damaged do not damage the card.
func TestDamagedNotesOfAnExportAreIgnored(t *testing.T) {
	t.Parallel()
	ch := mustImport(t, `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","scenario":"","character_book":{"entries":[{"keys":["a"],"content":"c"}]},
		"extensions":{"nodest":{"dialect":"sillytavern","filled":{"was":{"description":{"0":{"at":0}},"scenario":{"0":{}},"character_book.entries.content":{"0":{"at":-5}}}}}}}}`)
	if got := string(ch.WorldBook); !json.Valid(ch.RoleCard) || !strings.Contains(got, `"content":"c"`) {
		t.Errorf("card %s\nbook %s", ch.RoleCard, got)
	}
}
