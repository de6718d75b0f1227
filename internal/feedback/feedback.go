// Package feedback turns evaluations of what prompts were given into factors on its rank, and keeps a share of each
// block for what was never shown. It is rules alone: it must not read or store anything, and being shown changes no factor.
package feedback

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Kind says where a source is from.
type Kind string

const (
	Memory Kind = "memory" // by the id of a unit: a text of a chat, or a version of a fact
	Chunk  Kind = "chunk"  // by its id: a chunk of a document; by the id of the file: all of its chunks
	Host   Kind = "host"   // a host of the web, as weburl.Hostname gives it
)

// Status is the verdict of an evaluation.
type Status string

const (
	Helpful    Status = "helpful"
	Neutral    Status = "neutral"    // about the task, without a visible effect
	Unused     Status = "unused"     // about it, not used
	Irrelevant Status = "irrelevant" // not about it
	Harmful    Status = "harmful"
)

// verdicts are what evaluations say of a source, from -1 to 1.
var verdicts = map[Status]float64{Helpful: 1, Neutral: 0, Unused: 0, Irrelevant: -0.5, Harmful: -1}

// Known reports whether a status is one of an evaluation.
func (s Status) Known() bool {
	_, known := verdicts[s]
	return known
}

// The bounds of a factor, and how soon votes lose half of their weight: with time, and with newer
// votes, so that a source with a long good record falls as fast as one with a short record.
const (
	Least    = 1 - most
	Most     = 1 + most
	HalfLife = 30 * 24 * time.Hour
	most     = 0.15
	halfIn   = 3 // newer votes
	doubt    = 1 // weight of the doubt that one vote alone says much
)

// Kept is how many votes of a source are worth keeping, the newest ones: what comes after them has
// less than a thousandth of the weight of the newest.
const Kept = 32

// Vote is one evaluation of a source.
type Vote struct {
	Status Status
	At     time.Time
}

// Factor is what votes multiply a score with, from Least to Most; without any it is exactly 1.
// Their order does not matter. A later vote than now counts as one of now.
func Factor(votes []Vote, now time.Time) float64 {
	newest := slices.SortedFunc(slices.Values(votes), func(a, b Vote) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(verdicts[a.Status], verdicts[b.Status]))
	})
	sum, weights := 0.0, float64(doubt)
	for i, v := range newest {
		age := max(0, now.Sub(v.At).Hours()) / HalfLife.Hours()
		w := math.Exp2(-age - float64(i)/halfIn)
		sum += w * verdicts[v.Status]
		weights += w
	}
	return 1 + most*sum/weights
}

// Evaluation is a vote as it is stored.
type Evaluation struct {
	// Source is the id of a unit of memory, of a chunk or of a file, or an address.
	Source         string
	CharacterID    string // whose prompts it is about; "" = those of all
	ConversationID string // with which it is removed; "" = none
	Vote                  // the vote of now, without a time
}

// Tx stores votes.
type Tx interface {
	// PutVotes stores votes; all but the newest Kept of a source are removed. A source that the user
	// cannot reach, or not any more, is left out; a character or a conversation is fault.NotFound.
	PutVotes(all ...Evaluation) error
	// Votes returns the votes on chunks, by their ids, or on hosts, that count for a character, by
	// source; "" = those of all characters. A vote on a whole file counts for each of its chunks.
	Votes(characterID string, kind Kind, sources ...string) (map[string][]Vote, error)
}

// Record is what is known of a source.
type Record struct {
	Votes []Vote
	Shown bool // a prompt has had it
}

// Slots is how many of the n places of a block go at least to what was never shown: one in ten,
// but never the first.
func Slots(n int) int { return max(0, min((n+9)/10, n-1)) }

// Explore returns a block in which as many sources as Slots says were never shown, as far as others
// has such: the best of others take the places of the last ones that were shown, at the end. Both are
// ordered, the best first. tried has the sources that came in, and what they replaced.
func Explore[T any](block, others []T, shown func(T) bool) (next, tried, replaced []T) {
	next = slices.Clone(block)
	lacking := Slots(len(block))
	for _, one := range block {
		if !shown(one) {
			lacking--
		}
	}
	for _, one := range others {
		if lacking <= 0 {
			break
		}
		if shown(one) {
			continue
		}
		at := len(next) - len(tried) - 1
		for at > 0 && !shown(next[at]) {
			at--
		}
		if at <= 0 {
			break
		}
		replaced = append(replaced, next[at])
		next = append(slices.Delete(next, at, at+1), one)
		tried = append(tried, one)
		lacking--
	}
	return next, tried, replaced
}
