package llm

import "unicode/utf8"

// Use is what one request to a provider cost.
type Use struct {
	Provider string
	Model    string
	Usage    Usage
}

// EstimateTokens guesses the tokens of text: one for each code point outside ASCII (a Chinese
// character is about one token), one for every four ASCII characters, rounded up. It is for
// accounting where the provider reports nothing; the prompt builder counts the prompt's budget.
func EstimateTokens(text string) int {
	ascii, wide := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			wide++
		}
	}
	return wide + (ascii+3)/4
}

// imageTokens is what an image is estimated at. Providers count from some 250 to 1,600.
const imageTokens = 1000

// EstimatePrompt is EstimateTokens for messages, plus four for each message and 1,000 for
// each image, with the calls of tools and their results.
func EstimatePrompt(messages []Message) int {
	n := 0
	for _, m := range messages {
		n += EstimateTokens(m.Text) + EstimateTokens(m.Name) + 4 + len(m.Images)*imageTokens
		for _, call := range m.Calls {
			n += EstimateTokens(call.Name) + EstimateTokens(call.Arguments) + 4
		}
		if m.Result != nil {
			n += EstimateTokens(m.Result.Text)
		}
	}
	return n
}
