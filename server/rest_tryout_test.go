package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fired summarises the answer of a test of world books.
func fired(t *testing.T, a *restResponse) string {
	t.Helper()
	var out []string
	tokens := 0.0
	body := a.wants(t, 200)
	for _, item := range body["entries"].([]any) {
		e := item.(map[string]any)
		if e["fires"] == true {
			tokens += e["tokens"].(float64)
			out = append(out, fmt.Sprintf("%v:%v:%v", e["name"], e["why"], e["key"]))
		} else {
			out = append(out, fmt.Sprintf("(%v:%v)", e["name"], e["reason"]))
		}
	}
	if body["tokens"] != tokens {
		t.Errorf("%v tokens, want %v", body["tokens"], tokens)
	}
	return strings.ReplaceAll(strings.Join(out, " "), "<nil>", "")
}

const teaBook = `{"entries":{
	"0":{"key":["Tea","chai"],"content":"Tea is green.","comment":"tea","constant":false,"position":4,"order":2},
	"1":{"key":["milk"],"content":"Milk is white.","comment":"milk","constant":false,"position":4,"order":1},
	"2":{"key":["cup"],"content":"Cups are blue.","comment":"cup","constant":false,"position":0,"order":0},
	"3":{"content":"It rains.","comment":"rain","constant":true,"position":3},
	"4":{"key":["tea"],"content":"Off.","comment":"off","disable":true}}}`

// The test of a world book finds what a prompt finds.
func TestWorldBooksAreTested(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	test := func(more string) string {
		t.Helper()
		return fired(t, h.rest("POST", "/worldbooks/test", `{"document":`+teaBook+`,`+more+`}`))
	}
	for _, c := range []struct{ data, want string }{
		{`"text":"Some chai?"`, "cup:fixed: rain:constant: tea:key:chai (milk:no_key) (off:disabled)"},
		{`"text":"TEA with milk"`, "cup:fixed: rain:constant: milk:key:milk tea:key:Tea (off:disabled)"},
		{`"text":"Nothing","dialect":"sillytavern"`, "rain:constant: (off:disabled) (tea:no_key) (milk:no_key) (cup:no_key)"},
		{`"text":"A cup","dialect":"sillytavern"`, "rain:constant: (off:disabled) (tea:no_key) (milk:no_key) cup:key:cup"},
		{`"messages":[{"role":"assistant","text":"Milk?"},{"role":"user","text":"Tea!"}]`, "cup:fixed: rain:constant: milk:key:milk tea:key:Tea (off:disabled)"},
		{`"messages":[{"role":"assistant","text":"Milk?"}],"text":"Tea!","scanDepth":1`, "cup:fixed: rain:constant: tea:key:Tea (milk:no_key) (off:disabled)"},
		{`"messages":[{"role":"assistant","text":"Tea?"}]`, "cup:fixed: (tea:no_base) (milk:no_base) (rain:no_base) (off:disabled)"},
	} {
		if got := test(c.data); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.data, got, c.want)
		}
	}
	book := h.rest("POST", "/worldbooks", `{"document":`+teaBook+`,"dialect":"sillytavern"}`).wants(t, 201)["id"].(string)
	want := "rain:constant: (off:disabled) (tea:no_key) (milk:no_key) cup:key:cup"
	if got := fired(t, h.rest("POST", "/worldbooks/test", `{"worldBookId":"`+book+`","text":"A cup"}`)); got != want {
		t.Errorf("a stored book: %s", got)
	}

	// With a character the entries are those of its prompts, with the same reasons.
	ch := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`,"worldBook":`+teaBook+`}`).wants(t, 201)["id"].(string)
	h.rest("PATCH", "/worldbooks/"+book, `{"characterIds":["`+ch+`"]}`).wants(t, 200)
	got := fired(t, h.rest("POST", "/worldbooks/test", `{"characterId":"`+ch+`","text":"Tea?"}`))
	chat := h.rest("POST", "/conversations", `{"characterId":"`+ch+`"}`).wants(t, 201)["id"].(string)
	prompt := h.rest("POST", "/conversations/"+chat+"/prompt", `{"text":"Tea?"}`).wants(t, 200)
	var sent []string
	for _, item := range prompt["entries"].([]any) {
		if e := item.(map[string]any); e["source"] == "worldbook" {
			sent = append(sent, fmt.Sprintf("%v:%v:%v", e["name"], e["why"], e["key"]))
		}
	}
	if wants := strings.ReplaceAll(strings.Join(sent, " "), "<nil>", ""); len(sent) != 3 || !strings.HasPrefix(got, wants+" (") || strings.Count(got, "(rain:no_note)") != 2 {
		t.Errorf("tested %s\nsent   %s", got, wants)
	}
}

