package character_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/sharedtest"
	"nodest/nodest/nodesttest"
)

func TestLintReadsEveryKindOfDocument(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"card":    nodesttest.AliceWithGreetings,
		"book":    `{"entries":{"0":{"content":"x","key":[],"constant":false}}}`,
		"preset":  `{"prompts":[{"identifier":"main","content":"x"}],"prompt_order":[]}`,
		"scripts": `[{"scriptName":"s","findRegex":"(","replaceString":""}]`,
	} {
		findings, err := character.Lint([]byte(data), name+".json", nil)
		nodesttest.Must(t, err)
		if findings == nil {
			t.Errorf("%s: no list", name)
		}
		t.Logf("%s: %v", name, findings)
	}
	findings, err := character.Lint([]byte(`{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Ada","group_only_greetings":["Hi, all."]}}`), "card.json", nil)
	nodesttest.Must(t, err)
	if !slices.ContainsFunc(findings, func(w card.Warning) bool { return strings.HasSuffix(w.Path, "group_only_greetings") }) {
		t.Errorf("findings = %v, want the warning of an import, too", findings)
	}
	_, err = character.Lint([]byte(nodesttest.SmallLog), "log.jsonl", nil)
	nodesttest.WantError(t, err, fault.InvalidImport, "")
	_, err = character.Lint([]byte("hello"), "x.txt", nil)
	nodesttest.WantError(t, err, fault.UnsupportedCard, "")
}

// Findings of the scan have paths like all others, and are reported once.
func TestLintExaminesBooksByTheRulesOfTheirDialect(t *testing.T) {
	t.Parallel()
	const book = `{"name":"Lore","entries":[{"keys":["/(a+)+b/"],"content":"x","extensions":{}},{"keys":["moon"],"content":"","extensions":{"probability":0}}]}`
	findings, err := character.Lint([]byte(`{"spec":"chara_card_v3","spec_version":"3.0","data":{"name":"Ada","description":"x","character_book":`+book+`}}`), "card.json", nil)
	nodesttest.Must(t, err)
	var got []string
	for _, w := range findings {
		if strings.HasPrefix(w.Path, "worldBook.") {
			got = append(got, w.Code+" "+w.Path)
		}
	}
	slices.Sort(got)
	want := []string{"empty worldBook.entries.1.content", "slow_pattern worldBook.entries.0.key[0]", "unreachable worldBook.entries.1.probability"}
	if !slices.Equal(got, want) {
		t.Errorf("findings are %q, want %q", got, want)
	}
}

func TestLintOfEverySharedFile(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"cards", "worldbooks", "presets"} {
		for _, file := range sharedtest.Files(t, "data/"+folder+"/*") {
			if filepath.Ext(file) == "" || strings.Contains(file, "invalid") {
				continue
			}
			findings, err := character.Lint(nodesttest.ReadFile(t, file), filepath.Base(file), nil)
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
			t.Logf("%s: %d findings", filepath.Base(file), len(findings))
		}
	}
}
