package card

import _ "embed"

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
