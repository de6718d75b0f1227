package tavern

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/llm"
)

// alice is a card with a text in every place.
func alice() card.RoleCard {
	return card.RoleCard{
		Name: "Alice", Description: "{{char}} is a maid.", Personality: "kind", Scenario: "At the gate.",
		MesExample: "<START>\n{{user}}: Who?\n{{char}}: Me.", FirstMes: "Welcome!",
		DepthPrompt: card.DepthPrompt{Prompt: "Alice is tired.", Depth: 1, Role: "system"},
	}
}

func preset(t *testing.T, doc string) *card.Preset {
	t.Helper()
	p, err := card.ParsePreset([]byte(doc))
	must(t, err)
	return &p
}

func talk(n int) (history []framework.Message) {
	for i := range n {
		m := framework.Message{ID: fmt.Sprintf("m%d", i), Role: "assistant", Name: "Alice", Text: fmt.Sprintf("Message %d of the castle.", i)}
		if i%2 == 1 {
			m.Role, m.Name = "user", "Bob"
		}
		history = append(history, m)
	}
	return history
}

// build builds and checks that the account agrees with the messages.
func build(t *testing.T, s Sources, in framework.Input, play Play) *framework.Prompt {
	t.Helper()
	play.Compiled = Compile(s)
	if in.Persona.Name == "" {
		in.Persona.Name = "Bob"
	}
	p, _, err := Build(t.Context(), &in, &play)
	must(t, err)
	checkAccount(t, p)
	return p
}

// checkAccount checks that each message has entries, in order, whose tokens add up.
func checkAccount(t *testing.T, p *framework.Prompt) {
	t.Helper()
	must(t, account(p))
}

func account(p *framework.Prompt) error {
	tokens, message, at := 0, -1, 0
	for _, e := range p.Entries {
		tokens += e.Tokens
		if e.Message > message+1 || e.Message < message || e.Message == message && e.At < at {
			return fmt.Errorf("entry %+v follows message %d at %d", e, message, at)
		}
		message, at = e.Message, e.At
		if n := len([]rune(p.Messages[message].Text)); at > n || e.Role != p.Messages[message].Role || e.Why == "" {
			return fmt.Errorf("entry %+v of a message of %d", e, n)
		}
	}
	if message != len(p.Messages)-1 || tokens != p.Tokens {
		return fmt.Errorf("entries end with message %d of %d, and have %d tokens of %d", message, len(p.Messages), tokens, p.Tokens)
	}
	if p.Budget > 0 && p.Tokens > p.Budget+p.Reserve {
		return fmt.Errorf("%d tokens, budget %d", p.Tokens, p.Budget)
	}
	return nil
}

// lines writes messages as one text each: the first letter of the role, and what is said.
func lines(p *framework.Prompt) (list []string) {
	for _, m := range p.Messages {
		list = append(list, string(m.Role[:1])+" "+m.Text)
	}
	return list
}

