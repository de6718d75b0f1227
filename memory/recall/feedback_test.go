package recall_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/index"
	"nodest/memory/recall"
)

// records answers with what it has.
func records(of map[string]feedback.Record) func(context.Context, []string) (map[string]feedback.Record, error) {
	return func(context.Context, []string) (map[string]feedback.Record, error) { return of, nil }
}

func voted(n int, s feedback.Status) feedback.Record {
	r := feedback.Record{Shown: true}
	for i := range n {
		r.Votes = append(r.Votes, feedback.Vote{Status: s, At: noon.Add(-time.Duration(i) * time.Hour)})
	}
	return r
}

// plums are facts of about one rank, with one that has nothing to do with them.
func plums(t *testing.T, n int) *index.Index {
	t.Helper()
	units := []recall.Unit{fact("other", "The harbour is closed in winter.", nil)}
	for i := range n {
		units = append(units, fact(fmt.Sprintf("p%02d", i), fmt.Sprintf("Ann likes plums with %s.", []string{
			"cinnamon", "almonds", "vanilla", "honey", "ginger", "cream", "pepper", "lemon", "cardamom", "butter", "mint", "salt", "rum", "oats",
		}[i]), nil))
	}
	return indexOf(t, units...)
}

const plumQuestion = "How does Ann like her plums?"

func allShown(n int) map[string]feedback.Record {
	of := map[string]feedback.Record{}
	for i := range n {
		of[fmt.Sprintf("p%02d", i)] = feedback.Record{Shown: true}
	}
	return of
}

func TestWithoutVotesNothingMovesByADigit(t *testing.T) {
	t.Parallel()
	for _, x := range []*index.Index{indexOf(t, sampleUnits...), plums(t, 14)} {
		for _, q := range []string{plumQuestion, "What did Ann paint at the lake?", "How many cats does Ann's sister have?", "我最喜欢喝什么茶？", "Good morning!"} {
			for _, mode := range []recall.Mode{recall.Prompt, recall.Search} {
				want := find(t, x, recall.Query{Text: q, Mode: mode})
				for name, of := range map[string]map[string]feedback.Record{"nothing known": nil, "all shown": allShown(14)} {
					got := find(t, x, recall.Query{Text: q, Mode: mode, Records: records(of)})
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %s: %v, want %v", q, name, foundIDs(got), foundIDs(want))
					}
				}
			}
		}
	}
}

func TestEvaluationsMoveAHitAndTheScoreSaysBecauseOfWhat(t *testing.T) {
	t.Parallel()
	x := plums(t, 6)
	plain := find(t, x, recall.Query{Text: plumQuestion})
	last, first := plain[len(plain)-1], plain[0]
	got := find(t, x, recall.Query{Text: plumQuestion, Records: records(map[string]feedback.Record{
		last.ID: voted(6, feedback.Helpful), first.ID: voted(6, feedback.Harmful),
	})})
	if got[0].ID != last.ID || got[len(got)-1].ID != first.ID {
		t.Errorf("%v, before %v", foundIDs(got), foundIDs(plain))
	}
	for _, h := range got {
		before := plain[slices.IndexFunc(plain, func(p recall.Hit) bool { return p.ID == h.ID })].Score
		factor := h.Score / before
		if factor < feedback.Least-1e-6 || factor > feedback.Most+1e-6 {
			t.Errorf("%s: factor %v", h.ID, factor)
		}
		if d := h.Score - before - h.Signals[recall.SignalFeedback]; math.Abs(d) > 1e-6 || h.Parts.Feedback != h.Signals[recall.SignalFeedback] {
			t.Errorf("%s: score %v, before %v, signals %v, parts %v", h.ID, h.Score, before, h.Signals, h.Parts)
		}
		if sum := h.Parts.Lexical + h.Parts.Vector + h.Parts.Recency + h.Parts.Importance + h.Parts.Feedback; math.Abs(sum-h.Score) > 1e-6 {
			t.Errorf("%s: the parts %v make %v, not %v", h.ID, h.Parts, sum, h.Score)
		}
	}
}

func TestATenthOfAFullBlockIsForWhatWasNeverShown(t *testing.T) {
	t.Parallel()
	x := plums(t, 14)
	plain := find(t, x, recall.Query{Text: plumQuestion})
	of := map[string]feedback.Record{}
	for _, h := range plain {
		of[h.ID] = feedback.Record{Shown: true}
	}
	for range 4 { // as many as never were in a block, one after the other
		got := find(t, x, recall.Query{Text: plumQuestion, Records: records(of)})
		fresh := got[len(got)-1]
		if len(got) != recall.DefaultLimit || of[fresh.ID].Shown || fresh.Signals[recall.SignalExploration] <= 0 || fresh.Score > got[len(got)-2].Score+2e-4 {
			t.Fatalf("%v, the last with %v", foundIDs(got), fresh.Signals)
		}
		if !slices.Equal(foundIDs(got[:len(got)-1]), foundIDs(plain[:len(plain)-1])) {
			t.Errorf("%v, before %v", foundIDs(got), foundIDs(plain))
		}
		of[fresh.ID] = feedback.Record{Shown: true}
	}
	if got := find(t, x, recall.Query{Text: plumQuestion, Records: records(of)}); !reflect.DeepEqual(got, plain) {
		t.Errorf("after all were shown: %v", foundIDs(got))
	}
}

// The budget of characters can cut a block short as well as the number of hits.
func TestExplorationKeepsTheBudget(t *testing.T) {
	t.Parallel()
	x := plums(t, 14)
	q := recall.Query{Text: plumQuestion, Characters: 100}
	of := map[string]feedback.Record{}
	for _, h := range find(t, x, q) {
		of[h.ID] = feedback.Record{Shown: true}
	}
	q.Records = records(of)
	got, n := find(t, x, q), 0
	for _, h := range got {
		n += len(h.Shown())
	}
	if len(got) < 2 || n > q.Characters || of[got[len(got)-1].ID].Shown {
		t.Errorf("%d characters in %v", n, foundIDs(got))
	}
}

func TestSilenceStaysSilenceWhateverWasNeverShown(t *testing.T) {
	t.Parallel()
	x := indexOf(t, sampleUnits...)
	for _, text := range []string{"Good morning!", "ok", "Let us talk about quantum computers."} {
		if got := find(t, x, recall.Query{Text: text, Records: records(map[string]feedback.Record{})}); len(got) > 0 {
			t.Errorf("%s: %v", text, foundIDs(got))
		}
	}
	// A fact that only passes the floor of a question takes no place.
	p := plums(t, 11)
	of := allShown(11)
	for _, h := range find(t, p, recall.Query{Text: plumQuestion, Limit: 3, Records: records(of)}) {
		if h.ID == "other" {
			t.Error("a fact without evidence was tried")
		}
	}
}

func TestARecallFailsIfItsRecordsCannotBeRead(t *testing.T) {
	t.Parallel()
	q := recall.Query{Text: plumQuestion, Now: noon, Records: func(context.Context, []string) (map[string]feedback.Record, error) {
		return nil, context.DeadlineExceeded
	}}
	if hits, _, err := recall.Find(t.Context(), plums(t, 3), &q, recall.Vectors{}, nil); err == nil || hits != nil {
		t.Errorf("%v, %v", hits, err)
	}
}
