package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"unicode"
)

// chinese are the simplified words of CC-CEDICT with their meanings in English.
type chinese map[string][]string

func readCedict(file string) (chinese, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all struct{ All [][]json.RawMessage }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(data), "export default ")), &all); err != nil {
		return nil, err
	}
	words := chinese{}
	for _, entry := range all.All {
		var word, sound, one string
		var meanings []string
		if err := json.Unmarshal(entry[1], &word); err != nil {
			return nil, err
		}
		_ = json.Unmarshal(entry[2], &sound)
		if json.Unmarshal(entry[3], &meanings) != nil {
			if err := json.Unmarshal(entry[3], &one); err != nil {
				return nil, err
			}
			meanings = []string{one}
		}
		if n := len([]rune(word)); n > 4 || strings.ContainsFunc(word, func(r rune) bool { return !unicode.Is(unicode.Han, r) }) || unicode.IsUpper([]rune(sound + " ")[0]) {
			continue // names, phrases
		}
		words[word] = append(words[word], meanings...)
	}
	return words, nil
}

var aside = regexp.MustCompile(`\([^)]*\)|\[[^\]]*\]|CL:.*|\p{Han}+\|?`)

// glosses returns the single meanings of a word, each as "to …" or plain, without remarks.
func glosses(meanings []string) (all []string) {
	for _, m := range meanings {
		if strings.Contains(m, "surname") || strings.Contains(m, "variant of") || strings.HasPrefix(m, "used ") || strings.HasPrefix(m, "see ") || strings.HasPrefix(m, "abbr. ") || strings.HasPrefix(m, "also ") || strings.Contains(m, "(archaic)") || strings.Contains(m, "(old)") || strings.Contains(m, "classifier for") || strings.Contains(m, "particle") {
			continue
		}
		for part := range strings.SplitSeq(aside.ReplaceAllString(m, " "), ";") {
			if part = strings.Join(strings.Fields(strings.ToLower(part)), " "); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}
