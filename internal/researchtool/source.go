package researchtool

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/websearch/intent"
	"nodest/websearch/research"
	"nodest/websearch/weburl"
)

// Source begins a research where the user has allowed web search and asks for one in plain words, and has a
// message tell what came of it. Limit is for beginning or reading one.
func Source(r *research.Service, limit time.Duration) nodest.Source {
	return nodest.Source{
		Name: "research", Limit: limit,
		Warning: framework.Warning{Code: "research_unavailable", Detail: "the research could not be begun or read"},
		Wanted:  func(q *nodest.Question) bool { return q.Answers() && (q.Unasked != "" || asked(q)) },
		Find: func(ctx context.Context, q *nodest.Question) (nodest.Findings, error) {
			if q.Unasked == "" {
				return begin(ctx, r, q), nil
			}
			run, err := toTell(ctx, r, q)
			if run == nil || err != nil {
				return nodest.Findings{}, err
			}
			return told(run, textsFor(q)), nil
		},
	}
}

// toTell returns the research that the message tells of: that of the message which is written anew, also of a copy
// in another chat, or the one that has its id. nil = none.
func toTell(ctx context.Context, r *research.Service, q *nodest.Question) (*research.Run, error) {
	if q.Retold != "" {
		if run, err := r.Get(ctx, q.UserID, q.Retold); !fault.Is(err, fault.NotFound) {
			return run, err
		}
	}
	return r.ToldBy(ctx, q.UserID, q.Unasked)
}

// asked reports whether the user asks for a research.
func asked(q *nodest.Question) bool {
	on, names := q.Setup.Options.SearchEnabled, q.Setup.MemoryScene().Names
	return on != nil && *on && q.Here.ConversationID != "" && intent.Research(q.Text, intent.Options{Names: []string{names.User, names.Character}})
}

// begin begins the research that a message asks for. The reply says what came of that.
func begin(ctx context.Context, r *research.Service, q *nodest.Question) nodest.Findings {
	w := textsFor(q)
	switch err := start(ctx, r, q, op.Truncate(q.Text, research.MaxQuestion)); {
	case err == nil:
		return nodest.Findings{Instruction: w.begun}
	case fault.Is(err, fault.Conflict):
		return nodest.Findings{Instruction: w.open}
	default:
		return nodest.Findings{Instruction: w.failed, Warnings: []framework.Warning{{Code: "research_unavailable", Detail: fault.Public(err).Message}}}
	}
}

// start starts a research for a conversation, in which none is at work yet.
func start(ctx context.Context, r *research.Service, q *nodest.Question, question string) error {
	o := research.Order{Question: &question}
	if intent.ResearchThat(question) {
		o.Queries = []string{} // the model takes them from the chat
	}
	_, err := r.StartAlone(ctx, &op.Call{UserID: q.UserID}, q.Here.ConversationID, o)
	return err
}

// told is the result of a research, with the instruction to tell it.
func told(run *research.Run, w texts) nodest.Findings {
	if run.Result == nil {
		return nodest.Findings{Instruction: w.sorry, ResearchID: run.ID}
	}
	f := nodest.Findings{Instruction: w.tell, ResearchID: run.ID}
	for _, ref := range run.Result.References {
		f.Sources = append(f.Sources, cite.Source{
			URL: ref.URL, Title: ref.Title, DateTime: ref.DateTime, Kind: ref.Kind, Evidence: ref.Evidence,
			FileID: ref.FileID, ChunkID: ref.ChunkID, Page: ref.Page, Chunks: []cite.Chunk{{Text: ref.ExactQuote}},
		})
	}
	f.Web = func(first int) string { return resultText(run, w, first) }
	return f
}

var mark = regexp.MustCompile(`\[\^(\d+)\]`)

// resultText is a result as a model reads it, with numbers from first on.
func resultText(run *research.Run, w texts, first int) string {
	var b strings.Builder
	b.WriteString(w.answer + " " + oneLine(run.Plan.Question) + "\n\n")
	b.WriteString(mark.ReplaceAllStringFunc(run.Result.Answer, func(m string) string {
		n, _ := strconv.Atoi(m[2 : len(m)-1])
		return "[^" + strconv.Itoa(n+first-1) + "]"
	}))
	if len(run.Result.Left) > 0 {
		b.WriteString("\n\n" + w.left + "\n- " + strings.Join(run.Result.Left, "\n- "))
	}
	if len(run.Result.References) > 0 {
		b.WriteString("\n\n" + w.sources)
	}
	for i, ref := range run.Result.References {
		b.WriteString("\n[" + strconv.Itoa(first+i) + "] " + oneLine(ref.Title) + " — " + weburl.Hostname(ref.URL) + "\n" + ref.ExactQuote)
	}
	return b.String()
}

// oneLine is a text that cannot be taken for more than a line of the list.
func oneLine(text string) string {
	return op.Truncate(strings.Join(strings.Fields(text), " "), longestLine)
}

const longestLine = 300 // code points

// citations are the references of a result, for a message that has its text.
func citations(run *research.Run) *cite.Citations {
	report := run.Result.Report
	return &cite.Citations{References: run.Result.References, Report: &report, ResearchID: run.ID}
}
