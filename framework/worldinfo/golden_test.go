package worldinfo_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/worldinfo"
	"nodest/framework/worldinfo/worldinfotest"
	"nodest/internal/sharedtest"
)

// vectorInput is the input of a case of worldinfo.json.
type vectorInput struct {
	worldinfotest.Books
	User      string
	Character *struct {
		Name         string
		Description  string
		Personality  string
		Scenario     string
		FirstMes     string   `json:"first_mes"`
		MesExample   string   `json:"mes_example"`
		SystemPrompt string   `json:"system_prompt"`
		PostHistory  string   `json:"post_history_instructions"`
		Notes        string   `json:"creator_notes"`
		Version      string   `json:"character_version"`
		Alternates   []string `json:"alternate_greetings"`
		Avatar       string   `json:"_avatar"`
		Tags         []string `json:"_tags"`
		Extensions   struct {
			DepthPrompt struct{ Prompt string } `json:"depth_prompt"`
			Scripts     json.RawMessage         `json:"regex_scripts"`
		}
	}
	Persona struct {
		Description string
		Position    int
	}
	Chat []struct {
		Name     string
		Mes      string
		IsUser   bool `json:"is_user"`
		IsSystem bool `json:"is_system"`
	}
	Note struct {
		Prompt   string
		Interval *int
		Scan     bool `json:"allow_wi_scan"`
	} `json:"authors_note"`
	Scripts     json.RawMessage `json:"regex_scripts"`
	AllowScoped bool            `json:"allow_scoped_regex"`
	Variables   map[string]any
	Globals     map[string]any `json:"global_variables"`
	Context     *int           `json:"max_context"`
	Trigger     string
	Timed       worldinfo.Timed
	Turns       []int
}

// UnmarshalJSON reads the members; Books reads its own from the same object.
func (v *vectorInput) UnmarshalJSON(data []byte) error {
	type own vectorInput
	if err := json.Unmarshal(data, (*own)(v)); err != nil {
		return err
	}
	return json.Unmarshal(data, &v.Books)
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

// noteDue reports whether the author's note is due (spec 5).
func (v *vectorInput) noteDue() bool {
	users, interval := 0, 1
	for _, m := range v.Chat {
		if m.IsUser {
			users++
		}
	}
	if v.Note.Interval != nil {
		interval = *v.Note.Interval
	}
	return interval == 1 || interval > 0 && users >= interval && users%interval == 0
}

// scripts are those of the user, and those of the card where they are allowed.
func (v *vectorInput) scripts(t *testing.T, env *macro.Env) *framework.ScriptRun {
	docs := []json.RawMessage{v.Scripts}
	if v.AllowScoped && v.Character != nil {
		docs = append(docs, v.Character.Extensions.Scripts)
	}
	var all []card.RegexScript
	for _, doc := range docs {
		list, err := card.ParseRegexScripts(doc)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return framework.CompileScripts(card.SillyTavern, all).Run(nil).With(env)
}

// env has the values of macros.
func (v *vectorInput) env() *macro.Env {
	e := &macro.Env{
		Names: macro.People{User: cmp.Or(v.User, "Bob"), Char: "Alice"}, Card: macro.Card{Persona: v.Persona.Description},
		Now: time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC), Local: macro.NewVars(v.Variables), Global: macro.NewVars(v.Globals),
	}
	if c := v.Character; c != nil {
		e.Names.Char = cmp.Or(c.Name, "Alice")
		e.Card = macro.Card{
			Description: c.Description, Personality: c.Personality, Scenario: c.Scenario, Persona: v.Persona.Description, MesExamples: c.MesExample,
			CharPrompt: c.SystemPrompt, CharInstruction: c.PostHistory, DepthPrompt: c.Extensions.DepthPrompt.Prompt, CreatorNotes: c.Notes,
			Greetings: append([]string{c.FirstMes}, c.Alternates...), Version: c.Version,
		}
	}
	return e
}

// input is the scan after the first n messages.
func (v *vectorInput) input(t *testing.T, n int, timed worldinfo.Timed, rolls *int) *worldinfo.Input {
	env := v.env()
	in := &worldinfo.Input{Settings: v.Rules(t), Context: 4096, Trigger: v.Trigger, Timed: timed}
	in.Texts.Persona = v.Persona.Description
	in.Character.File = env.Names.Char
	if c := v.Character; c != nil {
		if file, _, _ := strings.Cut(c.Avatar, "."); file != "" {
			in.Character.File = file
		}
		in.Character.Tags = c.Tags
		in.Texts = worldinfo.Texts{
			Persona: v.Persona.Description, Description: c.Description, Personality: c.Personality, Scenario: c.Scenario,
			CreatorNotes: c.Notes, DepthPrompt: c.Extensions.DepthPrompt.Prompt,
		}
	}
	if v.Context != nil {
		in.Context = *v.Context
	}
	for _, m := range v.Chat[:n] {
		env.Chat.Messages = append(env.Chat.Messages, macro.Message{User: m.IsUser, Hidden: m.IsSystem, Text: m.Mes})
		if m.IsSystem {
			continue
		}
		name := env.Names.Char
		if m.IsUser {
			name = env.Names.User
		}
		in.Messages = append(in.Messages, worldinfo.Message{Name: cmp.Or(m.Name, name), Text: m.Mes, User: m.IsUser})
	}
	if v.Note.Scan {
		in.Injections = append(in.Injections, v.Note.Prompt)
	}
	if v.Persona.Position == 4 && v.Persona.Description != "" {
		in.Injections = append(in.Injections, v.Persona.Description)
	}
	run := v.scripts(t, env)
	in.Expand = env.Expand
	in.Count = func(s string) int { return (len(s)*100 + 334) / 335 }
	in.Rand = v.Roll(rolls)
	in.Rewrite = func(text string, depth *int) string {
		o := framework.Occasion{Placement: card.PlaceWorldInfo, IsPrompt: true, NoDepth: depth == nil}
		if depth != nil {
			o.Depth = *depth
		}
		return run.Apply(text, o)
	}
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
	sources, rolls := v.Input.Sources(t), 0
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
		in.Rand = v.Input.Roll(&rolls)
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

// noteWithin puts the blocks around an author's note that is due. They are not sent when it is not.
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
