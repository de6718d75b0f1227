package llm_test

import (
	"strings"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
)

// Whatever the provider, the marks of a model's own format come as the tags that everybody reads.
func TestMarksConformance(t *testing.T) {
	t.Parallel()
	for _, tt := range toolAdapters() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := tt.build(t, llm.NewKey("key-1"))
			for reply, want := range map[string]string{
				"<|channel|>analysis<|message|>Hard.<|end|><|start|>assistant<|channel|>final<|message|>One two.": "<think>Hard.</think>One two.",
				"<thought>Hard.</thought>One two.<|im_end|>":                                                      "<think>Hard.</think>One two.",
				"◁think▷Hard.◁/think▷One two.</s>":                                                                "<think>Hard.</think>One two.",
				"One <s>two</s>": "One <s>two</s>",
			} {
				for _, pieces := range [][]string{{reply}, strings.Split(reply, "")} {
					a.Fake.Script(llmtest.Say(pieces...))
					r := llmtest.Read(t, llm.Dependable(a.Provider.Name(), a.Provider).Stream(t.Context(), llmtest.Ask("hi")))
					if r.Text != want || r.Err != nil {
						t.Errorf("%q: %q, %v; want %q", reply, r.Text, r.Err, want)
					}
				}
			}
		})
	}
}
