package gemini

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/genai"

	"nodest/llm"
)

// maxPages bounds the list of models.
const maxPages = 10

// Models lists what the key can use, with the SDK that serves each.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	return p.models.Get(ctx, p.fetchModels)
}

func (p *Provider) fetchModels(ctx context.Context) ([]llm.Model, error) {
	client, err := p.current()
	if err != nil {
		return nil, noClient(err)
	}
	var list []llm.Model
	err = p.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		ctx, x := withExchange(ctx, key)
		defer x.close()
		list = nil
		page, err := client.Models.List(ctx, &genai.ListModelsConfig{PageSize: 1000})
		for n := 1; err == nil && x.err == nil; n++ {
			for _, m := range page.Items {
				list = append(list, p.model(m))
			}
			if n == maxPages {
				return nil
			}
			page, err = page.Next(ctx)
		}
		if errors.Is(err, genai.ErrPageDone) {
			return nil
		}
		return x.failure(ctx, err)
	})
	return list, err
}

func (p *Provider) model(m *genai.Model) llm.Model {
	id := bare(m.Name)
	return llm.Model{
		ID: id, Name: m.DisplayName, ContextTokens: int(m.InputTokenLimit + m.OutputTokenLimit), OutputTokens: int(m.OutputTokenLimit),
		Generates: slices.Contains(m.SupportedActions, "generateContent"),
		Embeds:    slices.Contains(m.SupportedActions, "embedContent"),
		Sees:      llm.KnownToSee(id),
		NoTools:   noTools.MatchString(id),
		Transport: p.Transport(id),
	}
}
