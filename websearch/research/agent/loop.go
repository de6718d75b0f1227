package agent

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"nodest/llm"
	"nodest/websearch/research/markdown"
	"nodest/websearch/weburl"
)

// retries is how often a reply that cannot be read is asked for again.
const retries = 2

// play works on the question until there is an answer, or the budget is nearly spent. It returns why it ended;
// the answer is m.candidate.
func (m *member) play(ctx context.Context) (end string, err error) {
	for {
		if end, err = m.next(ctx); end == "" && err == nil {
			end, err = m.playStep(ctx)
		}
		if end != "" || err != nil {
			return end, err
		}
	}
}

// playStep plays one step. It returns why the run ends with it; "" = it goes on.
func (m *member) playStep(ctx context.Context) (end string, err error) {
	m.before = m.purse.spent
	m.allow.reflect = m.allow.reflect && len(m.gaps) <= 2
	current := m.gaps[m.total%len(m.gaps)]
	ranked := m.ranked(ctx, current)
	m.allow.read = m.allow.read && len(ranked) > 0
	m.allow.search = m.allow.search && len(ranked) < enoughRanked && (m.searches() || m.o.Documents != nil)
	c := m.byRule()
	switch {
	case c != nil:
		current = m.question
	case !m.begun.Model:
		return Quoted, nil
	default:
		if c, err = m.byModel(ctx, current, ranked); err != nil {
			return m.without(err)
		}
	}
	m.allow = allowAll()
	s := Step{Action: c.Action, Question: clip(current, mostShown), Think: c.Think}
	if end, err = m.act(ctx, c, &s, current, ranked); err != nil {
		return "", err
	}
	return end, m.record(ctx, s)
}

// byModel is the step that the model chooses. Before the first one it chooses what the answer must pass.
func (m *member) byModel(ctx context.Context, current string, ranked []weburl.Candidate) (*choice, error) {
	if err := m.chooseChecks(ctx, current); err != nil {
		return nil, err
	}
	if m.total == 1 && m.fresh {
		m.allow.answer, m.allow.reflect = false, false
	}
	return m.choose(ctx, current, ranked)
}

// without ends a run whose model gives no step.
func (m *member) without(err error) (end string, _ error) {
	switch {
	case errors.Is(err, errSpent):
		return Budgeted, nil
	case isLate(err):
		return Late, nil
	case fatal(err) != nil:
		return "", err
	}
	m.left = append(m.left, m.say("left-model", err))
	return Tried, nil
}

// byRule is a step that needs no model: the search of the plan, and reading the best pages that it has found.
func (m *member) byRule() *choice {
	switch {
	case len(m.first) == 0:
		return nil
	case m.total == 1 && m.allow.search:
		return &choice{Action: actSearch, Queries: m.first[:min(len(m.first), maxQueries)]}
	case m.total == 2 && m.allow.read:
		return &choice{Action: actVisit}
	}
	return nil
}

// choose asks the model for a step. A reply that cannot be read is asked for again; then a rule decides. The
// error is errSpent, or the failure of the model if it has given no reply at all.
func (m *member) choose(ctx context.Context, current string, ranked []weburl.Candidate) (*choice, error) {
	allowed := m.actions()
	system := m.stepPrompt(allowed, ranked)
	var wrong, failed error
	for try := 0; try <= retries; try++ {
		q := question{
			kind: "step", size: sizeStep, json: true, system: system, known: m.known, about: current, messages: m.history, ask: m.clipped(current),
		}
		if current == m.question {
			q.reviews = m.plans
		}
		if wrong != nil {
			q.system += "\n\n" + m.say("retry", wrong)
		}
		reply, err := m.ask(ctx, q)
		switch {
		case errors.Is(err, errSpent) && try > 0:
			return m.instead(current, allowed), nil
		case err != nil && (errors.Is(err, errSpent) || fatal(err) != nil || isLate(err)):
			return nil, err
		case err != nil:
			failed, wrong = err, nil
			continue
		}
		c, err := readChoice(reply, allowed)
		if err == nil {
			return c, nil
		}
		wrong = err
	}
	if wrong == nil {
		return nil, failed
	}
	return m.instead(current, allowed), nil
}

// instead is the step that a rule chooses where the model has given none.
func (m *member) instead(current string, allowed []string) *choice {
	m.barren++
	if slices.Contains(allowed, actVisit) {
		return &choice{Action: actVisit}
	}
	return &choice{Action: actSearch, Queries: []string{searchWords(current)}}
}

// actions are those that the step may have; never none.
func (m *member) actions() (out []string) {
	for _, a := range []struct {
		name string
		may  bool
	}{{actSearch, m.allow.search}, {actVisit, m.allow.read}, {actReflect, m.allow.reflect}, {actAnswer, m.allow.answer}} {
		if a.may {
			out = append(out, a.name)
		}
	}
	if len(out) == 0 {
		return []string{actAnswer}
	}
	return out
}

