package websearch_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/cite"
	"nodest/internal/outbound"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/intent"
	"nodest/websearch/miniweb"
	"nodest/websearch/provider"
	"nodest/websearch/provider/providertest"
	"nodest/websearch/reader"
)

// searched is a service over the mini-web, whose search provider answers its questions.
func searched(t *testing.T, web *miniweb.Web) (*websearch.Service, string) {
	t.Helper()
	db := storetest.Open(t)
	return searchedIn(t, web, db.WebSearch()), storetest.User(t, db)
}

// searchedIn is that service on a store.
func searchedIn(t *testing.T, web *miniweb.Web, store websearch.Store) *websearch.Service {
	t.Helper()
	engine := &providertest.Server{}
	server := httptest.NewServer(engine)
	for _, q := range web.Questions {
		var results []providertest.Result
		for _, r := range q.Serp {
			results = append(results, providertest.Result{Title: r.Title, URL: r.URL, Content: r.Description})
		}
		engine.Answer(intent.Query(q.Question), results...)
	}
	guard, err := outbound.New(web.Options())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := provider.New(provider.Config{Names: []string{provider.SearXNG}, BaseURL: server.URL, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	pages := reader.New(guard, reader.Config{})
	t.Cleanup(func() {
		_ = chain.Close()
		pages.Close()
		server.Close()
	})
	return websearch.New(store, websearch.Options{Chain: chain, Reader: pages, ReadTime: time.Minute})
}

// Each question of the mini-web finds its page among distractors, duplicates and bad links,
// and the quote that answers it is in the prompt.
func TestMiniwebQuestionsFindTheirQuote(t *testing.T) {
	web := miniweb.Start(t)
	svc, user := searched(t, web)
	pages, quotes := 0, 0
	for _, q := range web.Questions {
		t.Run(q.ID, func(t *testing.T) {
			found, err := svc.Quick(t.Context(), websearch.Turn{UserID: user, Text: q.Question, Lang: q.Lang})
			if err != nil {
				t.Fatal(err)
			}
			good := []string{q.ExpectedURL}
			for _, id := range q.AlsoAcceptable {
				good = append(good, web.Route(id).URL)
			}
			at := slices.IndexFunc(found.Sources, func(s cite.Source) bool { return slices.Contains(good, s.URL) })
			if at < 0 {
				t.Fatalf("no entry is the page %s:\n%s", q.ExpectedURL, found.Block(1))
			}
			pages++
			if !strings.Contains(strings.Join(strings.Fields(found.Block(1)), " "), strings.Join(strings.Fields(q.Quote), " ")) {
				t.Fatalf("the quote %q is missing:\n%s", q.Quote, found.Block(1))
			}
			quotes++
			seen := map[string]bool{}
			for _, s := range found.Sources {
				if r := routeOf(web, s.URL); r != nil && s.Evidence == cite.EvidencePage && r.Outcome != "ok" && r.Outcome != "redirect" {
					t.Errorf("%s is %s and yet an entry", s.URL, r.Outcome)
				}
				if seen[s.URL] {
					t.Errorf("%s is there twice", s.URL)
				}
				seen[s.URL] = true
			}
		})
	}
	t.Logf("%d questions: the page of %d and the quote of %d are in the prompt", len(web.Questions), pages, quotes)
}

func routeOf(web *miniweb.Web, url string) *miniweb.Route {
	for i := range web.Routes {
		if web.Routes[i].URL == url {
			return &web.Routes[i]
		}
	}
	return nil
}
