package researchtool

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest"
	"nodest/nodest/tools"
	"nodest/websearch"
	"nodest/websearch/research"
)

// Toolbox lets the model begin a research while it writes, where the user has allowed web search. limit is for
// beginning one.
func Toolbox(r *research.Service, w *websearch.Service, limit time.Duration) nodest.Toolbox {
	return nodest.Toolbox{
		Name: "research", Limit: limit,
		Warning: framework.Warning{Code: "research_unavailable", Detail: "the model cannot begin a research"},
		Wanted: func(q *nodest.Question) bool {
			on := q.Setup.Options.SearchEnabled
			return on != nil && *on && q.Here.ConversationID != "" && q.Unasked == "" && len(w.Providers()) > 0 && !asked(q)
		},
		Open: func(ctx context.Context, q *nodest.Question) (*nodest.Toolkit, error) {
			if !q.MayCall(ctx) {
				return nil, nil
			}
			return &nodest.Toolkit{Tools: []tools.Tool{deepResearch(r, q, limit)}, Rules: textsFor(q).rules}, nil
		},
	}
}

func deepResearch(r *research.Service, q *nodest.Question, limit time.Duration) tools.Tool {
	return tools.Tool{
		Tool: llm.Tool{
			Name:        "deepResearch",
			Description: "Begin a deep research that takes some minutes; its result comes later, as a message of its own. Write the whole question: replace words such as it, she or there with the names they stand for.",
			Parameters:  json.RawMessage(`{"type":"object","required":["question"],"properties":{"question":{"type":"string","description":"What is to be found out, in a sentence or two."}}}`),
		},
		Limit: 1, Time: limit,
		Call: func(ctx context.Context, c tools.Call) (*tools.Answer, error) {
			var in struct{ Question string }
			if err := json.Unmarshal(c.Arguments, &in); err != nil {
				return nil, err
			}
			if err := start(ctx, r, q, op.Truncate(strings.TrimSpace(in.Question), research.MaxQuestion)); err != nil {
				return nil, err
			}
			return &tools.Answer{Text: func(*tools.Sheet) string { return `<research state="begun"/>` }}, nil
		},
	}
}
