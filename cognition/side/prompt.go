package side

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"nodest/cognition"
	"nodest/framework"
	"nodest/internal/lexicon"
	"nodest/llm"
	"nodest/memory/lang"
)

//go:embed prompts
var promptFiles embed.FS

var (
	promptsChinese = lexicon.Prompts(promptFiles, "prompts/zh.txt")
	promptsEnglish = lexicon.Prompts(promptFiles, "prompts/en.txt")
)

// messages are the conversation and behind it the instruction, whose parts have the order of the format.
func (a *asked) messages() []llm.Message {
	return append(slices.Clone(a.history), llm.Message{Role: llm.User, Text: a.instruction()})
}

func (a *asked) instruction() string {
	said := ""
	for _, e := range a.queries {
		var q cognition.Query
		_ = cognition.Read(e, &q)
		said += q.Query
	}
	w := promptsEnglish()
	if lang.MostlyCJK(said) {
		w = promptsChinese()
	}
	var b strings.Builder
	part := func(heading, text string) {
		b.WriteString("\n\n" + heading + "\n" + framework.Defuse(cmp.Or(text, w["none"])))
	}
	b.WriteString(w["role"])
	part(w["mission"], a.mission)
	part(w["goal"], a.goal)
	b.WriteString("\n\n" + w["queries"])
	for _, e := range a.queries {
		var q cognition.Query
		_ = cognition.Read(e, &q)
		fmt.Fprintf(&b, "\n"+w["query"], q.Sequence, framework.Defuse(q.Query), framework.Defuse(q.Response))
		for _, s := range q.Sources {
			b.WriteString("\n" + llm.JSONLine(cognition.Source{ID: s.ID, Task: framework.Defuse(s.Task), Content: framework.Defuse(s.Content)}))
		}
	}
	for _, name := range []string{"request", "statuses", "output"} {
		b.WriteString("\n\n" + w[name])
	}
	return b.String()
}
