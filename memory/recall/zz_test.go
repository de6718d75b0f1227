package recall

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"nodest/internal/index"
	"nodest/memory/lang"
)

func TestZZ(t *testing.T) {
	l := os.Getenv("ZZ")
	noise := "../../../shared/data/locomo/dev.json"
	if l == "zh" {
		noise = "../../../shared/data/madial/madial_zh.jsonl"
	}
	var texts []string
	f, _ := os.Open(noise)
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() && len(texts) < 480 {
		var x struct{ T, X string }
		json.Unmarshal(s.Bytes(), &x)
		if x.T == "turn" {
			texts = append(texts, x.X)
		}
	}
	type c struct{ line, ask, answer string }
	var cases []c
	name := os.Getenv("ZZFILE")
	if name == "" {
		name = "../../internal/meaning/testdata/blind_" + l + ".txt"
	}
	data, _ := os.ReadFile(name)
	kind := ""
	for _, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(line, "=") {
			kind = line[2:]
			continue
		}
		if kind != "paraphrase" || !strings.Contains(line, ">>") {
			continue
		}
		a, b, _ := strings.Cut(line, " >> ")
		_, a, _ = strings.Cut(a, "] ")
		b, d, _ := strings.Cut(b, " == ")
		cases = append(cases, c{a, b, d})
		texts = append(texts, a)
	}
	x := index.New()
	var rows []index.Row
	for i, text := range texts {
		u := Unit{ID: fmt.Sprint(i), Layer: Exchange, Conversation: "c", Session: 1 + i/20, Order: int64(i), Speaker: lang.RoleUser, Text: text, Terms: index.Join(text)}
		rows = append(rows, u.Row())
	}
	x.Apply(t.Context(), rows, nil)
	ranks := map[int]int{}
	for i, c := range cases {
		q := Query{Text: c.ask, Now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
		read := q.reading()
		var m index.Match
		x.View(func(v index.View) error { return v.Match(t.Context(), read.Terms, &m) })
		at := len(texts) - len(cases) + i
		rank, best := 1, 0
		for r := range m.Scores[:len(texts)] {
			if m.Scores[r].Evidence > m.Scores[at].Evidence {
				rank++
			}
			if m.Scores[r].Evidence > m.Scores[best].Evidence {
				best = r
			}
		}
		has := func(r int) (s string) {
			for _, w := range read.Terms {
				if strings.Contains(" "+index.Join(texts[r])+" ", " "+w.Text+" ") {
					s += fmt.Sprintf(" %s:%.2f", w.Text, w.Evidence)
				}
			}
			return s
		}
		own := ""
		for _, w := range read.Terms {
			if !w.Extra {
				own += fmt.Sprintf(" %s:%.2f", w.Text, w.Evidence)
			}
		}
		ranks[min(rank, 6)]++
		fmt.Printf("%d ev %.2f of %.2f (best %.2f) | %s [%s]\n     = %s [%s]\n", rank, m.Scores[at].Evidence, m.Asked, m.Scores[best].Evidence, c.ask, own, c.line, has(at))
		if rank > 1 {
			fmt.Printf("     # %s [%s]\n", texts[best], has(best))
		}
	}
	fmt.Println("ranks", ranks)
}