func expect(t *testing.T, p *framework.Prompt, want ...string) {
	t.Helper()
	if got := lines(p); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func dropped(p *framework.Prompt, id string) string {
	for _, d := range p.Dropped {
		if d.ID == id {
			return d.Reason
		}
	}
	return ""
}

func TestWithoutAPresetThePromptIsPlain(t *testing.T) {
	t.Parallel()
	in := framework.Input{History: talk(1), User: framework.Message{Text: "Hi"}, Persona: framework.Persona{Name: "Bob", Description: "A knight."}}
	expect(t, build(t, Sources{Card: alice()}, in, Play{}),
		"s Write Alice's next reply in a role-play with Bob.", "s A knight.", "s Alice is a maid.", "s Alice's personality: kind", "s Scenario: At the gate.",
		"s [Example chat]", "s Bob: Who?", "s Alice: Me.", "s [Start of the chat]", "a Message 0 of the castle.", "s Alice is tired.", "u Hi")

	in = framework.Input{User: framework.Message{Text: "你好"}, Persona: framework.Persona{Name: "林尘"}}
	c := card.RoleCard{Name: "玄清", Description: "长老", PostHistoryInstructions: "{{original}}多写动作"}
	expect(t, build(t, Sources{Card: c, Language: framework.Chinese}, in, Play{}),
		"s 在与林尘的角色扮演中，写出玄清的下一条回复。", "s 长老", "s [对话开始]", "u 你好", "s 多写动作")
}

func TestWhatNodeSTAddsHasItsPlaces(t *testing.T) {
	t.Parallel()
	in := framework.Input{
		History: talk(1), User: framework.Message{ID: "u", Text: "Hi"},
		Rules: "Use tools for {{user}}.", Knowledge: []framework.KnowledgePart{{ID: "f", Text: "Doc"}},
		Profile:  framework.Profile{Heading: "Known:", Facts: []framework.Memory{{ID: "p", Text: "likes tea"}}},
		Notes:    framework.Notes{Heading: "Notes:", Documents: []framework.Memory{{ID: "n", Text: "a note"}}},
		Findings: framework.Findings{Memories: []framework.Memory{{ID: "m", Text: "They met."}}},
		Settings: []framework.Setting{{Name: "Me", Text: "tall"}},
	}
	p := build(t, Sources{Card: card.RoleCard{Name: "Alice"}}, in, Play{})
	got := strings.Join(lines(p), "\n")
	for _, want := range []string{
		"role-play with Bob.\ns Use tools for Bob.\nu <character_knowledge>", "</character_knowledge>\nu Known:\n- likes tea\nu Notes:\na note\ns [Start of the chat]\na Message 0",
		"tall</Bob's_info>\nu Hi\n\n<mem>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, got)
		}
	}
	if p.Base != len(p.Messages)-1 || !strings.HasPrefix(p.UserText(), "Hi\n\n<mem>") {
		t.Errorf("base %d, text %q", p.Base, p.UserText())
	}
	for _, want := range []framework.Source{
		framework.SourceTools, framework.SourceKnowledge, framework.SourceProfile, framework.SourceDocument, framework.SourceMemory, framework.SourceSetting,
	} {
		if !slices.ContainsFunc(p.Entries, func(e framework.Entry) bool { return e.Source == want }) {
			t.Errorf("no entry of %s", want)
		}
	}
}

const shortOrder = `{"prompts":[{"identifier":"main","content":"M","role":"system"},{"identifier":"x","content":"X {{user}}","role":"user"}],
	"prompt_order":[{"character_id":100000,"order":[{"identifier":"main","enabled":true},{"identifier":"charDescription","enabled":true},
	{"identifier":"chatHistory","enabled":true},{"identifier":"x","enabled":true},{"identifier":"gone","enabled":true}]}],"new_chat_prompt":"","new_example_chat_prompt":""}`

func TestSectionsThatThePresetDoesNotList(t *testing.T) {
	t.Parallel()
	c := alice()
	c.DepthPrompt, c.PostHistoryInstructions = card.DepthPrompt{}, "After."
	in := framework.Input{User: framework.Message{Text: "Hi"}, Persona: framework.Persona{Name: "Bob", Description: "A knight."}}
	p := build(t, Sources{Card: c, Preset: preset(t, shortOrder)}, in, Play{})
	expect(t, p, "s M", "s A knight.", "s Alice is a maid.", "s kind", "s At the gate.", "s Bob: Who?", "s Alice: Me.", "u Hi", "u X Bob", "s After.")

	p = build(t, Sources{Card: c, Preset: preset(t, shortOrder), CardFields: framework.ListedFields}, in, Play{})
	expect(t, p, "s M", "s Alice is a maid.", "u Hi", "u X Bob", "s kind", "s At the gate.", "s A knight.")
	if dropped(p, idExamples) == "" || dropped(p, "post_history_instructions") != framework.DropUnlisted {
		t.Errorf("dropped: %+v", p.Dropped)
	}
}

func TestAReplyAlwaysHasTheChat(t *testing.T) {
	t.Parallel()
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	for _, order := range []string{`{"identifier":"main"}`, `{"identifier":"chatHistory","enabled":false},{"identifier":"main"}`} {
		doc := `{"prompts":[{"identifier":"main","content":"M"}],"prompt_order":[{"character_id":100001,"order":[` + order + `]}],"new_chat_prompt":""}`
		p := build(t, Sources{Card: card.RoleCard{Name: "A"}, Preset: preset(t, doc), CardFields: framework.ListedFields}, in, Play{})
		if !slices.Contains(lines(p), "u Hi") || len(p.Warnings) == 0 || p.Warnings[0].Code != "no_history" {
			t.Errorf("%s: %q, %+v", order, lines(p), p.Warnings)
		}
	}
}

