package claim

import (
	"maps"
	"slices"
	"strings"

	"nodest/internal/index"
)

// posted finds somebody in a role that the source gives to another one, and who has another role there: "the captain is
// Isla" where it was "the captain is Ewan and the engineer is Isla".
var posted = Detector{Name: "posted", Why: WhyRole, Find: anyClause(func(p *Pair, c *clause, _ []*clause) bool {
	return slices.ContainsFunc(p.postsOf(c), func(ours post) bool {
		taken, other := false, false
		for _, t := range p.Quote {
			for _, of := range t.clauses {
				for _, theirs := range p.postsOf(of) {
					role, holder := sharedCount(ours.role, theirs.role) > 0, sharedCount(ours.holder, theirs.holder) > 0
					if role && holder {
						return false
					}
					taken = taken || role && (allIn(ours.role, theirs.role) || allIn(theirs.role, ours.role))
					other = other || holder
				}
			}
		}
		return taken && other
	})
})}

// post is a role, and the names of who has it.
type post struct{ role, holder map[string]bool }

// postsOf reads the parts of a clause that say with a form of "to be", and nothing else, who has a role.
func (p *Pair) postsOf(c *clause) (posts []post) {
	if c.says().negated || c.says().passive {
		return nil
	}
	words := strings.Fields(c.text)
	for len(words) > 0 {
		end := slices.IndexFunc(words, func(w string) bool { return breaks()[w] })
		if end < 0 {
			end = len(words)
		}
		if one, ok := p.postOf(words[:end]); ok {
			posts = append(posts, one)
		}
		words = words[min(end+1, len(words)):]
	}
	return posts
}

func (p *Pair) postOf(words []string) (post, bool) {
	at := slices.IndexFunc(words, func(w string) bool { return forms()[w] })
	if at < 0 {
		return post{}, false
	}
	left, right := Distinct(index.Terms(strings.Join(words[:at], " "))), Distinct(index.Terms(strings.Join(words[at+1:], " ")))
	name := func(term string, _ bool) bool { return p.isName(term) }
	for _, side := range [][2]map[string]bool{{left, right}, {right, left}} {
		role := maps.Clone(side[0])
		maps.DeleteFunc(role, name)
		rest := maps.Clone(side[1])
		if maps.DeleteFunc(rest, name); len(rest) == 0 && len(side[1]) > 0 && len(role) > 0 {
			return post{role, side[1]}, true
		}
	}
	return post{}, false
}

// allIn reports whether another set has all of some terms.
func allIn(some, all map[string]bool) bool { return sharedCount(some, all) == len(some) }
