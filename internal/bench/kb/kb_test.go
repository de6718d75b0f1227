package kb

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"nodest/internal/sharedtest"
	"nodest/nodest"
)

// TestKnowledgeQuality holds what searches in documents have reached.
func TestKnowledgeQuality(t *testing.T) {
	for _, set := range []struct {
		name  string
		every int    // only every n-th question is asked: the whole takes too long under the race detector
		loop  string // the model that answers every second question; "" = none
	}{{"kb", 1, LoopScripted}, {"cmrc", 12, ""}, {"xquad", 5, ""}} {
		t.Run(set.name, func(t *testing.T) {
			folder := sharedtest.Require(t, "data/"+set.name)
			var out strings.Builder
			err := Run(t.Context(), &out, Options{
				Corpus: filepath.Join(folder, "docs"), Queries: filepath.Join(folder, "queries.jsonl"),
				Every: set.every, Loop: set.loop, LoopEvery: 2, Gate: filepath.Join("testdata", set.name+"-gate.json"),
			})
			t.Log(out.String())
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestKnowledgeBenchPrints runs both measurements once in small sizes: their figures are not judged.
func TestKnowledgeBenchPrints(t *testing.T) {
	dir := t.TempDir()
	docs, queries, gate := filepath.Join(dir, "docs"), filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "gate.json")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "harbour.md"), []byte("# Harbour\n\nShips that come in at night pay twice.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "empty.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(queries, []byte(`{"id":"1","lang":"en","question":"What do ships pay at night?","answerable":true,"file":"harbour.md","quote":"pay twice"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, []byte(`{"fileRecall1":1,"byLanguage":{"en":{"quoteRecall5":1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	o := Options{Corpus: docs, Queries: queries, Gate: gate}
	if err := Run(t.Context(), &out, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 files, 1 chunks; failed: map[empty_document:1]", "plain BM25", "search p50"} {
		if got := out.String(); !strings.Contains(got, want) {
			t.Fatalf("out.String() is %q, want it with %q", got, want)
		}
	}
	out.Reset()
	if err := Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopScripted, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Loop loopFigures }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if found, want := ([]float64{got.Loop.CitationHit, got.Loop.WithoutTools.CitationHit, got.Loop.RepeatedSearch}), ([]float64{1, 1, 0}); !reflect.DeepEqual(found, want) {
		t.Fatalf("got %+v, want %+v", found, want)
	}
	if err := Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: "live"}); err == nil {
		t.Fatal("got no error, want one")
	}
	if err := os.WriteFile(gate, []byte(`{"crossLingual":{"mrr":0.5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), &out, o); err == nil || !strings.Contains(err.Error(), "crossLingual.mrr is 0.000, below 0.500") {
		t.Fatalf("got error %v, want one with %q", err, "crossLingual.mrr is 0.000, below 0.500")
	}
	out.Reset()
	if err := Run(t.Context(), &out, Options{Synthetic: 300, JSON: true}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), `"p95Ms"`); got != 3 {
		t.Fatalf("got %d, want %d", got, 3)
	}
	if err := Run(t.Context(), &out, Options{}); err == nil {
		t.Fatal("got no error, want one")
	}
	if err := Run(t.Context(), &out, Options{Synthetic: 1, Mode: "psychic"}); err == nil {
		t.Fatal("got no error, want one")
	}
}

func TestAQuoteMayCrossTheBorderOfAChunk(t *testing.T) {
	quote := []rune(bareText("Ships that come in at night"))
	for text, want := range map[string]bool{
		"All ships that come\nin at night pay.": true, "… ships that come in": true, "that come in at night, they say": true, "in at night": false, "ships": false,
	} {
		if got := hasMost(bareText(text), quote); got != want {
			t.Fatalf("%s: hasMost(bareText(text), quote) is %v, want %v", text, got, want)
		}
	}
}

func TestALoopMissesEachOfItsLimits(t *testing.T) {
	good := loopFigures{Model: scriptedModel, QuoteRecall10: 0.8, answerFigures: answerFigures{CitationHit: 0.6, FalseAnswer: 0.1}, RoundsP95: 4}
	if err := good.gate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l *loopFigures){
		"citationHit": func(l *loopFigures) { l.CitationHit = 0.5 }, "repeatedSearch": func(l *loopFigures) { l.RepeatedSearch = 0.01 },
		"roundsP95": func(l *loopFigures) { l.RoundsP95 = 5 }, "falseAnswer": func(l *loopFigures) { l.FalseAnswer = 0.4 },
	} {
		l := good
		change(&l)
		if err := l.gate(); err == nil || !strings.Contains(err.Error(), "loop."+name) {
			t.Fatalf("got error %v, want one with %q", err, "loop."+name)
		}
	}
	if err := (*loopFigures)(nil).gate(); err != nil {
		t.Fatal(err)
	}
}

// models resolves to the reader, as a provider that is set up would.
type models struct{}

func (models) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{Generator: reader{}, Provider: "openai", Name: "reader-1"}, nil
}

func TestALiveModelAnswersAndIsNotJudged(t *testing.T) {
	dir := t.TempDir()
	docs, queries, gate := filepath.Join(dir, "docs"), filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "gate.json")
	if err := os.Mkdir(docs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "harbour.md"), []byte("# Harbour\n\nShips that come in at night pay twice.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(queries, []byte(`{"id":"1","lang":"en","question":"Who counts the seagulls?","answerable":true,"file":"harbour.md","quote":"pay twice"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopLive, Models: models{}, Gate: gate}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "loop with openai:reader-1: 1 questions") {
		t.Fatalf("out.String() is %q, want it with %q", got, "loop with openai:reader-1: 1 questions")
	}
	if got := out.String(); !strings.Contains(got, "with tools     citation hit 0.000") {
		t.Fatalf("out.String() is %q, want it with %q", got, "with tools     citation hit 0.000")
	}
	if err := Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopLive}); err == nil {
		t.Fatal("got no error, want one")
	}
}
