package cite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"nodest/internal/cite/claim"
	"nodest/internal/cite/script"
	"nodest/llm"
)

// Reason is why a source does not support a sentence, or a part of it.
type Reason struct {
	Code string `json:"code"`
	Fact string `json:"fact,omitempty"` // the number or name that is not there
	Part string `json:"part,omitempty"` // a part of the sentence

	opposes bool // the source says something else, and not only less
	wording bool // the source has too few of its words, or of those of a clause, and nothing else speaks against it so far
}

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
	if j.rescue == nil {
		j.rescue = rescueOf(whole, parts)
	}
	if whole.why.Code != claim.WhyNothing || len(parts) == 0 {
		parts = []*part{whole}
	}
	if j.parts == nil || j.parts[0].why.Code == claim.WhyNothing && parts[0].why.Code != claim.WhyNothing {
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
	if len(p.facts.Names)+len(p.facts.Titles) > 0 {
		return true
	}
	return slices.ContainsFunc(v.pages.titles, func(title map[string]bool) bool { return claim.Share(p.terms, title) > 0 })
}

// trial is a window that is tried for a part.
type trial struct {
	window [2]int
	source int
	score  float64
}

// maxTrials bounds the windows that are judged for a part.
const maxTrials = 32

// support fills the quotes of a part, or the reason why there are none; from nil are all sources. A source
// that contradicts the part elsewhere, with as much in common, does not support it.
func (v *verifier) support(p *part, from []int) {
	tried := v.trials(p, from)
	p.why = Reason{Code: claim.WhyNothing, Part: p.said(), wording: true}
	for i, x := range tried {
		if p.against[x.source] {
			continue
		}
		why := v.objection(p, from != nil, x)
		if i == 0 {
			p.why = why
		}
		if why.opposes {
			p.deny(x.source)
		}
		if why.Code == "" {
			p.quotes, p.why = []quote{v.quoteOf(x)}, Reason{}
			return
		}
	}
	if v.supportTogether(p, from != nil, tried); p.quotes == nil {
		v.almostSupport(p, from != nil, tried)
	}
}

func (v *verifier) quoteOf(x trial) quote {
	return quote{v.pages.passageOf(x.window), min(1, x.score)}
}

