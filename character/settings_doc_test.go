package character

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"nodest/card"
)

// The page about the SillyTavern dialect has each setting that only this dialect uses, with its default and values.
func TestTheSillyTavernPageHasItsSettings(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/sillytavern.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "<!-- character settings: checked against character/settings.go by a test -->\n")
	table, _, closed := strings.Cut(rest, "<!-- end of character settings -->")
	if !closed {
		t.Fatal("the page has no table of settings")
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	var want []string
	for _, group := range []string{"worldInfo", "scripts", "prompt"} {
		at := slices.IndexFunc(characterSettings, func(g settingGroup) bool { return g.name == group })
		for _, r := range characterSettings[at].rules {
			if group == "prompt" && !slices.Contains([]string{"pinExamples", "cardSystemPrompt", "cardPostHistory"}, r.name) {
				continue
			}
			def := strings.Trim(string(r.defaultFor(string(card.SillyTavern))), `"`)
			if r.imported != nil {
				def += fmt.Sprintf(" for imported characters, else %v", r.def)
			}
			values := strings.Join(r.oneOf, ", ")
			if _, number := r.def.(float64); number {
				values = fmt.Sprintf("%.0f to %.0f", r.min, r.max)
			}
			want = append(want, strings.ReplaceAll(fmt.Sprintf("| `%s.%s` | %s | %s | ", group, r.name, def, values), "|  |", "| |"))
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the page has %d settings, there are %d", len(rows), len(want))
	}
	for i := range min(len(rows), len(want)) {
		if !strings.HasPrefix(rows[i], want[i]) {
			t.Errorf("the page has\n%s\nwant\n%s…", rows[i], want[i])
		}
	}
}
