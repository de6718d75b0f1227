package summary_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"nodest/internal/sharedtest"
	"nodest/internal/summary"
	"nodest/llm"
)

// plantedFact is a line of testdata/planted.
type plantedFact struct {
	user bool
	text string
	left []string // that a summary must still say, in one line
}

// plantedSets reads the sets of a language: 20 facts each.
func plantedSets(t *testing.T, lang string) (names []string, sets map[string][]plantedFact) {
	t.Helper()
	data, err := os.ReadFile("testdata/planted/" + lang + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	sets = map[string][]plantedFact{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "= "); ok {
			names = append(names, name)
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		said, left, _ := strings.Cut(line, " >> ")
		set := names[len(names)-1]
		sets[set] = append(sets[set], plantedFact{said[0] == 'u', said[2:], strings.Split(left, "&")})
	}
	return names, sets
}

// chatter are lines of a data set that people said, in its order.
func chatter(t *testing.T, file string, from, n int) (lines []summary.ChatLine) {
	t.Helper()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	first := ""
	for line := range bytes.Lines(sharedtest.Read(t, "data/"+file)) {
		var said struct{ T, Sp, X, Q string }
		if json.Unmarshal(line, &said) != nil || said.T != "turn" && !strings.Contains(file, "madial") || said.X == "" && said.Q == "" {
			continue
		}
		if from--; from >= 0 {
			continue
		}
		l := summary.ChatLine{Role: llm.User, Text: said.X + said.Q, At: at}
		if first == "" {
			first = said.Sp
		}
		if said.Sp != first || said.Sp == "" && len(lines)%2 == 1 {
			l.Role = llm.Assistant
		}
		if l.Name = "Ann"; l.Role == llm.Assistant {
			l.Name = "Mira"
		}
		at = at.Add(time.Hour)
		if lines = append(lines, l); len(lines) == n {
			break
		}
	}
	return lines
}

// planted puts facts between lines, at even distances.
func planted(lines []summary.ChatLine, facts []plantedFact) (all []summary.ChatLine) {
	every := len(lines) / len(facts)
	for i, l := range lines {
		all = append(all, l)
		if n := i / every; i%every == every/2 && n < len(facts) {
			f := summary.ChatLine{Role: llm.User, Name: "Ann", Text: facts[n].text, At: l.At}
			if !facts[n].user {
				f.Role, f.Name = llm.Assistant, "Mira"
			}
			all = append(all, f)
		}
	}
	for i := range all {
		all[i].MessageID, all[i].Seq = fmt.Sprint("m", i), int64(i)
	}
	return all
}

// kept are the facts that a summary still says.
func kept(text string, facts []plantedFact) (n int, lost []string) {
	for _, f := range facts {
		found := false
		for line := range strings.Lines(text) {
			all := true
			for _, part := range f.left {
				all = all && strings.Contains(strings.ToLower(line), strings.ToLower(part))
			}
			found = found || all
		}
		if found {
			n++
		} else {
			lost = append(lost, f.text)
		}
	}
	return n, lost
}

// leastKept of twenty facts are kept in any chatter, and meanKept on average.
const (
	leastKept = 11
	meanKept  = 14
)

// A summary by rule of 1,000 characters keeps most of twenty facts in real chatter: what is owed and promised,
// appointments, numbers, names, decisions and addresses come before small talk. It prints how many.
func TestPlantedFactsSurvive(t *testing.T) {
	for _, tt := range []struct {
		lang, file string
		from, n    int
	}{
		{"en", "locomo/dev.json", 0, 60}, {"en", "locomo/dev.json", 0, 120}, {"en", "locomo/dev.json", 900, 120}, {"en", "locomo/dev.json", 2000, 400}, {"en", "madial/madial_en.jsonl", 0, 120},
		{"zh", "madial/madial_zh.jsonl", 0, 60}, {"zh", "madial/madial_zh.jsonl", 0, 200}, {"zh", "madial/madial_zh_context.jsonl", 120, 120},
		{"es", "locomo/dev.json", 0, 120}, {"de", "locomo/dev.json", 0, 120}, {"ja", "locomo/dev.json", 0, 120},
	} {
		sum, runs := 0, 0
		names, sets := plantedSets(t, tt.lang)
		for _, name := range names {
			lines := planted(chatter(t, tt.file, tt.from, tt.n), sets[name])
			text := summary.ExtractSummary(summary.Work{Lines: lines, Rebuild: true, Length: 1000})
			n, lost := kept(text, sets[name])
			sum, runs = sum+n, runs+1
			if n < leastKept {
				t.Errorf("%s, %s: %d are kept, want %d", tt.lang, name, n, leastKept)
			}
			t.Logf("%s, %d lines of %s from %d, set %s: %d of %d", tt.lang, tt.n, tt.file, tt.from, name, n, len(sets[name]))
			if name == os.Getenv("SHOW") {
				t.Logf("lost:\n%s\n---\n%s", strings.Join(lost, "\n"), text)
			}
		}
		if sum < meanKept*runs {
			t.Errorf("%s, %s: %d of %d sets of twenty, want %d on average", tt.lang, tt.file, sum, runs, meanKept)
		}
	}
}
