package card

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// patternSource is a regular expression in the way of JavaScript: /pattern/flags.
const patternSource = `/(?:\\.|\[(?:\\.|[^\\\]\n])*\]|[^\\/\[\n])+/[dgimsuvy]*`

var (
	regexKey   = regexp.MustCompile(`^` + patternSource + `$`)
	regexAhead = regexp.MustCompile(`^\s*(` + patternSource + `)\s*(?:[,，]|$)`) // in a list of keys
)

func isRegexKey(key string) bool { return regexKey.MatchString(strings.TrimSpace(key)) }

// keysOf reads the keys of an entry: a list, or one text in which commas separate them, as in
// the editor of SillyTavern. Keys that are numbers count by their spelling. Blank keys, which
// any chat would hold, are left out.
func keysOf(doc json.RawMessage) []string {
	list := textsOf(listOf(doc))
	if text, ok := textOf(doc); ok {
		list = splitKeys(text)
	}
	var keys []string
	for _, k := range list {
		if strings.TrimSpace(k) != "" {
			keys = append(keys, k)
		}
	}
	return keys
}

// splitKeys splits a text at its commas, also Chinese ones, except those inside of /patterns/.
func splitKeys(text string) []string {
	var keys []string
	comma := func(r rune) bool { return r == ',' || r == '，' }
	for rest := text; rest != ""; {
		key := rest
		if m := regexAhead.FindStringSubmatchIndex(rest); m != nil {
			key, rest = rest[m[2]:m[3]], rest[m[1]:]
		} else if at := strings.IndexFunc(rest, comma); at >= 0 {
			_, size := utf8.DecodeRuneInString(rest[at:])
			key, rest = rest[:at], rest[at+size:]
		} else {
			rest = ""
		}
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
