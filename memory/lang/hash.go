package lang

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ContentHash is equal for texts that differ only in case, width, spaces and punctuation. A
// sign between two digits counts: 3.5 is not 35.
func ContentHash(text string) string {
	folded := []rune(strings.ToLower(norm.NFKC.String(text)))
	kept := make([]rune, 0, len(folded))
	for i, r := range folded {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
		case unicode.IsPunct(r) && !betweenDigits(folded, i):
		default:
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 { // nothing but signs: they are the text
		kept = folded
	}
	sum := sha256.Sum256([]byte(string(kept)))
	return base64.RawStdEncoding.EncodeToString(sum[:8])
}

func betweenDigits(text []rune, i int) bool {
	return i > 0 && i+1 < len(text) && unicode.IsDigit(text[i-1]) && unicode.IsDigit(text[i+1])
}
