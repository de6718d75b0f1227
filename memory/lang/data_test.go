package lang

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/lexicon"
	"nodest/internal/lexicon/lexicontest"
)

// Every rule has texts that it matches and texts that it nearly matches, and does so.
func TestRulesKeepToTheirExamples(t *testing.T) {
	for _, fault := range lexicontest.Faults(data) {
		t.Error(fault)
	}
}

// Every rule for days names a day in its examples.
func TestRulesForDaysNameDays(t *testing.T) {
	now := time.Date(2023, 5, 10, 12, 0, 0, 0, time.UTC)
	for _, language := range data.Languages() {
		for _, rule := range language.Rules {
			for _, text := range rule.Matches {
				named := true
				switch rule.Name {
				case "said-day":
					_, named = EventTime(text, now)
				case "asked-date", "asked-day":
					named = len(ReadQuery(text, Names{}, now).Days) > 0
				}
				if !named {
					t.Errorf("%s: %s: %q names no day", language.Name, rule.Name, text)
				}
			}
		}
	}
}

// A language that is written with spaces has the names that recall needs: its grammar, small talk, questions,
// months, days and times. The test tells what else a file lacks, which is what that language cannot do.
func TestALanguageHasWhatRecallNeeds(t *testing.T) {
	needed := strings.Fields("function weak proves-nothing proves-hardly proves-little small-talk asking asks-own sentence-words about-us " +
		"means-user means-character means-now seeks-number seeks-time seeks-place seeks-name " +
		"months weekdays weekday-names weeks units counts asked-date asked-day asking-the-past changed")
	all := map[string]bool{}
	names := func(language *lexicon.Language) map[string]bool {
		has := map[string]bool{}
		for _, rule := range language.Rules {
			has[rule.Name] = true
		}
		for name := range language.Words {
			has[name] = true
		}
		return has
	}
	for _, language := range data.Languages() {
		for name := range names(language) {
			all[name] = data.Asked[name]
		}
	}
	for _, language := range data.Languages() {
		has := names(language)
		var lacks []string
		for name, asked := range all {
			if asked && !has[name] {
				lacks = append(lacks, name)
			}
		}
		slices.Sort(lacks)
		t.Logf("%s lacks %s", language.Name, strings.Join(lacks, " "))
		for _, name := range needed {
			if has["function"] && !has[name] {
				t.Errorf("%s has no %s", language.Name, name)
			}
		}
	}
}

// The language of a text is told by a few words of its grammar; a word that is content in one language and
// grammar in another counts by that.
func TestTheLanguageOfAText(t *testing.T) {
	for text, want := range map[string]map[string]float32{
		"was war das denn":       {"war": 0, "das": 0},
		"the war was long":       {"war": 1},
		"war":                    {"war": 1},
		"mir brummt der schadel": {"der": 0, "schadel": provesHardly},
		"te toca a ti":           {"te": 0, "toca": provesHardly},
		"i like red and pie":     {"red": 1, "pie": 1},
		"zoe 77":                 {"zoe": 1, "77": ProvesLittle},
	} {
		in := tonguesOf(text)
		for term, proof := range want {
			if got := in.proof(term); in.join(term) != (proof == 0) || proof > 0 && got != proof {
				t.Errorf("%q: %q proves %v, and is grammar: %v", text, term, got, in.join(term))
			}
		}
	}
}
