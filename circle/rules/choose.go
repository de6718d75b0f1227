package rules

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Subject is a post that characters may react to.
type Subject struct {
	Author string // "" = the user
	Text   string
	At     time.Time // when it was written, in the user's time zone
}

// Candidate is a character that may react.
type Candidate struct {
	ID, Name  string
	OwnThread bool   // the text answers its post or its comment
	Strength  int    // strength of its relationship to the author
	About     string // the things that it cares for: its card
	Recent    int    // its reactions in the last 24 hours
}

// Chosen is a character that reacts.
type Chosen struct {
	ID     string
	Reason Reason
	Score  float64 // the probability that it had, 0 to 1
}

// The parts of a score, which add up.
const (
	ordinary   = 0.16 // for everybody
	byHour     = 0.12 // in the hours in which the character is active
	byRelation = 0.25 // for a strength of 100 in either direction: enemies react too
	byTopic    = 0.40 // for a post about what the character cares for
	most       = 0.85
	tireless   = 12 // reactions in 24 hours that halve the score
)

// Choose decides who reacts to a post, highest score first. Characters that it mentions or
// whose thread it continues always react, and all do to the user's posts if everybody is
// set. Otherwise each score is compared with a random number: two to four of ten react on
// average, often nobody. At least one reacts to a post of the user. The author never
// reacts. The order of the candidates does not matter.
func Choose(seed uint64, post Subject, candidates []Candidate, everybody bool) []Chosen {
	topic := topics(post.Text)
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.Name
	}
	mentioned := Mentions(post.Text, names)
	var chosen []Chosen
	best, found := Chosen{Score: -1}, false
	for _, c := range candidates {
		if c.ID == post.Author {
			continue
		}
		pick := Chosen{ID: c.ID, Score: 1}
		switch {
		case c.OwnThread:
			pick.Reason = OwnThread
		case slices.Contains(mentioned, c.Name):
			pick.Reason = Mentioned
		case everybody && post.Author == "":
			pick.Reason = Everybody
		default:
			pick = score(post, topic, c)
			noise := dice(seed, c.ID).Float64()
			if margin := pick.Score - noise; !found || margin > best.Score {
				best, found = Chosen{pick.ID, pick.Reason, margin}, true
			}
			if noise >= pick.Score {
				continue
			}
		}
		chosen = append(chosen, pick)
	}
	if len(chosen) == 0 && found && post.Author == "" {
		best.Score = max(best.Score, 0)
		chosen = append(chosen, best)
	}
	slices.SortStableFunc(chosen, func(a, b Chosen) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return chosen
}

// score returns the probability that a character reacts, with the main reason.
func score(post Subject, topic map[string]bool, c Candidate) Chosen {
	relation := byRelation * math.Abs(float64(c.Strength)) / maxStrength
	interest := byTopic * overlap(topic, topics(c.About))
	p := ordinary + byHour*HabitOf(c.ID).Active(post.At) + relation + interest
	p *= tireless / (tireless + float64(max(c.Recent, 0)))
	out := Chosen{ID: c.ID, Reason: Chance, Score: min(p, most)}
	switch {
	case interest > relation && interest > byTopic/4:
		out.Reason = Topic
	case relation > byRelation/4:
		out.Reason = Close
	}
	return out
}
