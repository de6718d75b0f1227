package framework

import (
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework/macro"
)

// The codes of findings.
const (
	lintUnreachable = "unreachable"          // can never be in a prompt
	lintEverything  = "matches_everything"   // a key that any chat holds
	lintOften       = "matches_often"        // a key that most chats hold
	lintBudget      = "over_budget"          // longer than an entry should be
	lintInvalid     = "invalid_pattern"      // is never applied
	lintSlow        = "slow_pattern"         // may run into its time limit
	lintEmpty       = "empty"                // nothing in it
	lintIdentifier  = "unknown_identifier"   // the order lists what does not exist
	lintDuplicate   = "duplicate_identifier" // only the first one counts
	lintNoHistory   = "no_history"           // the chat goes to the end
	lintNeedsNote   = "needs_note"           // shows only while there is an author's note
	lintUnused      = "unused_field"         // the preset keeps it out
	lintUnlisted    = "unlisted_field"       // the preset does not list it: it is added before the chat
	lintDeprecated  = "deprecated_macro"     // works, but is better written otherwise
)

// Documents are what Lint looks at; nil ones are left out. Paths begin with the
// name of the document (roleCard, worldBook, preset, authorNote, regexScripts)
// unless it is the only one.
type Documents struct {
	Dialect card.Dialect
	Card    *card.RoleCard
	Book    *card.WorldBook
	Preset  *card.Preset
	Note    *card.AuthorNote
	Scripts []card.RegexScript
}

// The recommended limits of an entry and of a prompt of a preset, in estimated tokens.
const (
	entryTokens  = 1024
	promptTokens = 4096
)

// Lint examines documents for what will not work as their author meant it. The
// findings are in the order of the documents; their paths are as in
// "worldBook.entries.3.key[0]". What has no effect at all is not among them: the import of a
// file (package card) tells that.
func Lint(d Documents) []card.Warning {
	l := linter{d: d, patterns: compiler{dialect: d.Dialect, limit: scriptLimit}}
	several := 0
	for _, there := range []bool{d.Card != nil, d.Book != nil, d.Preset != nil, d.Note != nil, len(d.Scripts) > 0} {
		if there {
			several++
		}
	}
	l.prefixed = several > 1
	if d.Card != nil {
		l.card(*d.Card)
	}
	if d.Book != nil {
		l.book(*d.Book)
	}
	if d.Preset != nil {
		l.preset(*d.Preset)
	}
	for i, s := range d.Scripts {
		l.script(l.path("regexScripts", fmt.Sprintf("[%d]", i)), s)
	}
	return l.findings
}

type linter struct {
	d        Documents
	patterns compiler
	prefixed bool
	findings []card.Warning
}

