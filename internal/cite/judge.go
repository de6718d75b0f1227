package cite

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/llm"
)

// Reason is why a source does not support a sentence, or a part of it.
type Reason struct {
	Code string `json:"code"`
	Fact string `json:"fact,omitempty"` // the number or name that is not there
	Part string `json:"part,omitempty"` // of the sentence
}

const minClauseSupport = 0.2 // share of the terms of a clause that its quote has

// embed makes the vectors for all parts, in one call.
func (v *verifier) embed(ctx context.Context, emb llm.Embedder) {
	var texts []string
	asked := map[int]bool{}
	for i := range v.judged {
		j := &v.judged[i]
		if !j.claims && len(j.named) == 0 {
			continue
		}
		j.whole, j.split = wholeAndParts(v.chunks[i].Text)
		if emb == nil {
			continue
		}
		for _, p := range append([]*part{&j.whole}, j.split...) {
			p.vector = len(texts)
			texts = append(texts, p.text)
			for _, at := range v.pages.find(p.terms, j.named) {
				asked[at] = true
			}
		}
	}
	v.meaning = v.pages.embed(ctx, emb, texts, asked)
}

// judge finds the quotes for a sentence: for all of it from one source, else for its parts; from the
// sources that are named, else from others.
func (v *verifier) judge(i int) {
	j := &v.judged[i]
	if j.whole.about == nil {
		return
	}
	for _, named := range [][]int{j.named, nil} {
		if named == nil && !j.claims {
			break
		}
		if named != nil && len(named) == 0 {
			continue
		}
		whole := j.whole
		v.support(&whole, named)
		if j.parts = []*part{&whole}; whole.quote.text != "" || j.split == nil {
			if whole.quote.text != "" {
				return
			}
			continue
		}
		parts := v.supportParts(j, named)
		if j.parts = parts; j.supported() {
			return
		}
	}
}

// supportParts finds a quote for each part. One that names nothing of its own is about what the part
// before it is about, so its quote must come from the same source.
func (v *verifier) supportParts(j *judged, named []int) (parts []*part) {
	for k, p := range j.split {
		one := *p
		from := named
		if k > 0 && !v.namesSubject(p) {
			if before := parts[k-1]; before.quote.text != "" {
				from = []int{before.quote.source}
			}
		}
		v.support(&one, from)
		parts = append(parts, &one)
	}
	return parts
}

// namesSubject reports whether a part has a name, or a word of a title.
func (v *verifier) namesSubject(p *part) bool {
	if len(p.facts.names)+len(p.facts.titles) > 0 {
		return true
	}
	return slices.ContainsFunc(v.pages.titles, func(title map[string]bool) bool { return share(p.terms, title) > 0 })
}

// support fills the quote of a part, or the reason why there is none; from nil are all sources.
func (v *verifier) support(p *part, from []int) {
	found := v.pages.find(p.terms, from)
	if v.meaning {
		found = append(found, v.pages.nearest(p.vector, v.threshold)...)
	}
	top, closest := -1.0, -1.0
	p.why = Reason{Code: WhyNothing}
	for _, at := range found {
		source := v.pages.all[at].source
		if from != nil && !slices.Contains(from, source) {
			continue
		}
		for _, w := range v.pages.windows(at) {
			score, why := v.weigh(p, w)
			score -= 0.001 * float64(w[1]-w[0]) // one sentence is a better quote than two
			if v.sources[source].Evidence == EvidenceSnippet {
				score *= snippetFactor
			}
			switch {
			case why.Code == "" && score > top:
				top, p.quote, p.why = score, quote{v.pages.passageOf(w), min(1, score)}, why
			case why.Code != "" && top < 0 && score > closest:
				closest, p.why = score, why
			}
		}
	}
	if len(p.facts.numbers)+len(p.facts.names) == 0 && p.why.Code == WhyNothing && p.why.Part == "" {
		p.why.Part = p.text
	}
}

