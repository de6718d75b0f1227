package gemini

import (
	"context"

	"google.golang.org/genai"
)

// viaCurrent sends a prompt through google.golang.org/genai. It carries the parts; everything
// else in the answers arrives beside it, in x.
func (p *Provider) viaCurrent(ctx context.Context, x *exchange, pr prompt) answers {
	return func(yield func(answer, error) bool) {
		client, err := p.current()
		if err != nil {
			yield(answer{}, noClient(err))
			return
		}
		x.sdk = currentSDK
		contents := make([]*genai.Content, len(pr.contents))
		for i, c := range pr.contents {
			contents[i] = &genai.Content{Role: c.role, Parts: c.currentParts()}
		}
		for resp, err := range client.Models.GenerateContentStream(ctx, pr.model, contents, pr.config()) {
			if err != nil {
				yield(answer{}, err)
				return
			}
			if !yield(x.take().withParts(resp, len(pr.tools) > 0), nil) {
				return
			}
		}
	}
}

// currentParts are the same as cardParts, with calls and results.
func (c content) currentParts() []*genai.Part {
	if c.calls != nil {
		return c.calls
	}
	var parts []*genai.Part
	for _, r := range c.results {
		parts = append(parts, &genai.Part{FunctionResponse: r})
	}
	for _, img := range c.images {
		parts = append(parts, genai.NewPartFromBytes(img.Data, img.ContentType))
	}
	if c.text != "" {
		parts = append(parts, genai.NewPartFromText(c.text))
	}
	return parts
}

func (pr prompt) config() *genai.GenerateContentConfig {
	config := &genai.GenerateContentConfig{
		Temperature: pr.temperature, TopP: pr.topP, MaxOutputTokens: pr.maxTokens,
		StopSequences: pr.stop, Seed: pr.seed,
	}
	if pr.topK != nil {
		config.TopK = new(float32(*pr.topK))
	}
	if pr.system != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: pr.system}}}
	}
	if pr.json {
		config.ResponseMIMEType = jsonType
	}
	if len(pr.tools) > 0 {
		config.Tools = []*genai.Tool{{FunctionDeclarations: pr.tools}}
		if pr.noCalls {
			config.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}}
		}
	}
	if pr.thoughts {
		config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	}
	return config
}

// withParts adds the texts, and all parts if tools were offered. Anything may be missing from an
// answer.
func (a answer) withParts(resp *genai.GenerateContentResponse, tools bool) answer {
	if resp == nil || len(resp.Candidates) == 0 || resp.Candidates[0] == nil || resp.Candidates[0].Content == nil {
		return a
	}
	parts := resp.Candidates[0].Content.Parts
	if tools {
		a.parts = parts
	}
	for _, part := range parts {
		if part != nil && !part.Thought { // x has heard the thoughts
			a.text += part.Text
		}
	}
	return a
}
