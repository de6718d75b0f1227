package api

import (
	"context"
	"io"
	"net/http"

	"nodest/internal/cite"
	"nodest/internal/op"
	"nodest/websearch/research"
	"nodest/websearch/research/agent"
)

// researchOperations are about deep research.
var researchOperations = []Operation{
	{Command: "research.start", Route: "POST /research", Key: true, Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in researchData) (any, error) {
		return researchOf(c.Research.Plan(ctx, c.Call, in.ConversationID, in.Order, in.Start))
	})},
	{Route: "PATCH /research/:id", Data: takes(func(ctx context.Context, c *Call, in researchPatchData) (any, error) {
		return researchOf(c.Research.Change(ctx, c.Call, in.ID, in.Order))
	})},
	{Command: "research.run", Route: "POST /research/:id/start", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return researchOf(c.Research.Begin(ctx, c.Call, in.ID))
	})},
	{Command: "research.cancel", Route: "POST /research/:id/cancel", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return researchOf(c.Research.Cancel(ctx, c.Call, in.ID))
	})},
	{Route: "DELETE /research/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return struct{}{}, c.Research.Remove(ctx, c.Call, in.ID)
	})},
	{Route: "GET /research", Data: takes(func(ctx context.Context, c *Call, in researchListData) (any, error) {
		return Pages(wireResearchHeadOf)(c.Research.List(ctx, c.UserID, in.ConversationID, in.Cursor, int(in.Limit)))
	})},
	{Command: "research.get", Route: "GET /research/:id", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return Result(wireResearchOf)(c.Research.Get(ctx, c.UserID, in.ID))
	})},
}

// researchDownloads are the files of runs.
var researchDownloads = []Download{{Route: "GET /research/:id/export", Run: exportResearch}}

func exportResearch(ctx context.Context, s *Services, userID string, in Asked, out io.Writer) (contentType, filename string, err error) {
	run, err := s.Research.Get(ctx, userID, in.ID)
	if err == nil {
		_, err = io.WriteString(out, research.Markdown(run))
	}
	return "text/markdown; charset=utf-8", "research.md", err
}

type researchData struct {
	research.Order
	ConversationID string `json:"conversationId,omitempty"`
	Start          bool   `json:"start,omitempty"`
}

type researchPatchData struct {
	ID string `json:"id"`
	research.Order
}

type researchListData struct {
	pageData
	ConversationID string `json:"conversationId,omitempty"`
}

// wireResearchHead is a run in a list.
type wireResearchHead struct {
	ID             string         `json:"id"`
	ConversationID *string        `json:"conversationId"`
	MessageID      *string        `json:"messageId"`
	State          research.State `json:"state"`
	Question       string         `json:"question"`
	Usage          agent.Cost     `json:"usage"`
	Error          *op.Failure    `json:"error"`
	CreatedAt      op.Time        `json:"createdAt"`
	StartedAt      *op.Time       `json:"startedAt"`
	FinishedAt     *op.Time       `json:"finishedAt"`
}

func wireResearchHeadOf(r *research.Run) wireResearchHead {
	return wireResearchHead{
		r.ID, optional(r.ConversationID), optional(r.MessageID), r.State, r.Plan.Question, r.Cost, op.FailureOf(r.Failed()),
		op.Time(r.CreatedAt), op.OptionalTime(r.StartedAt), op.OptionalTime(r.FinishedAt),
	}
}

// wireResearch is a run with all that is known of it.
type wireResearch struct {
	wireResearchHead
	Plan       wireResearchPlan      `json:"plan"`
	Estimate   research.Estimate     `json:"estimate"`
	Step       int                   `json:"step"`
	Steps      []wireResearchStep    `json:"steps"`
	Answer     string                `json:"answer"`
	References []cite.Reference      `json:"references"`
	Images     []cite.ImageReference `json:"images"`
	Report     *cite.Report          `json:"report"`
	End        string                `json:"end"`
	Left       []string              `json:"left"`
	Knowledge  []wireKnowledgeItem   `json:"knowledge"`
	ReadURLs   []string              `json:"readUrls"`
	NumURLs    int                   `json:"numUrls"`
}

type wireResearchPlan struct {
	Language string             `json:"language"`
	Queries  []string           `json:"queries"`
	Parts    []string           `json:"questions"`
	Hosts    []string           `json:"hosts"`
	Bases    []string           `json:"knowledgeBaseIds"`
	Web      bool               `json:"web"`
	Team     int                `json:"team"`
	Doubtful string             `json:"doubtful"`
	Budget   wireResearchBudget `json:"budget"`
}

type wireResearchBudget struct {
	Tokens  int     `json:"tokens"`
	Seconds int     `json:"seconds"`
	USD     float64 `json:"usd"`
}

type wireResearchStep struct {
	N        int        `json:"n"`
	Member   int        `json:"member"`
	Action   string     `json:"action"`
	Question string     `json:"question"`
	Think    string     `json:"think"`
	Queries  []string   `json:"queries"`
	URLs     []string   `json:"urls"`
	Gaps     []string   `json:"gaps"`
	Result   string     `json:"result"`
	Rejected string     `json:"rejected"`
	Cost     agent.Cost `json:"cost"`
}

type wireKnowledgeItem struct {
	Type       string   `json:"type"`
	Question   string   `json:"question"`
	Answer     string   `json:"answer"`
	References []string `json:"references"`
	Updated    string   `json:"updated"`
}

// researchOf is the answer of a command about a run.
var researchOf = Result(func(r *research.Run) any {
	return struct {
		Research wireResearch `json:"research"`
	}{wireResearchOf(r)}
})

func wireResearchOf(r *research.Run) wireResearch {
	p := &r.Plan
	w := wireResearch{
		wireResearchHead: wireResearchHeadOf(r), Estimate: r.Estimate,
		Plan: wireResearchPlan{
			p.Language, OrEmpty(p.Queries), OrEmpty(p.Questions), OrEmpty(p.Hosts), OrEmpty(p.Bases), p.Web, p.Team, p.Doubtful,
			wireResearchBudget{p.Budget.Tokens, p.Budget.Seconds, p.Budget.USD},
		},
		Steps: make([]wireResearchStep, len(r.Steps)), References: []cite.Reference{}, Images: []cite.ImageReference{}, Left: []string{}, Knowledge: []wireKnowledgeItem{}, ReadURLs: []string{},
	}
	for i, s := range r.Steps {
		w.Step = max(w.Step, s.N)
		w.Steps[i] = wireResearchStep{s.N, s.Member, s.Action, s.Question, s.Think, OrEmpty(s.Queries), OrEmpty(s.URLs), OrEmpty(s.Gaps), s.Result, s.Rejected, s.Cost}
	}
	if got := r.Result; got != nil {
		w.Answer, w.References, w.Images, w.Report = got.Answer, OrEmpty(got.References), OrEmpty(got.Images), &got.Report
		w.End, w.Left, w.ReadURLs, w.NumURLs = got.End, OrEmpty(got.Left), OrEmpty(got.ReadURLs), got.FoundURLs
		for _, k := range got.Knowledge {
			w.Knowledge = append(w.Knowledge, wireKnowledgeItem{k.Kind, k.Question, k.Answer, OrEmpty(k.References), k.Updated})
		}
	}
	return w
}
