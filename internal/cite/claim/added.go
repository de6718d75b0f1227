package claim

import (
	"maps"
	"slices"
	"strings"

	"nodest/internal/index"
)

var details = data.Set("details")

// minSaid is the share of a clause that the source must have: less is what any text has of another on its subject.
const minSaid = 0.2

// minNews is how much a clause of a dense script must say to be new, by weight.
const minNews = 5

// added finds a part of a claim of which the source says nothing: a clause, or a detail at its end, such as "by a retired
// miner".
var added = Detector{Name: "added", Why: WhyNothing, Weak: true, Strict: true, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	return p.isCause(c) || p.Coverage() >= stated && (p.isNew(c) || p.endsInNews(c))
})}

// isNew reports whether a source says nothing of a clause that has something to say, or of what stands between its
// commas.
func (p *Pair) isNew(c *clause) bool {
	if parts := strings.Split(c.text, ","); len(parts) > 1 {
		return slices.ContainsFunc(parts, func(part string) bool {
			terms := Distinct(index.Terms(part))
			return len(terms) >= 2 && p.share(terms) < minSaid
		})
	}
	if p.Claim.Dense {
		return weightOf(c.row()) >= minNews && rowsCover(c.row(), p.source.row()) < minSaid
	}
	return len(c.terms) >= 2 && p.share(c.terms) < minSaid
}

// endsInNews reports whether a clause goes on, behind a word such as "by", with words that the source does not have.
func (p *Pair) endsInNews(c *clause) bool {
	words := strings.Fields(c.text)
	for i, word := range words {
		if !details()[word] {
			continue
		}
		terms := Distinct(index.Terms(strings.Join(words[i:], " ")))
		maps.DeleteFunc(terms, func(t string, _ bool) bool { return isNumber(t) }) // they are looked up by value
		if len(terms) >= 2 && p.share(terms) == 0 {
			return true
		}
	}
	return false
}

// isCause reports whether a clause gives a reason that no single sentence of the source has half of.
func (p *Pair) isCause(c *clause) bool {
	reason := causes.ReplaceAllString(c.text, "")
	if reason == c.text {
		return false
	}
	if terms := Distinct(index.Terms(reason)); !p.Claim.Dense {
		return len(terms) >= 2 && !slices.ContainsFunc(p.Quote, func(t *Text) bool { return 2*sharedCount(terms, t.terms) >= len(terms) })
	}
	symbols := symbolsOf(reason, nil)
	return !slices.ContainsFunc(p.Quote, func(t *Text) bool { return cover(symbols, t.row()) > stated })
}

var causes = data.Rule("causes")
