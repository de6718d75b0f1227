package card

import (
	"encoding/json"
	"regexp"
	"strings"
)

// patternSource is a regular expression in the way of JavaScript: /pattern/flags.
const patternSource = `/(?:\\.|\[(?:\\.|[^\\\]\n])*\]|[^\\/\[\n])+/[dgimsuvy]*`

var (
	regexKey   = regexp.MustCompile(`^` + patternSource + `$`)
	regexAhead = regexp.MustCompile(`^\s*(` + patternSource + `)\s*(?:,|$)`) // in a list of keys
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

// splitKeys splits a text at its commas, except those inside of /patterns/.
func splitKeys(text string) []string {
	var keys []string
	for rest := text; rest != ""; {
		var key string
		if m := regexAhead.FindStringSubmatchIndex(rest); m != nil {
			key, rest = rest[m[2]:m[3]], rest[m[1]:]
		} else {
			key, rest, _ = strings.Cut(rest, ",")
		}
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
