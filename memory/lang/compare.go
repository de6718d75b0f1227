package lang

import (
	"regexp"
	"slices"
	"strings"
)

// HoldsWords reports whether a has every word of b, which in short texts hardly shows in cosines.
func HoldsWords(a, b string) bool {
	s := SaidIn(a)
	return !slices.ContainsFunc(PiecesOf(b), func(p Piece) bool { return p.Class == "" && s.Covers(p) == 0 })
}

// Differ reports whether two texts name different numbers or names, or one denies the other.
func Differ(a, b string) bool {
	return Feeling(a) != Feeling(b) || negated(a) != negated(b) ||
		apart(numbersIn(a), numbersIn(b)) || apart(namesIn(a), namesIn(b))
}

// Opposite reports whether two texts express different feelings about the same thing.
func Opposite(a, b string) bool {
	rest := func(text string) string {
		var b strings.Builder
		for _, p := range PiecesOf(text) {
			if p.Class != "like" && p.Class != "hate" && p.Class != "not" {
				b.WriteString(p.word + p.run + p.Class + " ")
			}
		}
		return b.String()
	}
	return (Feeling(a) != Feeling(b) || negated(a) != negated(b)) && rest(a) != "" && rest(a) == rest(b)
}

// Feeling is 1 for liking, -1 for disliking.
func Feeling(text string) int {
	f := 0
	for _, p := range PiecesOf(text) {
		switch p.Class {
		case "like":
			f = max(f, 0) + 1
		case "hate":
			f = -1
		}
	}
	return min(f, 1)
}

func apart(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	within := func(a, b []string) bool {
		return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
	}
	return !within(a, b) && !within(b, a)
}

func numbersIn(text string) []string {
	var out []string
	for _, p := range PiecesOf(text) {
		if signsOfNumber.MatchString(p.word) {
			out = append(out, p.word)
		}
	}
	return out
}

var capitalised = regexp.MustCompile(`\p{Lu}[\p{L}'’-]*`)

func namesIn(text string) []string {
	var out []string
	for _, at := range capitalised.FindAllStringIndex(text, -1) {
		if at[0] > 0 {
			out = append(out, strings.ToLower(text[at[0]:at[1]]))
		}
	}
	return out
}

// PropertyOf names the property that a statement gives; "" = none.
func PropertyOf(text string) string {
	if p := SlotsOf(text).Property(); p != "" {
		return p
	}
	if oneIs.MatchString(text) {
		return "is"
	}
	return ""
}

var oneIs = data.Rule("one-is")
