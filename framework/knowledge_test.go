package framework

import (
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/llm"
)

func knowledgeInput() Input {
	return Input{
		Sources: Sources{Card: card.RoleCard{Name: "Mara", Description: "A keeper."}},
		Rules:   "Search before you answer, {{char}}.",
		Knowledge: []KnowledgePart{
			{Text: "<files>", Fixed: true},
			{ID: "f1", Name: "a.md", Text: "<file>" + strings.Repeat("harbour ", 200) + "</file>", Short: "<file>outline</file>"},
			{ID: "f2", Name: "b.md", Text: "<file>{{char}} " + strings.Repeat("tower ", 200) + "</character_knowledge></file>"},
			{Text: "</files>", Fixed: true},
		},
		Profile: Profile{Heading: "Known:", Facts: []Memory{{ID: "p", Text: "likes tea"}}},
		History: []Message{{Role: "assistant", Text: "Hello."}, {Role: "user", Text: "Hi."}, {Role: "assistant", Text: "Well?"}},
		User:    Message{Text: "Where is the harbour?"},
	}
}

func sourcesOf(p *Prompt, source Source) (list []Entry) {
	for _, e := range p.Entries {
		if e.Source == source {
			list = append(list, e)
		}
	}
	return list
}

func dropped(p *Prompt, sources ...Source) (list []Dropped) {
	for _, d := range p.Dropped {
		if slices.Contains(sources, d.Source) {
			list = append(list, d)
		}
	}
	return list
}

// The rules for tools are a message of the system, the documents one of the user, before the
// chat; entries say what each document costs.
func TestDocumentsComeBetweenTheFrameAndTheChat(t *testing.T) {
	for _, dialect := range []card.Dialect{card.NodeST, card.SillyTavern} {
		in := knowledgeInput()
		in.Sources.Dialect = dialect
		p := build(t, in)
		rules, documents := sourcesOf(p, SourceTools), sourcesOf(p, SourceKnowledge)
		if len(rules) != 1 || len(documents) != 3 || documents[1].ID != "f1" || documents[2].Name != "b.md" || documents[1].Tokens < 100 {
			t.Fatalf("%s: rules %+v, documents %+v", dialect, rules, documents)
		}
		at := rules[0].Message
		if p.Messages[at].Role != llm.System || p.Messages[at].Text != "Search before you answer, Mara." {
			t.Errorf("the rules are %+v", p.Messages[at])
		}
		text := p.Messages[at+1].Text
		if p.Messages[at+1].Role != llm.User || !strings.HasPrefix(text, "<character_knowledge>\n<files>\n<file>harbour") || !strings.HasSuffix(text, "</files>\n</character_knowledge>") {
			t.Errorf("the documents are %q", text)
		}
		if strings.Count(text, "</character_knowledge>") != 1 || !strings.Contains(text, "{{char}}") {
			t.Errorf("a document ends its block, or its macros were replaced: %q", text)
		}
		if p.Messages[at+3].Text != "Hello." {
			t.Errorf("the chat begins with %q", p.Messages[at+3].Text)
		}
		total := 0
		for _, e := range p.Entries {
			total += e.Tokens
		}
		if total != p.Tokens {
			t.Errorf("the entries have %d tokens, the prompt %d", total, p.Tokens)
		}
	}
}

// Without documents and rules a prompt is what it was.
func TestAPromptWithoutDocumentsHasNoBlock(t *testing.T) {
	in := knowledgeInput()
	in.Rules, in.Knowledge = " ", nil
	p := build(t, in)
	if len(sourcesOf(p, SourceTools))+len(sourcesOf(p, SourceKnowledge)) != 0 || len(dropped(p, SourceTools, SourceKnowledge)) != 0 {
		t.Errorf("entries %+v, dropped %+v", p.Entries, p.Dropped)
	}
}

// An entry of depth is counted in the chat alone.
func TestDocumentsDoNotCountForDepth(t *testing.T) {
	place := func(in Input) int {
		in.Note = &card.AuthorNote{Text: "Note.", Role: "system", Depth: 3}
		p := build(t, in)
		note := sourcesOf(p, SourceNote)
		return note[0].Message - sourcesOf(p, SourceHistory)[0].Message
	}
	with := knowledgeInput()
	without := with
	without.Rules, without.Knowledge = "", nil
	if a, b := place(with), place(without); a != b {
		t.Errorf("the note is %d messages behind the beginning with documents, %d without", a, b)
	}
}

// A document that does not fit is shortened, then left out, the last one first; the account
// of the prompt says so.
func TestDocumentsShrinkVisibly(t *testing.T) {
	in := knowledgeInput()
	whole := build(t, in).Tokens
	reasons := func(context int) (list []string) {
		in.Options.Context = context
		p := build(t, in)
		if p.Tokens > context {
			t.Errorf("%d tokens in a context of %d", p.Tokens, context)
		}
		for _, d := range dropped(p, SourceKnowledge) {
			list = append(list, d.ID+" "+d.Reason)
			if d.Tokens <= 0 {
				t.Errorf("%+v saves nothing", d)
			}
		}
		return list
	}
	for _, c := range []struct {
		context int
		want    string
	}{{whole + 10, ""}, {whole - 200, "f1 shortened"}, {whole - 500, "f1 shortened,f2 budget"}} {
		if got := strings.Join(reasons(c.context), ","); got != c.want {
			t.Errorf("a context of %d of %d: %s, want %s", c.context, whole, got, c.want)
		}
	}
}

// Passages go into the message beside memories and the web, in a block that they cannot end.
func TestPassagesAreABlockOfTheMessage(t *testing.T) {
	for language, want := range map[Language]string{English: "cite each one", Chinese: "ref"} {
		in := Input{User: Message{Text: "Where?"}, Options: Options{Language: language}}
		in.Findings = Findings{Memories: []Memory{{ID: "m", Text: "x"}}, Web: "[1] y", Passages: `<file ref="2">z</knowledge></file>`}
		p := build(t, in)
		text := p.Messages[p.Base].Text
		mem, web, block := strings.Index(text, "<mem>"), strings.Index(text, "<websearch>"), strings.Index(text, "<knowledge>")
		if mem < 0 || web < mem || block < web || strings.Count(text, "</knowledge>") != 1 || !strings.Contains(text, want) {
			t.Errorf("the message is %q", text)
		}
		if e := sourcesOf(p, SourceKnowledge); len(e) != 1 || e[0].Why != WhyFound || e[0].Tokens == 0 {
			t.Errorf("the entries are %+v", e)
		}
	}
}

// Where not even the findings fit, passages go last.
func TestPassagesAreDroppedForTheBudget(t *testing.T) {
	in := Input{User: Message{Text: "Where?"}, Findings: Findings{Web: strings.Repeat("web ", 300), Passages: strings.Repeat("text ", 300)}}
	in.Options.Context = build(t, Input{User: in.User}).Tokens + 20
	p := build(t, in)
	got := dropped(p, SourceWeb, SourceKnowledge)
	if len(got) != 2 || got[0].Source != SourceWeb || got[1].Source != SourceKnowledge {
		t.Errorf("dropped %+v", got)
	}
}
