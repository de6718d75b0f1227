package cite

import (
	"context"
	"slices"

	"nodest/llm"
)

// Opinion is a language model's view of a claim beside its quotes.
type Opinion string

// The opinions that count. Any other one changes nothing.
const (
	Supported   Opinion = "supported"
	Unsupported Opinion = "not supported"
	Unsure      Opinion = "cannot tell"
)

// WhyModel is the code of a sentence that words alone kept, and that a model says the quotes do not support.
const WhyModel = "model"

// Question is a sentence for a model to judge.
type Question struct {
	Sentence int      `json:"sentence"` // its place among Report.Verdicts
	Text     string   `json:"text"`
	Quotes   []string `json:"quotes"` // each behind the title of its source
}

// Check is an answer that was judged by words, and waits for the opinions of a model.
type Check struct {
	v *verifier
	o VerifyOptions
}

// NewCheck judges each sentence of an answer by words, as Verify describes it.
func NewCheck(ctx context.Context, emb llm.Embedder, answer string, sources []Source, o VerifyOptions) *Check {
	return &Check{judgedByWords(ctx, emb, answer, sources, o), o}
}

// Questions are the sentences about which an opinion may change something: those that words support, and those that
// were struck because the source says it in other words, without a contradiction.
func (c *Check) Questions() (out []Question) {
	for i := range c.v.judged {
		j := &c.v.judged[i]
		if !j.claims || !j.supported() && j.rescue == nil {
			continue
		}
		q := Question{Sentence: i, Text: c.v.chunks[i].Text}
		parts := j.parts
		if !j.supported() {
			parts = j.rescue
		}
		for _, p := range parts {
			for _, quote := range p.anyQuotes() {
				text := c.v.shown(quote)
				if !slices.Contains(q.Quotes, text) {
					q.Quotes = append(q.Quotes, text)
				}
			}
		}
		out = append(out, q)
	}
	return out
}

// shown is a quote as a model sees it.
func (v *verifier) shown(q quote) string {
	if title := v.sources[q.source].Title; title != "" {
		return title + ": " + q.text
	}
	return q.text
}

// Result writes the answer. opinions are a model's, by Question.Sentence: a sentence that it does not support loses
// its marks, and one that it supports gets back those that it lost for its wording alone. Result is called once.
func (c *Check) Result(opinions map[int]Opinion) Verified {
	for i, opinion := range opinions {
		if i < 0 || i >= len(c.v.judged) || !c.v.judged[i].claims {
			continue
		}
		switch j := &c.v.judged[i]; {
		case opinion == Unsupported && j.supported():
			j.opinion, j.byModel = opinion, true
			for _, p := range j.parts {
				p.quotes = nil
			}
			j.parts = j.parts[:1]
			j.parts[0].why = Reason{Code: WhyModel, Part: c.v.chunks[i].Text}
		case opinion == Supported && !j.supported() && j.rescue != nil:
			j.opinion, j.byModel, j.parts = opinion, true, j.rescue
			for _, p := range j.parts {
				p.quotes, p.why = p.anyQuotes(), Reason{}
			}
		case slices.Contains([]Opinion{Supported, Unsupported, Unsure}, opinion) && (j.supported() || j.rescue != nil):
			j.opinion = opinion
		}
	}
	return c.v.result(c.o)
}

// anyQuotes are the quotes of a part, or those that it would have if words in common did not count.
func (p *part) anyQuotes() []quote {
	if p.quotes != nil {
		return p.quotes
	}
	return p.almost
}

// rescueOf returns the parts of a sentence, each with quotes, if nothing but its wording speaks against it: those into which
// it was divided, or all of it.
func rescueOf(whole *part, parts []*part) []*part {
	if !whole.why.wording || slices.ContainsFunc(parts, func(p *part) bool { return p.quotes == nil && !p.why.wording }) {
		return nil
	}
	for _, way := range [][]*part{parts, {whole}} {
		if len(way) > 0 && !slices.ContainsFunc(way, func(p *part) bool { return p.anyQuotes() == nil }) {
			return way
		}
	}
	return nil
}

// maxAlmost bounds the windows that are tried as quotes for what is told in other words.
const maxAlmost = 3

// almostSupport finds the quotes that would support a part if words in common did not count. A part that any source
// contradicts has none.
func (v *verifier) almostSupport(p *part, named bool, tried []trial) {
	if !p.why.wording || len(p.against) > 0 {
		return
	}
	p.loose = true
	defer func() { p.loose = false }()
	for _, x := range tried[:min(maxAlmost, len(tried))] {
		if v.objection(p, named, x).Code == "" {
			p.almost = []quote{v.quoteOf(x)}
			return
		}
	}
}
