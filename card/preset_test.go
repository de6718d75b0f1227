package card_test

import (
	"slices"
	"testing"

	"nodest/card"
)

func TestAPresetIsReadAsSillyTavernDoes(t *testing.T) {
	t.Parallel()
	p, err := card.ParsePreset([]byte(`{"top_k":40,"top_a":0,"min_p":0.05,"frequency_penalty":-3,"presence_penalty":0.5,"repetition_penalty":1,"seed":-1,
		"reasoning_effort":"High","verbosity":"auto","stop":["a",""],"logit_bias":{"15":-100,"16":900},"names_behavior":7,"continue_prefill":true,"new_chat_prompt":"",
		"extensions":{"regex_scripts":[{"scriptName":"s"}]},"prompts":[{"identifier":"a","injection_trigger":["Swipe"]},{"identifier":"b","role":"user","injection_order":5,"marker":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Sampling
	if *s.TopK != 40 || s.TopA != nil || *s.MinP != 0.05 || s.FrequencyPenalty != nil || *s.PresencePenalty != 0.5 || s.RepetitionPenalty != nil ||
		s.Seed != nil || s.ReasoningEffort != "high" || s.Verbosity != "" || !slices.Equal(s.Stop, []string{"a"}) || len(s.LogitBias) != 1 {
		t.Errorf("sampling %+v", s)
	}
	if p.Utility.NewChat != "" || p.Utility.NewExample != "[Example Chat]" || p.Behaviour.ContinuePostfix != " " || !p.Behaviour.ContinuePrefill || p.Behaviour.Names != card.NamesDefault {
		t.Errorf("%+v, %+v", p.Utility, p.Behaviour)
	}
	a, b := p.Prompts[0], p.Prompts[1]
	if !a.NoRole || a.InjectionOrder != 100 || a.Triggers[0] != "swipe" || b.NoRole || b.InjectionOrder != 5 || len(p.Scripts) != 1 {
		t.Errorf("%+v, %+v, %d scripts", a, b, len(p.Scripts))
	}
}

// SillyTavern 1.19 shows the list of character 100001; many files have only that of 100000.
func TestTheOrderOfSillyTavern(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{
		`[{"character_id":100000,"order":[{"identifier":"old"}]},{"character_id":100001,"order":[{"identifier":"new"}]}]`: "new",
		`[{"character_id":3,"order":[{"identifier":"other"}]},{"character_id":"100000","order":[{"identifier":"old"}]}]`:  "old",
		`[{"character_id":3,"order":[{"identifier":"other"}]}]`:                                                           "",
		`[]`: "",
	} {
		p, err := card.ParsePreset([]byte(`{"prompts":[{"identifier":"main"}],"prompt_order":` + order + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(p.TavernOrder) > 0 {
			got = p.TavernOrder[0].Identifier
		}
		if got != want || p.TavernOrder == nil != (want == "") {
			t.Errorf("%s: %q", order, got)
		}
	}
}
