package card

import (
	_ "embed"
	"slices"
)

//go:embed sample.json
var sampleCard []byte

//go:embed sample_zh.json
var sampleCardChinese []byte

// SampleFile returns the built-in character as a file that Import reads; in Chinese if language
// is zh, else in English.
func SampleFile(language string) []byte {
	if language == "zh" {
		return slices.Clone(sampleCardChinese)
	}
	return slices.Clone(sampleCard)
}
