package card

import (
	_ "embed"
	"slices"
)

//go:embed sample.json
var sampleCard []byte

// Sample returns the built-in character, so that a new user can chat at once.
// Each call returns a new copy.
func Sample() *Character {
	ch, err := Import(sampleCard, "sample.json", Limits{})
	if err != nil {
		panic("card: the built-in character is a valid card: " + err.Error())
	}
	return ch
}

// SampleFile returns the built-in character as a file that Import reads.
func SampleFile() []byte { return slices.Clone(sampleCard) }
