package rules

import "nodest/framework"

// Kind is what kind of post a character writes.
type Kind string

// Digest is the post that tells a user what happened while the circle slept. It is in no
// deck.
const Digest Kind = "digest"

// deck has the kinds that are dealt.
var deck = [...]Kind{
	"moment", "opinion", "question", "recollection", "intention", "discovery", "grumble", "gratitude", "work", "place", "tip", "thought",
}

// Words are the instruction for a post of the kind; "" for an unknown kind.
func (k Kind) Words(l framework.Language) string { return textsOf(l).Kinds[k] }

// Deal returns the kind of a character's next post. latest are the kinds of its latest
// posts, newest first; the newest one that was dealt is enough. Each character deals from
// its own shuffled deck, so no kind comes again before all others were dealt.
func Deal(characterID string, latest []Kind) Kind {
	order := dice(Seed(characterID), "deck").Perm(len(deck))
	for _, k := range latest {
		for at, card := range order {
			if deck[card] == k {
				return deck[order[(at+1)%len(order)]]
			}
		}
	}
	return deck[order[0]]
}
