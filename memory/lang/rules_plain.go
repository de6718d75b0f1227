package lang

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"nodest/internal/lexicon"
)

// plain says how statements are read in a language that needs no Go for it: its file has the rules.
type plain struct {
	lead       *lexicon.Form // with which a clause begins, before it says something
	clauses    *lexicon.Form // before a new clause
	end        *lexicon.Form
	greeting   *lexicon.Form   // in a message with introductions
	third      []lexicon.Entry // turn a statement from the first person into the third, in this order
	statements []rule
	introduced []rule
}

// plains are the languages that have statements, in the order of their names, without those that Go reads.
var plains = sync.OnceValue(func() (all []*plain) {
	form := func(name, language string) *lexicon.Form { return data.Rule(name, language).Form() }
	for _, language := range slices.Sorted(maps.Keys(statementRules())) {
		if language == "en" || language == "zh" {
			continue
		}
		p := &plain{
			lead: form("lead", language), clauses: form("break", language), end: form("end", language), greeting: form("greeting", language),
			statements: statementRules()[language], introduced: introductionRules()[language],
		}
		for _, e := range thirds() {
			if e.Language == language {
				p.third = append(p.third, e)
			}
		}
		all = append(all, p)
	}
	return all
})

var thirds = data.List("third", "as")

// readPlain reads a sentence in the first of these languages that finds something.
func readPlain(sentence string, m Line) (found []Statement) {
	for _, p := range plains() {
		if found = p.read(sentence, m); found != nil {
			break
		}
	}
	return found
}

func (p *plain) read(sentence string, m Line) (found []Statement) {
	rules := p.statements
	if p.greeting.MatchString(m.Text) {
		rules = slices.Concat(rules, p.introduced)
	}
	for clause := range strings.SplitSeq(broken(p.clauses, p.lead.ReplaceAllString(sentence, "")), "\n") {
		clause = p.end.ReplaceAllString(p.lead.ReplaceAllString(strings.TrimSpace(clause), ""), "")
		for _, r := range rules {
			text, ok := r.read(clause)
			if !ok {
				continue
			}
			for _, e := range p.third {
				text = e.ReplaceAllString(text, e.With["as"])
			}
			found = append(found, Statement{Tidy(text), AboutUser, r.kind, r.importance, r.ends})
			break
		}
	}
	return found
}
