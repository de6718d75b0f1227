package worldinfo_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/worldinfo"
	"nodest/internal/sharedtest"
)

// vectorInput is the input of a case of worldinfo.json.
type vectorInput struct {
	User      string
	Character *struct {
		card.RoleCard
		Name        string
		Description string
		Personality string
		Scenario    string
		Notes       string   `json:"creator_notes"`
		Avatar      string   `json:"_avatar"`
		Tags        []string `json:"_tags"`
		Extra       []string `json:"_extra_books"`
		Extensions  struct {
			World       string
			DepthPrompt struct{ Prompt string } `json:"depth_prompt"`
		}
	}
	Persona struct {
		Description string
		Position    int
		Lorebook    string
	}
	Chat []struct {
		Name     string
		Mes      string
		IsUser   bool `json:"is_user"`
		IsSystem bool `json:"is_system"`
	}
	Note *struct {
		Prompt   string
		Interval *int
		Position *int
		Scan     bool `json:"allow_wi_scan"`
	} `json:"authors_note"`
	Books       map[string]json.RawMessage
	GlobalBooks []string        `json:"global_books"`
	ChatWorld   string          `json:"chat_world"`
	Settings    json.RawMessage `json:"wi_settings"`
	Scripts     []vectorScript  `json:"regex_scripts"`
	Rolls       []float64
	Context     *int `json:"max_context"`
	Trigger     string
	Timed       worldinfo.Timed
	Turns       []int
}

type vectorScript struct {
	FindRegex, ReplaceString string
	Placement                []int
	PromptOnly               bool
	MinDepth, MaxDepth       *int
}

// vectorResult is the output of one scan.
type vectorResult struct {
	Activated     []string
	Before, After string
	Top           []string `json:"an_top"`
	Bottom        []string `json:"an_bottom"`
	Examples      []struct{ Position, Content string }
	Depth         []struct {
		Depth   int
		Role    string
		Entries []string
	}
	Outlets map[string][]string
	Note    *string `json:"authors_note"`
	Timed   *worldinfo.Timed
	Rolls   *int `json:"rolls_used"`
}

type vectorOutput struct {
	vectorResult
	Turns []struct {
		Messages int
		vectorResult
	}
}

func (v *vectorInput) settings(t *testing.T) worldinfo.Settings {
	s := struct {
		Depth        int
		Budget       int  `json:"budget_percent"`
		Cap          int  `json:"budget_cap"`
		Names        bool `json:"include_names"`
		Recursive    bool
		Case         bool `json:"case_sensitive"`
		Words        bool `json:"match_whole_words"`
		Scoring      bool `json:"use_group_scoring"`
		Strategy     int  `json:"character_strategy"`
		Minimum      int  `json:"min_activations"`
		MinimumDepth int  `json:"min_activations_depth_max"`
		Steps        int  `json:"max_recursion_steps"`
	}{Depth: 2, Budget: 25, Names: true, Strategy: 1}
	if v.Settings != nil {
		if err := json.Unmarshal(v.Settings, &s); err != nil {
			t.Fatal(err)
		}
	}
	return worldinfo.Settings{
		Depth: s.Depth, BudgetPercent: s.Budget, BudgetCap: s.Cap, MinActivations: s.Minimum, MinActivationsDepth: s.MinimumDepth,
		MaxRecursionSteps: s.Steps, Recursive: s.Recursive, IncludeNames: s.Names, CaseSensitive: s.Case, MatchWholeWords: s.Words,
		UseGroupScoring: s.Scoring, Strategy: worldinfo.Strategy(s.Strategy),
	}
}

