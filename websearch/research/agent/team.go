package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"nodest/websearch/research/markdown"
)

// leastShare is what a member of a team needs, in tokens: with less it would only write an answer.
const leastShare = 6000

// split divides the question among a team, after the first search. Fewer than two parts mean that there is none, as
// does a reply that cannot be read.
func (m *member) split(ctx context.Context) ([]string, error) {
	most := min(m.team, m.purse.forSearch()/leastShare)
	if most < 2 {
		return nil, nil
	}
	m.team = 0 // once
	if len(m.parts) > 1 {
		return m.parts[:min(len(m.parts), most)], nil
	}
	reply, err := m.ask(ctx, question{
		kind: "split", size: sizeSplit, json: true,
		system: m.head() + "\n" + m.say("split", most), known: m.known, about: m.question, messages: m.history, ask: m.clipped(m.question),
	})
	if err != nil {
		return nil, fatal(err)
	}
	o, _ := objectIn(reply, "subproblems")
	parts := texts(o, "subproblems", most)
	if len(parts) == 1 && parts[0] != m.question && !slices.Contains(m.asked, parts[0]) {
		m.gaps, m.asked = append(m.gaps, parts[0]), append(m.asked, parts[0])
	}
	return parts, nil
}

// sideBySide lets a team work on the parts of the question. Each member has an equal share of the budget,
// so that what one spends changes nothing for the others.
func (m *member) sideBySide(ctx context.Context, parts []string, s *Step) (string, error) {
	team, ends, errs := make([]*member, len(parts)), make([]string, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		t := m.member(i+1, part, m.purse.share(len(parts)))
		t.lostAt = m.purse.lost
		t.queries = slices.Clone(m.queries)
		if m.searches() {
			t.first = []string{searchWords(part)}
		}
		t.web.boosts, t.history = m.web.boosts, m.history
		team[i] = t
		wg.Go(func() {
			errs[i] = Guard(func() (err error) {
				if ends[i], err = t.play(ctx); err == nil {
					ends[i], err = t.conclude(ctx, ends[i])
				}
				return err
			})
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return "", fmt.Errorf("member %d: %w", i+1, err)
		}
	}
	s.Result = strings.Join(parts, "; ")
	end := Answered
	var answers []string
	for i, t := range team {
		answers = append(answers, m.join(t))
		if worse(ends[i], end) {
			end = ends[i]
		}
	}
	m.candidate, m.accepted = strings.Join(slices.DeleteFunc(answers, func(a string) bool { return a == "" }), "\n\n"), true
	return end, nil
}

// worse reports whether an end says less for an answer than another.
func worse(a, b string) bool {
	order := []string{Answered, Tried, Budgeted, Late, Quoted}
	return slices.Index(order, a) > slices.Index(order, b)
}

// join takes over what a member has found out. It returns its answer, with the numbers that its sources have now.
func (m *member) join(t *member) string {
	numbers := make([]int, len(t.web.sources))
	for i, source := range t.web.sources {
		at := slices.IndexFunc(m.web.sources, sameSource(source))
		if at < 0 {
			m.web.sources = append(m.web.sources, source)
			at = len(m.web.sources) - 1
		}
		numbers[i] = at + 1
	}
	for url, asked := range t.web.asked {
		m.web.readAt(url, asked)
	}
	for _, k := range t.known {
		if k.source > 0 {
			k.source = numbers[k.source-1]
		}
		m.known = append(m.known, k)
	}
	for _, s := range t.web.snippets {
		if !slices.ContainsFunc(m.web.snippets, sameSource(s)) {
			m.web.snippets = append(m.web.snippets, s)
		}
	}
	for _, h := range t.web.pool.Hits() {
		m.web.pool.Add(h, h.Weight, m.urls)
	}
	m.web.visited = append(m.web.visited, t.web.visited...)
	m.web.failed = append(m.web.failed, t.web.failed...)
	m.web.badHosts = append(m.web.badHosts, t.web.badHosts...)
	m.purse.spent.add(t.purse.spent)
	m.before.add(t.purse.spent) // which its own steps have
	m.purse.learn(t.purse.learned)
	m.others = append(m.others, t.steps...)
	m.left = append(m.left, t.left...)
	return markdown.Renumber(t.candidate, numbers)
}
