package card

import (
	"fmt"
	"regexp"
	"strings"

	"nodest/framework/macro"
)

// macroRanks are the macros that package framework replaces, in the order in which it does
// so. Those of rank 0 stand alone. The others take arguments, in which only macros of a lower
// rank are replaced. Names are compared without regard to case.
var macroRanks = map[string]int{
	"lastmessage": 0, "lastusermessage": 0, "lastcharmessage": 0, "char": 0, "user": 0,
	"date": 0, "time": 0, "weekday": 0, "isodate": 0, "isotime": 0, "idle_duration": 0,
	"random": 1, "pick": 2, "roll": 3,
}

// macroRank is the rank of {{inner}}; false if it stays as it is.
func macroRank(inner string) (rank int, ok bool) {
	name, list, args := strings.Cut(strings.ToLower(inner), ":")
	rank, ok = macroRanks[name]
	switch {
	case !ok || rank == 0:
		return rank, ok && !args
	case !args:
		return 0, name == "random"
	case name == "roll":
		return rank, len(list) > 1 && list[0] == ':'
	}
	return rank, list != "" && list != ":"
}

// oldMacros are names in angle brackets, which SillyTavern replaces too.
var oldMacros = regexp.MustCompile(`(?i)<(?:user|bot|char|group|charifnotgroup)>`)

// Bounds of the work for one text, whatever its braces.
const (
	mostMacros = 1000 // unknown ones that are listed
	mostNested = 1000 // macros within each other that are followed
	macroHead  = 256  // bytes of a macro that tell what it is
)

// UnknownMacros lists the macros in a text that stay as they are, or that cannot be read
// because of one in their arguments: the first mostMacros, each with its first macroHead bytes.
// Comments are no macros.
func UnknownMacros(text string) []string {
	type open struct {
		at    int
		found int // macros that were found before it
		rank  int // the highest of those in its arguments; -1 = there are none
	}
	found := oldMacros.FindAllString(text, mostMacros)
	var stack []open
	for i := 0; i+1 < len(text) && len(found) < mostMacros; i++ {
		switch braces := text[i : i+2]; {
		case braces == "{{":
			if len(stack) == mostNested {
				stack = stack[1:]
			}
			stack = append(stack, open{i + 2, len(found), -1})
			i++
		case braces == "}}" && len(stack) > 0:
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			inner := strings.TrimLeft(strings.ToValidUTF8(text[o.at:min(i, o.at+macroHead)], ""), "{")
			i++
			if strings.HasPrefix(inner, "//") {
				found = found[:o.found]
				continue
			}
			rank, ok := macroRank(inner)
			if !ok || o.rank >= rank {
				found = append(found, "{{"+inner+"}}")
			}
			if n := len(stack); n > 0 {
				stack[n-1].rank = max(stack[n-1].rank, rank)
			}
		}
	}
	return found
}

// macros warns about the macros in texts that will not do what their author meant, one line for each name.
func (im *importer) macros(texts []textAt) {
	type use struct {
		macroWarning
		path  string
		texts int
	}
	var uses []*use
	byName := map[macroWarning]*use{}
	for _, t := range texts {
		seen := map[macroWarning]bool{}
		for _, w := range im.macroWarnings(t.text) {
			id := macroWarning{name: strings.ToLower(w.name), code: w.code}
			if byName[id] == nil {
				if len(uses) == mostMacros {
					continue
				}
				byName[id] = &use{macroWarning: w, path: t.path}
				uses = append(uses, byName[id])
			}
			if !seen[id] {
				byName[id].texts++
			}
			seen[id] = true
		}
	}
	for i, u := range uses {
		if i == maxMacros {
			var names []string
			for _, u := range uses[i:] {
				names = append(names, u.name)
			}
			im.warn(u.path, unknownMacro, "unknown macros, sent as written: %s", some(names, maxNames))
			return
		}
		times := ""
		if u.texts > 1 {
			times = fmt.Sprintf(" (in %d texts)", u.texts)
		}
		im.warn(u.path, u.code, u.why+"%s", u.name, times)
	}
}

// macroWarning is what is wrong with a macro; why has a place for its name.
type macroWarning struct{ name, code, why string }

// Reasons why a macro does not do what its author meant.
const (
	whyUnknown   = "unknown macro %s; it is sent as written"
	whyNested    = "%s with a macro in its arguments is not read as it is meant"
	whyArguments = "%s has too few or too many arguments; it is sent as written"
	whyUnclosed  = "%s has no end; it is sent as written"
	whySame      = "%s is the same for everybody here"
)

func (im *importer) macroWarnings(text string) []macroWarning {
	var list []macroWarning
	if im.dialect != SillyTavern {
		for _, m := range UnknownMacros(text) {
			w := macroWarning{macroName(m), unknownMacro, whyUnknown}
			if _, ok := macroRank(strings.Trim(strings.TrimSuffix(w.name, "…}}"), "{") + "x"); ok {
				w.why = whyNested
			}
			list = append(list, w)
		}
		return list
	}
	for _, p := range macro.Problems(text, tavernMacros...) {
		w := macroWarning{macroName(p.Macro), unknownMacro, whyUnknown}
		switch p.Kind {
		case macro.Arguments:
			w.why = whyArguments
		case macro.Unclosed:
			w.why = whyUnclosed
		case macro.Empty:
			w.code, w.why = unusedMacro, whySame
		case macro.Old:
			continue // it works
		}
		list = append(list, w)
	}
	return list
}

// tavernMacros are known in some texts of the SillyTavern dialect alone.
var tavernMacros = []string{"lastchatmessage"}

// macroName is what tells a macro from others: the name without its arguments.
func macroName(macro string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(macro, "{{"), "}}")
	if name, _, args := strings.Cut(inner, ":"); args && strings.TrimSpace(name) != "" {
		inner = name + ":…"
	} else if name, _, args := strings.Cut(inner, " "); args && name != "" {
		inner = name + " …"
	}
	if inner == macro { // <USER>
		return macro
	}
	if len(inner) > maxLabel {
		inner = clip(inner, maxLabel)
	}
	return "{{" + inner + "}}"
}
