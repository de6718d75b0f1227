package search

import "strings"

// How much evidence counts.
var (
	weightWindow    float32 = 0.5 // the best window of a chunk, beside the chunk itself
	weightCover     float32 = 0.5 // the share of the question that a chunk has, squared
	weightName      float32 = 1   // a term in the name of the file, as so many in the text
	weightHeading   float32 = 1   // a term in the heading
	functionShare   float32 = 0.3 // a pair with a character that says little by itself
	weightFileWords         = 0.7
	furtherShare            = 0.5
)

// functionWords are Chinese characters that say little by themselves.
const functionWords = "的了是我你您他她它们吗呢吧啊在有没不也都就和与或很这那个什么怎为可以能会要请给把被让对从到去来还又再只哪谁几多少如何"

// functionWeight is what a term of a question counts.
func functionWeight(term string) float32 {
	if strings.ContainsAny(term, functionWords) {
		return functionShare
	}
	return 1
}
