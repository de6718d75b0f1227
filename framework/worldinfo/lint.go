package worldinfo

import (
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/macro"
)

// The codes of findings.
const (
	lintUnreachable = "unreachable"        // can never be in a prompt
	lintEverything  = "matches_everything" // a key that any text holds
	lintInvalid     = "invalid_pattern"    // is looked for as plain text
	lintSlow        = "slow_pattern"       // may run into its time limit
	lintEmpty       = "empty"              // nothing in it
	lintUnused      = "unused_field"       // has no effect
	lintDecorator   = "unknown_decorator"  // is left out of the text, and does nothing
	lintBudget      = "over_budget"        // larger than the budget
	lintContext     = "over_context"       // the budget is the whole context or more
)

// Triggers are the kinds of replies that entries can be for.
var Triggers = []string{"normal", "continue", "impersonate", "swipe", "regenerate", "quiet"}

// linter collects findings about one entry after the other.
type linter struct {
	set    Settings
	budget int // tokens; 0 = not known
	levels []int
	found  []card.Warning
}

// Lint examines a book for what will not work as its author meant it: keys that never can fire,
// members without effect, patterns that do not compile, entries larger than the budget. Paths are as
// in "entries.3.key[0]". context is that of Input; 0 = not known.
func Lint(entries []card.Entry, s Settings, context int) []card.Warning {
	l := linter{set: s}
	if context > 0 {
		l.budget = budgetOf(s, context)
		if l.budget >= context {
			l.add("settings.budgetPercent", lintContext, "the budget of the entries, %d tokens, leaves nothing of a context of %d", l.budget, context)
		}
	}
	constant := 0
	for i := range entries {
		if n := entries[i].DelayUntilRecursion; n > 0 {
			l.levels = append(l.levels, n)
		}
	}
	slices.Sort(l.levels)
	l.levels = slices.Compact(l.levels)
	for i := range entries {
		e := &entries[i]
		if e.Disable {
			continue
		}
		if e.Constant && !e.IgnoreBudget {
			_, text := parseDecorators(e.Content)
			constant += estimate(text)
		}
		l.entry("entries."+e.ID, e)
	}
	if l.budget > 0 && constant >= l.budget {
		l.add("entries", lintBudget, "the constant entries have about %d tokens together, the budget is %d: those of lowest order are left out", constant, l.budget)
	}
	return l.found
}

func (l *linter) add(path, code, format string, args ...any) {
	l.found = append(l.found, card.Warning{Code: code, Path: path, Detail: fmt.Sprintf(format, args...)})
}

func (l *linter) entry(path string, e *card.Entry) {
	deco, text := parseDecorators(e.Content)
	if deco == nil {
		deco = &decorators{}
	}
	for _, name := range deco.unknown {
		l.add(path+".content", lintDecorator, "@@%s is not understood and does nothing", name)
	}
	if strings.TrimSpace(text) == "" {
		l.add(path+".content", lintEmpty, "the entry has no text")
	}
	if n := estimate(text); l.budget > 0 && n >= l.budget && !e.IgnoreBudget {
		l.add(path+".content", lintBudget, "the entry has about %d tokens and never fits the budget of %d", n, l.budget)
	}
	l.reach(path, e, deco)
	for i, k := range e.Key {
		l.key(fmt.Sprintf("%s.key[%d]", path, i), k)
	}
	for i, k := range e.KeySecondary {
		l.key(fmt.Sprintf("%s.keysecondary[%d]", path, i), k)
	}
	l.unused(path, e)
}

// reach finds what keeps an entry out of every prompt.
func (l *linter) reach(path string, e *card.Entry, deco *decorators) {
	never := func(member, format string, args ...any) { l.add(path+member, lintUnreachable, format, args...) }
	switch {
	case deco.activate:
	case deco.dont:
		never(".content", "@@dont_activate keeps the entry out of every prompt")
	case !e.Constant:
		l.keyed(e, never)
	}
	switch p := e.Position; {
	case p < card.BeforeChar || p > card.Outlet:
		never(".position", "there is no position %d", p)
	case p == card.Outlet && e.OutletName == "":
		never(".outletName", "the entry goes to an outlet without a name")
	}
	if e.UseProbability && e.Probability <= 0 {
		never(".probability", "its probability is %g %%", e.Probability)
	}
	if !l.set.Recursive && e.DelayUntilRecursion > 0 && len(l.levels) == 1 {
		never(".delayUntilRecursion", "it waits for a recursion, which is off")
	}
	known := slices.ContainsFunc(e.Triggers, func(t string) bool { return slices.Contains(Triggers, t) })
	if len(e.Triggers) > 0 && !known {
		never(".triggers", "there are no replies of the kind %s", strings.Join(e.Triggers, ", "))
	}
}

