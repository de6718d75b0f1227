package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nodest/internal/cite"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/websearch/intent"
)

// The checks of an answer, in the order in which they are made.
const (
	checkDefinitive   = "definitive"
	checkFreshness    = "freshness"
	checkPlurality    = "plurality"
	checkCompleteness = "completeness"
	checkStrict       = "strict"
)

// check is a check with the attempts that an answer has left.
type check struct {
	kind string
	left int
}

// verdict is how a check ended.
type verdict struct {
	pass        bool
	why, better string
}

// attempts is how often an answer may fail each check.
func (b Budget) attempts() int {
	switch {
	case b.Tokens < 200_000:
		return 1
	case b.Tokens < 750_000:
		return 2
	}
	return 4
}

// chooseChecks decides what the answer to the question of the member must pass. Sub-questions have no checks.
func (m *member) chooseChecks(ctx context.Context, current string) error {
	if m.chosen || current != m.question {
		return nil
	}
	m.chosen = true
	kinds := m.checksByRule()
	reply, err := m.ask(ctx, question{
		kind: "question", size: sizeQuestion, json: true, share: optional / 2,
		system: m.head() + "\n" + m.words["question"], ask: m.clipped(current),
	})
	switch {
	case fatal(err) != nil:
		return err
	case err == nil:
		kinds = readChecks(reply)
	case !errors.Is(err, errSpent):
		kinds = nil // the call has failed: only the strict check is left
	}
	for _, kind := range append(kinds, checkStrict) {
		m.checks = append(m.checks, check{kind, m.plan.Budget.attempts()})
		m.kinds = append(m.kinds, kind)
		m.fresh = m.fresh || kind == checkFreshness
	}
	return nil
}

// readChecks reads which checks the model has chosen.
func readChecks(reply string) (kinds []string) {
	o, err := objectIn(reply, "")
	if err != nil {
		return nil
	}
	for _, x := range [][2]string{
		{"needsDefinitive", checkDefinitive}, {"needsFreshness", checkFreshness},
		{"needsPlurality", checkPlurality}, {"needsCompleteness", checkCompleteness},
	} {
		if yes, _ := truth(o, x[0]); yes {
			kinds = append(kinds, x[1])
		}
	}
	if slices.Contains(kinds, checkCompleteness) {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == checkPlurality })
	}
	return kinds
}

// checksByRule are the checks of a question without asking the model.
func (m *member) checksByRule() []string {
	kinds := []string{checkDefinitive}
	if intent.Better(m.question, intent.Options{}).Reason == intent.Fresh {
		kinds = append(kinds, checkFreshness)
	}
	if len(m.parts) > 1 {
		kinds = append(kinds, checkCompleteness)
	}
	return kinds
}

// judge checks the answer. It returns why the run ends; "" = the answer was rejected, and there are attempts left.
func (m *member) judge(ctx context.Context, s *Step) (string, error) {
	unchecked := []string{}
	for i, c := range m.checks {
		v, err := m.check(ctx, c.kind)
		if fatal(err) != nil {
			return "", err
		}
		if errors.Is(err, errSpent) {
			unchecked = append(unchecked, c.kind)
			continue
		}
		if err != nil {
			v = verdict{why: err.Error()}
		}
		if v.pass {
			continue
		}
		return m.reject(ctx, s, i, v)
	}
	m.accepted = true
	if len(unchecked) == 0 {
		return Answered, nil
	}
	m.left = append(m.left, m.say("left-unchecked", strings.Join(unchecked, ", ")))
	return Budgeted, nil
}

// reject notes why an answer has failed a check.
func (m *member) reject(ctx context.Context, s *Step, at int, v verdict) (string, error) {
	c := &m.checks[at]
	s.Rejected = c.kind
	s.Result = v.why
	m.failed = m.say("left-check", c.kind, v.why)
	m.log("did-reject", v.why)
	if c.kind == checkStrict && v.better != "" {
		m.plans = append(m.plans, v.better)
	}
	if c.left--; c.left <= 0 {
		m.checks = slices.Delete(m.checks, at, at+1)
	}
	if len(m.checks) == 0 {
		return Tried, nil
	}
	lesson, err := m.analyse(ctx)
	if err != nil {
		return "", err
	}
	m.known = append(m.known, Knowledge{
		Question: m.say("rejected-question", m.clipped(m.question), clip(m.candidate, mostRejected)),
		Answer:   strings.TrimSpace(v.why + "\n\n" + lesson), Kind: KindAnswer,
	})
	m.allow.answer, m.diary, m.step = false, nil, 0
	return "", nil
}

const mostRejected = 400 // tokens of an answer, where it was rejected

// check makes one check.
func (m *member) check(ctx context.Context, kind string) (verdict, error) {
	if why := m.precheck(kind); why != "" {
		return verdict{why: why}, nil
	}
	q := question{
		kind: "check", size: sizeCheck, json: true,
		system: m.head() + "\n" + m.words["check"] + "\n" + m.words["check-"+kind],
		ask:    m.say("question-and-answer", m.clipped(m.question), m.candidate),
	}
	switch kind {
	case checkStrict:
		q.size, q.known, q.about, q.texts = sizeStrict, m.known, m.question, true
	case checkFreshness:
		q.known, q.about, q.texts = datesOf(m.known), m.question, true
	}
	reply, err := m.ask(ctx, q)
	if err != nil {
		return verdict{}, err
	}
	return readVerdict(reply, kind)
}

