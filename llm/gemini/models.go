package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"

	"nodest/internal/fault"
	"nodest/llm"
)

// maxPages bounds the list of models.
const maxPages = 10

// Models lists what the key can use, with the SDK that serves each.
func (p *Provider) Models(ctx context.Context) ([]llm.Model, error) {
	return p.models.Get(ctx, p.fetchModels)
}

// fetchModels reads the list without an SDK: genai panics at a member of an unexpected type.
func (p *Provider) fetchModels(ctx context.Context) ([]llm.Model, error) {
	var list []llm.Model
	err := p.keys.Ask(ctx, func(ctx context.Context, key llm.Key) error {
		list = nil
		next := ""
		for range maxPages {
			page, err := p.modelPage(ctx, key, next)
			if err != nil {
				return err
			}
			for _, raw := range page.List("models") {
				if m := llm.ObjectOf(string(raw), "name"); m != nil {
					list = append(list, p.model(m))
				}
			}
			if next = page.Text("nextPageToken"); next == "" {
				return nil
			}
		}
		return nil
	})
	return list, err
}

// modelPage is a page of the list; the first one has no token.
func (p *Provider) modelPage(ctx context.Context, key llm.Key, token string) (llm.Object, error) {
	ctx, x := withExchange(ctx, key)
	defer x.close()
	address := p.base + "/v1beta/models?pageSize=1000&pageToken=" + url.QueryEscape(token)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "could not create the request")
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, x.failure(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	b, err := io.ReadAll(resp.Body)
	if err = cmp.Or(err, x.err); err != nil {
		return nil, x.failure(ctx, err)
	}
	page := llm.ObjectOf(string(b), "")
	if page == nil {
		return nil, llm.BadAnswer(name, nil, "sent unexpected JSON")
	}
	return page, nil
}

func (p *Provider) model(m llm.Object) llm.Model {
	var can []string
	_ = json.Unmarshal(m["supportedGenerationMethods"], &can) // without it the model does nothing
	tokens := func(key string) int {
		n, _ := m.Number(key) // 0 = unknown
		return int(min(max(n, 0), 1e9))
	}
	id := bare(m.Text("name"))
	return llm.Model{
		ID: id, Name: m.Text("displayName"), ContextTokens: tokens("inputTokenLimit") + tokens("outputTokenLimit"), OutputTokens: tokens("outputTokenLimit"),
		Generates: slices.Contains(can, "generateContent"),
		Embeds:    slices.Contains(can, "embedContent"),
		Sees:      llm.KnownToSee(id),
		NoTools:   noTools.MatchString(id),
		Transport: p.Transport(id),
	}
}