// An entry that is not constant and has no usable key is never sent, in whatever form and way a
// book comes. A key of blanks matches everything in SillyTavern, and in its dialect.
func TestAnEntryWithoutKeysNeverFires(t *testing.T) {
	h := newTestServer(t, nil)
	for _, key := range []string{`[]`, `[""]`, `[" "]`, ``} {
		info, ofCard := `"uid":0`, `"enabled":true,"insertion_order":1`
		if key != "" {
			info, ofCard = info+`,"key":`+key, ofCard+`,"keys":`+key
		}
		books := map[string]string{
			"world info": `{"entries":{"0":{` + info + `,"constant":false,"position":0,"content":"T","comment":"t"}}}`,
			"no dialect": `{"entries":{"0":{` + info + `,"position":0,"content":"T","comment":"t"}}}`,
			"NodeST":     `{"entries":{"a":{"constant":false,"position":0,"content":"T","comment":"t"}}}`,
			"V2 array":   `{"entries":[{` + ofCard + `,"content":"T","comment":"t","extensions":{}}]}`,
		}
		for form, book := range books {
			want := "(t:no_keys)"
			switch {
			case form == "NodeST":
				want = "(t:no_key)"
			case key == `[" "]`:
				want = "t:key: "
			}
			if got := fired(t, h.rest("POST", "/worldbooks/test", `{"document":`+book+`,"text":"Hi T"}`)); got != want {
				t.Errorf("%s, key %s, as a document: %s", form, key, got)
			}
			id := h.rest("POST", "/worldbooks", `{"document":`+book+`}`).wants(t, 201)["id"].(string)
			if got := fired(t, h.rest("POST", "/worldbooks/test", `{"worldBookId":"`+id+`","text":"Hi T"}`)); got != want {
				t.Errorf("%s, key %s, stored: %s", form, key, got)
			}
			ch := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`,"worldBook":{"entries":{}}}`).wants(t, 201)["id"].(string)
			h.rest("PATCH", "/worldbooks/"+id, `{"characterIds":["`+ch+`"]}`).wants(t, 200)
			if got := fired(t, h.rest("POST", "/worldbooks/test", `{"characterId":"`+ch+`","text":"Hi T"}`)); got != "(t:no_key)" {
				t.Errorf("%s, key %s, bound: %s", form, key, got)
			}
		}
		card := `{"roleCard":{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","character_book":` + books["V2 array"] + `}}}`
		ch := h.rest("POST", "/characters", card).wants(t, 201)["id"].(string)
		if got := fired(t, h.rest("POST", "/worldbooks/test", `{"characterId":"`+ch+`","text":"Hi T"}`)); got != "(t:no_key)" {
			t.Errorf("key %s, in a card: %s", key, got)
		}
	}
	text := `{"document":{"entries":{"0":{"uid":0,"key":"tower, sea","content":"T","comment":"t"}}},"text":"`
	if got := fired(t, h.rest("POST", "/worldbooks/test", text+`To the sea!"}`)); got != "t:key:sea" {
		t.Errorf("keys in one text: %s", got)
	}
	if got := fired(t, h.rest("POST", "/worldbooks/test", text+`To the shore!"}`)); got != "(t:no_key)" {
		t.Errorf("keys in one text that do not match: %s", got)
	}
}