func TestOriginalIsQuotedOnce(t *testing.T) {
	t.Parallel()
	c := card.RoleCard{Name: "Alice", SystemPrompt: "A {{original}} B {{original}} C"}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	doc := `{"prompts":[{"identifier":"main","content":"for {{user}}"}],"new_chat_prompt":""}`
	expect(t, build(t, Sources{Card: c, Preset: preset(t, doc)}, in, Play{}), "s A for Bob B  C", "u Hi")
	expect(t, build(t, Sources{Card: c, Preset: preset(t, doc)}, in, Play{Overrides: Overrides{SystemPrompt: "Of this chat."}}), "s Of this chat.", "u Hi")
	p := build(t, Sources{Card: c, Preset: preset(t, strings.Replace(doc, `"}]`, `","forbid_overrides":true}]`, 1))}, in, Play{})
	if expect(t, p, "s for Bob", "u Hi"); dropped(p, "system_prompt") != framework.DropForbid {
		t.Errorf("dropped: %+v", p.Dropped)
	}
}

func TestNotesAreDueByTheirInterval(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		interval, users int
		due             bool
	}{{1, 1, true}, {1, 0, false}, {0, 4, false}, {3, 2, false}, {3, 3, true}, {3, 4, false}, {3, 6, true}} {
		n := Note{Interval: x.interval}
		if got := n.Due(x.users); got != x.due {
			t.Errorf("every %d, with %d messages: %t", x.interval, x.users, got)
		}
	}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	s := Sources{Card: card.RoleCard{Name: "A"}, Preset: preset(t, `{"prompts":[{"identifier":"main","content":"M"}],"new_chat_prompt":""}`)}
	expect(t, build(t, s, in, Play{Note: &Note{Text: "note", Position: BeforeMain, Interval: 1, Role: llm.User}}), "u note", "s M", "u Hi")
	p := build(t, s, in, Play{Note: &Note{Text: "note", Interval: 2}})
	if expect(t, p, "s M", "u Hi"); dropped(p, "") != dropNotDue {
		t.Errorf("dropped: %+v", p.Dropped)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s := Sources{Card: card.RoleCard{Name: "Alice"}, Preset: preset(t, `{"prompts":[{"identifier":"main","content":"M"},{"identifier":"jailbreak","content":"J"},
		{"identifier":"c","content":"C","injection_trigger":["Continue"]}],"prompt_order":[{"character_id":100001,"order":[{"identifier":"main"},{"identifier":"c"},{"identifier":"chatHistory"},
		{"identifier":"jailbreak"}]}],"new_chat_prompt":"","impersonation_prompt":"Be {{user}}.","assistant_prefill":"Sure,","assistant_impersonation":"I",
		"continue_nudge_prompt":"[On: {{lastchatmessage}}]"}`)}
	history := talk(3)
	on := framework.Input{History: history, Instruction: &framework.Instruction{Task: llm.Continue}}
	p := build(t, s, on, Play{})
	expect(t, p, "s M", "s C", "a Message 0 of the castle.", "u Message 1 of the castle.", "s J", "a Message 2 of the castle.", "s [On: Message 2 of the castle.]")
	if p.Base != 3 {
		t.Errorf("base %d", p.Base)
	}
	s.Preset.Behaviour.ContinuePrefill = true
	expect(t, build(t, s, on, Play{Prefills: true}), "s M", "s C", "a Message 0 of the castle.", "u Message 1 of the castle.", "s J", "a Message 2 of the castle.")

	as := framework.Input{History: history, Instruction: &framework.Instruction{Task: llm.Impersonate}}
	p = build(t, s, as, Play{Prefills: true})
	if got := lines(p); !slices.Equal(got[len(got)-3:], []string{"s J", "s Be Bob.", "a I"}) || dropped(p, "c") != dropTrigger {
		t.Errorf("got %q, dropped %+v", got, p.Dropped)
	}
	wish := framework.Input{History: history, Instruction: &framework.Instruction{Text: "Be brief, {{char}}.", Role: llm.User}}
	if got := lines(build(t, s, wish, Play{Prefills: true})); !slices.Equal(got[len(got)-3:], []string{"s J", "u Be brief, Alice.", "a Sure,"}) {
		t.Errorf("got %q", got)
	}
	s.Preset.Utility.SendIfEmpty = "Go on, {{char}}."
	if got := lines(build(t, s, framework.Input{History: history}, Play{})); !slices.Equal(got[len(got)-2:], []string{"u Go on, Alice.", "s J"}) {
		t.Errorf("got %q", got)
	}
}