func (v *vectorInput) sources(t *testing.T) []worldinfo.Source {
	var all []worldinfo.Source
	add := func(origin worldinfo.Origin, name string) {
		doc, ok := v.Books[name]
		if !ok {
			return
		}
		book, err := card.ParseWorldBook(doc, card.SillyTavern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, worldinfo.Source{Name: name, Origin: origin, Entries: book.Entries})
	}
	add(worldinfo.OfChat, v.ChatWorld)
	add(worldinfo.OfPersona, v.Persona.Lorebook)
	if c := v.Character; c != nil {
		add(worldinfo.OfCharacter, c.Extensions.World)
		for _, name := range c.Extra {
			add(worldinfo.OfCharacter, name)
		}
	}
	for _, name := range v.GlobalBooks {
		add(worldinfo.Global, name)
	}
	return all
}

// noteDue is whether the author's note is due (spec 5).
func (v *vectorInput) noteDue() bool {
	users, interval := 0, 1
	for _, m := range v.Chat {
		if m.IsUser {
			users++
		}
	}
	if v.Note != nil && v.Note.Interval != nil {
		interval = *v.Note.Interval
	}
	return interval == 1 || interval > 0 && users >= interval && users%interval == 0
}

func (v *vectorInput) rewrite(text string, depth *int) string {
	for _, sc := range v.Scripts {
		source, flags := jsregex.Split(sc.FindRegex)
		p, err := jsregex.Compile(source, flags, time.Minute)
		if err != nil || !sc.PromptOnly || !slices.Contains(sc.Placement, 5) {
			continue
		}
		if depth != nil && (sc.MinDepth != nil && *depth < *sc.MinDepth || sc.MaxDepth != nil && *depth > *sc.MaxDepth) {
			continue
		}
		text, _, _ = p.Replace(text, sc.ReplaceString)
	}
	return text
}

// input is the scan after the first n messages.
func (v *vectorInput) input(t *testing.T, n int, timed worldinfo.Timed, rolls *int) *worldinfo.Input {
	user, char := "Bob", "Alice"
	if v.User != "" {
		user = v.User
	}
	in := &worldinfo.Input{Settings: v.settings(t), Context: 4096, Trigger: v.Trigger, Timed: timed}
	in.Texts.Persona = v.Persona.Description
	if c := v.Character; c != nil {
		char = c.Name
		in.Character.File, _, _ = strings.Cut(c.Avatar, ".")
		in.Character.Tags = c.Tags
		in.Texts = worldinfo.Texts{
			Persona: v.Persona.Description, Description: c.Description, Personality: c.Personality, Scenario: c.Scenario,
			CreatorNotes: c.Notes, DepthPrompt: c.Extensions.DepthPrompt.Prompt,
		}
	}
	if in.Character.File == "" {
		in.Character.File = char
	}
	if v.Context != nil {
		in.Context = *v.Context
	}
	for _, m := range v.Chat[:n] {
		if m.IsSystem {
			continue
		}
		name := char
		if m.IsUser {
			name = user
		}
		if m.Name != "" {
			name = m.Name
		}
		in.Messages = append(in.Messages, worldinfo.Message{Name: name, Text: m.Mes, User: m.IsUser})
	}
	if v.Note != nil && v.Note.Scan {
		in.Injections = append(in.Injections, v.Note.Prompt)
	}
	if v.Persona.Position == 4 && v.Persona.Description != "" {
		in.Injections = append(in.Injections, v.Persona.Description)
	}
	in.Expand = strings.NewReplacer("{{user}}", user, "{{char}}", char, "{{// hidden}}", "", "{{newline}}", "\n").Replace
	in.Count = func(s string) int { return (len(s)*100 + 334) / 335 }
	in.Rand = func() float64 {
		*rolls++
		return v.Rolls[(*rolls-1)%len(v.Rolls)]
	}
	in.Rewrite = v.rewrite
	return in
}

var roleNames = []string{"system", "user", "assistant"}

func contents(block []worldinfo.Placed) []string {
	list := []string{}
	for _, p := range block {
		list = append(list, p.Text)
	}
	return list
}

