package research

import (
	"slices"
	"strings"
	"unicode"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/websearch/research/agent"
)

// Limits of a plan.
const (
	MaxQuestion = 8_000 // code points
	mostQueries = 5
	mostParts   = 5
	mostHosts   = 10
	mostBases   = 20
	maxQuery    = 400 // code points
	maxHost     = 253 // bytes
	mostTeam    = 4
)

// Order is how a user asks for a run, or changes its plan: nil members stay as they are, and are
// planned where there is nothing yet.
type Order struct {
	Question *string  `json:"question,omitempty"`
	Queries  []string `json:"queries,omitempty"`
	Parts    []string `json:"questions,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	Bases    []string `json:"knowledgeBaseIds,omitempty"`
	Web      *bool    `json:"web,omitempty"`
	Language *string  `json:"language,omitempty"`
	Team     *int     `json:"team,omitempty"`
	Doubtful *string  `json:"doubtful,omitempty"`
	Budget   *Limits  `json:"budget,omitempty"`
	Tokens   *int     `json:"budgetTokens,omitempty"` // the same as Budget.Tokens
}

// Limits are what a run may cost.
type Limits struct {
	Tokens  *int     `json:"tokens,omitempty"`
	Seconds *int     `json:"seconds,omitempty"`
	USD     *float64 `json:"usd,omitempty"` // 0 = no limit
}

// The budgets that can be asked for.
const (
	leastTokens, mostTokens   = 2_000, 1_000_000
	leastSeconds, mostSeconds = 10, 3_600
	mostUSD                   = 1_000.0
)

// check refuses what no plan can have. first says that the order is of a new run.
func (o *Order) check(first bool) error {
	if first && o.Question == nil {
		o.Question = new("")
	}
	if o.Question != nil {
		if err := op.CheckText("question", *o.Question, MaxQuestion); err != nil {
			return err
		}
	}
	c := &op.Checks{}
	o.checkLists(c)
	op.Between(c, "team", o.Team, 1, mostTeam)
	if o.Language != nil {
		c.That(isLanguage(*o.Language), "language", "format", "must be the code of a language, such as en or zh")
	}
	if o.Doubtful != nil {
		op.OneOf(c, "doubtful", *o.Doubtful, []string{agent.Mark, agent.Remove})
	}
	op.Between(c, "budgetTokens", o.Tokens, leastTokens, mostTokens)
	if b := o.Budget; b != nil {
		op.Between(c, "budget.tokens", b.Tokens, leastTokens, mostTokens)
		op.Between(c, "budget.seconds", b.Seconds, leastSeconds, mostSeconds)
		op.Between(c, "budget.usd", b.USD, 0, mostUSD)
		c.That(b.Tokens == nil || o.Tokens == nil || *b.Tokens == *o.Tokens, "budgetTokens", "value", "must be the same as budget.tokens")
	}
	return c.Err()
}

func (o *Order) checkLists(c *op.Checks) {
	c.That(len(o.Queries) <= mostQueries, "queries", "range", "must be at most %d", mostQueries)
	for _, q := range o.Queries {
		c.That(strings.TrimSpace(q) != "" && op.CheckLine("queries", q, maxQuery) == nil, "queries", "range", "each must be a line of 1 to %d characters", maxQuery)
	}
	c.That(len(o.Parts) <= mostParts, "questions", "range", "must be at most %d", mostParts)
	for _, q := range o.Parts {
		c.That(strings.TrimSpace(q) != "" && op.CheckLine("questions", q, maxQuery) == nil, "questions", "range", "each must be a line of 1 to %d characters", maxQuery)
	}
	c.That(len(o.Hosts) <= mostHosts, "hosts", "range", "must be at most %d", mostHosts)
	for _, h := range o.Hosts {
		c.That(isHost(h), "hosts", "format", "each must be the name of a host, such as example.org")
	}
	c.That(len(o.Bases) <= mostBases, "knowledgeBaseIds", "range", "must be at most %d", mostBases)
}

func isHost(s string) bool {
	return s != "" && len(s) <= maxHost && strings.Contains(s, ".") && !strings.ContainsAny(s, "/:@?# ") && !strings.ContainsFunc(s, unicode.IsControl)
}

// isLanguage reports whether a text has the form of a language tag, as zh or pt-BR.
func isLanguage(s string) bool {
	if len(s) < 2 || len(s) > 12 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// onto writes an order into a plan. Search words, parts and language follow the question unless they are named.
func (o *Order) onto(p *agent.Plan) error {
	if o.Question != nil {
		ruled := agent.NewPlan(*o.Question)
		p.Question, p.Language, p.Queries, p.Questions = ruled.Question, ruled.Language, ruled.Queries, ruled.Questions
	}
	if o.Queries != nil {
		p.Queries = slices.Clone(o.Queries)
	}
	if o.Parts != nil {
		p.Questions = slices.Clone(o.Parts)
	}
	if o.Hosts != nil {
		p.Hosts = slices.Clone(o.Hosts)
	}
	if o.Bases != nil {
		p.Bases = slices.Clone(o.Bases)
	}
	set(&p.Web, o.Web)
	set(&p.Language, o.Language)
	set(&p.Team, o.Team)
	set(&p.Doubtful, o.Doubtful)
	set(&p.Budget.Tokens, o.Tokens)
	if b := o.Budget; b != nil {
		set(&p.Budget.Tokens, b.Tokens)
		set(&p.Budget.Seconds, b.Seconds)
		set(&p.Budget.USD, b.USD)
	}
	if !p.Web && len(p.Bases) == 0 {
		return fault.InvalidField("web", "value", "without the web, knowledgeBaseIds must name where to look")
	}
	return nil
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}