func TestSystemMessagesAreJoined(t *testing.T) {
	t.Parallel()
	s := Sources{Card: alice(), Preset: preset(t, `{"prompts":[{"identifier":"main","content":"M"}],"squash_system_messages":true}`)}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	p := build(t, s, in, Play{})
	expect(t, p, "s M\nAlice is a maid.\nkind\nAt the gate.", "s [Example Chat]", "s Bob: Who?", "s Alice: Me.", "s [Start a new Chat]", "s Alice is tired.", "u Hi")
	if e := p.Entries[2]; e.ID != idPersonality || e.At != len("M\nAlice is a maid.\n") {
		t.Errorf("entry %+v", e)
	}
	s.Preset.Behaviour.PostProcessing = "strict"
	p = build(t, s, framework.Input{}, Play{})
	if got := lines(p); got[len(got)-1] != "u "+placeholder || len(got) != 2 {
		t.Errorf("got %q", got)
	}
	in.Options.StrictTurns = true
	in.History = talk(1)
	s.Preset.Behaviour.PostProcessing = ""
	p = build(t, s, in, Play{})
	if got := lines(p); len(got) != 4 || got[1] != "u "+llm.Opening || p.Base != 3 {
		t.Errorf("got %q, base %d", got, p.Base)
	}
}

func TestExamplesWithoutSpeakersAreNotLost(t *testing.T) {
	t.Parallel()
	c := card.RoleCard{Name: "玄清", MesExample: "<START>\n玄清：坐。\n<START>\n<START>\n林尘: 是。"}
	p := build(t, Sources{Card: c, Language: framework.Chinese}, framework.Input{User: framework.Message{Text: "好"}, Persona: framework.Persona{Name: "林尘"}}, Play{})
	expect(t, p, "s 在与林尘的角色扮演中，写出玄清的下一条回复。", "s [示例对话]", "s 玄清：坐。", "s [示例对话]", "s 林尘: 是。", "s [对话开始]", "u 好")
}

func TestHistoryMakesRoom(t *testing.T) {
	t.Parallel()
	s := Sources{Card: alice()}
	in := framework.Input{History: talk(40), User: framework.Message{ID: "u", Text: "Hi"}}
	in.History[0] = framework.Message{ID: "s", Role: framework.RoleSummary, Text: "What went before."}
	in.Options.Context, in.Options.Reserve = 300, 50
	p := build(t, s, in, Play{})
	got := lines(p)
	if p.Tokens > p.Budget || !slices.Contains(got, "u What went before.") || !slices.Contains(got, "s Alice is tired.") || got[len(got)-1] != "u Hi" {
		t.Errorf("%d tokens of %d: %q", p.Tokens, p.Budget, got)
	}
	run := p.Dropped[slices.IndexFunc(p.Dropped, func(d framework.Dropped) bool { return d.Source == framework.SourceHistory })]
	if run.ID != "m1" || run.Count == 0 || !slices.Contains(got, lineAfter(in.History, run.LastID)) {
		t.Errorf("left out: %+v of %q", run, got)
	}
	if dropped(p, idExamples) != framework.DropBudget {
		t.Errorf("dropped %+v", p.Dropped)
	}

	pinned := build(t, s, in, Play{Settings: Settings{PinExamples: true}})
	if !slices.Contains(lines(pinned), "s Bob: Who?") || len(pinned.Messages) >= len(p.Messages)+3 {
		t.Errorf("pinned: %q", lines(pinned))
	}
}

func lineAfter(history []framework.Message, id string) string {
	at := slices.IndexFunc(history, func(m framework.Message) bool { return m.ID == id }) + 1
	return string(framework.Source(history[at].Role)[:1]) + " " + history[at].Text
}

