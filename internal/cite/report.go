package cite

import (
	"slices"

	"nodest/internal/cite/claim"
)

// maxUnsourced bounds Report.Unsourced.
const maxUnsourced = 20

// Report says how well an answer is covered by its references.
type Report struct {
	Sentences int      `json:"sentences"`
	Marked    int      `json:"marked"`    // sentences with a mark
	Marks     int      `json:"marks"`     // in the text
	Supported int      `json:"supported"` // marks whose quotes have all numbers and names of the sentence, and enough of its meaning or words
	Unsourced []string `json:"unsourced"` // numbers and names that no source has, at most 20

	// Only Verify gives these:
	Claims   int       `json:"claims,omitempty"`   // sentences that need a source
	Doubtful int       `json:"doubtful,omitempty"` // those that have none
	ByModel  int       `json:"byModel,omitempty"`  // verdicts that a model has changed
	Verdicts []Verdict `json:"verdicts,omitempty"` // by sentence
}

// add counts a sentence that Verify judged.
func (r *Report) add(v Verdict, claims bool) {
	r.Verdicts = append(r.Verdicts, v)
	r.Marks += len(v.Marks)
	r.Supported += len(v.Marks)
	if v.ByModel {
		r.ByModel++
	}
	if len(v.Marks) > 0 {
		r.Marked++
	}
	if claims {
		r.Claims++
		if len(v.Marks) == 0 {
			r.Doubtful++
		}
	}
}

// NewReport checks an answer with marks of this package against its references and sources.
func NewReport(c Cited, sources []Source) Report {
	clean, found := readMarks(c.Answer, 0)
	in := linesOf(clean)
	all := sentencesOf(clean, in, protected(clean, in))
	numbers := map[int][]int{} // by sentence
	r := Report{Sentences: len(all)}
	for _, w := range found {
		s := sentenceAt(in, all, w.at)
		r.Marks += len(w.numbers)
		numbers[s] = append(numbers[s], w.numbers...)
	}
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = clean[s.Span[0]:s.Span[1]]
		if marks := numbers[i]; len(marks) > 0 {
			r.Marked++
			r.Supported += supported(texts[i], marks, c.References)
		}
	}
	r.Unsourced = unsourced(texts, sources)
	return r
}

// unsourced returns the numbers and names of sentences that no source has.
func unsourced(sentences []string, sources []Source) []string {
	facts := []string{}
	known := evidenceOf(sources)
	for _, text := range sentences[:min(len(sentences), maxAnswerChunks)] {
		lacking := claim.FactsOf(text).Missing(known)
		for _, fact := range slices.Concat(lacking.Numbers(), lacking.Names, lacking.Titles) {
			if len(facts) < maxUnsourced && !slices.Contains(facts, fact) {
				facts = append(facts, fact)
			}
		}
	}
	return facts
}

// supported counts the marks of a sentence whose references support it together.
func supported(sentence string, marks []int, refs []Reference) int {
	quotes := ""
	title := ""
	n, similar := 0, false
	for _, m := range marks {
		if m >= 1 && m <= len(refs) {
			quotes += refs[m-1].ExactQuote + "\n"
			title += refs[m-1].Title + "\n"
			similar = similar || refs[m-1].RelevanceScore >= minSupport
			n++
		}
	}
	enough := similar || claim.Share(claim.Terms(sentence), claim.Terms(quotes)) >= minWordsSupport
	if !enough || claim.FactsOf(sentence).Missing(claim.NewEvidence(quotes, title)).Count() > 0 {
		return 0
	}
	return n
}

// evidenceOf is what all sources have.
func evidenceOf(sources []Source) claim.Evidence {
	e := claim.NewEvidence()
	for _, s := range sources {
		e.Add(s.title())
		for _, c := range s.Chunks {
			e.Add(c.Text)
		}
	}
	return e
}
