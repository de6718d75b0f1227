package lexicon

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

const english = `# A comment.
words trees
  oak ash
part tree
  {{trees}}|linden tree
rule planted
  match (?i)\bplanted an? {{tree}}\b
  match (?i)\b{{tree}} was planted\b
  as -
rule size
  match huge
  rank 2
rule size
  match small
  rank 1
words all-trees
  fir {{trees}}
phrases greetings
  good day
  hello
words days
  monday/mon tuesday/tue
`

const chinese = `rule planted
  match 种了(?:橡树|白蜡)
  as 种
words days
  周一 周二
`

func testLexicon() *Lexicon {
	return New(fstest.MapFS{"data/en.txt": {Data: []byte(english)}, "data/zh.txt": {Data: []byte(chinese)}})
}

func TestRulesAreOfAllLanguagesOrOfOne(t *testing.T) {
	l := testLexicon()
	planted, inEnglish := l.Rule("planted"), l.Rule("planted", "en")
	for text, want := range map[string][2]bool{
		"We planted a Linden tree": {true, true}, "an oak was planted": {true, true}, "我们种了橡树": {true, false}, "we planted a cloak": {},
	} {
		if got := [2]bool{planted.MatchString(text), inEnglish.MatchString(text)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := planted.ReplaceAllString("planted an ash, 种了白蜡", "x"); got != "x, x" {
		t.Errorf("replaced: %q", got)
	}
	if got := planted.Rewrite("planted an ash, 种了白蜡"); got != "-, 种" {
		t.Errorf("rewritten: %q", got)
	}
}

func TestRulesOfAListStayInOrder(t *testing.T) {
	var ranks []string
	for _, e := range testLexicon().List("size", "rank")() {
		ranks = append(ranks, e.Language+e.With["rank"])
	}
	if want := []string{"en2", "en1"}; !slices.Equal(ranks, want) {
		t.Errorf("%q, want %q", ranks, want)
	}
}

func TestWords(t *testing.T) {
	l := testLexicon()
	if got, want := l.Words("all-trees")(), []string{"fir", "oak", "ash"}; !slices.Equal(got, want) {
		t.Errorf("words %q, want %q", got, want)
	}
	if got, want := l.Set("greetings")(), map[string]bool{"good day": true, "hello": true}; !maps.Equal(got, want) {
		t.Errorf("set %v, want %v", got, want)
	}
	if got, want := l.Ranks("days")(), map[string]int{"monday": 0, "mon": 0, "周一": 0, "tuesday": 1, "tue": 1, "周二": 1}; !maps.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
	if got := l.Words("days", "zh")(); len(got) != 2 {
		t.Errorf("Chinese days: %q", got)
	}
}

func TestPromptsKeepTheirLineBreaks(t *testing.T) {
	files := fstest.MapFS{"texts/en.txt": {Data: []byte("== a ==\nOne.\n\n== b ==\nTwo\nThree\n")}}
	if got, want := Prompts(files, "texts/en.txt")(), map[string]string{"": "", "a": "One.\n", "b": "Two\nThree"}; !maps.Equal(got, want) {
		t.Errorf("texts %q, want %q", got, want)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"rule\n  match x":            `line 1: rule "" has no name`,
		"  match x":                  `line 1: "match x" is in no block`,
		"rool a\n":                   `line 1: "rool" is no kind of block`,
		"part a\n  x\npart a\n  y":   `line 3: part "a" has no name, or is there twice`,
		"rule a\n  match":            `line 2: "match" has no value`,
		"rule a\n  kind x\n  kind y": `line 3: "kind" is there twice`,
		"words a\n  x {{b}}":         `there are no words "b"`,
	} {
		if _, err := parse("en", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestAPartInItselfIsRefused(t *testing.T) {
	l, err := parse("en", "part a\n  x{{a}}\nrule r\n  match {{a}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Rules[0].Compile(); err == nil || !strings.Contains(err.Error(), "a part is in itself") {
		t.Errorf("error %v", err)
	}
}

func TestAMissingNameStopsTheProgram(t *testing.T) {
	for name, use := range map[string]func(){
		"no language has stones": func() { testLexicon().Words("stones")() },
		"unknown member: rank":   func() { testLexicon().List("size")() },
		"there are no files":     func() { New(fstest.MapFS{}).Languages() },
	} {
		func() {
			defer func() {
				if reason, ok := recover().(string); !ok || !strings.Contains(reason, name) {
					t.Errorf("panic %q, want %q", reason, name)
				}
			}()
			use()
		}()
	}
}

func TestTexts(t *testing.T) {
	type texts struct{ Greeting, Bye string }
	files := fstest.MapFS{"words/en.json": {Data: []byte(`{"greeting": "hello", "bye": "so long"}`)}, "words/zh.json": {Data: []byte(`{"greeting": "你好"}`)}}
	got := Texts[string, texts](files)
	if len(got) != 2 || *got["en"] != (texts{"hello", "so long"}) || *got["zh"] != (texts{Greeting: "你好"}) {
		t.Errorf("%+v", got)
	}
	for name, wrong := range map[string]fstest.MapFS{
		"no files":   {},
		"no JSON":    {"words/en.json": {Data: []byte(`{"greeting"`)}},
		"other text": {"words/en.json": {Data: []byte(`{"thanks": "thank you"}`)}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Texts[string, texts](wrong)
		}()
	}
}

// Packages compile their rules when they first need them, several at once.
func TestRulesAreCompiledAtTheSameTime(t *testing.T) {
	l, err := parse("en", english)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := l.Rules[0].Compile(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