// An insertion that is deeper than the messages that fit goes before them.
func TestInsertionsSurviveShortHistory(t *testing.T) {
	t.Parallel()
	c := alice()
	c.DepthPrompt.Depth = 30
	in := framework.Input{History: talk(40), User: framework.Message{Text: "Hi"}}
	in.Options.Context, in.Options.Reserve = 260, 50
	got := lines(build(t, Sources{Card: c}, in, Play{}))
	at := slices.Index(got, "s Alice is tired.")
	if at < 0 || got[at-1] != "s [Start of the chat]" || got[at+1] != "a Message 28 of the castle." {
		t.Errorf("got %q", got)
	}
}

func TestAPromptThatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := card.RoleCard{Name: "Alice", Description: strings.Repeat("castle ", 60)}
	in := framework.Input{
		History: talk(4), User: framework.Message{Text: "Hi"},
		Findings: framework.Findings{Memories: []framework.Memory{{ID: "m", Text: strings.Repeat("They met. ", 20)}}},
	}
	in.Options.Context, in.Options.Reserve = 220, 80
	p := build(t, Sources{Card: c}, in, Play{})
	if dropped(p, "m") != framework.DropBudget || !slices.ContainsFunc(p.Warnings, func(w framework.Warning) bool { return w.Code == "history_dropped" }) {
		t.Errorf("dropped %+v, warnings %+v", p.Dropped, p.Warnings)
	}
	in.Options.Context = 190
	p = build(t, Sources{Card: c}, in, Play{})
	if !slices.ContainsFunc(p.Warnings, func(w framework.Warning) bool { return w.Code == "reply_shortened" }) || !slices.Contains(lines(p), "u Hi") {
		t.Errorf("%d tokens: %q, %+v", p.Tokens, lines(p), p.Warnings)
	}
	in.Options.Context = 100
	_, _, err := Build(t.Context(), &in, &Play{Compiled: Compile(Sources{Card: c})})
	if !fault.Is(err, fault.ContextTooLarge) {
		t.Errorf("error %v", err)
	}
}

func TestVariablesGoOn(t *testing.T) {
	t.Parallel()
	doc := `{"prompts":[{"identifier":"main","content":"{{setvar::mood::calm}}{{incvar::n}} {{incglobalvar::g}}"},{"identifier":"jailbreak","content":"{{getvar::mood}} {{getvar::n}}"}],"new_chat_prompt":""}`
	play := Play{
		Compiled: Compile(Sources{Card: card.RoleCard{Name: "A"}, Preset: preset(t, doc)}),
		State:    State{Variables: macro.NewVars(map[string]any{"n": 4.})}, Globals: macro.NewVars(nil),
	}
	in := framework.Input{User: framework.Message{Text: "Hi"}}
	for range 2 { // a build changes nothing that it was given
		p, r, err := Build(t.Context(), &in, &play)
		must(t, err)
		expect(t, p, "s 5 1", "u Hi", "s calm 5")
		if mood, _ := r.State.Variables.Get("mood"); mood != "calm" || !r.State.Variables.Changed() || !r.Globals.Changed() || play.State.Variables.Changed() {
			t.Errorf("mood %q", mood)
		}
	}
}

func TestRepeatedBuildsAgree(t *testing.T) {
	t.Parallel()
	c := alice()
	c.Description = "{{random::a::b::c}} {{roll::1d20}} {{pick::x::y}}"
	in := framework.Input{History: talk(6), User: framework.Message{Text: "Hi"}}
	in.Options.Seed, in.Options.PickSeed = 7, 9
	a := build(t, Sources{Card: c}, in, Play{})
	in.Previous, in.PreviousOf = a.Hashes, "g"
	b := build(t, Sources{Card: c}, in, Play{})
	if !slices.Equal(a.Hashes, b.Hashes) || b.Prefix.Messages != len(b.Messages) || b.Prefix.GenerationID != "g" {
		t.Errorf("%q, then %q", lines(a), lines(b))
	}
}

func bookOf(entries ...card.Entry) []worldinfo.Source {
	for i := range entries {
		entries[i].ID = fmt.Sprint(i)
	}
	return []worldinfo.Source{{Name: "b", Origin: worldinfo.Global, Entries: entries}}
}

