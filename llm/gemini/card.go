package gemini

import (
	"context"
	"errors"

	card "github.com/google/generative-ai-go/genai"
	"google.golang.org/api/iterator"
)

// viaCard sends a prompt whose last content is the user's through generative-ai-go. It
// carries the texts; everything else in the answers arrives beside it, in x.
func (p *Provider) viaCard(ctx context.Context, x *exchange, pr prompt) answers {
	return func(yield func(answer, error) bool) {
		client, err := p.card()
		if err != nil {
			yield(answer{}, noClient(err))
			return
		}
		x.sdk = cardSDK
		it := send(ctx, client, pr)
		for {
			resp, err := it.Next()
			if errors.Is(err, iterator.Done) {
				return // relay knows whether that is the end
			}
			if err != nil {
				yield(answer{}, err)
				return
			}
			if !yield(x.take().with(resp), nil) {
				return
			}
		}
	}
}

func send(ctx context.Context, client *card.Client, pr prompt) *card.GenerateContentResponseIterator {
	model := client.GenerativeModel(pr.model)
	model.Temperature, model.TopP = pr.temperature, pr.topP
	if pr.topK != nil {
		model.SetTopK(int32(*pr.topK))
	}
	if pr.maxTokens > 0 {
		model.SetMaxOutputTokens(pr.maxTokens)
	}
	model.StopSequences = pr.stop
	if pr.json {
		model.ResponseMIMEType = jsonType
	}
	if pr.system != "" {
		model.SystemInstruction = &card.Content{Parts: []card.Part{card.Text(pr.system)}}
	}
	last := len(pr.contents) - 1
	if last == 0 {
		return model.GenerateContentStream(ctx, pr.contents[0].cardParts()...)
	}
	chat := model.StartChat()
	for _, c := range pr.contents[:last] {
		chat.History = append(chat.History, &card.Content{Role: c.role, Parts: c.cardParts()})
	}
	return chat.SendMessageStream(ctx, pr.contents[last].cardParts()...)
}

// cardParts are the images, then the text: the order that Google recommends.
func (c content) cardParts() []card.Part {
	var parts []card.Part
	for _, img := range c.images {
		parts = append(parts, card.Blob{MIMEType: img.ContentType, Data: img.Data})
	}
	if c.text != "" {
		parts = append(parts, card.Text(c.text))
	}
	return parts
}

// with adds the texts. Anything may be missing from an answer.
func (a answer) with(resp *card.GenerateContentResponse) answer {
	if len(resp.Candidates) == 0 || resp.Candidates[0] == nil || resp.Candidates[0].Content == nil {
		return a
	}
	for _, part := range resp.Candidates[0].Content.Parts {
		if text, ok := part.(card.Text); ok {
			a.text += string(text)
		}
	}
	return a
}
