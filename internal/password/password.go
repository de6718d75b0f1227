// Package password says which passwords may be set. It stores and compares none.
package password

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/fault"
)

// Bounds of a password, in code points.
const (
	shortest = 8
	longest  = 200
)

// Normal is the form in which a password is hashed (NFC): keyboards of different devices write
// the same letter in different code points.
func Normal(password string) string { return norm.NFC.String(password) }

// Check returns fault.Invalid for the field password, with the code range, encoding, blank or common,
// if the user of that name must not set the password.
func Check(password, username string) error {
	password = Normal(password)
	n := utf8.RuneCountInString(password)
	switch {
	case n < shortest || n > longest:
		return fault.InvalidField("password", "range", "must be %d to %d characters, not %d", shortest, longest, n)
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return fault.InvalidField("password", "encoding", "must not contain control characters")
	case !strings.ContainsFunc(password, visible):
		return fault.InvalidField("password", "blank", "must not consist of blanks only")
	case common(strings.ToLower(password), strings.ToLower(Normal(strings.TrimSpace(username)))):
		return fault.InvalidField("password", "common", "is one of those that are guessed first; choose another, such as three or four unrelated words")
	}
	return nil
}

func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

//go:embed common.txt
var commonText string

var commonWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(commonText) {
		words[word] = true
	}
	return words
})

// common reports whether a password is guessed first: a frequent one or the user's name, also with a
// few characters around it or signs in place of letters, the same few characters again and again, or a
// row of the alphabet.
func common(password, username string) bool {
	known := func(s string) bool { return s == username && s != "" || commonWords()[s] }
	for _, text := range []string{password, letters.Replace(password)} {
		if isRow(text) || known(unit(text)) || utf8.RuneCountInString(unit(text)) <= fewest {
			return true
		}
		if within([]rune(text), known) {
			return true
		}
	}
	return false
}

// fewest is how many characters are not enough if the rest repeats them.
const fewest = 3

// letters are those that signs and digits are often written for.
var letters = strings.NewReplacer("@", "a", "4", "a", "3", "e", "1", "i", "!", "i", "0", "o", "$", "s", "5", "s", "7", "t")

// around is how many characters before and behind a frequent password make no other password of it.
const around = 4

// within reports whether text is known without up to around characters at its ends, fewer than are left.
func within(text []rune, known func(string) bool) bool {
	for cut := 0; cut <= around && 2*cut < len(text); cut++ {
		for from := range cut + 1 {
			core := string(text[from : len(text)-cut+from])
			if known(core) || known(letters.Replace(core)) {
				return true
			}
		}
	}
	return false
}

// unit is the shortest text that s repeats; s itself if it repeats none.
func unit(s string) string {
	if at := strings.Index((s + s)[1:], s); at >= 0 {
		return s[:at+1]
	}
	return s
}

// isRow reports whether each character of s is the next one, or the one before, of the alphabet.
func isRow(s string) bool {
	text := []rune(s)
	step := text[1] - text[0]
	for i := range text[1:] {
		if text[i+1]-text[i] != step {
			return false
		}
	}
	return step >= -1 && step <= 1
}