func TestEntriesAreAccountedFor(t *testing.T) {
	t.Parallel()
	s := Sources{Card: card.RoleCard{Name: "A"}, Preset: preset(t, `{"prompts":[{"identifier":"main","content":"M"}],"new_chat_prompt":"","wi_format":"<{{char}}: {0}>"}`), Books: bookOf(
		card.Entry{Constant: true, Content: "剑 one", Order: 1}, card.Entry{Key: []string{"castle"}, Content: "two", Order: 2},
		card.Entry{Key: []string{"moon"}, Content: "three"}, card.Entry{Constant: true, Content: "top", Position: card.BeforeNote},
		card.Entry{Constant: true, Content: "end", Position: card.AfterNote}, card.Entry{Constant: true, Content: "deep", Position: card.AtDepth, Depth: 0},
	)}
	in := framework.Input{User: framework.Message{Text: "The castle!"}}
	p := build(t, s, in, Play{Explain: true})
	expect(t, p, "s M", "s <A: 剑 one\ntwo>", "s top\n\nend", "u The castle!", "s deep")
	one, two := p.Entries[1], p.Entries[2]
	if one.ID != "b.0" || one.Why != "constant" || one.Source != framework.SourceGlobalBook || two.Key != "castle" || two.Why != "key" || two.At != len([]rune("<A: 剑 one\n")) || *two.Position != 0 {
		t.Errorf("entries %+v, %+v", one, two)
	}
	if last := p.Entries[len(p.Entries)-1]; last.Depth == nil || *last.Depth != 0 || *last.Position != 4 {
		t.Errorf("entry %+v", last)
	}
	if dropped(p, "b.2") != framework.DropNoKey {
		t.Errorf("dropped %+v", p.Dropped)
	}
	p = build(t, s, in, Play{Note: &Note{Text: "n", Position: InChat, Interval: 2}})
	if expect(t, p, "s M", "s <A: 剑 one\ntwo>", "u The castle!", "s deep"); dropped(p, "b.3") != framework.DropNoNote {
		t.Errorf("dropped %+v", p.Dropped)
	}
}

// Where the fixed parts do not fit, entries that a key brought in go before others, low orders first.
func TestEntriesMakeRoom(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long text ", 20)
	s := Sources{Card: card.RoleCard{Name: "A"}, Books: bookOf(
		card.Entry{Constant: true, Content: "always " + long, Order: 1}, card.Entry{Key: []string{"castle"}, Content: "high " + long, Order: 9},
		card.Entry{Key: []string{"castle"}, Content: "low " + long, Order: 2, Position: card.AtDepth, Depth: 3},
	)}
	in := framework.Input{User: framework.Message{Text: "The castle!"}}
	all := worldinfo.DefaultSettings()
	all.BudgetPercent = 1000
	for context, left := range map[int][]string{400: nil, 200: {"b.2"}, 150: {"b.2", "b.1"}, 100: {"b.2", "b.1", "b.0"}} {
		in.Options.Context, in.Options.Reserve = context, 20
		p := build(t, s, in, Play{WorldInfo: &all})
		var got []string
		for _, d := range p.Dropped {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, left) || p.Tokens > p.Budget || !slices.Contains(lines(p), "u The castle!") {
			t.Errorf("context %d: %d tokens, left out %q", context, p.Tokens, got)
		}
	}
}

func TestSectionsThatAreSwitchedOffAreNamed(t *testing.T) {
	t.Parallel()
	doc := `{"prompts":[{"identifier":"main","content":"M"}],"personality_format":"{{setvar::x::1}}{{personality}}","prompt_order":[{"character_id":100001,"order":[
		{"identifier":"main"},{"identifier":"worldInfoBefore","enabled":false},{"identifier":"personaDescription","enabled":false},{"identifier":"charDescription","enabled":false},
		{"identifier":"charPersonality","enabled":false},{"identifier":"scenario","enabled":false},{"identifier":"dialogueExamples","enabled":false},{"identifier":"chatHistory"}]}],"new_chat_prompt":""}`
	c := alice()
	c.DepthPrompt = card.DepthPrompt{}
	s := Sources{Card: c, Preset: preset(t, doc), Books: bookOf(card.Entry{Constant: true, Content: "W"})}
	in := framework.Input{User: framework.Message{Text: "{{getvar::x}}Hi"}, Persona: framework.Persona{Name: "Bob", Description: "A knight."}}
	p := build(t, s, in, Play{})
	expect(t, p, "s M", "u Hi")
	for _, id := range []string{"b.0", idPersona, idDescription, idPersonality, idScenario, idExamples} {
		if dropped(p, id) != framework.DropDisabled {
			t.Errorf("%s: %q", id, dropped(p, id))
		}
	}
}