// weigh tells how well a window supports a part, and why it does not.
func (v *verifier) weigh(p *part, w [2]int) (score float64, why Reason) {
	text := v.pages.passageOf(w)
	s := &v.sources[text.source]
	words := max(v.pages.share(p.terms, w), denseShare(p.text, text.text+"\n"+s.title()))
	score = words
	if v.meaning {
		score = max(score, v.pages.cosine(p.vector, w))
	}
	lacking := p.facts.missing(newEvidence(text.text, s.title())).withoutPeoples(text.text + "\n" + s.title())
	foreign := hasDense(p.text) != hasDense(text.text)
	known := p.facts.telling() && foreign && len(lacking.numbers) == 0
	switch {
	case words < minWordsSupport && !(v.meaning && score >= v.threshold) && !known:
		return score, Reason{Code: WhyNothing, Part: p.text}
	case len(lacking.numbers)+len(lacking.spelled) > 0:
		return score, Reason{Code: WhyNumber, Fact: append(lacking.numbers, lacking.spelled...)[0]}
	case len(lacking.names)+len(lacking.titles) > 0 && !foreign:
		return score, Reason{Code: WhyName, Fact: append(lacking.names, lacking.titles...)[0]}
	case v.pages.foreignTitle(p.text, text.source):
		return score, Reason{Code: WhyName}
	}
	quote := v.pages.readingsOf(w)
	if code := conflict(p.about, quote); code != "" {
		return score, Reason{Code: code, Part: p.text}
	}
	if !foreign {
		if c := v.unsaid(p, w, quote); c != "" {
			return score, Reason{Code: WhyNothing, Part: c}
		}
	}
	return score, Reason{}
}

// unsaid returns a clause of a part of which a window says nothing.
func (v *verifier) unsaid(p *part, w [2]int, quote []*reading) string {
	e := join(quote)
	for _, c := range p.about.clauses {
		least := 2
		if hasDense(c.text) {
			least = 4
		}
		if len(c.terms) < least || v.pages.share(c.terms, w) >= minClauseSupport || denseShare(c.text, e.text) >= 0.5 {
			continue
		}
		if len(c.amounts) > 0 && !slices.ContainsFunc(c.amounts, func(q quantity) bool { return !e.hasNumber(q.value) }) {
			continue
		}
		return strings.TrimSpace(c.text)
	}
	return ""
}

// denseShare is the share of the characters of a text in a dense script that stand in runs of two or
// more which another text has too. Particles do not count.
func denseShare(text, other string) float64 {
	if !hasDense(text) || !hasDense(other) {
		return 0
	}
	ours, theirs := plainHan(plain(text)), string(plainHan(plain(other)))
	if len(ours) > maxDense || len(theirs) > 12*maxDense {
		return 0
	}
	covered := make([]bool, len(ours))
	for _, c := range chunksOf(ours, theirs) {
		for i := c.from; i < c.to; i++ {
			covered[i] = true
		}
	}
	n, all := 0, 0
	for i, r := range ours {
		if particles()[string(r)] {
			continue
		}
		if all++; covered[i] {
			n++
		}
	}
	return float64(n) / float64(max(all, 1))
}

var peoples = data.Words("peoples")

// withoutPeoples leaves out the names of peoples and languages whose country a text has: Chilean, of Chile.
func (f facts) withoutPeoples(text string) facts {
	if len(f.names) == 0 {
		return f
	}
	f.names = slices.DeleteFunc(slices.Clone(f.names), func(name string) bool {
		for _, ending := range peoples() {
			root, ok := strings.CutSuffix(strings.ToLower(name), ending)
			if !ok || utf8.RuneCountInString(root) < 4 {
				continue
			}
			for w := range wordsOf(text) {
				if rest, ok := strings.CutPrefix(strings.ToLower(w), root); ok && utf8.RuneCountInString(rest) <= 1 && unicode.IsUpper([]rune(w)[0]) {
					return true
				}
			}
		}
		return false
	})
	return f
}