// trials returns the windows that may support a part, those with most in common first.
func (v *verifier) trials(p *part, from []int) (tried []trial) {
	found := v.pages.find(p.terms, from)
	if v.meaning {
		found = append(found, v.pages.nearest(p.vector, v.threshold)...)
	}
	p.found = found
	seen := map[[2]int]bool{}
	for _, at := range found {
		own := &v.pages.all[at]
		if from != nil && !slices.Contains(from, own.source) || p.near != nil && p.near.chunk != own.chunk {
			continue
		}
		for _, w := range v.pages.windows(at) {
			if !seen[w] {
				seen[w] = true
				tried = append(tried, trial{w, own.source, v.likeness(p, w)})
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
	score = v.pair(p, w).Coverage()
	if v.meaning {
		if v.lenient {
			score = contained(score)
		}
		score = max(score, v.pages.cosine(p.vector, w))
	}
	score -= 0.001 * float64(w[1]-w[0]) // one sentence is a better quote than two
	if v.sources[v.pages.all[w[0]].source].Evidence == EvidenceSnippet {
		score *= snippetFactor
	}
	return score
}

// pair is a part beside windows of one source.
func (v *verifier) pair(p *part, windows ...[2]int) *claim.Pair {
	pair := &claim.Pair{Claim: p.about, Title: v.pages.titles[v.pages.all[windows[0][0]].source], Lenient: v.lenient}
	for _, w := range windows {
		pair.Quote = append(pair.Quote, v.pages.readingsOf(w)...)
	}
	return pair
}

// page is what the source of a sentence says that has something of a part.
func (v *verifier) page(p *part, source int) (page []*claim.Text) {
	for _, at := range p.found {
		if v.pages.all[at].source == source {
			page = append(page, v.pages.reading(at))
		}
	}
	return page
}

// objection says why windows of one source do not support a part.
func (v *verifier) objection(p *part, named bool, tried ...trial) Reason {
	score, text, windows := tried[0].score, "", [][2]int{}
	for _, x := range tried {
		text += v.pages.passageOf(x.window).text + "\n"
		windows = append(windows, x.window)
	}
	pair := v.pair(p, windows...)
	if len(tried) > 1 {
		score = pair.Coverage()
	}
	foreign := p.about.Dense != script.HasDense(text)
	lacking, score := v.lacking(p, text, v.pages.about(windows[0]), score, foreign)
	switch numbers := lacking.Numbers(); {
	case len(p.text) > claim.MaxRead:
		return Reason{Code: claim.WhyNothing, Part: p.said()}
	case !p.loose && !v.isNear(p, score) && !(len(numbers) == 0 && v.isTold(p, named, foreign)):
		return Reason{Code: claim.WhyNothing, Part: p.said(), wording: true}
	case len(numbers) > 0:
		return Reason{Code: claim.WhyNumber, Fact: numbers[0]}
	case len(lacking.Names)+len(lacking.Titles) > 0:
		return Reason{Code: claim.WhyName, Fact: slices.Concat(lacking.Names, lacking.Titles)[0]}
	}
	pair.Page, pair.Lenient = v.page(p, tried[0].source), pair.Lenient || p.loose
	return reasonOf(pair.Contradiction(), p, foreign)
}

// isTold reports whether the facts of a part are enough to show that a text says it: across languages, and where a character
// tells in its own words what a named source says.
func (v *verifier) isTold(p *part, named, foreign bool) bool {
	return named && p.facts.Telling() && (foreign || v.lenient && !v.meaning)
}

func reasonOf(f *claim.Finding, p *part, foreign bool) Reason {
	if f == nil || foreign && f.Weak {
		return Reason{}
	}
	return Reason{Code: f.Why, Part: cmp.Or(f.What, p.said()), opposes: !f.Weak, wording: f.Why == claim.WhyNothing}
}

// isNear reports whether a score is that of a text which says the same.
func (v *verifier) isNear(p *part, score float64) bool {
	least := p.about.MinCoverage(v.lenient)
	if v.meaning && v.lenient {
		least = v.threshold
	} else if v.meaning {
		least = min(least, v.threshold)
	}
	return score >= least-0.003 // a window of three sentences loses that much
}

// lacking returns the facts of a part that a text lacks, and its score without names that no source has.
func (v *verifier) lacking(p *part, text, title string, score float64, foreign bool) (claim.Facts, float64) {
	known := claim.NewEvidence(text, title)
	lacking := p.facts.Missing(known)
	if foreign { // a name may be written in another script
		lacking.Names, lacking.Titles = nil, nil
	}
	if v.lenient {
		return v.forgive(lacking, score)
	}
	return lacking, score
}

func (p *part) deny(source int) {
	if p.against == nil {
		p.against = map[int]bool{}
	}
	p.against[source] = true
}

// said is the text of a part without what joins it to others.
func (p *part) said() string {
	return strings.TrimFunc(p.text, func(r rune) bool { return script.IsSpace(r) || script.IsClauseEnd(r) })
}

// maxTogether bounds the windows for which a second one of the same source is looked for.
const maxTogether = 3

// minMore is how much more of a part two quotes must say together than one.
const minMore = 0.2

// supportTogether supports a part by two quotes of one source that together have what each of them lacks.
func (v *verifier) supportTogether(p *part, named bool, tried []trial) {
	for _, x := range tried[:min(maxTogether, len(tried))] {
		if p.against[x.source] {
			continue
		}
		for _, y := range tried {
			if y.source != x.source || y.window[0] != y.window[1] || v.pages.all[y.window[0]].head != "" || x.window[0] <= y.window[0] && y.window[0] <= x.window[1] {
				continue
			}
			if more := v.pair(p, x.window, y.window).Coverage(); more < x.score+minMore && !v.adds(p, x, y) {
				continue
			}
			if v.objection(p, named, x, y).Code == "" {
				p.quotes, p.why = []quote{v.quoteOf(x), v.quoteOf(y)}, Reason{}
				return
			}
		}
	}
}

// adds reports whether a window has facts of a part that another one lacks.
func (v *verifier) adds(p *part, x, y trial) bool {
	title := v.pages.about(x.window)
	text := v.pages.passageOf(x.window).text
	both := claim.NewEvidence(text, v.pages.passageOf(y.window).text, title)
	return p.facts.Missing(both).Count() < p.facts.Missing(claim.NewEvidence(text, title)).Count()
}

// nameFactor lowers the score of a quote without a name that no source has.
const nameFactor = 0.85

// forgive leaves out names that no source has: those of the people in a chat.
func (v *verifier) forgive(lacking claim.Facts, score float64) (claim.Facts, float64) {
	if len(lacking.Names)+len(lacking.Titles) == 0 {
		return lacking, score
	}
	unknown := lacking.Missing(v.all())
	if len(unknown.Names)+len(unknown.Titles) > 0 {
		score *= nameFactor
	}
	in := func(some []string) func(string) bool {
		return func(s string) bool { return slices.Contains(some, s) }
	}
	lacking.Names = slices.DeleteFunc(lacking.Names, in(unknown.Names))
	lacking.Titles = slices.DeleteFunc(lacking.Titles, in(unknown.Titles))
	return lacking, score
}