// compare reports the parts of a result that differ.
func (v *vectorInput) compare(o *worldinfo.Output, rolls int, want vectorResult) (diffs []string) {
	differ := func(what string, got, want any) {
		if g, w := asJSON(got), asJSON(want); g != w {
			diffs = append(diffs, fmt.Sprintf("%s: got %s, want %s", what, g, w))
		}
	}
	differ("activated", append([]string{}, o.Activated...), want.Activated)
	differ("before", worldinfo.Text(o.Before), want.Before)
	differ("after", worldinfo.Text(o.After), want.After)
	differ("an_top", contents(o.NoteTop), want.Top)
	differ("an_bottom", contents(o.NoteBottom), want.Bottom)
	top, bottom := []string{}, []string{}
	for _, e := range want.Examples {
		if e.Position == "top" {
			top = append(top, e.Content)
		} else {
			bottom = append(bottom, e.Content)
		}
	}
	slices.Reverse(top) // each is put before the others
	differ("examples top", contents(o.ExamplesTop), top)
	differ("examples bottom", contents(o.ExamplesBottom), bottom)
	depth, wantDepth := map[string][]string{}, map[string][]string{}
	for _, g := range o.Depth {
		depth[fmt.Sprint(g.Depth, roleNames[g.Role])] = contents(g.Texts)
	}
	for _, g := range want.Depth {
		wantDepth[fmt.Sprint(g.Depth, g.Role)] = g.Entries
	}
	differ("depth", depth, wantDepth)
	outlets := map[string][]string{}
	for name, texts := range o.Outlets {
		outlets[name] = contents(texts)
	}
	differ("outlets", outlets, want.Outlets)
	if want.Note != nil {
		note := ""
		if v.noteDue() {
			note = noteWithin(o.NoteTop, v.Note.Prompt, o.NoteBottom)
		}
		differ("note", note, *want.Note)
	}
	if want.Timed != nil {
		differ("timed", plain(o.Timed), plain(*want.Timed))
	}
	if want.Rolls != nil {
		differ("rolls", rolls, *want.Rolls)
	}
	return diffs
}

// plain is timed effects without hashes.
func plain(t worldinfo.Timed) worldinfo.Timed {
	strip := func(m map[string]worldinfo.Effect) map[string]worldinfo.Effect {
		c := map[string]worldinfo.Effect{}
		for id, e := range m {
			e.Hash = nil
			c[id] = e
		}
		return c
	}
	return worldinfo.Timed{Sticky: strip(t.Sticky), Cooldown: strip(t.Cooldown)}
}

