package lang

import (
	"testing"
	"time"

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
