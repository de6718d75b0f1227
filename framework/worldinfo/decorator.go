package worldinfo

import (
	"slices"
	"strconv"
	"strings"

	"nodest/card"
)

// decorators are the lines @@name value at the beginning of a content (lorebook V3). SillyTavern knows
// the first two; the others go beyond it.
type decorators struct {
	activate, dont     bool
	depth, scanDepth   *int
	role, position     *int
	greeting           *int
	onlyAfter, every   *int // messages of the assistant
	additional, except []string
	unknown            []string // names that are not understood
}

// parseDecorators takes the decorators off a content. @@@name is used only if the decorator
// directly above was not understood. The result is nil without any.
func parseDecorators(content string) (d *decorators, text string) {
	if !strings.HasPrefix(content, "@@") {
		return nil, content
	}
	d = &decorators{}
	understood, text := true, content
	for strings.HasPrefix(text, "@@") {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		name, fallback := strings.CutPrefix(line, "@@@")
		if !fallback {
			name = line[2:]
		} else if understood {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(name), " ")
		if understood = d.read(name, strings.TrimSpace(value)); !understood {
			d.unknown = append(d.unknown, name)
		}
	}
	return d, text
}

var roles = []string{"system", "user", "assistant"}

// read takes one decorator over. It reports whether it was understood.
func (d *decorators) read(name, value string) bool {
	n, err := strconv.Atoi(value)
	number := err == nil && n >= 0
	numbers := map[string]**int{
		"depth": &d.depth, "scan_depth": &d.scanDepth, "is_greeting": &d.greeting,
		"activate_only_after": &d.onlyAfter, "activate_only_every": &d.every,
	}
	if p := numbers[name]; p != nil {
		if number && (n > 0 || name != "activate_only_every") {
			*p = &n
		}
		return *p != nil
	}
	switch name {
	case "activate":
		d.activate = true
	case "dont_activate":
		d.dont = true
	case "role":
		r := slices.Index(roles, value)
		if r >= 0 {
			d.role = &r
		}
		return r >= 0
	case "position":
		return d.place(value)
	case "additional_keys":
		d.additional = append(d.additional, commas(value)...)
	case "exclude_keys":
		d.except = append(d.except, commas(value)...)
	default:
		return false
	}
	return true
}

// place reads a position. The prompt has no places within the personality or the scenario: such a text
// goes behind the character.
func (d *decorators) place(value string) bool {
	at := int(card.AfterChar)
	switch value {
	case "before_desc":
		at = int(card.BeforeChar)
	case "after_desc", "personality", "scenario":
	default:
		return false
	}
	d.position = &at
	return true
}

// allows reports whether the greeting and the number of the assistant's messages are those of the decorators.
func (d *decorators) allows(greeting, assistant int) bool {
	switch {
	case d.activate:
		return true
	case d.greeting != nil && *d.greeting != greeting, d.onlyAfter != nil && assistant < *d.onlyAfter:
		return false
	}
	return d.every == nil || assistant%*d.every == 0
}

func commas(list string) []string {
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		if part = trim(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// trim removes white space as JavaScript does.
func trim(s string) string { return strings.TrimFunc(s, isSpace) }

func isSpace(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r == ' ', r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a,
		r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfeff:
		return true
	}
	return false
}