// stepPrompt is the system message of a step.
func (m *member) stepPrompt(allowed []string, ranked []weburl.Candidate) string {
	var b strings.Builder
	part := func(texts ...string) {
		for _, t := range texts {
			b.WriteString(t + "\n")
		}
	}
	part(m.head())
	if len(m.diary) > 0 {
		part("", m.words["diary"], list(m.diary, 12))
	}
	part("", m.words["actions"])
	for _, action := range allowed {
		switch action {
		case actSearch:
			part(m.words["action-search"])
			if len(m.queries) > 0 {
				part(m.words["bad-requests"], list(m.queries, 20))
			}
		case actVisit:
			part(m.words["action-visit"], m.block(m.words["untrusted"], listed(ranked)))
		case actReflect:
			part(m.words["action-reflect"], list(m.asked, 10))
		case actAnswer:
			name := "action-answer"
			if m.total == 1 && m.n == 0 {
				name = "action-direct"
			}
			part(m.say(name, m.plan.Language))
		}
	}
	part("", m.words["format"])
	return b.String()
}

// listed are the pages that the model may choose from.
func listed(ranked []weburl.Candidate) string {
	var b strings.Builder
	for i, c := range ranked[:min(len(ranked), mostListed)] {
		text := c.Text
		if units := []rune(text); len(units) > listedUnits {
			text = string(units[:listedUnits])
		}
		b.WriteString("[" + strconv.Itoa(i+1) + "] " + weburl.Hostname(c.URL) + ": " + strings.Join(strings.Fields(text), " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clipped is a question as prompts have it: a long one must leave room for the rest.
func (m *member) clipped(question string) string {
	return clip(question, min(mostQuestion, max(m.purse.total()/6, 60)))
}

// Lengths of a question, in tokens.
const (
	mostQuestion = 4000 // in prompts
	mostShown    = 400  // in steps, and with what was learned
	mostDiary    = 60   // in the diary
)

// act carries a step out.
func (m *member) act(ctx context.Context, c *choice, s *Step, current string, ranked []weburl.Candidate) (end string, err error) {
	m.tellStep(s)
	switch c.Action {
	case actSearch:
		return m.doSearch(ctx, c, s)
	case actVisit:
		return "", m.doVisit(ctx, c, s, ranked)
	case actReflect:
		return "", m.doReflect(ctx, c, s)
	case actAnswer:
		return m.doAnswer(ctx, c, s, current)
	}
	m.log("did-code")
	s.Result = m.words["coding-refused"]
	m.known = append(m.known, Knowledge{
		Question: "What is the solution to the coding issue: " + short(c.Code) + "?", Answer: s.Result, Kind: KindCoding, Updated: Updated(m.begun.Now),
	})
	m.barren++
	return "", nil
}

func (m *member) tellStep(s *Step) {
	m.tell("step", map[string]any{"n": m.total, "member": m.n, "action": s.Action, "question": s.Question, "gaps": m.shownGaps()})
	if s.Think != "" {
		m.tell("think", map[string]any{"member": m.n, "text": s.Think})
	}
}

// doSearch searches first as the model asked for it, then with better words.
func (m *member) doSearch(ctx context.Context, c *choice, s *Step) (string, error) {
	m.allow.search, m.allow.answer = false, !m.plan.Web // documents are found with their text, pages without
	words, err := m.different(ctx, c.Queries, m.queries)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		m.log("did-nothing-new")
		m.barren++
		return "", nil
	}
	queries := make([]query, len(words))
	for i, w := range words[:min(len(words), maxQueries)] {
		queries[i].Text = w
	}
	before := len(m.known)
	byRule := m.total == 1 && len(m.first) > 0
	fresh, err := m.round(ctx, queries, !byRule)
	if err != nil {
		return "", err
	}
	s.Queries = words
	if parts, err := m.split(ctx); err != nil || len(parts) > 1 {
		if err != nil {
			return "", err
		}
		return m.sideBySide(ctx, parts, s)
	}
	if !byRule {
		better, err := m.rewrite(ctx, words, c.Think)
		if err != nil {
			return "", err
		}
		more, err := m.round(ctx, better, true)
		if err != nil {
			return "", err
		}
		fresh = append(fresh, more...)
		for _, q := range better {
			s.Queries = append(s.Queries, q.Text)
		}
	}
	m.progress(len(m.known) > before)
	m.log("did-search", strings.Join(s.Queries, "; "), len(fresh))
	s.Result = m.diary[len(m.diary)-1]
	return "", nil
}

// round searches, and groups what was found if that is wanted.
func (m *member) round(ctx context.Context, queries []query, groups bool) ([]hit, error) {
	if len(queries) == 0 {
		return nil, nil
	}
	fresh, err := m.find(ctx, queries)
	if err != nil || len(fresh) == 0 || !groups {
		return fresh, err
	}
	return fresh, m.group(ctx, fresh)
}

// rewrite asks for better search words. Without budget for it there are none.
func (m *member) rewrite(ctx context.Context, words []string, think string) ([]query, error) {
	reply, err := m.ask(ctx, question{
		kind: "rewrite", size: sizeRewrite, json: true, share: optional,
		system: m.head() + "\n" + m.words["rewrite"] + "\n\n" + m.words["bad-requests"] + "\n" + list(m.queries, 20),
		known:  m.known, about: m.question, ask: m.say("rewrite-ask", list(words, maxQueries), think),
	})
	if err != nil {
		return nil, fatal(err)
	}
	found := readQueries(reply)
	var texts []string
	for _, q := range found {
		texts = append(texts, q.Text)
	}
	unlike, err := m.different(ctx, texts, m.queries)
	return slices.DeleteFunc(found, func(q query) bool { return !slices.Contains(unlike, q.Text) }), err
}

// optional is the part of what is left that a call may take which only makes a search better.
const optional = 6

// group asks what the results are about. Without budget for it they stay as they are.
func (m *member) group(ctx context.Context, fresh []hit) error {
	var lines strings.Builder
	for _, h := range fresh[:min(len(fresh), 3*resultsPerQuery)] {
		lines.WriteString(llm.JSONLine(map[string]string{"url": h.URL, "title": clip(h.Title, 40), "description": clip(markdown.WithoutTags(h.Text), 120)}) + "\n")
	}
	reply, err := m.ask(ctx, question{
		kind: "cluster", size: sizeCluster, json: true, share: optional,
		system: m.head() + "\n" + m.words["cluster"], ask: m.block(m.words["untrusted"], lines.String()),
	})
	if err != nil {
		return fatal(err)
	}
	known := func(u string) bool { return slices.ContainsFunc(fresh, func(h hit) bool { return h.URL == u }) }
	for _, c := range readClusters(reply, known) {
		// Both are words of the model after those of the results: they stand between the marks.
		says := strings.TrimSpace(c.Question + "\n" + c.Insight)
		m.known = append(m.known, Knowledge{Question: "What do several search results say?", Answer: says, References: c.URLs, Kind: KindPage, source: -1})
	}
	return nil
}

// progress counts the steps in a row that have brought nothing.
func (m *member) progress(some bool) {
	m.barren++
	if some {
		m.barren = 0
	}
}

// doVisit reads the pages that the model has chosen, and the best others up to five.
func (m *member) doVisit(ctx context.Context, c *choice, s *Step, ranked []weburl.Candidate) error {
	m.allow.read = false
	for _, n := range c.Targets {
		if n >= 1 && n <= min(len(ranked), mostListed) && !slices.Contains(s.URLs, ranked[n-1].URL) && len(s.URLs) < maxVisits {
			s.URLs = append(s.URLs, ranked[n-1].URL)
		}
	}
	for _, r := range ranked {
		if len(s.URLs) < maxVisits && !slices.Contains(s.URLs, r.URL) {
			s.URLs = append(s.URLs, r.URL)
		}
	}
	v, err := m.visits(ctx, s.URLs, s.Question)
	if err != nil {
		return err
	}
	m.progress(len(v.Pages) > 0)
	if len(v.Pages) == 0 {
		m.log("did-visit-none")
	} else {
		m.log("did-visit", len(v.Pages), len(s.URLs), clip(s.Question, mostDiary))
	}
	s.Result = m.diary[len(m.diary)-1]
	return nil
}

// doReflect adds sub-questions.
func (m *member) doReflect(ctx context.Context, c *choice, s *Step) error {
	m.allow.reflect = false
	fresh, err := m.different(ctx, c.Questions, m.asked)
	if err != nil {
		return err
	}
	m.progress(len(fresh) > 0)
	if len(fresh) == 0 {
		m.log("did-reflect-none")
	} else {
		m.gaps, m.asked = append(m.gaps, fresh...), append(m.asked, fresh...)
		m.log("did-reflect", strings.Join(fresh, "; "))
	}
	s.Result = m.diary[len(m.diary)-1]
	return nil
}

// doAnswer takes the answer of a sub-question, and checks that of the question.
func (m *member) doAnswer(ctx context.Context, c *choice, s *Step, current string) (string, error) {
	if current != m.question {
		m.known = append(m.known, Knowledge{Question: s.Question, Answer: c.Answer, Kind: KindAnswer, Updated: Updated(m.begun.Now)})
		m.gaps = slices.DeleteFunc(m.gaps, func(q string) bool { return q == current })
		m.log("did-answer", clip(s.Question, mostDiary))
		s.Result = m.diary[len(m.diary)-1]
		m.progress(true)
		return "", nil
	}
	m.candidate = c.Answer
	if m.total == 1 && m.n == 0 {
		m.accepted = true
		return Trivial, nil
	}
	return m.judge(ctx, s)
}
