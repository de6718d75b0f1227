package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"nodest/internal/fault"
)

// oddValues are values that no member of a result should have.
var oddValues = []string{`null`, `5`, `1e999`, `true`, `["a"]`, `[[]]`, `{"a":1}`}

// One odd result never costs the others, whatever of it is odd.
func TestOddResultsDoNotCostTheOthers(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]struct {
		of      func(*testing.T, http.Handler) Provider
		members string // members of a result; the last one is the description
		answer  string // LIST are the results, ODD a value that does not belong there
	}{
		"SearXNG":   {searxngFor, "title url publishedDate content", `{"query":5,"results":[LIST],"unresponsive_engines":ODD,"answers":ODD,"number_of_results":ODD}`},
		"Brave":     {func(t *testing.T, h http.Handler) Provider { return braveFor(t, h) }, "title url age page_age description", `{"query":ODD,"web":{"results":[LIST],"type":ODD},"locations":ODD,"mixed":ODD}`},
		"Jina":      {jinaFor, "title url date snippet description", `{"code":ODD,"data":[LIST],"meta":ODD}`},
		"Jina deep": {jinaFor, "title url link date description", `{"results":[LIST],"usage":ODD}`},
	} {
		members := strings.Fields(engine.members)
		good := `{"title":"Good","url":"https://good.test/a","` + members[len(members)-1] + `":"Fine."}`
		check := func(odd, member, before string, most int) {
			t.Helper()
			body := "\ufeff" + strings.NewReplacer("ODD", odd, "LIST", before+","+good).Replace(engine.answer)
			res, err := search(t, engine.of(t, answers(t, nil, reply{body: body})), question)
			n := len(res.Results)
			if err != nil || n == 0 || n > most || res.Results[n-1] != (Result{Title: "Good", URL: "https://good.test/a", Description: "Fine."}) {
				t.Errorf("%s, %s %s: %+v, %v", name, member, odd, res.Results, err)
			}
		}
		for _, odd := range oddValues {
			for _, m := range members {
				check(odd, m, `{"url":"https://odd.test/b","title":"Odd","`+m+`":`+odd+`}`, 2)
			}
			check(odd, "result", odd, 1)
		}
	}
}

// An answer whose results cannot be read at all is a failure, so that another provider is asked.
func TestResultsThatCannotBeReadAtAllAreAFailure(t *testing.T) {
	t.Parallel()
	for _, p := range []Provider{
		searxngFor(t, answers(t, nil, reply{body: `{"results":"none"}`})), jinaFor(t, answers(t, nil, reply{body: `{"data":[5,"x"]}`})), searxngFor(t, answers(t, nil, reply{body: `[]`})),
	} {
		if _, err := search(t, p, question); !fault.Is(err, fault.UpstreamBadAnswer) {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
}

func TestOddPlacesDoNotCostTheOthers(t *testing.T) {
	t.Parallel()
	for _, odd := range oddValues {
		var b brave
		b.name = Brave
		var details struct {
			Results json.RawMessage
		}
		body := `{"results":[` + odd + `,{"id":"a","title":` + odd + `,"name":"Alder Books","rating":{"ratingValue":"4.5","ratingCount":` + odd + `,"reviewCount":"12"},"address":` + odd + `,"contact":` + odd + `,"price_range":` + odd + `}]}`
		if err := b.decode(answer{body: []byte(body)}, &details); err != nil {
			t.Fatal(err)
		}
		list, err := elements[bravePlace](b.api, details.Results)
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %v", odd, err)
		}
		p := list[len(list)-1].place("")
		if odd != "5" && odd != "1e999" && p.Name != "Alder Books" || p.Rating != 4.5 || p.Ratings < 12 {
			t.Errorf("%s: %+v", odd, p)
		}
	}
}

func TestOddAnswersOfSearchTools(t *testing.T) {
	t.Parallel()
	for _, odd := range oddValues {
		text := "\ufeff" + `{"total":` + odd + `,"results":[` + odd + `,{"title":` + odd + `,"url":` + odd + `},{"title":"Good","url":"https://good.test/a","description":"Fine.","score":` + odd + `}]}`
		found, known := resultsOf(texts(text), noon)
		if !known || len(found) != 1 || found[0].URL != "https://good.test/a" {
			t.Errorf("%s: %+v", odd, found)
		}
		tool := rate(&mcp.Tool{Name: "web_search", Description: "Search the web", InputSchema: json.RawMessage(
			`{"type":"object","title":` + odd + `,"properties":{"query":{"type":"string","description":` + odd + `},"count":{"type":"integer","maximum":` + odd + `},"other":` + odd + `},"required":["query"]}`)})
		if tool.query != "query" || tool.count != "count" || tool.rank == 0 {
			t.Errorf("%s: the tool is %+v", odd, tool)
		}
	}
}
