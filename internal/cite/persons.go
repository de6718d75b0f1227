package cite

import (
	"slices"
	"strings"
)

var surnames = data.Set("surnames")

// otherPerson reports whether a Chinese name of a text is another one in its source, between the same
// characters: 沈若梅去年曾 where the source has 沈若兰去年曾.
func otherPerson(claim, source string) bool {
	if !hasDense(claim) || !hasDense(source) {
		return false
	}
	ours, theirs := ended(claim), ended(source)
	if len(ours) > maxDense || len(theirs) > 2*maxDense {
		return false
	}
	for i, r := range ours {
		if !surnames()[string(r)] || i+2 > len(ours) {
			continue
		}
		for n := 2; n <= 3 && i+n < len(ours); n++ {
			name, after := ours[i:i+n], string(ours[i+n:min(len(ours), i+n+2)])
			if i := strings.IndexByte(after, '\n'); i >= 0 {
				after = after[:i+1]
			}
			if slices.Contains(name, '\n') || strings.Contains(string(theirs), string(name)) {
				break
			}
			if replaced(ours[max(0, i-2):i], name, after, theirs) {
				return true
			}
		}
	}
	return false
}

// replaced reports whether another name stands in a text between the characters before and behind one.
func replaced(before, name []rune, after string, text []rune) bool {
	behind := []rune(after)
	for at := 0; at+len(behind) <= len(text); at++ {
		if !slices.Equal(text[at:at+len(behind)], behind) {
			continue
		}
		for n := 2; n <= 3 && n <= at; n++ {
			other := text[at-n : at]
			if !surnames()[string(other[0])] {
				continue
			}
			same := other[0] == name[0]
			if start := at - n; same || len(before) == 2 && start >= 2 && slices.Equal(text[start-2:start], before) {
				return true
			}
		}
	}
	return false
}

// ended keeps the letters and digits of a text, and a line break for each end of a clause.
func ended(text string) []rune {
	var out []rune
	for part := range strings.FieldsFuncSeq(text, isClauseEnd) {
		out = append(append(out, plainHan(part)...), '\n')
	}
	return out
}

var prepositions = data.Set("prepositions")

// otherPlace reports whether a text has behind a preposition something that its source has nowhere, and
// the source something else, before the same characters: 从鹿特丹出发 for 从宁波出发.
func otherPlace(claim, source string) bool {
	if !hasDense(claim) || !hasDense(source) {
		return false
	}
	ours, theirs := ended(claim), ended(source)
	if len(ours) > maxDense || len(theirs) > 2*maxDense {
		return false
	}
	for i, r := range ours {
		if !prepositions()[string(r)] {
			continue
		}
		for n := 2; n <= 4 && i+1+n < len(ours); n++ {
			place, after := ours[i+1:i+1+n], ours[i+1+n:min(len(ours), i+3+n)]
			if slices.Contains(place, '\n') || hasPair(place, theirs) {
				break
			}
			if after[0] == '\n' {
				after = after[:1]
			}
			if instead(runeAt(ours, i-1), r, place, after, theirs) {
				return true
			}
		}
	}
	return false
}

// hasPair reports whether two neighbouring characters of some are in a text.
func hasPair(some, text []rune) bool {
	for i := range len(some) - 1 {
		if strings.Contains(string(text), string(some[i:i+2])) {
			return true
		}
	}
	return false
}

// instead reports whether a text has two to four characters between a preposition and others.
func instead(before, preposition rune, place, after, text []rune) bool {
	for i, r := range text {
		if r != preposition || after[0] == '\n' && (i == 0 || text[i-1] != before) {
			continue
		}
		for n := 2; n <= 4 && i+1+n+len(after) <= len(text); n++ {
			other := text[i+1 : i+1+n]
			if !slices.Contains(other, '\n') && !slices.ContainsFunc(other, func(r rune) bool { return slices.Contains(place, r) }) && slices.Equal(text[i+1+n:i+1+n+len(after)], after) {
				return true
			}
		}
	}
	return false
}

var contrastList = data.Words("contrasts")

// otherCharacter reports whether a character of a text is replaced in its source by one of the same kind,
// between the same characters: 南 for 北 in 连接北岛与.
func otherCharacter(claim, source string) bool {
	if !hasDense(claim) || !hasDense(source) {
		return false
	}
	ours, theirs := ended(claim), ended(source)
	if len(ours) > maxDense || len(theirs) > 2*maxDense {
		return false
	}
	for i := 2; i+1 < len(ours); i++ {
		if strings.Contains(string(theirs), string(ours[i-1:i+2])) {
			continue
		}
		for _, kind := range contrastList() {
			if strings.ContainsRune(kind, ours[i]) && standsFor(kind, ours[i-2:i+2], theirs) {
				return true
			}
		}
	}
	return false
}

// standsFor reports whether a text has, between the same characters, another one of a kind than the third
// of four.
func standsFor(kind string, four, text []rune) bool {
	for k := 2; k+1 < len(text); k++ {
		if text[k] != four[2] && strings.ContainsRune(kind, text[k]) && slices.Equal(text[k-2:k], four[:2]) && text[k+1] == four[3] {
			return true
		}
	}
	return false
}
