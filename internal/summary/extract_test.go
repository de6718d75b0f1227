package summary_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"nodest/internal/summary"
	"nodest/llm"
)

var updateSummaries = flag.Bool("update-summaries", false, "rewrite testdata/summary/*.want.txt")

// summaryCase is a file of testdata/summary.
type summaryCase struct {
	About  string
	Prompt bool   // compare the prompt instead of the summary by rule
	Zone   string // default UTC
	Length int
	Lines  []struct {
		Role llm.Role
		Name string
		Text string
		At   time.Time
	}
	Previous *summary.Summary
}

func (c *summaryCase) work(t *testing.T) summary.Work {
	t.Helper()
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		t.Fatal(err)
	}
	w := summary.Work{Length: c.Length, Location: zone, Previous: c.Previous}
	for i, l := range c.Lines {
		w.Lines = append(w.Lines, summary.ChatLine{MessageID: fmt.Sprint("m", i), Seq: int64(i + 1), Role: l.Role, Name: l.Name, Text: l.Text, At: l.At})
	}
	return w
}

// Every testdata/summary/*.json gives its .want.txt: the prompt of the model, or the
// summary by rule.
func TestSummaryFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/summary/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases found", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c summaryCase
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			got := summary.ExtractSummary(c.work(t))
			if !c.Prompt && utf8.RuneCountInString(got) > c.Length {
				t.Errorf("%d characters, want at most %d", utf8.RuneCountInString(got), c.Length)
			}
			if c.Prompt {
				got = firstPrompt(t, c.work(t))
			}
			compareText(t, strings.TrimSuffix(file, ".json")+".want.txt", got+"\n")
		})
	}
}

// firstPrompt is the first prompt sent to the model.
func firstPrompt(t *testing.T, w summary.Work) (prompt string) {
	t.Helper()
	model := llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
		prompt = cmp.Or(prompt, p.Text) // later prompts are repairs
		return goodSummary(100), nil
	})
	if _, err := summary.Write(t.Context(), model, w); err != nil {
		t.Fatal(err)
	}
	return prompt
}

func compareText(t *testing.T, file, got string) {
	t.Helper()
	if *updateSummaries {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s\n--- got\n%s--- want\n%s", file, got, want)
	}
}

func TestExtractiveSummaryIsDeterministic(t *testing.T) {
	words := strings.Fields("river mill Anna promised Friday ferry 300 crowns lamp storm letter 渡口 妹妹 答应 银子 雪参 afraid never house Ben")
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		lines := chatLines(30, "")
		for i := range lines {
			for range 5 + random.IntN(40) {
				lines[i].Text += words[random.IntN(len(words))] + []string{" ", " ", ", ", ". ", "。", "\n"}[random.IntN(6)]
			}
		}
		w := summary.Work{Lines: lines, Rebuild: true, Length: 500 + random.IntN(1500)}
		first := summary.ExtractSummary(w)
		if n := utf8.RuneCountInString(first); n == 0 || n > w.Length {
			t.Errorf("seed %d: %d characters of %d", seed, n, w.Length)
		}
		for range 3 {
			if again := summary.ExtractSummary(w); again != first {
				t.Fatalf("seed %d:\n%s\nthen\n%s", seed, first, again)
			}
		}
		checkQuotes(t, first, lines)
	}
}

// checkQuotes reports lines that were not said or are out of order.
func checkQuotes(t *testing.T, text string, lines []summary.ChatLine) {
	t.Helper()
	at := 0
	for line := range strings.Lines(text) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		at += max(0, slices.IndexFunc(lines[at:], func(l summary.ChatLine) bool { return l.Name == name && strings.Contains(l.Text, said) }))
		if lines[at].Name != name || !strings.Contains(lines[at].Text, said) {
			t.Errorf("%q was not said here", line)
		}
	}
}

func TestExtractiveSummaryOfAwkwardTexts(t *testing.T) {
	tests := []struct{ name, text string }{
		{"one word of a thousand letters", strings.Repeat("字", 1000)},
		{"no sentence ends at all", strings.Repeat("and then and ", 200)},
		{"nothing but short answers", "嗯。"},
		{"nothing but signs", "……！！！"},
		{"broken UTF-8", strings.Repeat("ab\xff\xfe cd. ", 30)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := summary.ExtractSummary(summary.Work{Lines: chatLines(20, tt.text), Rebuild: true, Length: 500})
			if n := utf8.RuneCountInString(got); n == 0 || n > 500 {
				t.Errorf("%d characters: %q", n, got)
			}
		})
	}
	if got := summary.ExtractSummary(summary.Work{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestFallbackOfARebuildKeepsAGoodSummary(t *testing.T) {
	lines := eventfulChat(20)
	previous := summaryOf(lines, 3, 10, "Ilse lives in Aldern now and keeps forty bees.")
	w := summary.Work{Lines: lines[3:17], Known: 8, Previous: previous, Rebuild: true, Length: 500}
	if got := summary.ExtractSummary(w); !strings.HasPrefix(got, previous.Text+"\n") || strings.Contains(got, "day 5 ") {
		t.Errorf("a rebuild for its age: %s", got)
	}
	previous.Stale = true
	if got := summary.ExtractSummary(w); strings.Contains(got, "Ilse") {
		t.Errorf("a rebuild of a stale one: %s", got)
	}
}