// A document is tested as the only book of a character: by its settings, and with its
// author's note or without one.
func TestAWorldBookIsTestedWithACharacter(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	ch := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`,"worldBook":{"entries":{"9":{"key":["tea"],"content":"Old.","comment":"old","position":4}}}}`).
		wants(t, 201)["id"].(string)
	bound := h.rest("POST", "/worldbooks", `{"document":`+teaBook+`,"bindAll":true}`).wants(t, 201)["id"].(string)
	test := func(more, want string) {
		t.Helper()
		if got := fired(t, h.rest("POST", "/worldbooks/test", `{"document":`+teaBook+`,"characterId":"`+ch+`","text":"Some tea?"`+more+`}`)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", more, got, want)
		}
	}
	test("", "cup:fixed: tea:key:Tea (milk:no_key) (rain:no_note) (off:disabled)")
	test(`,"messages":[{"role":"assistant","text":"Milk?"}]`, "cup:fixed: milk:key:milk tea:key:Tea (rain:no_note) (off:disabled)")
	h.rest("PUT", "/characters/"+ch+"/settings", `{"prompt":{"filterKeyed":true,"scanDepth":1}}`).wants(t, 200)
	test(`,"messages":[{"role":"assistant","text":"Milk?"}]`, "tea:key:Tea (milk:no_key) (cup:no_key) (rain:no_note) (off:disabled)")
	h.rest("PATCH", "/characters/"+ch, `{"authorNote":{"content":"Be kind.","depth":4}}`).wants(t, 200)
	test("", "tea:key:Tea rain:constant: (milk:no_key) (cup:no_key) (off:disabled)")
	if got := h.rest("GET", "/worldbooks/"+bound, "").wants(t, 200); got["version"] != 1.0 {
		t.Errorf("a test changed a book: %v", got)
	}
	h.rest("POST", "/worldbooks/test", `{"document":`+teaBook+`,"characterId":"`+ch+`","text":"tea"}`, "Authorization: Bearer "+h.newMember("mia")).refuses(t, 404, "not_found")
}

func TestWorldBooksCannotBeTestedWithout(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	many := strings.Repeat(`{"role":"user","text":"x"},`, 1001)
	for data, field := range map[string]string{
		`{"text":"x"}`: "document", `{"document":{},"worldBookId":"b","text":"x"}`: "document", `{"document":{}}`: "text",
		`{"worldBookId":"b","characterId":"c","text":"x"}`: "document",
		`{"document":{},"text":"x","scanDepth":0}`:         "scanDepth", `{"document":{},"text":"x","scanDepth":-2}`: "scanDepth",
		`{"document":{},"text":"x","dialect":"kobold"}`: "dialect", `{"document":[],"text":"x"}`: "document",
		`{"document":{},"messages":[{"role":"cook","text":"x"}]}`: "messages[0].role",
		`{"document":{},"messages":[` + many[:len(many)-1] + `]}`: "messages",
		`{"document":{},"text":"x","probability":1}`:              "probability",
	} {
		h.rest("POST", "/worldbooks/test", data).refuses(t, 400, "invalid_field", field)
	}
	for _, long := range []string{`"text":"` + strings.Repeat("x", 32_001) + `"`, `"messages":[{"role":"user","text":"` + strings.Repeat("x", 32_001) + `"}]`} {
		h.rest("POST", "/worldbooks/test", `{"document":{},`+long+`}`).refuses(t, 413, "too_large")
	}
	h.rest("POST", "/regexscripts/test", `{"document":[],"text":"`+strings.Repeat("x", 32_001)+`"}`).refuses(t, 413, "too_large")
	h.rest("POST", "/worldbooks/test", `{"document":{"entries":7},"text":"x"}`).refuses(t, 422, "invalid_world_book")
	if got := fired(t, h.rest("POST", "/worldbooks/test", `{"document":{},"text":"x"}`)); got != "" {
		t.Errorf("an empty book: %s", got)
	}
}

