package intent

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
)

// line is a message of a language, and whether it needs a search.
type line struct {
	Need       int
	Lang, Text string
	Names      []string
}

// TestIntentOfLanguages prints precision, recall and F1 per language: of our own lines, and of the
// messages in the folder NODEST_INTENT.
func TestIntentOfLanguages(t *testing.T) {
	file, err := os.Open("testdata/languages.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var halves [2][]line
	n := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		label, rest, _ := strings.Cut(lines.Text(), " ")
		lang, text, _ := strings.Cut(rest, " ")
		if label != "+" && label != "-" {
			continue
		}
		l := line{Lang: lang, Text: text}
		if label == "+" {
			l.Need = 1
		}
		halves[n[lang]%2] = append(halves[n[lang]%2], l)
		n[lang]++
	}
	for name, of := range map[string][]line{"development": halves[0], "held out": halves[1]} {
		t.Run(name, func(t *testing.T) { qualityOf(t, of, name == "development", 0.88) })
	}
	t.Run("shared", func(t *testing.T) {
		var all []line
		if err := json.Unmarshal(sharedtest.Read(t, "data/intent/messages.json"), &all); err != nil {
			t.Fatal(err)
		}
		qualityOf(t, all, false, 0.92)
	})
}

// qualityOf logs how lines are judged, and those that are judged wrongly if tell says so.
func qualityOf(t *testing.T, all []line, tell bool, floor float64) {
	t.Helper()
	rows := map[string]*[3]float64{} // found, wrongly searched, missed
	for _, l := range all {
		d := Better(l.Text, Options{Names: l.Names})
		for _, name := range []string{l.Lang, "all"} {
			if rows[name] == nil {
				rows[name] = &[3]float64{}
			}
			switch {
			case d.Search && l.Need == 1:
				rows[name][0]++
			case d.Search:
				rows[name][1]++
			case l.Need == 1:
				rows[name][2]++
			}
		}
		if tell && d.Search != (l.Need == 1) {
			t.Logf("%s, want %d, got %s: %s", l.Lang, l.Need, d.Reason, l.Text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		precision, recall := r[0]/max(r[0]+r[1], 1), r[0]/max(r[0]+r[2], 1)
		f1 := 2 * precision * recall / max(precision+recall, 1e-9)
		t.Logf("%-4s precision %.2f, recall %.2f, F1 %.2f", name, precision, recall, f1)
		if name == "all" && f1 < floor {
			t.Errorf("F1 is %.2f, want at least %.2f", f1, floor)
		}
	}
}
