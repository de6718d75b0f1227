package recall

import (
	"os"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/internal/meaning"
	"nodest/memory/lang"
)

func envf(name string, or float32) float32 {
	if x, err := strconv.ParseFloat(os.Getenv(name), 32); err == nil {
		return float32(x)
	}
	return or
}

// related returns the words that are related to those of a question.
func related2(q *lang.Question, folded string) (more []index.Term) {
	if !q.Asks && !q.Keywords {
		return nil
	}
	discount, least, most := envf("M_DISCOUNT", 1), envf("M_LEAST", 0.15), int(envf("M_MOST", 30))
	weight := envf("M_WEIGHT", 0.5)
	scale := func(x float32) float32 { return min(0.8, x*discount) }
	known := map[string]int{}
	for i, t := range q.Terms {
		known[t.Text] = i
	}
	at := map[string]int{}
	add := func(t string, near, w, proof float32) {
		if _, ok := known[t]; ok {
			return
		}
		x := index.Term{Text: t, Weight: w * near * weight, Evidence: proof * near, Extra: true}
		if i, ok := at[t]; ok {
			if more[i].Evidence < x.Evidence {
				more[i] = x
			}
			return
		}
		at[t] = len(more)
		more = append(more, x)
	}
	for _, t := range q.Terms {
		if t.Text[0] >= utf8.RuneSelf || t.Evidence < 0.5 {
			continue
		}
		for i, r := range meaning.Near(t.Text) {
			if i >= most || r.Near < least {
				break
			}
			add(r.Word, scale(r.Near), t.Weight, t.Evidence*min(1, lang.ProofOf(r.Word)*1.2))
		}
	}
	for _, w := range chineseWords(folded) {
		var proof float32
		n := 0
		for _, t := range q.Terms {
			if t.Text[0] >= utf8.RuneSelf && slices.Contains(index.Terms(w), t.Text) {
				proof += t.Evidence
				n++
			}
		}
		if proof < 0.2 {
			continue
		}
		if len([]rune(w)) > 1 {
			proof = 1
		}
		for i, r := range meaning.Near(w) {
			if i >= most || r.Near < least {
				break
			}
			terms := index.Terms(r.Word)
			x := scale(r.Near)
			if len([]rune(r.Word)) == 1 {
				x *= envf("M_ONE", 0.6)
			}
			for _, t := range terms {
				add(t, x, 1, proof/float32(len(terms)))
			}
		}
	}
	return more
}

// chineseWords splits by longest match.
func chineseWords(text string) (words []string) {
	r := []rune(text)
	for len(r) > 0 {
		n := 1
		if unicode.Is(unicode.Han, r[0]) {
			for long := min(4, len(r)); long >= 1; long-- {
				if len(meaning.Near(string(r[:long]))) > 0 {
					words, n = append(words, string(r[:long])), long
					break
				}
			}
		}
		r = r[n:]
	}
	return words
}
