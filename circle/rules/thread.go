package rules

import "time"

// Comment is a comment that a character may answer, with what it knows of the thread.
type Comment struct {
	ByUser     bool
	Mentions   bool          // it has the character's name
	OwnPost    bool          // the character wrote the post
	Turns      int           // comments in the thread of the character and its author, with this one
	Ended      bool          // one of the two has said that it wants to say no more in the thread
	LastThread time.Duration // since the two last wrote in another thread; 0 = never
}

// How far characters talk among themselves.
const (
	maxTurns  = 6         // of a pair in a thread
	pairPause = time.Hour // between two threads of a pair
)

// The probabilities that a character answers: the author of the post a comment on it, and
// anybody the answers that follow, by the turns before it.
const returning = 0.85

var answering = [maxTurns]float64{0.5, 0.5, 0.6, 0.5, 0.4, 0.3}

// Answers decides whether a character answers a comment on its post, on its comment, or
// with its name, and why not. It always answers the user. Other threads end: when one of
// the two wants that, after six turns of a pair, or by chance. A pair that has just talked
// in another thread pauses, except that authors come back to comments on their posts.
func Answers(seed uint64, c Comment) (bool, Note) {
	switch {
	case c.ByUser:
		return true, ""
	case c.Ended || c.Turns >= maxTurns:
		return false, NoteEnded
	case c.Mentions:
		return true, ""
	}
	chance := answering[max(c.Turns, 0)]
	switch {
	case c.OwnPost && c.Turns <= 1:
		chance = returning
	case c.Turns <= 2 && c.LastThread > 0 && c.LastThread < pairPause:
		return false, NoteLimit
	}
	if dice(seed, "answer").Float64() >= chance {
		return false, NoteChoice
	}
	return true, ""
}