const starScripts = `[{"id":"1","scriptName":"stars","findRegex":"/\\*/g","replaceString":"","placement":[2]},
	{"scriptName":"shout","findRegex":"hello","replaceString":"HELLO","flags":"i","placement":[1,2]},
	{"scriptName":"display","findRegex":"/o/g","replaceString":"0","placement":[2],"markdownOnly":true},
	{"scriptName":"slow","findRegex":"(a+)+$","replaceString":"","placement":[2],"promptOnly":true,"minDepth":1}]`

// The test of scripts says of each what it did, or why it did nothing.
func TestRegexScriptsAreTested(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	id := h.rest("POST", "/regexscripts", `{"document":`+starScripts+`}`).wants(t, 201)["id"].(string)
	slow, _ := json.Marshal(strings.Repeat("a", 60) + "!")
	for _, c := range []struct{ data, want string }{
		{`"text":"*waves* Hello!"`, "waves HELLO! stars:2 shout:1 display:purpose slow:purpose"},
		{`"text":"*waves* Hello!","placement":1`, "*waves* HELLO! stars:placement shout:1 display:placement slow:placement"},
		{`"text":"Hello o","isMarkdown":true`, "Hell0 0 stars:purpose shout:purpose display:2 slow:purpose"},
		{`"text":"aaa","isPrompt":true`, "aaa stars:purpose shout:purpose display:purpose slow:depth"},
		{`"text":"aaa","isPrompt":true,"depth":1`, " stars:purpose shout:purpose display:purpose slow:1"},
		{`"text":` + string(slow) + `,"isPrompt":true,"depth":1`, strings.Repeat("a", 60) + "! stars:purpose shout:purpose display:purpose slow:slow_pattern"},
	} {
		for _, of := range []string{`"document":` + starScripts, `"regexScriptId":"` + id + `"`} {
			body := h.rest("POST", "/regexscripts/test", `{`+of+`,`+c.data+`}`).wants(t, 200)
			got := body["text"].(string)
			for _, item := range body["scripts"].([]any) {
				s := item.(map[string]any)
				did := s["reason"]
				if s["ran"] == true {
					did = s["replacements"]
				}
				got += fmt.Sprintf(" %v:%v", s["name"], did)
			}
			if got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.data, got, c.want)
			}
		}
	}
	tavern := `{"dialect":"sillytavern","document":[{"findRegex":"/(o)/","replaceString":"{{match}}$1{{char}}$$","placement":[5]}],"text":"oo","placement":5}`
	if got := h.rest("POST", "/regexscripts/test", tavern).wants(t, 200)["text"]; got != "ooCharacter$$o" {
		t.Errorf("in the SillyTavern dialect: %v", got)
	}
	for data, field := range map[string]string{
		`{"document":[],"text":"x","dialect":"kobold"}`: "dialect", `{"document":[],"text":"x","dialect":"sillytavern","placement":7}`: "placement",
		`{"document":[],"text":"x","dialect":"sillytavern","placement":4}`: "placement",
		`{"text":"x"}`: "document", `{"document":[],"regexScriptId":"x","text":"x"}`: "document", `{"document":"x","text":"x"}`: "document",
		`{"document":[],"text":"x","placement":3}`: "placement", `{"document":[],"text":"x","depth":-1}`: "depth",
	} {
		h.rest("POST", "/regexscripts/test", data).refuses(t, 400, "invalid_field", field)
	}
}

func TestOnlyOnesOwnDocumentsAreTested(t *testing.T) {
	t.Parallel()
	h := newTestServer(t, nil)
	theirs := h.newFixtures()
	h.token = h.newMember("stranger")
	for body, path := range map[string]string{
		`{"characterId":"` + theirs.character + `","text":"x"}`:                   "/worldbooks/test",
		`{"worldBookId":"` + theirs.resources["worldbooks"] + `","text":"x"}`:     "/worldbooks/test",
		`{"regexScriptId":"` + theirs.resources["regexscripts"] + `","text":"x"}`: "/regexscripts/test",
	} {
		h.rest("POST", path, body).refuses(t, 404, "not_found")
	}
}
