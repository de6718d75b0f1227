package claim

import (
	"testing"

	"nodest/internal/lexicon/lexicontest"
)

func TestRulesKeepToTheirExamples(t *testing.T) {
	for _, fault := range lexicontest.Faults(data) {
		t.Error(fault)
	}
}
