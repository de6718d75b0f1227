package gemini

import (
	"context"

	"google.golang.org/genai"

	"nodest/llm"
)

// viaCurrent sends a prompt through google.golang.org/genai.
func (p *Provider) viaCurrent(ctx context.Context, pr prompt) answers {
	return func(yield func(answer, error) bool) {
		client, err := p.current()
		if err != nil {
			yield(answer{}, noClient(err))
			return
		}
		contents := make([]*genai.Content, len(pr.contents))
		for i, c := range pr.contents {
			contents[i] = &genai.Content{Role: c.role, Parts: c.currentParts()}
		}
		for resp, err := range client.Models.GenerateContentStream(ctx, pr.model, contents, pr.config()) {
			if err != nil {
				yield(answer{}, err)
				return
			}
			if !yield(neutral(resp, len(pr.tools) > 0), nil) {
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

// neutral reads one answer, with its parts if tools were offered. Anything may be missing
// from it.
func neutral(resp *genai.GenerateContentResponse, tools bool) answer {
	if resp == nil {
		return answer{}
	}
	a := answer{model: resp.ModelVersion}
	if f := resp.PromptFeedback; f != nil && f.BlockReason != genai.BlockedReasonUnspecified {
		a.block = string(f.BlockReason)
	}
	if u := resp.UsageMetadata; u != nil {
		a.usage = &llm.Usage{
			PromptTokens:     int(u.PromptTokenCount),
			CompletionTokens: int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			CachedTokens:     int(u.CachedContentTokenCount),
		}
	}
	if len(resp.Candidates) == 0 || resp.Candidates[0] == nil {
		return a
	}
	c := resp.Candidates[0]
	if c.FinishReason != genai.FinishReasonUnspecified {
		a.finish = string(c.FinishReason)
	}
	if c.Content == nil {
		return a
	}
	if tools {
		a.parts = c.Content.Parts
	}
	for _, part := range c.Content.Parts {
		switch {
		case part == nil:
		case part.Thought:
			a.thought += part.Text
		default:
			a.text += part.Text
		}
	}
	return a
}
