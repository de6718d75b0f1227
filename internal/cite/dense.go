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
			if isFiller(chunks[i].text) || isFiller(chunks[k].text) {
				continue
			}
			if chunks[k].from-chunks[i].to > 24 || hasDigit(chunks[i].text) != hasDigit(chunks[k].text) || chunks[i].text == chunks[k].text {
				continue
			}
			turned := append([]chunk{chunks[k]}, chunks[i+1:k]...)
			turned = append(turned, chunks[i])
			at, end := followEach(theirs, turned)
			if at < 0 && !isFiller(chunks[k-1].text) && chunks[k-1].to == chunks[k].from { // what else stands between may stand elsewhere
				at, end = followEach(theirs, []chunk{chunks[k], chunks[k-1], chunks[i]})
			}
			if at < 0 {
				continue
			}
			alike := runeAt(ours, chunks[i].from-1) == runeAt(theirs, at-1) || runeAt(ours, chunks[k].to) == runeAt(theirs, end)
			if same, _ := followEach(theirs, chunks[i:k+1]); same < 0 && alike {
				return true
			}
		}
	}
	return tooForeign(claim, source)
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
		at, ok := start+len(first), true
		for k, c := range chunks[1:] {
			next := []rune(c.text)
			found := -1
			most := maxSwapGap
			if k > 0 && k < len(chunks)-2 {
				most = maxInnerGap
			}
			for gap := 0; gap <= most && at+gap+len(next) <= len(text); gap++ {
				if slices.Equal(text[at+gap:at+gap+len(next)], next) {
					found = at + gap + len(next)
					break
				}
			}
			if found < 0 {
				ok = false
				break
			}
			at = found
		}
		if ok {
			return start, at
		}
	}
	return -1, -1
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
	for i := range len(chunks) - 1 {
		subject, predicate := chunks[i], chunks[i+1]
		said := strings.TrimLeftFunc(predicate.text, isParticle)
		ends := strings.HasSuffix(said, "\n")
		said = strings.TrimSuffix(said, "\n")
		if n := utf8.RuneCountInString(said); subject.to != predicate.from || hasDigit(subject.text) || n < 3 || n < 5 && !ends {
			continue
		}
		foreign, own := 0, false
		for _, part := range parts {
			text := string(plainHan(part))
			before, _, found := strings.Cut(text, said)
			if !found {
				own = own || strings.Contains(text, subject.text)
				continue
			}
			if strings.HasSuffix(before, "他") || strings.HasSuffix(before, "她") || strings.HasSuffix(before, "它") {
				foreign = -1
				break
			}
			before = strings.TrimFunc(before, isParticle)
			if strings.Contains(text, subject.text) || utf8.RuneCountInString(before) < 2 || strings.Contains(claim, before) {
				foreign = -1
				break
			}
			foreign++
		}
		if foreign > 0 && own {
			return true
		}
	}
	return false
}

func isParticle(r rune) bool { return particles()[string(r)] }