func (l *linter) add(path, code, format string, args ...any) {
	l.findings = append(l.findings, card.Warning{Path: path, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// path is the path of a field in one of the documents.
func (l *linter) path(document, field string) string {
	switch {
	case !l.prefixed:
		return field
	case strings.HasPrefix(field, "["):
		return document + field
	}
	return document + "." + field
}

func (l *linter) card(c card.RoleCard) {
	if isBlank(c.Description) {
		l.add(l.path("roleCard", "description"), lintEmpty, "the card has no description")
	}
	l.places(c)
	for _, f := range []struct{ field, text string }{
		{"description", c.Description}, {"personality", c.Personality}, {"scenario", c.Scenario}, {"first_mes", c.FirstMes}, {"mes_example", c.MesExample},
		{"system_prompt", c.SystemPrompt}, {"post_history_instructions", c.PostHistoryInstructions}, {"extensions.depth_prompt.prompt", c.DepthPrompt.Prompt},
	} {
		l.macros(l.path("roleCard", f.field), f.text)
	}
}

// macros reports what works in a text, but should be written otherwise. What does not work is
// among the warnings of the import.
func (l *linter) macros(path, text string) {
	if l.d.Dialect != card.SillyTavern {
		return
	}
	for _, p := range macro.Problems(text) {
		if p.Kind == macro.Old {
			l.add(path, lintDeprecated, "%s is an old spelling: %s", shorten(p.Macro), p.About)
		}
	}
}

// places reports which fields of a card are not where the preset lists them.
func (l *linter) places(c card.RoleCard) {
	s := Sources{Dialect: l.d.Dialect, Card: c, Preset: l.d.Preset}
	preset := resolvePreset(s)
	by := overridesOf(&s, preset)
	f := buildFrame(&s, preset, by)
	unused := func(field, id string) {
		for _, d := range slices.Concat(f.unlisted, by.dropped) {
			if d.Source == SourceCard && d.ID == id {
				l.add(l.path("roleCard", field), lintUnused, "the preset excludes this field (%s)", d.Reason)
			}
		}
	}
	for _, field := range cardFields {
		if slices.ContainsFunc(f.slots, func(it *item) bool { return it.id == field.identifier && it.why == WhyAdded }) {
			l.add(l.path("roleCard", field.field), lintUnlisted, "the preset does not list %q; the field is added before the chat", field.identifier)
		}
		unused(field.field, field.identifier)
	}
	for _, p := range cardPrompts {
		unused(p.id, p.id)
	}
}

func (l *linter) book(b card.WorldBook) {
	for i := range b.Entries {
		e := &b.Entries[i]
		if !e.Disable {
			l.entry(l.path("worldBook", "entries."+e.ID), e)
		}
	}
}

func (l *linter) entry(path string, e *card.Entry) {
	if isBlank(e.Content) {
		l.add(path+".content", lintEmpty, "the entry has no text")
	}
	if n := estimateTokens(e.Content); n > entryTokens {
		l.add(path+".content", lintBudget, "the entry has about %d tokens, recommended limit %d", n, entryTokens)
	}
	l.macros(path+".content", e.Content)
	l.position(path+".position", e.Position)
	if e.Constant || l.d.Dialect != card.SillyTavern && e.Position < card.BeforeNote {
		return // keys do not matter
	}
	for i, k := range e.Key {
		l.key(fmt.Sprintf("%s.key[%d]", path, i), k)
	}
}

func (l *linter) position(path string, p card.Position) {
	if l.d.Card != nil && l.d.Note == nil && (p == card.BeforeNote || p == card.AfterNote) {
		l.add(path, lintNeedsNote, "the entry is only used while the chat has an author's note")
	}
}

// commonWords are keys that nearly every chat of some length holds.
const commonWords = " the and you are was for her his she him not that this with what 的 了 我 你 是 不 在 有 他 她 "

func (l *linter) key(path, key string) {
	switch {
	case len(key) == 1:
		l.add(path, lintEverything, "the single character %q occurs in nearly every message", key)
	case strings.Contains(commonWords, " "+strings.ToLower(strings.TrimSpace(key))+" "):
		l.add(path, lintOften, "%q occurs in most chats", key)
	}
}

func (l *linter) preset(p card.Preset) {
	known := map[string]bool{
		"worldInfoBefore": true, "worldInfoAfter": true, personaIdentifier: true, defaultHistoryID: true,
	}
	for _, f := range cardFields {
		known[f.identifier] = known[f.identifier] || f.always
	}
	seen := map[string]bool{}
	for i := range p.Prompts {
		q := &p.Prompts[i]
		path := l.path("preset", fmt.Sprintf("prompts[%d]", i))
		if seen[q.Identifier] {
			l.add(path+".identifier", lintDuplicate, "duplicate identifier %q", shorten(q.Identifier))
		}
		seen[q.Identifier], known[q.Identifier] = true, true
		l.macros(path+".content", q.Content)
		if n := estimateTokens(q.Content); n > promptTokens {
			l.add(path+".content", lintBudget, "the prompt has about %d tokens, recommended limit %d", n, promptTokens)
		}
	}
	listed := l.order(p, known)
	for i, q := range p.Prompts {
		if q.Enable && !listed[q.Identifier] && !isBlank(q.Content) {
			l.add(l.path("preset", fmt.Sprintf("prompts[%d]", i)), lintUnreachable, "prompt_order does not list %q, so it is never used", shorten(q.Identifier))
		}
	}
}

// order checks the order of a preset and returns the identifiers that it lists.
func (l *linter) order(p card.Preset, known map[string]bool) (listed map[string]bool) {
	listed = map[string]bool{}
	history := false
	for i, o := range p.Order {
		if !o.Enabled {
			continue
		}
		listed[o.Identifier] = true
		q := promptOf(p, o.Identifier)
		history = history || IsHistory("", o.Identifier) || q != nil && IsHistory(q.Name, o.Identifier)
		if !known[o.Identifier] {
			l.add(l.path("preset", fmt.Sprintf("prompt_order[%d].identifier", i)), lintIdentifier, "no prompt has the identifier %q", shorten(o.Identifier))
		}
	}
	if !history {
		l.add(l.path("preset", "prompt_order"), lintNoHistory, "prompt_order does not list the chat history; it is added at the end")
	}
	return listed
}

// shorten bounds what a finding quotes, in code points.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
