package cite

import (
	"slices"

	"nodest/internal/index"
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
}

// NewReport checks an answer with marks of this package against its references and sources.
func NewReport(c Cited, sources []Source) Report {
	clean, found := readMarks(c.Answer, 0)
	in := linesOf(clean)
	all := sentencesOf(clean, in, protected(clean, in))
	numbers := map[int][]int{} // by sentence
	r := Report{Sentences: len(all), Unsourced: []string{}}
	for _, w := range found {
		s := sentenceAt(in, all, w.at)
		r.Marks += len(w.numbers)
		numbers[s] = append(numbers[s], w.numbers...)
	}
	known := evidenceOf(sources)
	for i, s := range all {
		text := clean[s.Span[0]:s.Span[1]]
		if marks := numbers[i]; len(marks) > 0 {
			r.Marked++
			r.Supported += supported(text, marks, c.References)
		}
		if i >= maxAnswerChunks || len(r.Unsourced) == maxUnsourced {
			continue
		}
		lacking := factsOf(text).missing(known)
		for _, fact := range slices.Concat(lacking.numbers, lacking.names, lacking.titles) {
			if len(r.Unsourced) < maxUnsourced && !slices.Contains(r.Unsourced, fact) {
				r.Unsourced = append(r.Unsourced, fact)
			}
		}
	}
	return r
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
	enough := similar || share(distinct(index.Terms(sentence)), distinct(index.Terms(quotes))) >= minWordsSupport
	if !enough || factsOf(sentence).missing(newEvidence(quotes, title)).count() > 0 {
		return 0
	}
	return n
}
