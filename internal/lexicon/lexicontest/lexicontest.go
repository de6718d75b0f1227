// Package lexicontest holds the rules of a lexicon to their examples.
package lexicontest

import (
	"fmt"
	"slices"

	"nodest/internal/lexicon"
)

// fewest is how many texts each rule must match, and how many it must miss.
const fewest = 2

// Faults returns what is wrong with a lexicon: rules without examples or against them, words that
// are there twice, names that nobody asks for or nobody has.
func Faults(l *lexicon.Lexicon) (faults []string) {
	fault := func(format string, of ...any) { faults = append(faults, fmt.Sprintf(format, of...)) }
	there := map[string]bool{}
	for _, language := range l.Languages() {
		for _, s := range language.Rules {
			there[s.Name] = true
			for _, wrong := range ofRule(s) {
				fault("%s: rule %s: %s", language.Name, s.Name, wrong)
			}
		}
		for name, words := range language.Words {
			if !language.Put[name] || l.Asked[name] {
				there[name] = true
			}
			if len(words) == 0 {
				fault("%s: %s has no words", language.Name, name)
			}
			seen := map[string]bool{}
			for _, w := range words {
				if seen[w] && w != nothing {
					fault("%s: %s has %q twice", language.Name, name, w)
				}
				seen[w] = true
			}
		}
	}
	for name := range there {
		if !l.Asked[name] {
			fault("nobody asks for %s", name)
		}
	}
	for name := range l.Asked {
		if !there[name] {
			fault("no language has %s", name)
		}
	}
	slices.Sort(faults)
	return faults
}

// nothing keeps a rank free in a list whose order counts.
const nothing = "-"

func ofRule(s *lexicon.Source) (faults []string) {
	form, err := s.Compile()
	if err != nil {
		return []string{err.Error()}
	}
	if len(s.Matches) < fewest || len(s.Misses) < fewest {
		faults = append(faults, fmt.Sprintf("%d texts that match and %d that do not are too few", len(s.Matches), len(s.Misses)))
	}
	for _, text := range s.Matches {
		if !form.MatchString(text) {
			faults = append(faults, fmt.Sprintf("misses %q", text))
		}
	}
	for _, text := range s.Misses {
		if form.MatchString(text) {
			faults = append(faults, fmt.Sprintf("matches %q", text))
		}
	}
	return faults
}
