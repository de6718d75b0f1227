package tavern

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/llm"
)

// fullCard has a text for every place of a preset.
func fullCard() card.RoleCard {
	c := alice()
	c.MesExample = "<START>\nBob: ex\nAlice: am"
	return c
}

// sentFor is all that is sent for several kinds of turns, with the samplers and scripts of the preset.
func sentFor(t *testing.T, doc string) (string, []card.Warning) {
	t.Helper()
	res, err := card.ImportPreset([]byte(doc), "preset.json", card.Limits{})
	must(t, err)
	p := preset(t, string(res.Doc))
	s := Sources{Card: fullCard(), Preset: p, Books: []worldinfo.Source{{Name: "b", Entries: []card.Entry{{ID: "1", Constant: true, Content: "W"}}}}}
	var asked llm.Request
	Compile(s).Sample(&asked)
	sampling, err := json.Marshal(asked)
	must(t, err)
	all := string(sampling) + fmt.Sprintf("%+v", p.Scripts)
	for _, task := range []llm.Task{llm.Reply, llm.Continue, llm.Impersonate} {
		in := framework.Input{History: talk(3), Persona: framework.Persona{Name: "Bob"}, Instruction: &framework.Instruction{Task: task}}
		all += strings.Join(lines(build(t, s, in, Play{Prefills: true})), "\n")
	}
	return all, res.Warnings
}

// An import of a preset for this dialect names a member exactly if nothing depends on it.
func TestMembersOfPresetsAreNamedIfTheyHaveNoEffect(t *testing.T) {
	t.Parallel()
	const plain = `{"prompts":[{"identifier":"main","name":"Main","content":"MAIN","role":"system"},{"identifier":"chatHistory","name":"Chat History","marker":true}],
		"prompt_order":[{"character_id":100001,"order":[{"identifier":"main","enabled":true},{"identifier":"chatHistory","enabled":true}]}]}`
	before, _ := sentFor(t, plain)
	for member, value := range map[string]any{
		"names_behavior": 2, "send_if_empty": "x", "new_chat_prompt": "x", "new_example_chat_prompt": "x", "continue_nudge_prompt": "x", "group_nudge_prompt": "x",
		"new_group_chat_prompt": "x", "impersonation_prompt": "x", "wi_format": "<{0}>", "scenario_format": "<{{scenario}}>", "personality_format": "<{{personality}}>",
		"squash_system_messages": true, "assistant_prefill": "x", "assistant_impersonation": "x", "continue_prefill": true, "use_sysprompt": true, "frequency_penalty": 1,
		"presence_penalty": 1, "top_k": 5, "min_p": 0.1, "top_a": 0.1, "repetition_penalty": 1.2, "seed": 7, "n": 2, "openai_model": "gpt-9", "unheard_of": "x",
		"reasoning_effort": "low", "verbosity": "low", "stop": []string{"x"}, "logit_bias": map[string]int{"1": 2}, "custom_prompt_post_processing": "single",
		"enable_web_search": true, "function_calling": true, "wrap_in_quotes": true,
		"extensions":   map[string]any{"regex_scripts": []any{map[string]any{"findRegex": "MAIN"}}},
		"prompts":      []any{map[string]any{"identifier": "main", "content": "OTHER"}},
		"prompt_order": []any{map[string]any{"character_id": 100000, "order": []any{map[string]any{"identifier": "chatHistory"}, map[string]any{"identifier": "main"}}}},
	} {
		var doc map[string]any
		must(t, json.Unmarshal([]byte(plain), &doc))
		doc[member] = value
		changed, err := json.Marshal(doc)
		must(t, err)
		after, warnings := sentFor(t, string(changed))
		named := slices.ContainsFunc(warnings, func(w card.Warning) bool { return strings.HasPrefix(w.Path, member) })
		if effect := before != after; effect == named {
			t.Errorf("%s: has an effect %v, is named %v: %v", member, effect, named, warnings)
		}
	}
}
