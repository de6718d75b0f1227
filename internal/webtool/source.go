// Package webtool has web search for the turns of a chat: as a source, which searches for a message before
// the model is asked, and as a tool of the model.
package webtool

import (
	"context"
	"time"

	"nodest/framework"
	"nodest/nodest"
	"nodest/websearch"
)

// Source is the source that searches the web, where the user has allowed it and the message
// needs it. Previews of prompts do not search: the text would leave the house before it
// is sent.
func Source(w *websearch.Service, limit time.Duration) nodest.Source {
	return nodest.Source{
		Name: "websearch", Limit: limit,
		Warning: framework.Warning{Code: "search_unavailable", Detail: "the web could not be searched"},
		Wanted: func(q *nodest.Question) bool {
			on := q.Setup.Options.SearchEnabled
			return on != nil && *on && q.Answers() && q.Text != "" && w.Wanted(q.Text, speakers(q))
		},
		Find: func(ctx context.Context, q *nodest.Question) (nodest.Findings, error) { return searchWeb(ctx, w, q) },
	}
}

func searchWeb(ctx context.Context, w *websearch.Service, q *nodest.Question) (nodest.Findings, error) {
	found, err := w.Quick(ctx, websearch.Turn{UserID: q.UserID, Text: q.Text, Before: q.Before, Lang: string(q.Setup.Docs.Language), CharacterID: q.Setup.Docs.CharacterID, NoFeedback: !q.Setup.Docs.Settings.Retrieval.Feedback})
	if err != nil {
		return nodest.Findings{}, err
	}
	search := nodest.Search{
		Query: found.Query, Provider: found.Provider, Cached: found.Cached, Ms: found.Took.Milliseconds(), Results: found.Results,
		Pages: []nodest.SearchPage{},
	}
	for i, s := range found.Sources {
		search.Pages = append(search.Pages, nodest.SearchPage{Marker: i + 1, URL: s.URL, Title: s.Title, Evidence: s.Evidence, Factor: found.Factors[s.URL], Closed: string(found.Closed[s.URL])})
	}
	return nodest.Findings{
		Web: found.Block, Sources: found.Sources, Search: []nodest.Search{search},
	}, nil
}

// speakers are the names of the two speakers: a question about them is none about the world.
func speakers(q *nodest.Question) []string {
	names := q.Setup.MemoryScene().Names
	return []string{names.User, names.Character}
}
