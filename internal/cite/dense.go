package cite

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// chunk is a run of characters that two texts of a dense script have in common.
type chunk struct {
	text     string
	from, to int // runes of the first text
}

// plainHan keeps the letters and digits of a text.
func plainHan(text string) []rune {
	var out []rune
	for _, r := range text {
		if isDense(r) || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '%' {
			out = append(out, r)
		}
	}
	return out
}

// maxDense bounds the comparison of characters.
const maxDense = 300

// chunksOf returns the longest runs that both texts have, from the left.
func chunksOf(ours []rune, theirs string) (out []chunk) {
	for i := 0; i < len(ours); {
		n := 0
		for i+n < len(ours) && strings.Contains(theirs, string(ours[i:i+n+1])) {
			n++
		}
		if n < 2 {
			i++
			continue
		}
		out = append(out, chunk{string(ours[i : i+n]), i, i + n})
		i += n
	}
	return out
}

func hasDense(text string) bool { return strings.ContainsFunc(text, isDense) }

// swapsDense is swaps for scripts without spaces.
func swapsDense(claim, source string) bool {
	if !hasDense(claim) || !hasDense(source) {
		return false
	}
	ours, theirs := ended(claim), ended(source)
	if len(ours) > maxDense || len(theirs) > 2*maxDense {
		return false
	}
	chunks := chunksOf(ours, string(theirs))
	if passive.MatchString(claim) != passive.MatchString(source) {
		return wrongAgent(claim, source, chunksOf(plainHan(claim), string(plainHan(source))))
	}
	for i := range chunks {
		for k := i + 2; k < min(len(chunks), i+5); k++ {
			if exchangedDense(ours, theirs, chunks[i:k+1]) {
				return true
			}
		}
	}
	return tooForeign(claim, source)
}

// exchangedDense reports whether the first and the last of some chunks stand on each other's place in a source,
// at the same end or beginning of a clause, or beside the same character.
func exchangedDense(ours, theirs []rune, chunks []chunk) bool {
	last := len(chunks) - 1
	x, verb, y := chunks[0], chunks[last-1], chunks[last]
	if isFiller(x.text) || isFiller(y.text) || x.text == y.text || hasDigit(x.text) != hasDigit(y.text) || y.from-x.to > 24 {
		return false
	}
	turned := slices.Clone(chunks)
	turned[0], turned[last] = y, x
	at, end := followEach(theirs, turned)
	if at < 0 && !isFiller(verb.text) && verb.to == y.from { // what else stands between may stand elsewhere
		at, end = followEach(theirs, []chunk{y, verb, x})
	}
	if at < 0 || runeAt(ours, x.from-1) != runeAt(theirs, at-1) && runeAt(ours, y.to) != runeAt(theirs, end) {
		return false
	}
	same, _ := followEach(theirs, chunks)
	return same < 0
}

// isFiller reports whether a text has only characters that say little.
func isFiller(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !isParticle(r) && !carriers()[string(r)] })
}

func hasDigit(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsDigit(r) || r == '半' })
}

// runeAt returns a line break outside of a text.
func runeAt(text []rune, at int) rune {
	if at < 0 || at >= len(text) {
		return '\n'
	}
	return text[at]
}

// followEach returns where chunks follow each other in a text, with few characters between them; -1 if
// they do not.
func followEach(text []rune, chunks []chunk) (from, to int) {
	first := []rune(chunks[0].text)
	for start := 0; start+len(first) <= len(text); start++ {
		if !slices.Equal(text[start:start+len(first)], first) {
			continue
		}
		if to = allFollow(text, start+len(first), chunks[1:]); to >= 0 {
			return start, to
		}
	}
	return -1, -1
}

// allFollow returns the end of chunks that follow a place in a text; -1 if they do not.
func allFollow(text []rune, at int, chunks []chunk) int {
	for k, c := range chunks {
		most := maxSwapGap
		if k > 0 && k < len(chunks)-1 {
			most = maxInnerGap
		}
		next, found := []rune(c.text), -1
		for gap := 0; gap <= most && at+gap+len(next) <= len(text) && found < 0; gap++ {
			if slices.Equal(text[at+gap:at+gap+len(next)], next) {
				found = at + gap + len(next)
			}
		}
		if found < 0 {
			return -1
		}
		at = found
	}
	return at
}

// wrongAgent reports whether a sentence says that x was done to by y where the source says, without
// a passive, that x did it to y.
func wrongAgent(claim, source string, chunks []chunk) bool {
	mark := passiveIn(claim)
	if mark < 0 {
		return false
	}
	at := len(plainHan(claim[:mark]))
	i := slices.IndexFunc(chunks, func(c chunk) bool { return c.from >= at })
	if i < 1 || chunks[i-1].to != at || chunks[i].from > at+1 {
		return false
	}
	text := string(plainHan(source))
	x, y := strings.Index(text, chunks[i-1].text), strings.Index(text, chunks[i].text)
	return x >= 0 && x < y
}

// passiveIn is where the voice of a text changes; -1 if it does not.
func passiveIn(text string) int {
	for _, r := range passives() {
		if at := r.FindStringIndex(text); at != nil && r.MatchString(text) {
			return at[0]
		}
	}
	return -1
}

// tooForeign reports whether a predicate of a sentence has another subject in the source.
func tooForeign(claim, source string) bool {
	chunks := chunksOf(ended(claim), string(ended(source)))
	parts := strings.FieldsFunc(source, isClauseEnd)
	for i, part := range parts {
		parts[i] = string(plainHan(part))
	}
	for i := range len(chunks) - 1 {
		subject := chunks[i]
		said := strings.TrimLeftFunc(chunks[i+1].text, isParticle)
		said, ends := strings.CutSuffix(said, "\n")
		n := utf8.RuneCountInString(said)
		if subject.to == chunks[i+1].from && !hasDigit(subject.text) && (n >= 5 || n >= 3 && ends) && onlyOf(parts, claim, subject.text, said) {
			return true
		}
	}
	return false
}

// onlyOf reports whether parts of a source have a predicate, always with a subject that the sentence has not, and
// ours elsewhere.
func onlyOf(parts []string, claim, subject, predicate string) bool {
	others, own := 0, false
	for _, part := range parts {
		before, _, found := strings.Cut(part, predicate)
		if !found {
			own = own || strings.Contains(part, subject)
			continue
		}
		if last, _ := utf8.DecodeLastRuneInString(before); strings.ContainsRune("他她它", last) {
			return false
		}
		before = strings.TrimFunc(before, isParticle)
		if strings.Contains(part, subject) || utf8.RuneCountInString(before) < 2 || strings.Contains(claim, before) {
			return false
		}
		others++
	}
	return others > 0 && own
}

func isParticle(r rune) bool { return particles()[string(r)] }
