package intent

import "nodest/internal/lexicon"

// patterns are the rules of a language that has only a few: a question that has a word of the
// world and no word of the speakers is a search.
type patterns struct {
	order, asks, quoted, ours, fresh, fact *lexicon.Rule
}

var _ = asked(data.Rule, "quoted", "ours", "fact")

func patternsOf(language string) patterns {
	of := func(name string) *lexicon.Rule { return data.Rule(name, language) }
	return patterns{of("order"), of("asks"), of("quoted"), of("ours"), of("fresh"), of("fact")}
}

func (p patterns) orders(folded string) bool { return p.order.MatchString(folded) }

func (p patterns) question(_, folded string) Reason {
	switch fresh := p.fresh.MatchString(folded); {
	case !p.asks.MatchString(folded):
		return Chat
	case p.ours.MatchString(p.quoted.ReplaceAllString(folded, " ")):
		return Speakers
	case fresh:
		return Fresh
	case p.fact.MatchString(folded):
		return Fact
	}
	return Chat
}
