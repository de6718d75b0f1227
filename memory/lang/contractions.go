package lang

import (
	"regexp"
	"strings"
)

var (
	curly = strings.NewReplacer("’", "'", "‘", "'")
	// withoutMark are contractions typed in a hurry. "Its", "ill", "id", "were" and "well" are
	// words of their own.
	withoutMark = []struct {
		form *regexp.Regexp
		with string
	}{
		{regexp.MustCompile(`(?i)\b(i)(m|ve)\b`), "${1}'$2"},
		{regexp.MustCompile(`(?i)\b(do|does|did|is|are|was|have|has|had|could|would|should|wo|ca)nt\b`), "${1}n't"},
		{regexp.MustCompile(`(?i)\b(what|that|there|where|who|he|she)s\b`), "${1}'s"},
		{regexp.MustCompile(`(?i)\b(you|they)(re|ve)\b`), "${1}'$2"},
	}
	hurried = func() *regexp.Regexp {
		var forms []string
		for _, c := range withoutMark {
			forms = append(forms, c.form.String())
		}
		return regexp.MustCompile(strings.Join(forms, "|"))
	}()
)

// Contracted writes contractions as the patterns of this package expect them: with a plain
// apostrophe, also if there is none ("im", "dont").
func Contracted(text string) string {
	text = curly.Replace(text)
	if !hurried.MatchString(text) {
		return text
	}
	for _, c := range withoutMark {
		text = c.form.ReplaceAllString(text, c.with)
	}
	return text
}
