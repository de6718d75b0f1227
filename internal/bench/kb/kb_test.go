package kb

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/sharedtest"
	"nodest/nodest"
)

// TestKnowledgeQuality holds what searches in documents have reached.
func TestKnowledgeQuality(t *testing.T) {
	for _, set := range []struct {
		name  string
		every int    // of the questions: the whole takes too long under the race detector
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
			require.NoError(t, err)
		})
	}
}

// TestKnowledgeBenchPrints runs both measurements once in small sizes: their figures are not judged.
func TestKnowledgeBenchPrints(t *testing.T) {
	dir := t.TempDir()
	docs, queries, gate := filepath.Join(dir, "docs"), filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "gate.json")
	require.NoError(t, os.Mkdir(docs, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(docs, "harbour.md"), []byte("# Harbour\n\nShips that come in at night pay twice.\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(docs, "empty.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(queries, []byte(`{"id":"1","lang":"en","question":"What do ships pay at night?","answerable":true,"file":"harbour.md","quote":"pay twice"}`+"\n"), 0o600))
	require.NoError(t, os.WriteFile(gate, []byte(`{"fileRecall1":1,"byLanguage":{"en":{"quoteRecall5":1}}}`), 0o600))
	var out strings.Builder
	o := Options{Corpus: docs, Queries: queries, Gate: gate}
	require.NoError(t, Run(t.Context(), &out, o))
	for _, want := range []string{"2 files, 1 chunks; failed: map[empty_document:1]", "plain BM25", "search p50"} {
		require.Contains(t, out.String(), want)
	}
	out.Reset()
	require.NoError(t, Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopScripted, JSON: true}))
	var got struct{ Loop loopFigures }
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	require.Equal(t, []float64{1, 1, 0}, []float64{got.Loop.CitationHit, got.Loop.WithoutTools.CitationHit, got.Loop.RepeatedSearch})
	require.Error(t, Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: "live"}))
	require.NoError(t, os.WriteFile(gate, []byte(`{"crossLingual":{"mrr":0.5}}`), 0o600))
	require.ErrorContains(t, Run(t.Context(), &out, o), "crossLingual.mrr is 0.000, below 0.500")
	out.Reset()
	require.NoError(t, Run(t.Context(), &out, Options{Synthetic: 300, JSON: true}))
	require.Equal(t, 3, strings.Count(out.String(), `"p95Ms"`))
	require.Error(t, Run(t.Context(), &out, Options{}))
	require.Error(t, Run(t.Context(), &out, Options{Synthetic: 1, Mode: "psychic"}))
}

func TestAQuoteMayCrossTheBorderOfAChunk(t *testing.T) {
	quote := []rune(bareText("Ships that come in at night"))
	for text, want := range map[string]bool{
		"All ships that come\nin at night pay.": true, "… ships that come in": true, "that come in at night, they say": true, "in at night": false, "ships": false,
	} {
		require.Equal(t, want, hasMost(bareText(text), quote), text)
	}
}

func TestALoopMissesEachOfItsLimits(t *testing.T) {
	good := loopFigures{Model: scriptedModel, QuoteRecall10: 0.8, answerFigures: answerFigures{CitationHit: 0.6, FalseAnswer: 0.1}, RoundsP95: 4}
	require.NoError(t, good.gate())
	for name, change := range map[string]func(l *loopFigures){
		"citationHit": func(l *loopFigures) { l.CitationHit = 0.5 }, "repeatedSearch": func(l *loopFigures) { l.RepeatedSearch = 0.01 },
		"roundsP95": func(l *loopFigures) { l.RoundsP95 = 5 }, "falseAnswer": func(l *loopFigures) { l.FalseAnswer = 0.4 },
	} {
		l := good
		change(&l)
		require.ErrorContains(t, l.gate(), "loop."+name)
	}
	require.NoError(t, (*loopFigures)(nil).gate())
}

// models resolves to the reader, as a provider that is set up would.
type models struct{}

func (models) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{Generator: reader{}, Provider: "openai", Name: "reader-1"}, nil
}

func TestALiveModelAnswersAndIsNotJudged(t *testing.T) {
	dir := t.TempDir()
	docs, queries, gate := filepath.Join(dir, "docs"), filepath.Join(dir, "queries.jsonl"), filepath.Join(dir, "gate.json")
	require.NoError(t, os.Mkdir(docs, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(docs, "harbour.md"), []byte("# Harbour\n\nShips that come in at night pay twice.\n"), 0o600))
	require.NoError(t, os.WriteFile(queries, []byte(`{"id":"1","lang":"en","question":"Who counts the seagulls?","answerable":true,"file":"harbour.md","quote":"pay twice"}`+"\n"), 0o600))
	require.NoError(t, os.WriteFile(gate, []byte(`{}`), 0o600))
	var out strings.Builder
	require.NoError(t, Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopLive, Models: models{}, Gate: gate}))
	require.Contains(t, out.String(), "loop with openai:reader-1: 1 questions")
	require.Contains(t, out.String(), "with tools     citation hit 0.000")
	require.Error(t, Run(t.Context(), &out, Options{Corpus: docs, Queries: queries, Loop: LoopLive}))
}