// keyed is reach for what an entry needs that only keys bring in.
func (l *linter) keyed(e *card.Entry, never func(member, format string, args ...any)) {
	blind := l.set.Depth <= 0 && l.set.MinActivations == 0
	if e.ScanDepth != nil {
		blind = *e.ScanDepth <= 0
	}
	switch {
	case e.Vectorized, len(e.Key) == 0: // a search may bring it in; an import tells of entries without keys
	case blind:
		never(".scanDepth", "no message is searched, and so its keys are never found")
	case e.Selective && l.contradicts(e):
		never(".keysecondary", "its secondary keys never agree with its keys")
	}
}

// contradicts reports whether the secondary keys of an entry can never agree.
func (l *linter) contradicts(e *card.Entry) bool {
	same := func(k string) bool {
		return slices.ContainsFunc(e.KeySecondary, func(s string) bool { return s == k })
	}
	empty := func(k string) bool { return k == "" }
	switch e.SelectiveLogic {
	case card.NotAny:
		return len(e.Key) > 0 && !slices.ContainsFunc(e.Key, func(k string) bool { return !same(k) })
	case card.NotAll:
		return len(e.KeySecondary) == 1 && len(e.Key) == 1 && same(e.Key[0])
	case card.AndAll:
		return slices.ContainsFunc(e.KeySecondary, empty)
	}
	return len(e.KeySecondary) > 0 && !slices.ContainsFunc(e.KeySecondary, func(k string) bool { return !empty(k) })
}

func (l *linter) key(path, k string) {
	trimmed := trim(k)
	switch {
	case k == "":
		l.add(path, lintUnused, "an empty key is never found")
		return
	case trimmed == "":
		l.add(path, lintEverything, "a blank key is found in every text")
		return
	case !macro.Fixed(k):
		return
	}
	source, flags, ok := jsregex.Key(trimmed)
	if !ok {
		if end := strings.LastIndexByte(trimmed, '/'); trimmed[0] == '/' && end > 1 && strings.Trim(trimmed[end+1:], "abcdefghijklmnopqrstuvwxyz") == "" {
			l.add(path, lintInvalid, "%s is no pattern but plain text: a slash inside needs a backslash, and flags are some of gimsuy", clip(trimmed))
		}
		return
	}
	p, err := jsregex.Compile(source, flags, patternLimit)
	if err != nil {
		l.add(path, lintInvalid, "%s is looked for as plain text: %v", clip(trimmed), err)
		return
	}
	if all, _ := p.Matches(nil); all {
		l.add(path, lintEverything, "the pattern %s is found in every text", clip(trimmed))
	}
	if p.Nested() {
		l.add(path, lintSlow, "the pattern %s repeats what repeats: it may take very long and be given up", clip(trimmed))
	}
}

// clip bounds what a finding quotes.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// unused finds members that change nothing.
func (l *linter) unused(path string, e *card.Entry) {
	for _, c := range [][2]string{
		{"keysecondary", when(!e.Selective && len(e.KeySecondary) > 0, "secondary keys count only if selective is on")},
		{"selectiveLogic", when(e.SelectiveLogic != 0 && len(e.KeySecondary) == 0, "there are no secondary keys")},
		{"probability", when(!e.UseProbability && e.Probability != 100, "useProbability is off")},
		{"group", when(e.Group == "" && (e.GroupOverride || orElse(e.UseGroupScoring, false)), "the entry is in no group")},
		{"outletName", when(e.OutletName != "" && e.Position != card.Outlet, "only entries at position 7 go to an outlet")},
		{"role", when(e.Role != 0 && e.Position != card.AtDepth, "only entries at a depth of the chat have a role")},
	} {
		if c[1] != "" {
			l.add(path+"."+c[0], lintUnused, "%s", c[1])
		}
	}
	l.unusedOfScan(path, e)
}

// unusedOfScan is unused for how texts are searched.
func (l *linter) unusedOfScan(path string, e *card.Entry) {
	if !l.set.Recursive && e.ExcludeRecursion {
		l.add(path+".excludeRecursion", lintUnused, "recursion is off")
	}
	if !l.set.Recursive && e.PreventRecursion && len(l.levels) < 2 {
		l.add(path+".preventRecursion", lintUnused, "recursion is off")
	}
	switch d := e.ScanDepth; {
	case d == nil:
	case *d > maxDepth:
		l.add(path+".scanDepth", lintUnused, "no more than %d messages are searched", maxDepth)
	case *d <= 0 && e.ScanTexts != card.ScanTexts{}:
		l.add(path+".scanDepth", lintUnused, "with a depth of 0 nothing is searched, neither messages nor other texts")
	}
}

// when is detail if something holds.
func when(holds bool, detail string) string {
	if holds {
		return detail
	}
	return ""
}
