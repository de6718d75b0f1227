package framework

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework/macro"
)

// effectOf builds the prompts of a chat with documents that differ by one member, and reports
// whether they differ.
func effectOf(t *testing.T, without, with Sources) bool {
	t.Helper()
	texts := func(s Sources) (all []string) {
		for _, text := range []string{"A dragon and a sword.", "A sword.", "A Dragonfly.", "Nothing.", "Old bones and more bones."} {
			in := Input{Sources: s, History: []Message{{Role: "assistant", Text: "Hi."}, {Role: "user", Text: "Hm."}, {Role: "assistant", Text: "Yes?"}},
				User: Message{Role: "user", Text: text}, Note: &card.AuthorNote{Text: "NOTE", Depth: 1}, Options: Options{FilterKeyed: true, Seed: 3}}
			p, err := Build(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%+v", p.Messages))
		}
		return all
	}
	return !reflect.DeepEqual(texts(without), texts(with))
}

// named reports whether warnings are about a member.
func named(warnings []card.Warning, member string) bool {
	return slices.ContainsFunc(warnings, func(w card.Warning) bool {
		return strings.HasSuffix(w.Path, "."+member) || w.Path == member || strings.Contains(w.Detail, "not used: ") && strings.Contains(w.Detail, member)
	})
}

// with is a JSON object with more members.
func with(t *testing.T, object string, members map[string]any) string {
	t.Helper()
	m := map[string]any{}
	decode(t, []byte(object), &m)
	maps.Copy(m, members)
	doc, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// An import of a world book names a member exactly if no prompt of the NodeST dialect depends on it.
func TestMembersOfEntriesAreNamedIfTheyHaveNoEffect(t *testing.T) {
	t.Parallel()
	const plain = `{"uid":0,"comment":"Dragon","key":["dragon"],"content":"DRAGON","constant":false,"position":4,"depth":2,"order":5}`
	group := map[string]any{"group": "g"}
	for _, c := range []struct {
		member string
		value  any
		more   map[string]any // members of the entry, with and without this one
	}{
		{"key", []string{"bones"}, nil}, {"content", "OTHER", nil}, {"constant", true, nil}, {"disable", true, nil}, {"position", 1, nil}, {"depth", 1, nil},
		{"order", 50, nil},
		{"keysecondary", []string{"sword"}, nil}, {"selectiveLogic", 2, map[string]any{"keysecondary": []string{"sword"}}},
		{"probability", 0, nil}, {"group", "g", nil}, {"groupWeight", 5, group}, {"groupOverride", true, group}, {"useGroupScoring", true, group},
		{"sticky", 3, nil}, {"cooldown", 3, nil}, {"delay", 100, nil}, {"vectorized", true, nil},
		{"caseSensitive", true, nil}, {"matchWholeWords", true, nil}, {"scanDepth", 1, nil},
		{"excludeRecursion", true, nil}, {"preventRecursion", true, nil}, {"delayUntilRecursion", true, nil}, {"ignoreBudget", true, nil},
		{"outletName", "o", nil}, {"automationId", "a", nil}, {"triggers", []string{"swipe"}, nil}, {"characterFilter", map[string]any{"names": []string{"Nobody"}}, nil},
		{"matchCharacterDescription", true, nil}, {"matchScenario", true, nil}, {"role", 2, nil}, {"unheardOf", "x", nil},
	} {
		book := func(entry string) (Sources, []card.Warning) {
			// Another entry beside it, so that an order and a group can matter.
			doc := `{"entries":{"0":` + entry + `,"1":{"uid":1,"key":["dragon"],"content":"LIZARD","constant":false,"position":4,"depth":2,"order":9}}}`
			ch, err := card.Import([]byte(`{"roleCard":{"name":"Mara"},"worldBook":`+doc+`}`), "app.json", card.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			view, err := card.ParseWorldBook(ch.WorldBook, ch.Dialect)
			if err != nil {
				t.Fatal(err)
			}
			return Sources{Dialect: ch.Dialect, Card: card.RoleCard{Name: "Mara", Description: "A bold sword."}, Book: view}, ch.Warnings
		}
		before, _ := book(with(t, plain, c.more))
		after, warnings := book(with(t, with(t, plain, c.more), map[string]any{c.member: c.value}))
		if effect, warned := effectOf(t, before, after), named(warnings, c.member); effect == warned {
			t.Errorf("%s = %v: has an effect %v, is named %v: %v", c.member, c.value, effect, warned, warnings)
		}
	}
}

// An import of a card names a member exactly if no prompt depends on it.
func TestMembersOfCardsAreNamedIfTheyHaveNoEffect(t *testing.T) {
	t.Parallel()
	const plain = `{"name":"Mara","description":"D","first_mes":"Hi."}`
	for member, value := range map[string]any{
		"description": "x", "personality": "x", "scenario": "x", "mes_example": "x", "system_prompt": "x", "post_history_instructions": "x", "nickname": "Mo",
		"group_only_greetings": []string{"x"}, "assets": []any{map[string]any{"type": "emotion", "uri": "embeded://a", "name": "a", "ext": "png"}},
		"backstory": "Born by the sea.", "extensions": map[string]any{"depth_prompt": map[string]any{"prompt": "x"}},
	} {
		read := func(data string) (Sources, []card.Warning) {
			ch, err := card.Import([]byte(`{"spec":"chara_card_v3","spec_version":"3.0","data":`+data+`}`), "card.json", card.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			role, err := card.ParseRoleCard(ch.RoleCard)
			if err != nil {
				t.Fatal(err)
			}
			return Sources{Dialect: ch.Dialect, Card: role, Book: card.WorldBook{Entries: []card.Entry{{ID: "0", Content: "{{char}}", Constant: true}}}}, ch.Warnings
		}
		before, _ := read(plain)
		after, warnings := read(with(t, plain, map[string]any{member: value}))
		if effect, warned := effectOf(t, before, after), named(warnings, member); effect == warned {
			t.Errorf("%s: has an effect %v, is named %v: %v", member, effect, warned, warnings)
		}
	}
}

// An import of a preset names a member exactly if no prompt of the NodeST dialect depends on it.
func TestMembersOfPresetsAreNamedIfTheyHaveNoEffect(t *testing.T) {
	t.Parallel()
	const plain = `{"prompts":[{"identifier":"main","name":"Main","content":"MAIN","role":"system","enable":true},{"identifier":"chatHistory","name":"Chat History","enable":true,"marker":true}],
		"prompt_order":[{"order":[{"identifier":"main","enabled":true},{"identifier":"chatHistory","enabled":true}]}]}`
	for member, value := range map[string]any{
		"names_behavior": 2, "send_if_empty": "x", "new_chat_prompt": "x", "new_example_chat_prompt": "x", "continue_nudge_prompt": "x", "group_nudge_prompt": "x",
		"impersonation_prompt": "x", "wi_format": "<{0}>", "scenario_format": "<{{scenario}}>", "personality_format": "<{{personality}}>", "squash_system_messages": true,
		"assistant_prefill": "x", "assistant_impersonation": "x", "continue_prefill": true, "use_sysprompt": true, "frequency_penalty": 1, "presence_penalty": 1,
		"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.2, "seed": 7, "n": 2, "openai_model": "gpt-9", "unheard_of": "x",
		"extensions":   map[string]any{"regex_scripts": []any{map[string]any{"findRegex": "MAIN"}}},
		"prompts":      []any{map[string]any{"identifier": "main", "content": "OTHER", "enable": true}},
		"prompt_order": []any{map[string]any{"order": []any{map[string]any{"identifier": "chatHistory", "enabled": true}, map[string]any{"identifier": "main", "enabled": true}}}},
	} {
		read := func(doc string) (Sources, []card.Warning) {
			res, err := card.ImportPreset([]byte(doc), "preset.json", card.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := card.ParsePreset(res.Doc)
			if err != nil {
				t.Fatal(err)
			}
			return Sources{Dialect: res.Dialect, Card: card.RoleCard{Name: "Mara", Description: "D", Personality: "P", Scenario: "S", MesExample: "E"}, Preset: &p}, res.Warnings
		}
		before, _ := read(plain)
		after, warnings := read(with(t, plain, map[string]any{member: value}))
		if effect, warned := effectOf(t, before, after), named(warnings, member); effect == warned {
			t.Errorf("%s: has an effect %v, is named %v: %v", member, effect, warned, warnings)
		}
	}
}

// An import of regex scripts names a member exactly if it changes no form of a message.
func TestMembersOfScriptsAreNamedIfTheyHaveNoEffect(t *testing.T) {
	t.Parallel()
	const plain = `{"scriptName":"s","findRegex":"/(b)o/g","replaceString":"[$1]","placement":[2]}`
	for _, c := range []struct {
		member string
		value  any
		more   map[string]any // members of the script, with and without this one
	}{
		{"findRegex", "/x/", nil}, {"replaceString", "new", nil}, {"placement", []int{1}, nil}, {"disabled", true, nil}, {"promptOnly", true, nil},
		{"markdownOnly", true, nil}, {"trimStrings", []string{"b"}, nil}, {"runOnEdit", true, nil}, {"maxDepth", 1, map[string]any{"promptOnly": true}},
		{"substituteRegex", 1, map[string]any{"findRegex": "/{{user}}/g"}}, {"placement", []int{2, 6}, nil}, {"unheardOf", 1, nil},
	} {
		for _, dialect := range []card.Dialect{card.NodeST, card.SillyTavern} {
			before, _ := scriptEffects(t, dialect, with(t, plain, c.more))
			after, warnings := scriptEffects(t, dialect, with(t, with(t, plain, c.more), map[string]any{c.member: c.value}))
			if effect, warned := before != after, named(warnings, c.member); effect == warned {
				t.Errorf("%s: %s = %v: has an effect %v, is named %v: %v", dialect, c.member, c.value, effect, warned, warnings)
			}
		}
	}
	match := with(t, plain, map[string]any{"replaceString": "<{{match}}>$0"})
	if text, warnings := scriptEffects(t, card.NodeST, match); !named(warnings, "replaceString") || !strings.Contains(text, "{{match}}") {
		t.Errorf("%s, %v", text, warnings)
	}
	if text, warnings := scriptEffects(t, card.SillyTavern, match); warnings != nil || !strings.Contains(text, "<bo>bo") {
		t.Errorf("%s, %v", text, warnings)
	}
}

// scriptEffects are the forms of a reply after an imported script, and the warnings of the import.
func scriptEffects(t *testing.T, dialect card.Dialect, doc string) (string, []card.Warning) {
	t.Helper()
	if dialect == card.NodeST {
		doc = `{"scripts":[` + doc + `]}`
	}
	res, err := card.ImportRegexScripts([]byte(doc), "s.json", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := card.ParseRegexScripts(res.Doc)
	if err != nil {
		t.Fatal(err)
	}
	const text = "boo bones Bob {{user}}"
	r := CompileScripts(dialect, scripts).Run(nil).With(&macro.Env{Names: macro.People{User: "Bob"}})
	reply := Occasion{Placement: card.PlaceAIOutput}
	edit := reply
	if dialect == card.SillyTavern { // the other has no scripts for edited messages
		edit.IsEdit = true
	}
	return strings.Join([]string{r.Apply(text, reply), r.Apply(text, edit), r.Request("assistant", text, 2), r.Display("assistant", text, 2)}, "|"), res.Warnings
}
