package search

import "strings"

// How much evidence counts. docs/decisions/0025-knowledge.md says how these were chosen. Results
// change little when one of them is halved or doubled, except weightNear, which was picked on
// one set of questions, and the Query.VectorWeight, which was not measured with real vectors.
const (
	weightWindow  = 0.5 // the best window of a chunk, beside the chunk itself
	weightCover   = 0.5 // the share of the question that a chunk has, squared
	functionShare = 0.3 // a pair with a character that says little by itself

	furtherWeight = 0.5 // the rank by a further wording, beside that by the question

	weightNear     = 0.5  // terms of the question that are near each other in a text
	weightTitle    = 0.5  // those in heading or name
	weightWords    = 0.25 // the score by words
	weightContents = 0.3  // a table of contents loses this
	repeatShare    = 0.7  // left to a chunk whose text a better one has in part
	bestShare      = 0.8  // the best chunk in a file's relevance; the rest is the mean of three
)

// SpellingWeight is the Query.VectorWeight of vectors that know the spelling of words only, such
// as those of the offline embeddings.
const SpellingWeight = 0.1

// SpellingSimilarity is the Query.MinSimilarity of such vectors: texts without a common word
// have cosines of about 0.05, passages that answer a question more than 0.2.
const SpellingSimilarity = 0.12

// functionWords are Chinese characters that say little by themselves.
const functionWords = "的了是我你您他她它们吗呢吧啊在有没不也都就和与或很这那个什么怎为可以能会要请给把被让对从到去来还又再只哪谁几多少如何"

// functionWeight is what a term of a question counts.
func functionWeight(term string) float32 {
	if strings.ContainsAny(term, functionWords) {
		return functionShare
	}
	return 1
}
