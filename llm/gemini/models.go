package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"

	"nodest/fault"
	"nodest/llm"
)

// pages bounds the list of models, which comes in pages.
const pages = 10

// Models lists what the key can use, with the SDK that serves each.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	var list []llm.Model
	err := p.keys.Do(ctx, func(ctx context.Context, key llm.Key) error {
		list = nil
		var token string
		for range pages {
			page, next, err := p.modelPage(ctx, key, token)
			if err != nil {
				return err
			}
			list = append(list, page...)
			if token = next; token == "" {
				break
			}
		}
		return nil
	})
	return list, err
}

func (p *Provider) modelPage(ctx context.Context, key llm.Key, token string) (list []llm.Model, next string, err error) {
	var answer struct {
		Models []struct {
			Name        string   `json:"name"`
			DisplayName string   `json:"displayName"`
			Input       int      `json:"inputTokenLimit"`
			Output      int      `json:"outputTokenLimit"`
			Methods     []string `json:"supportedGenerationMethods"`
		} `json:"models"`
		NextPageToken string `json:"nextPageToken"`
	}
	q := url.Values{"pageSize": {"1000"}}
	if token != "" {
		q.Set("pageToken", token)
	}
	if err := p.get(ctx, key, "/v1beta/models?"+q.Encode(), &answer); err != nil {
		return nil, "", err
	}
	for _, m := range answer.Models {
		id := bare(m.Name)
		list = append(list, llm.Model{
			ID: id, Name: m.DisplayName, ContextTokens: m.Input + m.Output, OutputTokens: m.Output,
			Generates: slices.Contains(m.Methods, "generateContent"),
			Embeds:    slices.Contains(m.Methods, "embedContent"),
			Transport: p.Transport(id),
		})
	}
	return list, answer.NextPageToken, nil
}

func (p *Provider) get(ctx context.Context, key llm.Key, path string, out any) error {
	ctx, x := withExchange(ctx, key)
	defer x.close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "could not create the request")
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return x.failure(ctx, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, x.err); err != nil {
		return x.failure(ctx, err)
	}
	if json.Unmarshal(b, out) != nil {
		return llm.BadAnswer(name, nil, "sent unexpected JSON")
	}
	return nil
}
