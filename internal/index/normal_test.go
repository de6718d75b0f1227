package index_test

import (
	"strings"
	"testing"

	"nodest/internal/index"
)

func TestTheNormalFormOfAQueryHasItsContentWords(t *testing.T) {
	for query, want := range map[string]string{
		"Who kept the lighthouse?":      "keep lighthous",
		"the lighthouse: who KEPT it":   "keep lighthous",
		"What is it?":                   "",
		"灯塔的看守是谁":                       "守是 是谁 灯塔 看守",
		"please find the lighthouse 灯塔": "lighthous 灯塔",
	} {
		got := strings.Join(index.NormalForm(query), " ")
		if got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}
