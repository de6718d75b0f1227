package card

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// patternLength is the length of the regular expression in the way of JavaScript, /pattern/flags,
// that s begins with, 0 if there is none. looked is how many bytes it has read.
func patternLength(s string) (length, looked int) {
	inClass := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			return 0, i
		case c == '\\' && i+1 < len(s) && s[i+1] != '\n':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '/' && i == 1:
			return 0, i
		case c == '/':
			end := len(s) - len(strings.TrimLeft(s[i+1:], "dgimsuvy"))
			return end, end
		}
	}
	return 0, len(s)
}

func isRegexKey(key string) bool {
	key = strings.TrimSpace(key)
	if !strings.HasPrefix(key, "/") {
		return false
	}
	length, _ := patternLength(key)
	return length == len(key)
}

// keysOf reads the keys of an entry: a list, or one text in which commas separate them, as in
// the editor of SillyTavern. Keys that are numbers count by their spelling. Blank keys, which
// any chat would hold, are left out.
func keysOf(doc json.RawMessage) []string {
	return slices.DeleteFunc(allKeys(doc), func(k string) bool { return strings.TrimSpace(k) == "" })
}

// primaryKeys is keysOf for a dialect: SillyTavern finds blank keys, but not empty ones, in every text.
func primaryKeys(dialect Dialect, doc json.RawMessage) []string {
	if dialect == SillyTavern {
		return slices.DeleteFunc(allKeys(doc), func(k string) bool { return k == "" })
	}
	return keysOf(doc)
}

// secondaryKeys is keysOf for a dialect: in SillyTavern an empty key is one that is never found.
func secondaryKeys(dialect Dialect, doc json.RawMessage) []string {
	if dialect == SillyTavern {
		return allKeys(doc)
	}
	return keysOf(doc)
}

func allKeys(doc json.RawMessage) []string {
	if text, ok := textOf(doc); ok {
		return splitKeys(text)
	}
	return textsOf(listOf(doc))
}

// splitKeys splits a text at its commas, also Chinese ones, except those inside of /patterns/. It gives up looking
// for patterns in a text where it has often looked for their ends in vain.
func splitKeys(text string) []string {
	var keys []string
	room := 4*len(text) + 1<<12 // bytes that it may look at
	for rest := text; rest != ""; {
		key, after := cutComma(rest)
		if start := strings.TrimLeftFunc(rest, unicode.IsSpace); room > 0 && strings.HasPrefix(start, "/") {
			length, looked := patternLength(start)
			room -= looked
			between, behind := cutComma(start[length:])
			if length > 0 && strings.TrimSpace(between) == "" {
				key, after = start[:length], behind
			}
		}
		rest = after
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func cutComma(text string) (before, after string) {
	at := strings.IndexAny(text, ",，")
	if at < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[:at], text[at+size:]
}
