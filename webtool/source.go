package nodest

import (
	"context"
	"time"

	"nodest/framework"
	"nodest/llm"
	"nodest/websearch"
)

// Web is the source that searches the web, where the user has allowed it and the message
// needs it. Previews of prompts do not search: the text would leave the house before it
// is sent.
func Web(w *websearch.Service, limit time.Duration) Source {
	return Source{
		Name: "websearch", Limit: limit,
		Warning: framework.Warning{Code: "search_unavailable", Detail: "the web could not be searched"},
		Wanted: func(q *Question) bool {
			on := q.Setup.Options.SearchEnabled
			return on != nil && *on && q.task == llm.Reply && !q.preview && q.Text != "" && w.Wanted(q.Text, q.names())
		},
		Find: func(ctx context.Context, q *Question) (Findings, error) { return searchWeb(ctx, w, q) },
	}
}

func searchWeb(ctx context.Context, w *websearch.Service, q *Question) (Findings, error) {
	found, err := w.Quick(ctx, websearch.Turn{UserID: q.UserID, Text: q.Text, Before: q.Before, Lang: string(q.Setup.Docs.Language)})
	if err != nil {
		return Findings{}, err
	}
	search := Search{
		Query: found.Query, Provider: found.Provider, Cached: found.Cached, Ms: found.Took.Milliseconds(), Results: found.Results,
		Pages: []SearchPage{},
	}
	for i, s := range found.Sources {
		search.Pages = append(search.Pages, SearchPage{Marker: i + 1, URL: s.URL, Title: s.Title, Evidence: s.Evidence})
	}
	return Findings{
		Web: found.Block, Sources: found.Sources, Search: []Search{search},
	}, nil
}

// names are those of the two speakers: a question about them is none about the world.
func (q *Question) names() []string {
	names := q.Setup.MemoryScene().Names
	return []string{names.User, names.Character}
}
