package lang_test

import (
	"os"
	"strings"
	"testing"

	"nodest/memory/lang"
)

// echoCase is a line, and whether it repeats a fact.
type echoCase struct {
	fact string
	line lang.Line
	want bool
}

// readEchoes reads a file of testdata, in which "=" begins a fact.
func readEchoes(t *testing.T, name string) (cases []echoCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	fact, roles := "", map[string]lang.Role{"c": lang.RoleCharacter, "u": lang.RoleUser}
	for row := range strings.SplitSeq(string(text), "\n") {
		sign, rest, _ := strings.Cut(row, " ")
		by, said, _ := strings.Cut(rest, " ")
		switch sign {
		case "=":
			fact = rest
		case "+", "-":
			cases = append(cases, echoCase{fact, lang.Line{Role: roles[by], Text: said}, sign == "+"})
		}
	}
	return cases
}

// Lines that repeat a fact are found, and lines that share words with it are not. The file was
// written before the rules; what the rules miss is counted.
func TestAGistFindsWhatRepeatsIt(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		file         string
		least, wrong int // in each language
	}{{"echoes.txt", 30, 2}, {"echoes_second.txt", 15, 2}} {
		found, wrong, all := map[string]int{}, map[string]int{}, map[string]int{}
		for _, c := range readEchoes(t, of.file) {
			language := "en"
			if lang.HasCJK(c.fact) {
				language = "zh"
			}
			g := lang.GistOf(c.fact, lang.AboutUser)
			got := len(g.In(lang.Tell(c.line, lang.Names{User: "Ann", Character: "Mira"}))) > 0
			if c.want {
				all[language]++
			}
			switch {
			case got && c.want:
				found[language]++
			case got:
				wrong[language]++
				t.Logf("near miss taken: %s | %s %s", c.fact, c.line.Role, c.line.Text)
			case c.want:
				t.Logf("echo missed: %s | %s %s", c.fact, c.line.Role, c.line.Text)
			}
		}
		for language, n := range all {
			t.Logf("%s %s: %d of %d echoes found, %d near misses taken", of.file, language, found[language], n, wrong[language])
			if found[language] < of.least || wrong[language] > of.wrong {
				t.Errorf("%s %s: want at least %d echoes and at most %d near misses", of.file, language, of.least, of.wrong)
			}
		}
	}
}
