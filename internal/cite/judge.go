package cite

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"nodest/internal/index"
	"nodest/llm"
)

// Reason is why a source does not support a sentence, or a part of it.
type Reason struct {
	Code string `json:"code"`
	Fact string `json:"fact,omitempty"` // the number or name that is not there
	Part string `json:"part,omitempty"` // of the sentence

	opposes bool // the source says something else, and not only less
}

// minPairs is the share of pairs of characters from which runs of them tell more. Common pairs stand
// anywhere.
const minPairs = 0.25

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
	ways := [][]int{j.named, nil}
	if len(j.named) == 0 {
		ways = ways[1:]
	} else if !j.claims {
		ways = ways[:1]
	}
	for _, named := range ways {
		whole := j.whole
		if v.support(&whole, named); whole.quotes != nil {
			j.parts = []*part{&whole}
			return
		}
		parts := v.supportParts(j, named, whole.against)
		if len(parts) > 0 && !slices.ContainsFunc(parts, func(p *part) bool { return p.quotes == nil }) {
			j.parts = parts
			return
		}
		j.blame(&whole, parts)
	}
}

// blame keeps the reasons why a sentence has no support: what contradicts all of it, or else those of its
// parts. Those of the sources that the model named tell more.
func (j *judged) blame(whole *part, parts []*part) {
	if whole.why.Code != WhyNothing || len(parts) == 0 {
		parts = []*part{whole}
	}
	if j.parts == nil || j.parts[0].why.Code == WhyNothing && parts[0].why.Code != WhyNothing {
		j.parts = parts
	}
}

