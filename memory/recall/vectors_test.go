package recall_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"nodest/internal/index"
	"nodest/memory/recall"
)

// A scripted model: words of one concept have one direction, and each text has some noise of its own and,
// as real models have it, a direction that all texts share.
type scripted struct {
	name     string
	dim      int
	concepts [][]string
	shared   float64 // length of what all texts share
}

var concepts = [][]string{
	{"dairy", "latte", "milk", "cheese"}, {"burgled", "stolen", "thief"}, {"knees", "marathon", "running"},
	{"wedding", "married", "knot"}, {"writer", "novelist", "Guin"}, {"sibling", "brother", "only child"},
}

func (m scripted) of(text string) index.Vector {
	direction := func(seed string, v []float64, length float64) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(seed))
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		for i := range v {
			v[i] += length * r.NormFloat64() / math.Sqrt(float64(m.dim))
		}
	}
	v := make([]float64, m.dim)
	direction("all texts", v, m.shared)
	direction(text, v, 1)
	for i, words := range m.concepts {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) }) {
			direction(fmt.Sprint("concept ", i), v, 2)
		}
	}
	out := index.Vector{Model: m.name, Values: make([]float32, m.dim)}
	for i, x := range v {
		out.Values[i] = float32(x)
	}
	return out
}

// models are some whose vectors mean something, and the same ones without what they know.
var models = []scripted{{"narrow", 96, concepts, 0}, {"wide", 768, concepts, 0}, {"crowded", 384, concepts, 1.5}}

// everyday are lines of a chat between which a few tell something.
func everyday(n int) []recall.Unit {
	lines := []string{"Ann: I can't have dairy, it wrecks my stomach.", "Ann: We got burgled at the beach.", "Ann: My knees are shot.", "Ann: We tied the knot in a town hall.", "Ann: I devour anything by Ursula Le Guin."}
	for i := range n {
		who, what := strings.Fields("neighbour colleague cousin postman teacher tourist gardener"), strings.Fields("bridge lamp market umbrella bus museum chair river")
		lines = append(lines, fmt.Sprintf("Ann: The %s of town %d spoke about the %s again.", who[i%len(who)], i, what[i%len(what)]))
	}
	return sessionUnits(1, "2023-04-02", lines...)
}

func embedded(units []recall.Unit, m scripted) []recall.Unit {
	for i := range units {
		units[i].Vectors = []index.Kept{{Model: m.name, Packed: index.Pack(m.of(units[i].Text).Values)}}
	}
	return units
}

// A model that knows what texts mean gives proof, however its cosines are distributed.
func TestAModelThatKnowsMeaningDecides(t *testing.T) {
	t.Parallel()
	for _, m := range models {
		for _, n := range []int{40, 1500} {
			x := indexOf(t, embedded(everyday(n), m)...)
			for text, want := range map[string]string{"Could I drink a latte with you?": "dairy", "What did the thief take?": "burgled", "Why did I quit running?": "knees", "Who's my favourite novelist?": "Guin"} {
				hits := findNear(t, x, recall.Query{Text: text, Here: "here"}, recall.Vectors{Model: m.of(text)})
				if position(hits, want) != 0 {
					t.Errorf("%s, %d lines: %q finds %q, want %s first", m.name, n, text, hitTexts(hits), want)
				}
				if len(hits) > 3 {
					t.Errorf("%s, %d lines: %q finds %d lines", m.name, n, text, len(hits))
				}
			}
		}
	}
}

// Vectors that mean nothing change nothing: neither whether something is recalled, nor what.
func TestVectorsWithoutMeaningChangeNothing(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Could I drink a latte with you?", "What did the thief take?", "who goes there?!", "you look like you need a hug", "I hung the laundry out.", "We need to move before sunrise.",
		"What did the postman of town 4 speak about?", "Which museum?", "ugh, mondays", "What happened to my knees?", "Is there anything about the river?",
	}
	for _, m := range models {
		m.concepts = nil
		for _, n := range []int{3, 40, 1500} {
			x := indexOf(t, embedded(everyday(n), m)...)
			for _, text := range texts {
				want := foundIDs(find(t, x, recall.Query{Text: text, Here: "here"}))
				got := foundIDs(findNear(t, x, recall.Query{Text: text, Here: "here"}, recall.Vectors{Model: m.of(text)}))
				slices.Sort(want)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s, %d lines: %q finds %v, without vectors %v", m.name, n, text, got, want)
				}
			}
		}
	}
}

// The gate opens by chance for hardly any of many questions.
func TestTheGateStaysShutByChance(t *testing.T) {
	t.Parallel()
	for _, m := range models {
		m.concepts = nil
		for _, n := range []int{10, 100, 1500} {
			x, opened := indexOf(t, embedded(everyday(n), m)...), 0
			const asked = 300
			for i := range asked {
				text := fmt.Sprintf("Zebra%d?", i)
				if len(findNear(t, x, recall.Query{Text: text, Here: "here"}, recall.Vectors{Model: m.of(text)})) > 0 {
					opened++
				}
			}
			if opened > asked/50 {
				t.Errorf("%s, %d lines: %d of %d questions recall something", m.name, n, opened, asked)
			}
		}
	}
}