// datesOf are the pages whose date is known, without their text.
func datesOf(known []Knowledge) (out []Knowledge) {
	for _, k := range known {
		if k.Kind == KindPage && k.Updated != "" {
			k.Answer = strings.Join(k.References, " ") + " " + k.Updated
			out = append(out, k)
		}
	}
	return out
}

// readVerdict reads how a check ended. Numbers count more than what the model concludes from them.
func readVerdict(reply, kind string) (verdict, error) {
	o, err := objectIn(reply, "pass")
	if err != nil {
		return verdict{}, &failure{Code: fault.UpstreamBadAnswer, Message: "the check could not be read: " + err.Error()}
	}
	pass, ok := truth(o, "pass")
	if !ok {
		return verdict{}, &failure{Code: fault.UpstreamBadAnswer, Message: "the check says neither yes nor no"}
	}
	v := verdict{pass, o.Text("think"), o.Text("improvement_plan")}
	compare := func(object, has, needs string, enough func(a, b float64) bool) {
		inner := llm.ObjectOf(string(o[object]), "")
		a, okA := inner.Number(has)
		b, okB := inner.Number(needs)
		if okA && okB && b > 0 {
			v.pass = enough(a, b)
			v.why = strings.TrimSpace(fmt.Sprintf("%s (%v / %v)", v.why, a, b))
		}
	}
	switch kind {
	case checkFreshness:
		compare("freshness_analysis", "days_ago", "max_age_days", func(a, b float64) bool { return a <= b })
	case checkPlurality:
		compare("plurality_analysis", "actual_count_provided", "minimum_count_required", func(a, b float64) bool { return a >= b })
	}
	return v, nil
}

// analyse asks why the last answer was bad. Without budget for it there is no lesson.
func (m *member) analyse(ctx context.Context) (string, error) {
	reply, err := m.ask(ctx, question{
		kind: "analysis", size: sizeAnalysis, json: true, share: 2,
		system: m.head() + "\n" + m.words["analysis"],
		ask:    m.say("question-and-answer", m.clipped(m.question), clip(m.candidate, mostRejected)) + "\n\n" + m.words["diary"] + "\n" + list(m.diary, 20),
	})
	if err != nil {
		return "", fatal(err)
	}
	o, _ := objectIn(reply, "improvement")
	return strings.TrimSpace(o.Text("recap") + "\n" + o.Text("blame") + "\n" + o.Text("improvement")), nil
}

var (
	refusal  = data.Rule("refusal")
	wanted   = data.List("wanted")
	numerals = data.Ranks("number-words") // from two on
	today    = data.Rule("today")
	listLine = regexp.MustCompile(`(?m)^\s*(?:[-*+•]|\d+[.)、])\s+\S`)
	dated    = regexp.MustCompile(`\b(19|20)\d\d-\d\d-\d\d`)
)

// Limits of what can be checked without the model.
const (
	shortRefusal = 160 // UTF-16 units: a longer answer says more than that it does not know
	oldForToday  = 366 * 24 * time.Hour
)

// precheck looks for what surely fails a check, so that the model need not be asked. "" = nothing.
func (m *member) precheck(kind string) string {
	answer := cite.StripMarks(m.candidate)
	switch kind {
	case checkDefinitive:
		if cite.Len16(answer) <= shortRefusal && refusal.MatchString(answer) {
			return m.words["why-refusal"]
		}
	case checkPlurality:
		n, items := wantedIn(m.question), len(listLine.FindAllString(answer, -1))
		if n > 0 && items > 0 && items < n {
			return m.say("why-few", n, items)
		}
	case checkFreshness:
		newest, some := newestOf(m.known, answer)
		if some && today.MatchString(m.question) && m.begun.Now.Sub(newest) > oldForToday {
			return m.say("why-old", newest.Format(time.DateOnly))
		}
	}
	return ""
}

// wantedIn is the number of things that a question asks for; 0 = it gives none.
func wantedIn(question string) int {
	for _, rule := range wanted() {
		found := rule.FindStringSubmatch(question)
		if found == nil {
			continue
		}
		for _, word := range found[1:] {
			if rank, ok := numerals()[strings.ToLower(word)]; ok {
				return rank + 2
			}
			if n, err := strconv.Atoi(word); err == nil {
				return n
			}
		}
	}
	return 0
}

// newestOf is the newest date of the pages and the answer; some is false if there is none.
func newestOf(known []Knowledge, answer string) (newest time.Time, some bool) {
	take := func(text string) {
		for _, d := range dated.FindAllString(text, -1) {
			if at, err := time.Parse(time.DateOnly, d); err == nil && at.After(newest) {
				newest, some = at, true
			}
		}
	}
	take(answer)
	for _, k := range known {
		if k.Kind == KindPage {
			take(k.Updated)
		}
	}
	return newest, some
}
