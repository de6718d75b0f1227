package agent

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"nodest/internal/cite"
	"nodest/llm"
	"nodest/websearch/weburl"
)

// recentTurns is how many messages of the conversation prompts have as they are. Earlier ones are knowledge.
const recentTurns = 4

// Run plays a run, from its beginning or, with the answers of rec, from where it was. It returns an
// error only if ctx ends, if rec fails, or if nothing at all could be found out because every call has failed.
func Run(ctx context.Context, p Plan, o Outside, rec Recorder) (*Result, error) {
	p.Question = strings.TrimSpace(p.Question)
	r := &run{plan: p, o: o, rec: rec, words: promptsIn(p.Language), clock: clock{at: time.Now()}, urls: weburl.Options{AllowPrivate: o.Private}}
	m := r.member(0, p.Question, newPurse(p.Budget.Tokens, p.Budget.USD))
	m.team, m.parts, m.first = p.Team, p.Questions, p.Queries
	var err error
	if r.begun, err = decide(ctx, m, "run", func(context.Context) begun {
		return begun{time.Now().UTC(), rand.Text()[:8], o.Model != nil, o.Embedder != nil, p.History}
	}); err != nil {
		return nil, err
	}
	if !r.begun.Model && len(m.first) == 0 {
		m.first = []string{searchWords(p.Question)}
	}
	for _, part := range p.Questions {
		m.gaps, m.asked = append(m.gaps, part), append(m.asked, part)
	}
	m.remember(r.begun.History)
	m.named(p.Question)
	end, err := m.play(ctx)
	if err != nil {
		return nil, err
	}
	if end, err = m.conclude(ctx, end); err != nil {
		return nil, err
	}
	return m.result(ctx, end)
}

// remember takes over the conversation: its end as messages, what was before as knowledge.
func (m *member) remember(history []llm.Message) {
	said := slices.DeleteFunc(slices.Clone(history), func(h llm.Message) bool { return h.Role == llm.System })
	for i := 0; i+1 < len(said) && len(said)-i > recentTurns; i += 2 {
		m.known = append(m.known, Knowledge{Question: clip(said[i].Text, mostTurn), Answer: clip(said[i+1].Text, mostTurn), Kind: KindHistory})
	}
	for _, h := range said[max(0, len(said)-recentTurns):] {
		m.history = append(m.history, llm.Message{Role: h.Role, Text: clip(h.Text, min(mostTurn, m.purse.total()/20))})
		m.named(h.Text)
	}
}

const mostTurn = 800 // tokens of a message of the conversation

// named adds the pages that a message names.
func (m *member) named(text string) {
	for _, h := range weburl.Extract(clip(text, mostQuestion)) {
		if m.web.pool.Add(h, 1, m.urls) {
			m.web.boosts = append(m.web.boosts, weburl.Hostname(h.URL))
		}
	}
}

// result puts together what a run has found out.
func (m *member) result(ctx context.Context, end string) (*Result, error) {
	if !m.worked && m.failure != nil {
		return nil, m.failure.fault()
	}
	c, err := m.cite(ctx, end)
	if err != nil {
		return nil, err
	}
	m.deliver(c.Answer)
	out := &Result{
		Answer: c.Answer, References: c.References, Images: c.Images, Report: c.Report, End: end,
		Left: append([]string{}, m.left...), ReadURLs: []string{}, FoundURLs: len(m.web.pool.Hits()),
		Knowledge: append([]Knowledge{}, m.known...), Steps: append(append([]Step{}, m.steps...), m.others...),
	}
	out.References, out.Images = append([]cite.Reference{}, out.References...), append([]cite.ImageReference{}, out.Images...)
	for i, k := range out.Knowledge {
		if k.Kind == KindAnswer {
			out.Knowledge[i].Answer = cite.StripMarks(k.Answer) // the numbers are those of a member's sources
		}
	}
	for _, u := range m.web.visited {
		if !slices.Contains(m.web.failed, u) && !slices.Contains(out.ReadURLs, u) {
			out.ReadURLs = append(out.ReadURLs, u)
		}
	}
	out.Cost = m.purse.spent
	out.Cost.add(m.rec.Lost())
	out.Cost.Ms = m.clock.now().Milliseconds()
	return out, nil
}
