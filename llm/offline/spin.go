package offline

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Phrases are patterns: {a|b} is one of several, and may contain others; <name> is a slot.
// A slot is filled with a word of the scene (q: a quotation, n: a name, i: an interest of
// the card, clock: the time), or with one of the list of that name.

var sceneSlots = []string{"q", "n", "i", "clock"}

// slots returns the words of the scene for answering a text of somebody.
func (c *circle) slots(text, name string) map[string]string {
	m := map[string]string{"q": c.quote(text), "clock": c.clock}
	if utf8.RuneCountInString(name) <= longestOfName && name != c.char {
		m["n"] = name
	}
	if len(c.interests) > 0 {
		m["i"] = c.interests[c.chance.IntN(len(c.interests))]
	}
	return m
}

// sentences makes a sentence of each kind.
func (c *circle) sentences(slots map[string]string, kinds ...[]string) []string {
	var list []string
	for _, kind := range kinds {
		if s := c.sentence(slots, kind); s != "" {
			list = append(list, spoken(s))
		}
	}
	return list
}

// sentence is one of the phrases whose slots can all be filled.
func (c *circle) sentence(slots map[string]string, phrases []string) string {
	usable := slices.DeleteFunc(slices.Clone(phrases), func(phrase string) bool {
		return slices.ContainsFunc(sceneSlots, func(name string) bool {
			return slots[name] == "" && strings.Contains(phrase, "<"+name+">")
		})
	})
	if len(usable) == 0 {
		return ""
	}
	return c.spin(usable[c.chance.IntN(len(usable))], slots)
}

// say is a sentence without words of the scene.
func (c *circle) say(phrases []string) string { return spoken(c.sentence(nil, phrases)) }

var (
	slotMark = regexp.MustCompile(`<(\w+)>`)
	choice   = regexp.MustCompile(`\{[^{}]*\}`)
)

// spin chooses among the alternatives, the inner ones first, and then fills the slots:
// their words are not looked at again.
func (c *circle) spin(phrase string, slots map[string]string) string {
	for choice.MatchString(phrase) {
		phrase = choice.ReplaceAllStringFunc(phrase, func(s string) string {
			options := strings.Split(s[1:len(s)-1], "|")
			return options[c.chance.IntN(len(options))]
		})
	}
	return slotMark.ReplaceAllStringFunc(phrase, func(s string) string {
		name := s[1 : len(s)-1]
		if word := slots[name]; word != "" {
			return word
		}
		pool := c.words.pools[name]()
		for range len(pool) { // until it is a new one
			if word := pool[c.chance.IntN(len(pool))]; !slices.Contains(c.used, word) {
				c.used = append(c.used, word)
				return word
			}
		}
		return pool[0]
	})
}
