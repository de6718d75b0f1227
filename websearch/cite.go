package websearch

import (
	"context"

	"nodest/internal/cite"
)

// Cited is a text with marks, their sources, and how well these support the text.
type Cited struct {
	Answer     string           `json:"answer"`
	References []cite.Reference `json:"references"`
	Report     cite.Report      `json:"report"`
}

// Cite adds citations to an answer. Nothing is fetched; sources have what can be quoted.
func (s *Service) Cite(ctx context.Context, userID, answer string, sources []cite.Source, o cite.ReferenceOptions) Cited {
	cited := cite.BuildReferences(ctx, s.embedder(ctx, userID), answer, sources, o)
	s.opts.Log.DebugContext(ctx, "references", "kept", len(cited.References), "relevance", cited.Relevance)
	return Cited{cited.Answer, append([]cite.Reference{}, cited.References...), cite.NewReport(cited, sources)}
}
