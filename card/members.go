package card

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// member is what a kind of object has under a name.
type member struct {
	Why    string   // it has no effect; "" = it has one, or nobody expects any
	Check  string   // names a check in memberChecks: the member asks for something only where that check says so
	Unless []string // values with which it asks for nothing
	Begins string   // the beginning of texts with which it asks for nothing; "" = no text does
	Zero   bool     // 0 asks for something too
	Tavern bool     // it has an effect in the SillyTavern dialect
}

// asks reports whether a value asks for something that it does not get.
func (m *member) asks(value json.RawMessage, of fields) bool {
	text, isText := textOf(value)
	switch {
	case m.Check != "":
		return memberChecks[m.Check](value, of)
	case m.Unless != nil:
		return !isText || !slices.Contains(m.Unless, strings.TrimSpace(text))
	}
	return m.Begins == "" || !strings.HasPrefix(text, m.Begins)
}

// kind are the members that are known of one kind of object.
type kind map[string]member

//go:embed members.json
var memberFile []byte

// kinds are the kinds of objects by name. Their file lists the names of members that have an effect,
// or of which nobody expects one (used), and those that are known to have none, with the reason.
var kinds = func() map[string]kind {
	var file map[string]struct {
		Like, Used string
		Unused     []struct {
			Members string
			member
		}
	}
	if err := json.Unmarshal(memberFile, &file); err != nil {
		panic(err) // it is a part of the program
	}
	all := map[string]kind{}
	for name := range file {
		k := kind{}
		for _, from := range []string{file[name].Like, name} {
			for used := range strings.FieldsSeq(file[from].Used) {
				k[used] = member{}
			}
			for _, unused := range file[from].Unused {
				for of := range strings.FieldsSeq(unused.Members) {
					k[of] = unused.member
				}
			}
		}
		all[name] = k
	}
	extension := kind{"position": {}, "display_index": {}}
	for _, f := range extensionFields {
		extension[f.card] = member{}
	}
	all["entryExtension"] = extension
	return all
}()

// memberChecks report whether a member asks for something; of is its object.
var memberChecks = map[string]func(value json.RawMessage, of fields) bool{
	"above0": func(value json.RawMessage, _ fields) bool {
		n, ok := fields{"": value}.looseNumber("")
		return ok && n > 0
	},
	"otherAssets": func(value json.RawMessage, _ fields) bool {
		return slices.ContainsFunc(listOf(value), func(a json.RawMessage) bool { return fieldsOf(a).text("type", "icon") != "icon" })
	},
	"secondary": func(_ json.RawMessage, of fields) bool {
		return !of.flag("constant", false) && of.flag("selective", true) && len(keysOf(of["keysecondary"])) > 0
	},
	"depthRole": func(value json.RawMessage, of fields) bool {
		s, _ := textOf(value)
		return of.int("position", 0) == int(AtDepth) && s != "1" && s != "user"
	},
	"chance": func(_ json.RawMessage, of fields) bool {
		return of.flag("useProbability", true) && of.float("probability", 100) < 100
	},
	"group": func(_ json.RawMessage, of fields) bool { return of.text("group", "") != "" },
	"groupWeight": func(value json.RawMessage, of fields) bool {
		return of.text("group", "") != "" && string(value) != "100"
	},
	"filter": func(_ json.RawMessage, of fields) bool { return filtered(of) },
	"replacement": func(value json.RawMessage, _ fields) bool {
		s, _ := textOf(value)
		return matchMacro.MatchString(s) || zeroGroup.MatchString(s)
	},
	"texts": func(value json.RawMessage, _ fields) bool { return len(nonEmpty(textsOf(listOf(value)))) > 0 },
	"placement": func(value json.RawMessage, _ fields) bool {
		return slices.ContainsFunc(textsOf(listOf(value)), func(s string) bool {
			n, err := strconv.Atoi(s)
			return err == nil && n != PlaceUserInput && n != PlaceAIOutput && n != PlaceWorldInfo
		})
	},
}

// filtered reports whether an entry is for some characters only.
func filtered(entry fields) bool {
	filter := fieldsOf(entry["characterFilter"])
	return len(filter.texts("names"))+len(filter.texts("tags")) > 0
}

var (
	// sentFields are the texts of a card that are sent or begin a chat.
	sentFields = []string{
		"description", "personality", "scenario", "first_mes", "mes_example", "system_prompt", "post_history_instructions",
	}

	originalMacro = regexp.MustCompile(`(?i)\{\{original\}\}`)
	matchMacro    = regexp.MustCompile(`(?i)\{\{match\}\}`)
	zeroGroup     = regexp.MustCompile(`\$0\b`)
)

// entryChecks are about what several members of an entry say together.
var entryChecks = []struct {
	key, code, why string
	asks           func(e *Entry, f fields, d Dialect) bool
}{
	{"position", unusedField, "entries at this position are not used", func(e *Entry, _ fields, d Dialect) bool {
		const outlet = 7
		return e.Position < BeforeChar || e.Position > AtDepth && (d != SillyTavern || e.Position > outlet)
	}},
	{"key", unreachable, "entries that are not constant and have no keys are never used", func(e *Entry, _ fields, d Dialect) bool {
		return !e.Constant && len(e.Key) == 0 && (d != SillyTavern || !e.Vectorized)
	}},
	{"key", regexKeyCode, "keys are plain text; these patterns are matched literally", func(e *Entry, _ fields, d Dialect) bool {
		return d != SillyTavern && !e.Constant && slices.ContainsFunc(e.Key, isRegexKey)
	}},
	{"key", unknownMacro, "macros in keys are not replaced", func(e *Entry, _ fields, d Dialect) bool {
		return d != SillyTavern && !e.Constant && slices.ContainsFunc(e.Key, func(k string) bool { return strings.Contains(k, "{{") })
	}},
	{"key", oddKeys, "keys in one text, or that are numbers, were read as a list of texts", func(e *Entry, f fields, _ Dialect) bool {
		_, oneText := textOf(f["key"])
		number := func(k json.RawMessage) bool { _, ok := textOf(k); return ok && !startsWith(k, '"') }
		return len(e.Key) > 0 && (oneText || slices.ContainsFunc(f.list("key"), number))
	}},
	{"key", unusedField, "keys of entries at positions 0 and 1 matter only while the setting filterKeyed is on", func(e *Entry, _ fields, d Dialect) bool {
		return d == NodeST && !e.Constant && len(e.Key) > 0 && (e.Position == BeforeChar || e.Position == AfterChar)
	}},
	{"content", unusedField, "decorators (@@…) are sent as a part of the text", func(e *Entry, _ fields, d Dialect) bool {
		return d != SillyTavern && strings.HasPrefix(strings.TrimSpace(e.Content), "@@")
	}},
}
