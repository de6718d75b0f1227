package worldinfo

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/framework/jsregex"
	"nodest/framework/keyscan"
)

func TestTraitsOfPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		`/dragon/`:               "dragon local",
		`/Dragon/i`:              "dragon local",
		`/dragons?|wyrm/`:        "dragon wyrm local",
		`/\b(?:the )?dragon\b/i`: "dragon local",
		`/^dragon/`:              "dragon",
		`/dragon$/m`:             "dragon",
		`/dra.*gon/`:             "dra local",
		`/dra[\s\S]*gon/`:        "dra",
		`/dra.*gon/s`:            "dra",
		`/dra\s+gon/`:            "dra",
		`/[a-z]+/`:               "local",
		`/[^a]/`:                 "",
		`/(?=dragon)/`:           "",
		`/(a)\1/`:                "",
		`/dragon/y`:              "dragon",
		`/\u0041/`:               "",
		`/[]a/`:                  "",
		`/龙王/i`:                  "龙王 local",
		`/ΣΟΣ/`:                  "ο local",
		`/İz/i`:                  "z local",
		`/sz/iu`:                 "z local",
		`/(?:dragon)*/`:          "local",
		`/(dragon){2,}/`:         "dragon local",
		"/a\x01b/":               "a local",
	} {
		source, flags, ok := jsregex.Key(pattern)
		if !ok {
			t.Fatal(pattern)
		}
		tr := traitsOf(source, flags)
		got := slices.Clone(tr.literals)
		if tr.local {
			got = append(got, "local")
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", pattern, s, want)
		}
	}
}

// A pattern that is found in a text has a literal in it; a local one is found in one of its lines.
func TestTraitsHoldForRandomPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "b", "K", "s", "σ", "Σ", "İ", "i", "é", "龙", ".", `\w`, `\s`, `[ab]`, `[^k]`, "(?:a|b)", "(b)", "?", "*", "+", "|", "{2}", "^", "$", `\b`, `\x01`, `\n`}
	letters := []string{"a", "b", "k", "K", "\u212a", "s", "ſ", "S", "σ", "ς", "Σ", "İ", "i", "é", "É", "龙", " ", "\n\x01"}
	known := 0
	for range 20_000 {
		source, text := "", "\x01"
		for range 1 + r.IntN(5) {
			source += pieces[r.IntN(len(pieces))]
		}
		for range r.IntN(8) {
			text += letters[r.IntN(len(letters))]
		}
		flags := []string{"", "i", "iu", "m", "s"}[r.IntN(5)]
		p, err := jsregex.Compile(source, flags, time.Minute)
		if err != nil {
			continue
		}
		tr := traitsOf(source, flags)
		found, _ := p.Matches([]rune(text))
		folded := strings.ToLower(keyscan.Fold(text))
		if found && tr.literals != nil {
			known++
			if !slices.ContainsFunc(tr.literals, func(l string) bool { return strings.Contains(folded, l) }) {
				t.Errorf("/%s/%s is in %q, which has none of %q", source, flags, text, tr.literals)
			}
		}
		inLine := slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			in, _ := p.Matches([]rune(line))
			return in
		})
		if tr.local && found != inLine {
			t.Errorf("/%s/%s in %q: %v, in a line of it %v", source, flags, text, found, inLine)
		}
	}
	t.Logf("%d matches of patterns with known literals", known)
}
