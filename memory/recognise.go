package memory

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/index"
	"nodest/memory/lang"
)

// At most namingRows rows are searched for the name, of a word that is in at most mostNamings.
const (
	namingRows  = 64
	mostNamings = 2000
)

var (
	// beginning are the first words of sentences, whose capital means nothing.
	beginning = regexp.MustCompile(`(?:^|[.!?…\n][\s"”’]*)(\p{Lu}\p{Ll}+)`)
	// naming is how a name is stated.
	naming = regexp.MustCompile(`(?i)\b(?:called|named|name is|name's) (\p{L}+)|(?:叫[做作]?|名字是)([\p{Han}·]{2,3})(?:$|[\p{P}\s的])`)
	// noName is what follows 叫 and is no name.
	noName = regexp.MustCompile(`^(?:[你您他她它我了过不停好苦人妈爸一几个来去着得车醒]|外卖|什么|大家|滴滴|快递|出租)`)
)

// recognise treats words of a statement as names if the memory knows them as such: first words
// of sentences, and words in scripts without capitals.
func recognise(q *lang.Question, v index.View, text string) {
	if !q.States {
		return
	}
	begins := map[string]bool{}
	for _, m := range beginning.FindAllStringSubmatch(text, -1) {
		if w := strings.ToLower(m[1]); !lang.TimeWords[w] {
			for _, t := range index.Terms(w) {
				begins[t] = true
			}
		}
	}
	q.Terms = slices.Clone(q.Terms)
	for i := range q.Terms {
		t := &q.Terms[i]
		dense := t.Text[0] >= utf8.RuneSelf && utf8.RuneCountInString(t.Text) > 1
		if (dense && !t.Extra && t.Evidence > lang.ProvesNothing || t.Evidence == 1) && isKnownName(v, t.Text, begins[t.Text]) {
			t.Evidence = lang.ProvesName
		}
	}
}

// isKnownName reports whether a row states that a term is a name, or, with capitals, has it
// capitalised inside a sentence.
func isKnownName(v index.View, term string, capitals bool) bool {
	rows, _ := v.Having(term, mostNamings)
	return slices.ContainsFunc(rows[:min(len(rows), namingRows)], func(row int) bool {
		text := entryAt(v, row).Text
		is := func(name string) bool { return slices.Contains(index.Terms(strings.ToLower(name)), term) }
		for _, m := range naming.FindAllStringSubmatch(text, -1) {
			if m[1] != "" && is(m[1]) || m[2] != "" && strings.HasPrefix(m[2], term) && !noName.MatchString(m[2]) {
				return true
			}
		}
		return capitals && slices.ContainsFunc(lang.Named.FindAllStringSubmatch(text, -1), func(m []string) bool { return is(m[1]) })
	})
}
