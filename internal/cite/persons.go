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
	ours, theirs := plainHan(claim), plainHan(source)
	if len(ours) > maxDense || len(theirs) > 2*maxDense {
		return false
	}
	for i, r := range ours {
		if !surnames()[string(r)] || i+2 > len(ours) {
			continue
		}
		for n := 2; n <= 3 && i+n+2 <= len(ours); n++ {
			name, after := ours[i:i+n], string(ours[i+n:i+n+2])
			if strings.Contains(string(theirs), string(name)) {
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