// supportParts finds a quote for each part. One that names nothing of its own is about what the part
// before it is about, so its quote must come from the same source.
func (v *verifier) supportParts(j *judged, named []int, against map[int]bool) (parts []*part) {
	for k, p := range j.split {
		one := *p
		one.against = maps.Clone(against)
		from := named
		if k > 0 && !v.namesSubject(p) {
			if before := parts[k-1]; before.quotes != nil {
				q := &before.quotes[0]
				from, one.near = []int{q.source}, q
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

// trial is a window that is tried for a part.
type trial struct {
	window  [2]int
	source  int
	score   float64
	judged  bool // why and lacking are known
	lacking facts
	why     Reason
}

// maxTrials bounds the windows that are judged for a part.
const maxTrials = 32

// support fills the quotes of a part, or the reason why there are none; from nil are all sources. A source
// that contradicts the part elsewhere, with as much in common, does not support it.
func (v *verifier) support(p *part, from []int) {
	tried := v.trials(p, from)
	p.why = Reason{Code: WhyNothing, Part: p.said()}
	for i := range tried {
		x := &tried[i]
		if p.against[x.source] {
			continue
		}
		v.try(p, x, from != nil)
		if i == 0 {
			p.why = x.why
		}
		if x.why.opposes {
			p.deny(x.source)
		}
		if x.why.Code != "" {
			continue
		}
		if y := v.rival(p, x, tried); y != nil {
			p.why = y.why
			return
		}
		p.quotes, p.why = []quote{v.quoteOf(x)}, Reason{}
		return
	}
	v.supportTogether(p, tried)
}

func (v *verifier) quoteOf(x *trial) quote {
	return quote{v.pages.passageOf(x.window), min(1, x.score)}
}

// trials returns the windows that may support a part, those with most in common first.
func (v *verifier) trials(p *part, from []int) (tried []trial) {
	found := v.pages.find(p.terms, from)
	if v.meaning {
		found = append(found, v.pages.nearest(p.vector, v.threshold)...)
	}
	seen := map[[2]int]bool{}
	for _, at := range found {
		own := &v.pages.all[at]
		if from != nil && !slices.Contains(from, own.source) || p.near != nil && p.near.chunk != own.chunk {
			continue
		}
		for _, w := range v.pages.windows(at) {
			if !seen[w] {
				seen[w] = true
				tried = append(tried, trial{window: w, source: own.source, score: v.likeness(p, w)})
			}
		}
	}
	slices.SortStableFunc(tried, func(a, b trial) int { return cmp.Compare(b.score, a.score) })
	return tried[:min(len(tried), maxTrials)]
}

// likeness is what a window and a part have in common, 0 to 1.
func (v *verifier) likeness(p *part, w [2]int) float64 {
	score, known := p.scores[w]
	if !known {
		if p.scores == nil {
			p.scores = map[[2]int]float64{}
		}
		score = v.compare(p, w)
		p.scores[w] = score
	}
	return score
}

func (v *verifier) compare(p *part, w [2]int) (score float64) {
	s := &v.sources[v.pages.all[w[0]].source]
	score = v.pages.share(p.terms, w)
	if score >= minPairs && score < minContained && p.dense {
		if p.plain == nil {
			p.plain = plainHan(plain(p.text))
		}
		score = max(score, denseShare(p.plain, v.pages.plainOf(w)))
	}
	if v.meaning {
		if v.lenient {
			score = contained(score)
		}
		score = max(score, v.pages.cosine(p.vector, w))
	}
	score -= 0.001 * float64(w[1]-w[0]) // one sentence is a better quote than two
	if s.Evidence == EvidenceSnippet {
		score *= snippetFactor
	}
	return score
}

// try judges a window.
func (v *verifier) try(p *part, x *trial, named bool) {
	if x.judged {
		return
	}
	x.judged = true
	text := v.pages.passageOf(x.window).text
	foreign := p.dense != hasDense(text)
	telling := named && p.facts.telling() && (foreign || v.lenient && !v.meaning)
	if !v.isNear(p, x.score) && !telling {
		x.why = Reason{Code: WhyNothing, Part: p.said()}
		return
	}
	lacking, score := v.lacking(p, x, text, foreign)
	x.score = score
	telling = telling && len(lacking.numbers)+len(lacking.spelled) == 0
	x.why = v.objection(p, x.window, lacking, v.isNear(p, score) || telling, foreign)
	if x.why.Code == WhyNumber || x.why.Code == WhyName {
		x.lacking = lacking
	}
}

// shortDense is in characters: few have much in common with any text.
const shortDense = 8

// isNear reports whether a score is that of a text which says the same.
func (v *verifier) isNear(p *part, score float64) bool {
	least := minWordsSupport
	if v.meaning && v.lenient {
		least = v.threshold
	} else if v.meaning {
		least = min(least, v.threshold)
	}
	if p.dense && utf8.RuneCountInString(p.text) <= shortDense {
		least += 0.1
	}
	return score >= least-0.003 // what a window of three sentences loses
}

// lacking returns the facts of a part that a window lacks, and its score without names that no source has.
func (v *verifier) lacking(p *part, x *trial, text string, foreign bool) (facts, float64) {
	title := v.pages.about(x.window)
	known := newEvidence(text, title)
	if foreign {
		known.addMonths(text)
	}
	lacking := p.facts.missing(known).withoutPeoples(text + "\n" + title)
	lacking.numbers, lacking.spelled = p.withoutDifferences(lacking.numbers, known), p.withoutDifferences(lacking.spelled, known)
	if foreign { // a name may be written in another script
		lacking.names, lacking.titles = nil, nil
	}
	if v.lenient {
		return v.forgive(lacking, x.score)
	}
	return lacking, x.score
}

// rival returns a sentence of the same source that has as much of a part, with a word that the window
// lacks, but another number: reopened on 19 February, where the window was closed on the 3rd.
func (v *verifier) rival(p *part, x *trial, tried []trial) *trial {
	long := x.window[0] != x.window[1]
	for i := range tried {
		y := &tried[i]
		least := x.score - 0.1
		if long && x.window[0] <= y.window[0] && y.window[1] <= x.window[1] {
			least = x.score - 0.25 // more text has more in common
		}
		if y.source != x.source || y.window[0] != y.window[1] || y.score < least {
			continue
		}
		v.try(p, y, false)
		if y.why.Code == WhyNumber && v.hasLike(p, y) && (long && y.score >= 0.75 || v.says(p, y, x)) {
			return y
		}
	}
	return nil
}

// hasLike reports whether a sentence has another number like one that it lacks.
func (v *verifier) hasLike(p *part, y *trial) bool {
	own := v.pages.readingsOf(y.window)[0]
	return slices.ContainsFunc(p.about.clauses, func(c clause) bool {
		return slices.ContainsFunc(c.amounts, func(q quantity) bool {
			return slices.Contains(y.lacking.numbers, q.value) && len(own.numbersLike(q)) > 0
		})
	})
}

// says reports whether a sentence has a term of a part that a window lacks.
func (v *verifier) says(p *part, y, x *trial) bool {
	for t := range p.terms {
		if v.pages.all[y.window[0]].terms[t] && !v.pages.has(x.window, t) {
			return true
		}
	}
	return false
}

func (p *part) deny(source int) {
	if p.against == nil {
		p.against = map[int]bool{}
	}
	p.against[source] = true
}

// maxTogether bounds the windows for which a second one of the same source is looked for.
const maxTogether = 3

// supportTogether supports a part by two quotes of one source: the second has, beside the same words, the
// facts that the first one lacks.
func (v *verifier) supportTogether(p *part, tried []trial) {
	n := 0
	for i := range tried {
		x := &tried[i]
		if x.lacking.count() == 0 || p.against[x.source] {
			continue
		}
		if n++; n > maxTogether {
			return
		}
		for k := range tried {
			y := &tried[k]
			if y.source != x.source || y.window[0] != y.window[1] || !v.adds(p, x, y) {
				continue
			}
			both := append(v.pages.readingsOf(x.window), v.pages.readingsOf(y.window)...)
			if code, _ := conflict(p.about, both); code == "" && v.unsaid(p, x.window, both) == "" {
				p.quotes, p.why = []quote{v.quoteOf(x), v.quoteOf(y)}, Reason{}
				return
			}
		}
	}
}

// adds reports whether a sentence has the facts that a window lacks, beside the same words.
func (v *verifier) adds(p *part, x, y *trial) bool {
	text := v.pages.passageOf(y.window).text
	known := newEvidence(text, v.pages.about(y.window))
	return x.lacking.missing(known).count() == 0 && p.speaksOf(x.lacking, v.pages.all[y.window[0]].terms)
}

// speaksOf reports whether a sentence has a term that stands beside each of some facts in the part.
func (p *part) speaksOf(facts facts, terms map[string]bool) bool {
	for _, fact := range slices.Concat(facts.numbers, facts.spelled, facts.names) {
		beside := false
		for _, c := range p.about.clauses {
			at := slices.IndexFunc(c.tokens, func(t token) bool { return t.term == fact || slices.Equal(index.Terms(fact), []string{t.term}) })
			if at < 0 {
				continue
			}
			for _, t := range c.tokens[max(0, at-2):min(len(c.tokens), at+3)] {
				beside = beside || t.term != c.tokens[at].term && terms[t.term] && !isNumber(t.term)
			}
		}
		if !beside {
			return false
		}
	}
	return len(facts.titles) == 0
}

// nameFactor lowers the score of a quote without a name that no source has.
const nameFactor = 0.85

// forgive leaves out names that no source has: those of the people in a chat.
func (v *verifier) forgive(lacking facts, score float64) (facts, float64) {
	if len(lacking.names)+len(lacking.titles) == 0 {
		return lacking, score
	}
	unknown := lacking.missing(v.all())
	left := facts{numbers: lacking.numbers, spelled: lacking.spelled}
	for _, n := range lacking.names {
		if !slices.Contains(unknown.names, n) {
			left.names = append(left.names, n)
		}
	}
	for _, n := range lacking.titles {
		if !slices.Contains(unknown.titles, n) {
			left.titles = append(left.titles, n)
		}
	}
	if len(unknown.names)+len(unknown.titles) > 0 {
		score *= nameFactor
	}
	return left, score
}

// withoutDifferences leaves out numbers by which two numbers of the evidence differ, of which the part has
// one: four points more than 27, of 31 and 27.
func (p *part) withoutDifferences(numbers []string, e evidence) []string {
	return slices.DeleteFunc(slices.Clone(numbers), func(n string) bool {
		difference, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return false
		}
		for _, known := range p.facts.numbers {
			a, err := strconv.ParseFloat(known, 64)
			if err != nil || known == n || !e.numbers[known] {
				continue
			}
			for _, b := range []float64{a - difference, a + difference} {
				if e.numbers[strconv.FormatFloat(math.Round(b*1e6)/1e6, 'f', -1, 64)] {
					return true
				}
			}
		}
		return false
	})
}

// objection says why a window does not support a part.
func (v *verifier) objection(p *part, w [2]int, lacking facts, near, foreign bool) Reason {
	switch {
	case !near, len(p.text) > maxRead:
		return Reason{Code: WhyNothing, Part: p.said()}
	case len(lacking.numbers)+len(lacking.spelled) > 0:
		return Reason{Code: WhyNumber, Fact: slices.Concat(lacking.numbers, lacking.spelled)[0]}
	case len(lacking.names)+len(lacking.titles) > 0:
		return Reason{Code: WhyName, Fact: slices.Concat(lacking.names, lacking.titles)[0]}
	case v.pages.foreignTitle(p.text, v.pages.all[w[0]].source):
		return Reason{Code: WhyName}
	}
	quote := v.pages.readingsOf(w)
	code, silent := conflict(p.about, quote)
	for i := w[0]; i <= w[1] && w[0] < w[1] && code == ""; i++ { // more text does not make it right
		if v.likeness(p, [2]int{i, i}) >= minWordsSupport {
			if code, silent = conflict(p.about, v.pages.readingsOf([2]int{i, i})); silent {
				code = ""
			}
		}
	}
	if code != "" {
		return Reason{Code: code, Part: p.said(), opposes: !silent}
	}
	if !foreign && !v.lenient {
		if c := v.unsaid(p, w, quote); c != "" {
			return Reason{Code: WhyNothing, Part: c}
		}
	}
	return Reason{}
}