func asJSON(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

type vector struct {
	Name   string
	Defect string `json:"st_defect"`
	Input  vectorInput
	Output vectorOutput
}

// replayVector scans as a vector says and returns what differs.
func replayVector(t *testing.T, v *vector, scan func(in *worldinfo.Input, sources []worldinfo.Source) *worldinfo.Output) (diffs []string) {
	sources, rolls := v.Input.sources(t), 0
	if len(v.Input.Turns) == 0 {
		o := scan(v.Input.input(t, len(v.Input.Chat), v.Input.Timed, &rolls), sources)
		return v.Input.compare(o, rolls, v.Output.vectorResult)
	}
	timed := v.Input.Timed
	for i, n := range v.Input.Turns {
		rolls = 0
		o := scan(v.Input.input(t, n, timed, &rolls), sources)
		timed = o.Timed
		for _, d := range v.Input.compare(o, rolls, v.Output.Turns[i].vectorResult) {
			diffs = append(diffs, fmt.Sprintf("turn %d: %s", n, d))
		}
	}
	return diffs
}

func vectors(t *testing.T) []vector {
	var list []vector
	if err := json.Unmarshal(sharedtest.Read(t, "golden/sillytavern/worldinfo.json"), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func engine(t *testing.T) func(*worldinfo.Input, []worldinfo.Source) *worldinfo.Output {
	books := map[string]*worldinfo.Book{}
	return func(in *worldinfo.Input, sources []worldinfo.Source) *worldinfo.Output {
		names := ""
		for _, s := range sources {
			names += fmt.Sprint(s.Name, s.Origin, " ")
		}
		if books[names] == nil {
			books[names] = worldinfo.Compile(sources...)
		}
		o, err := books[names].Scan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

func TestGoldenWorldInfo(t *testing.T) {
	passed, failed, defects := 0, 0, 0
	for _, v := range vectors(t) {
		run := engine(t)
		diffs := replayVector(t, &v, run)
		if v.Defect != "" {
			// The recorded result is that of an error (spec 3.6, 2). The rules without it are those of the model.
			defects++
			diffs = differences(t, &v, run)
		}
		if len(diffs) > 0 {
			failed++
			t.Errorf("%s:\n%s", v.Name, strings.Join(diffs, "\n"))
			continue
		}
		passed++
	}
	t.Logf("worldinfo.json: %d passed, %d failed; %d of them are defects of SillyTavern, held to the rules without them", passed, failed, defects)
}

// differences scans as a vector says, and as the model does.
func differences(t *testing.T, v *vector, run func(*worldinfo.Input, []worldinfo.Source) *worldinfo.Output) (diffs []string) {
	replayVector(t, v, func(in *worldinfo.Input, sources []worldinfo.Source) *worldinfo.Output {
		rolls := 0
		roll := func() float64 { rolls++; return v.Input.Rolls[(rolls-1)%len(v.Input.Rolls)] }
		in.Rand = roll
		got, drawn := run(in, sources), rolls
		rolls = 0
		want := modelScan(in, sources, false)
		diffs = append(diffs, unequal(got, want)...)
		if drawn != rolls {
			diffs = append(diffs, fmt.Sprintf("%d numbers drawn, want %d", drawn, rolls))
		}
		return want
	})
	return diffs
}

// unequal compares what two scans say about entries.
func unequal(got, want *worldinfo.Output) (diffs []string) {
	differ := func(what string, got, want any) {
		if g, w := asJSON(got), asJSON(want); g != w {
			diffs = append(diffs, fmt.Sprintf("%s: got %s, want %s", what, g, w))
		}
	}
	differ("activated", got.Activated, append([]string{}, want.Activated...))
	blocks := func(o *worldinfo.Output) any {
		depth, outlets := map[string][]string{}, map[string][]string{}
		for _, g := range o.Depth {
			depth[fmt.Sprint(g.Depth, g.Role)] = contents(g.Texts)
		}
		for name, texts := range o.Outlets {
			outlets[name] = contents(texts)
		}
		return []any{
			contents(o.Before), contents(o.After), contents(o.NoteTop), contents(o.NoteBottom), contents(o.ExamplesTop),
			contents(o.ExamplesBottom), depth, outlets, plain(o.Timed),
		}
	}
	differ("blocks", blocks(got), blocks(want))
	return diffs
}

// The model with SillyTavern's defect is SillyTavern.
func TestGoldenModel(t *testing.T) {
	passed, failed := 0, 0
	for _, v := range vectors(t) {
		diffs := replayVector(t, &v, func(in *worldinfo.Input, sources []worldinfo.Source) *worldinfo.Output {
			return modelScan(in, sources, true)
		})
		if len(diffs) > 0 {
			failed++
			t.Errorf("%s:\n%s", v.Name, strings.Join(diffs, "\n"))
			continue
		}
		passed++
	}
	t.Logf("worldinfo.json by the model: %d passed, %d failed", passed, failed)
}

// noteWithin puts the blocks around an author's note that is due. Nothing is left of them when it is not.
func noteWithin(top []worldinfo.Placed, note string, bottom []worldinfo.Placed) string {
	lines := make([]string, 0, len(top)+1+len(bottom))
	for _, p := range top {
		lines = append(lines, p.Text)
	}
	lines = append(lines, note)
	for _, p := range bottom {
		lines = append(lines, p.Text)
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.Join(lines, "\n"), "\n"), "\n")
}
