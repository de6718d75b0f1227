package lang

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode"

	"nodest/internal/index"
)

// Common words mean nothing in one language and something in another ("die" and "war", in German and in
// English), so what a word proves depends on the language of its text. This is about languages that are
// written with spaces; for the others, see dense.go.

// tongue has the common words of a language, by their terms. All others are content.
type tongue struct {
	joins  map[string]bool    // articles, pronouns, auxiliaries and so on: they are not even looked for
	weak   map[string]bool    // words that ask or report
	proofs map[string]float32 // evidence of the others
	begins map[string]float32 // likewise for all words with a beginning, in languages that conjugate
}

var (
	joining      = data.By("function") // the language of a text is told by them
	contents     = data.By("content")  // that are grammar in another language
	weak         = data.By("weak")
	provesNot    = data.By("proves-nothing")
	provesFaint  = data.By("proves-hardly")
	provesLittle = data.By("proves-little")
)

func tongueOf(name string) *tongue {
	t := &tongue{stems(joining()[name]), stems(weak()[name]), map[string]float32{}, map[string]float32{}}
	for _, of := range []struct {
		words []string
		proof float32
	}{{weak()[name], provesHardly}, {provesNot()[name], ProvesNothing}, {provesFaint()[name], provesHardly}, {provesLittle()[name], ProvesLittle}} {
		for _, w := range of.words {
			if begin, ok := strings.CutSuffix(w, "*"); ok {
				t.begins[Plain(begin)] = of.proof
			} else {
				t.proofs[index.Stem(w)] = of.proof
			}
		}
	}
	return t
}

// proof is the evidence of a term in a language.
func (t *tongue) proof(term string) float32 {
	if proof, ok := t.proofs[term]; ok {
		return proof
	}
	for end := len(term); end > 1 && len(t.begins) > 0; end-- {
		if proof, ok := t.begins[term[:end]]; ok {
			return proof
		}
	}
	if c := term[0]; '0' <= c && c <= '9' {
		return ProvesLittle
	}
	return 1
}

// known are the languages that have a list of the words of their grammar, and of each term those that have it.
var known = sync.OnceValues(func() (all []*tongue, having map[string]tongues) {
	having = map[string]tongues{}
	for _, name := range slices.Sorted(maps.Keys(joining())) {
		t := tongueOf(name)
		for _, terms := range []map[string]bool{t.joins, stems(contents()[name]), terms(t.proofs)} {
			for term := range terms {
				having[term] |= 1 << len(all)
			}
		}
		all = append(all, t)
	}
	return all, having
})

func terms(proofs map[string]float32) map[string]bool {
	set := make(map[string]bool, len(proofs))
	for t := range proofs {
		set[t] = true
	}
	return set
}

// tongues are the languages that a text may be in, by bits.
type tongues uint64

// tonguesOf tells the languages of a folded text by its common words, of which those that few languages have
// say more; all if there are none.
func tonguesOf(folded string) tongues {
	all, having := known()
	score := make([]int, len(all))
	for word := range strings.FieldsFuncSeq(folded, func(r rune) bool { return !unicode.IsLetter(r) }) {
		in := having[index.Stem(word)]
		if in == 0 {
			continue
		}
		share := 60 / bits.OnesCount64(uint64(in))
		for i := range all {
			if in&(1<<i) != 0 {
				score[i] += share
			}
		}
	}
	best := slices.Max(score)
	found := tongues(0)
	for i, s := range score {
		if s == best {
			found |= 1 << i
		}
	}
	return found
}

// every reports whether something is true in each of the languages.
func (in tongues) every(is func(*tongue) bool) bool {
	all, _ := known()
	for i, t := range all {
		if in&(1<<i) != 0 && !is(t) {
			return false
		}
	}
	return true
}

// join reports whether a term is only grammar.
func (in tongues) join(term string) bool {
	return in.every(func(t *tongue) bool { return t.joins[term] })
}

// report reports whether a term only asks or reports.
func (in tongues) report(term string) bool {
	return in.every(func(t *tongue) bool { return t.weak[term] })
}

// proof is the evidence of a term that is no pair of characters: the most that it is in one of the languages.
func (in tongues) proof(term string) (most float32) {
	in.every(func(t *tongue) bool {
		most = max(most, t.proof(term))
		return true
	})
	return most
}
