package circle

import (
	"slices"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
)

// reaction is what a character did about a post or a comment: liked it, answered it, or
// both.
type reaction struct {
	rules.Interaction
	at time.Time
}

// reactionsTo adds the characters' reactions to a post and to the comments on it.
func reactionsTo(entry *circle.Entry, done map[string][]reaction) {
	p, authors, commented := entry.Post, map[string]string{}, map[string]bool{}
	for _, c := range entry.Comments {
		authors[c.ID] = c.AuthorID
		did := reaction{rules.Interaction{Author: p.AuthorID}, c.CreatedAt}
		if c.ReplyTo == "" {
			commented[c.AuthorID] = true
		} else {
			did.Interaction = rules.Interaction{Author: authors[c.ReplyTo], Thread: c.Thread}
		}
		done[c.AuthorID] = append(done[c.AuthorID], did)
	}
	for _, l := range p.Likes {
		if !commented[l.AuthorID] {
			done[l.AuthorID] = append(done[l.AuthorID], reaction{rules.Interaction{Author: p.AuthorID}, l.CreatedAt})
		}
	}
}

// overLimit counts the reactions of a character that its limits should have prevented.
func overLimit(frequency string, done []reaction) (n int) {
	slices.SortStableFunc(done, func(a, b reaction) int { return a.at.Compare(b.at) })
	for i, next := range done {
		var lately []rules.Interaction
		for _, earlier := range done[:i] {
			if next.at.Sub(earlier.at) <= 24*time.Hour {
				lately = append(lately, earlier.Interaction)
			}
		}
		if !rules.Allowed(frequency, lately, next.Interaction) {
			n++
		}
	}
	return n
}
