package card

import (
	_ "embed"
	"slices"
)

//go:embed sample.json
var sampleCard []byte

// SampleFile returns the built-in character as a file that Import reads.
func SampleFile() []byte { return slices.Clone(sampleCard) }
