package framework

import (
	"slices"
	"strings"
	"testing"

	"nodest/card"
)

func codes(findings []card.Warning) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code+" "+f.Path)
	}
	return out
}

func expectCodes(t *testing.T, got []card.Warning, want ...string) {
	t.Helper()
	if !slices.Equal(codes(got), want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(codes(got), "\n  "), strings.Join(want, "\n  "))
	}
	for _, f := range got {
		if f.Detail == "" || strings.Contains(f.Detail, "\n") {
			t.Errorf("%s: detail %q is not one line", f.Path, f.Detail)
		}
	}
}

func TestLintOfABook(t *testing.T) {
	book := card.WorldBook{Entries: []card.Entry{
		{ID: "fine", Content: "x {{char}}", Key: []string{"dragon"}, Position: card.AtDepth},
		{ID: "keys", Content: "x", Key: []string{"a", "The", "ok"}, Position: card.AtDepth},
		{ID: "empty", Constant: true},
		{ID: "long", Content: strings.Repeat("word ", 2000), Constant: true},
		{ID: "frame", Content: "x", Key: []string{"x"}, Position: card.BeforeChar}, // keys do not matter there
		{ID: "off", Disable: true},
	}}
	expectCodes(t, Lint(Documents{Book: &book}),
		"matches_everything entries.keys.key[0]",
		"matches_often entries.keys.key[1]",
		"empty entries.empty.content",
		"over_budget entries.long.content",
	)
	// Imported books follow the same rules, except that their entries outside the chat
	// need their keys.
	want := append(codes(Lint(Documents{Book: &book})), "matches_everything entries.frame.key[0]")
	expectCodes(t, Lint(Documents{Dialect: card.SillyTavern, Book: &book}), want...)
}

func TestLintOfACharacter(t *testing.T) {
	c := card.RoleCard{Description: " ", FirstMes: "Hi {{usr}}", AlternateGreetings: []string{"ok", "{{getvar::x}}"}, SystemPrompt: "s"}
	book := card.WorldBook{Entries: []card.Entry{{ID: "1", Content: "x", Constant: true, Position: card.AfterNote}}}
	expectCodes(t, Lint(Documents{Card: &c, Book: &book}),
		"empty roleCard.description",
		"needs_note worldBook.entries.1.position",
	)
}

// Lint names where card fields appear that the preset does not list, and which fields
// the preset leaves out.
func TestLintNamesWhereTheFieldsOfACardAppear(t *testing.T) {
	c := card.RoleCard{
		Description: "d", Personality: "p", Scenario: "s", MesExample: "e", SystemPrompt: "{{original}} {{nope}}",
		PostHistoryInstructions: "h", DepthPrompt: card.DepthPrompt{Prompt: "{{never}}"},
	}
	prompts := []card.Prompt{
		{Identifier: "main", Enable: true, ForbidOverrides: true}, {Identifier: "jailbreak", Enable: true}, {Identifier: "chatHistory", Enable: true},
	}
	order := []card.OrderItem{
		{Identifier: "main", Enabled: true}, {Identifier: "charDescription", Enabled: true}, {Identifier: "scenario"},
		{Identifier: "chatHistory", Enabled: true}, {Identifier: "jailbreak", Enabled: true},
	}
	expectCodes(t, Lint(Documents{Card: &c, Preset: &card.Preset{Prompts: prompts, Order: order}}),
		"unlisted_field roleCard.personality",
		"unused_field roleCard.scenario",
		"unlisted_field roleCard.mes_example",
		"unused_field roleCard.system_prompt",
	)
}

func TestLintOfAPreset(t *testing.T) {
	p := card.Preset{
		Prompts: []card.Prompt{
			{Identifier: "main", Content: "x {{nope}}", Enable: true}, {Identifier: "main", Content: "y", Enable: true},
			{Identifier: "lost", Content: "z", Enable: true}, {Identifier: "marker", Enable: true},
		},
		Order: []card.OrderItem{{Identifier: "main", Enabled: true}, {Identifier: "gone", Enabled: true}, {Identifier: "scenario", Enabled: true}, {Identifier: "chatHistory"}},
	}
	expectCodes(t, Lint(Documents{Preset: &p}),
		"duplicate_identifier prompts[1].identifier",
		"unknown_identifier prompt_order[1].identifier",
		"no_history prompt_order",
		"unreachable prompts[2]",
	)
	builtIn, err := card.ParsePreset(nil)
	if err != nil {
		t.Fatal(err)
	}
	expectCodes(t, Lint(Documents{Preset: &builtIn}))
}

func TestLintOfScripts(t *testing.T) {
	one, two := 1, 2
	reply := []int{card.PlaceAIOutput}
	expectCodes(t, Lint(Documents{Scripts: []card.RegexScript{
		{Find: "a+b", Placement: reply},
		{Find: "(", Placement: reply},
		{Find: "/(a+)+$/g", Placement: reply},
		{Find: "x*", Placement: reply},
		{Find: "a"},
		{Find: "", Placement: reply},
		{Find: "a", Placement: reply, MinDepth: &two, MaxDepth: &one},
		{Find: "(", Disabled: true},
	}}),
		"invalid_pattern [1].findRegex",
		"slow_pattern [2].findRegex",
		"matches_everything [3].findRegex",
		"unreachable [4].placement",
		"empty [5].findRegex",
		"unreachable [6].minDepth",
	)
	if got := Lint(Documents{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

func TestLintOfTavernScripts(t *testing.T) {
	one := 1
	reply := []int{card.PlaceAIOutput}
	expectCodes(t, Lint(Documents{Dialect: card.SillyTavern, Scripts: []card.RegexScript{
		{Find: "/a/g", Replace: "$1{{match}}", Placement: reply, RunOnEdit: true, TrimStrings: []string{"x"}},
		{Find: "/{{char}}/", Placement: reply, PromptOnly: true, MinDepth: &one, Substitute: card.SubstituteRaw},
		{Find: "/a/", Replace: "$&", Placement: reply, MarkdownOnly: true, RunOnEdit: true, TrimStrings: []string{"x"}, Substitute: card.SubstituteEscaped},
		{Find: "/a/", Placement: reply, MaxDepth: &one},
		{Find: "/a/", Placement: []int{card.PlaceSlashCommand, card.PlaceReasoning}},
		{Find: "/a/", Placement: []int{card.PlaceWorldInfo}},
		{Find: "/a/", Placement: []int{card.PlaceWorldInfo}, PromptOnly: true},
		{Find: "x*", Placement: reply},
		{Find: "/x*/g", Placement: reply},
	}}),
		"unused_field [2].runOnEdit", "unused_field [2].trimStrings", "unused_field [2].substituteRegex", "unused_field [2].replaceString",
		"unused_field [3].minDepth",
		"unreachable [4].placement",
		"unreachable [5].placement",
		"matches_everything [8].findRegex",
	)
}

func TestLintNamesOldMacros(t *testing.T) {
	c := card.RoleCard{Description: "{{time_UTC+2}} {{time::UTC+2}} {{nope}}"}
	expectCodes(t, Lint(Documents{Dialect: card.SillyTavern, Card: &c}), "deprecated_macro description")
	expectCodes(t, Lint(Documents{Card: &c}))
}
