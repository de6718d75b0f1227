package server

import (
	"slices"
	"strings"
	"testing"

	"nodest/websearch/miniweb"
	"nodest/websearch/provider/providertest"
)

// Each question of the mini-web is asked in a chat: the request has the quote that answers
// it in its block, and a reply that says so cites the right page with a quote of it.
// It runs alone: a page that is not read within seconds is left out of the reply.
func TestMiniwebRepliesCiteTheirPage(t *testing.T) {
	web := miniweb.Start(t)
	h := newTestServer(t, nil)
	options := web.Options()
	h.web.mini = &options
	chat, p := h.searching()
	inPrompt, cited := 0, 0
	for _, q := range web.Questions {
		var results []providertest.Result
		for _, r := range q.Serp {
			results = append(results, providertest.Result{Title: r.Title, URL: r.URL, Content: r.Description})
		}
		h.web.search.Answer("", results...)
		h.model.enqueue(&script{pieces: []string{"Well, let me see.\n\n", q.Quote, " [1][2][3][4][5]."}}) // a model that cites everything
		reply, _ := h.reply(p, chat, q.Question, nil)
		_, block, _ := strings.Cut(h.model.last(), "\n<websearch>\n")
		block, _, _ = strings.Cut(block, "\n</websearch>\n")
		if !strings.Contains(folded(block), folded(q.Quote)) {
			t.Errorf("%s: the quote is not in the block:\n%s", q.ID, block)
			continue
		}
		inPrompt++
		good := []string{q.ExpectedURL}
		for _, id := range q.AlsoAcceptable {
			good = append(good, web.Route(id).URL)
		}
		references := reply["references"].([]any)
		if len(references) == 0 {
			t.Errorf("%s: %q cites nothing", q.ID, reply["text"])
			continue
		}
		first := references[0].(map[string]any)
		if !slices.Contains(good, first["url"].(string)) || !strings.Contains(folded(block), folded(first["exactQuote"].(string))) || !strings.Contains(reply["text"].(string), "[^1]") {
			t.Errorf("%s: %q cites %v", q.ID, reply["text"], first)
			continue
		}
		cited++
	}
	t.Logf("%d questions: the quote of %d is in the request, and %d replies cite it", len(web.Questions), inPrompt, cited)
}

// folded is text with single spaces.
func folded(text string) string { return strings.Join(strings.Fields(text), " ") }
