package llm

import (
	"context"
	"iter"
	"unicode/utf8"

	"nodest/fault"
)

// Use is what one request to a provider cost.
type Use struct {
	Provider  string
	Model     string
	Task      Task
	Usage     Usage
	Estimated bool       // the provider did not tell, for example because the reply was cancelled
	Code      fault.Code // how it failed; empty after success and when the reader broke off
}

// Metered calls onUse once for every request, when it has ended in whatever way. A
// provider that told no usage, but had begun to answer, is charged an estimate:
// the prompt and the text that came. It stands below WithRetry, so that every
// attempt is counted.
func Metered(provider string, gen Generator, onUse func(context.Context, Use)) Generator {
	return GeneratorFunc(func(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
		return func(yield func(Chunk, error) bool) {
			m := meter{use: Use{Provider: provider, Model: req.Model, Task: req.Task}}
			defer func() { onUse(ctx, m.total(req)) }()
			for c, err := range gen.Stream(ctx, req) {
				m.note(c, err)
				if !yield(c, err) || err != nil || c.Last {
					return
				}
			}
		}
	})
}

type meter struct {
	use   Use
	told  bool
	begun bool
	sizes sizes // of what came
}

func (m *meter) note(c Chunk, err error) {
	if err != nil {
		m.use.Code = fault.Public(err).Code
		return
	}
	m.begun = m.begun || delivers(c)
	m.sizes.add(c.Text)
	m.sizes.add(c.Reasoning)
	if c.Usage != nil {
		m.use.Usage, m.told = *c.Usage, true
	}
	if c.Model != "" {
		m.use.Model = c.Model
	}
}

func (m *meter) total(req Request) Use {
	if !m.told && m.begun {
		m.use.Usage = Usage{PromptTokens: EstimatePrompt(req.Messages), CompletionTokens: m.sizes.tokens()}
		m.use.Estimated = true
	}
	return m.use
}

// EstimateTokens guesses the tokens of text: one for each code point outside
// ASCII (a Chinese character is about one token), one for four within it, rounded
// up. It is meant for accounting where nobody told; the prompt's budget is counted
// by the prompt builder.
func EstimateTokens(text string) int {
	var n sizes
	n.add(text)
	return n.tokens()
}

// sizes counts code points, so that a text in many small pieces is estimated as
// in one.
type sizes struct{ ascii, wide int }

func (n *sizes) add(text string) {
	all := utf8.RuneCountInString(text)
	ascii := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	n.ascii += ascii
	n.wide += all - ascii
}

func (n *sizes) tokens() int { return n.wide + (n.ascii+3)/4 }

// EstimatePrompt is EstimateTokens for messages, with four more for each one's
// frame.
func EstimatePrompt(messages []Message) int {
	n := 0
	for _, m := range messages {
		n += EstimateTokens(m.Text) + EstimateTokens(m.Name) + 4
	}
	return n
}
