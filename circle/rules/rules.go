// Package rules decides what the social circle does without asking a model: who reacts,
// when and how often, what a relationship becomes, whether a text is new, and what a model
// has answered. It does no I/O, and all chance comes from a seed.
package rules

import (
	"hash/fnv"
	"math/rand/v2"
)

// Reason is why a character was chosen to react.
type Reason string

// The reasons.
const (
	Mentioned Reason = "mentioned"  // the text has its name
	OwnThread Reason = "own_thread" // somebody answered its post or comment
	Topic     Reason = "topic"      // the post is about what it cares for
	Close     Reason = "close"      // it likes, or dislikes, the author
	Chance    Reason = "chance"
	Everybody Reason = "everybody" // the user wants everybody to react
	Scheduled Reason = "scheduled" // a post at a set time
	Frequency Reason = "frequency" // a post by the number a day
	AskedFor  Reason = "asked"     // the user wants it now
)

// Note is why a turn was left out or came to nothing.
type Note string

// The notes.
const (
	NoteChoice    Note = "choice"    // the character chose to do nothing
	NoteLimit     Note = "limit"     // enough of the same in the last 24 hours
	NoteBudget    Note = "budget"    // the calls or tokens of the day are used up
	NoteRepeats   Note = "repeats"   // it would have said something that was said before
	NoteUnfounded Note = "unfounded" // it would have said something about others that nothing supports
	NoteEnded     Note = "ended"     // the thread has ended
	NoteGone      Note = "gone"      // the post, the comment or the character is gone
	NoteAsleep    Note = "asleep"    // the circle sleeps
	NoteMissed    Note = "missed"    // the server was not running, and the day is over
	NoteNoModel   Note = "no_model"  // no provider is configured
)

// Emotion is how a character feels about something.
type Emotion struct {
	Type      string  `json:"type"`      // positive, neutral or negative
	Intensity float64 `json:"intensity"` // 0 to 1
}

// Seed makes a seed of what a decision is about, such as the ids of a character and a
// post: the same parts always give the same seed.
func Seed(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// dice returns chance for one purpose of a seed.
func dice(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, Seed(purpose)))
}
