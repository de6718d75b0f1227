package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nodest/llm"
	"nodest/websearch/weburl"
)

// run is one play of a plan.
type run struct {
	plan  Plan
	o     Outside
	rec   Recorder
	words map[string]string // texts of prompts
	begun begun
	clock clock
	pages pages
	urls  weburl.Options
	away  atomic.Bool // the model, even after some time

	mu      sync.Mutex
	used    Cost     // by all members
	worked  bool     // a call has succeeded
	failure *failure // the first one
}

// begun is recorded when a run begins: what may have changed by the time that it is played again.
type begun struct {
	Now     time.Time     `json:"now"`
	Nonce   string        `json:"nonce"`             // begins the marks around text of others
	Model   bool          `json:"model"`             // there is one
	Meaning bool          `json:"meaning"`           // texts can be embedded
	History []llm.Message `json:"history,omitempty"` // the plan's
}

// member works on one question: that of the run, or of one of its team. One goroutine plays it.
type member struct {
	*run
	n        int
	question string
	parts    []string // parts of the question, from the plan
	first    []string // search words to begin with
	team     int
	purse    purse
	lostAt   Cost // lost before this member began
	live     atomic.Bool

	total, step int // steps played; step begins anew behind a rejected answer
	ordinals    map[string]int
	allow       allowed
	gaps        []string
	web         web
	memory
}

// memory is what a member has found out and done.
type memory struct {
	known   []Knowledge
	history []llm.Message // the end of the conversation
	diary   []string
	asked   []string // all questions
	queries []string // all searches
	steps   []Step
	began   int64 // when the step began, on the clock of the run, in ms
	before  Cost  // spent by then
	barren  int   // steps in a row that brought nothing
	left    []string
	others  []Step // steps of the team
	judgement
}

// judgement is what came of the answers of a member.
type judgement struct {
	candidate string   // the last answer to its question
	accepted  bool     // it stays
	failed    string   // why it does not, in words for the reader
	chosen    bool     // the checks were chosen
	kinds     []string // all of them
	checks    []check  // those with attempts left
	fresh     bool     // the answer must be recent
	plans     []string // reviewers want these
}

// allowed says which actions the next step may have.
type allowed struct{ answer, search, read, reflect bool }

func allowAll() allowed { return allowed{true, true, true, true} }

func (r *run) member(n int, question string, p purse) *member {
	return &member{
		run: r, n: n, question: question, purse: p, allow: allowAll(), gaps: []string{question},
		ordinals: map[string]int{}, memory: memory{asked: []string{question}},
	}
}

// searches reports whether there is a web to search.
func (r *run) searches() bool { return r.plan.Web && r.o.Search != nil }

// tell passes an event on, unless the part of the run that is played was played before.
func (m *member) tell(kind string, data map[string]any) {
	if m.o.Tell != nil && m.live.Load() {
		m.o.Tell(Event{Type: kind, Data: data})
	}
}

// paid adds a call to the cost of the run.
func (m *member) paid(c Cost) {
	m.mu.Lock()
	m.used.add(c)
	used := m.used.Tokens()
	m.mu.Unlock()
	m.tell("budget", map[string]any{"used": used, "total": m.plan.Budget.Tokens})
}

// tried notes whether a call has succeeded (nil).
func (r *run) tried(f *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.worked = r.worked || f == nil
	if r.failure == nil {
		r.failure = f
	}
}

// log writes a line of the diary.
func (m *member) log(name string, args ...any) {
	m.diary = append(m.diary, m.say(name, append([]any{m.total}, args...)...))
}

// next begins a step, or says why there is none. The time and what was lost in crashes are recorded with it.
func (m *member) next(ctx context.Context) (end string, err error) {
	m.total++
	m.step++
	clear(m.ordinals)
	type state struct {
		Ms   int64 `json:"ms"`
		Lost Cost  `json:"lost,omitzero"`
	}
	s, err := decide(ctx, m, "begin", func(context.Context) state { return state{m.clock.now().Milliseconds(), m.rec.Lost()} })
	if err != nil {
		return "", err
	}
	m.began, m.purse.lost = s.Ms, s.Lost.minus(m.lostAt)
	switch {
	case time.Duration(s.Ms)*time.Millisecond >= m.limit(false):
		return Late, nil
	case m.begun.Model && m.purse.forSearch() <= 0 && m.total > rules:
		return Budgeted, nil
	case m.barren >= mostBarren:
		return Tried, nil
	}
	return "", nil
}

// rules is how many steps a rule may choose, which cost no tokens: see byRule.
const rules = 2

// mostBarren is how many steps in a row may bring nothing.
const mostBarren = 5

// record finishes a step.
func (m *member) record(ctx context.Context, s Step) error {
	s.N, s.Member = m.total, m.n
	s.Gaps = m.shownGaps()
	s.Cost = m.purse.spent.minus(m.before)
	s, err := decide(ctx, m, kindOfEnd, func(context.Context) Step {
		s.Cost.Ms = m.clock.now().Milliseconds() - m.began
		return s
	})
	if err != nil {
		return err
	}
	m.steps = append(m.steps, s)
	return nil
}

// shownGaps are the open questions, as steps show them.
func (m *member) shownGaps() []string {
	out := make([]string, len(m.gaps))
	for i, g := range m.gaps {
		out[i] = clip(g, mostShown)
	}
	return out
}

// open are the questions that have no answer yet, without that of the member.
func (m *member) open() []string {
	return slices.DeleteFunc(slices.Clone(m.gaps), func(q string) bool { return q == m.question })
}
