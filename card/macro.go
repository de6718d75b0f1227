package card

import (
	"regexp"
	"strings"
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
