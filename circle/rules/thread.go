package rules

import "time"

// Comment is a comment that a character may answer. The pair is this character and the
// author of the comment.
type Comment struct {
	ByUser     bool
	Mentions   bool          // it has the character's name
	OwnPost    bool          // the character wrote the post
	Turns      int           // comments of the pair in the thread, including this one
	Ended      bool          // one of the pair has ended the thread
	LastThread time.Duration // since the pair last talked in another thread; 0 = never
}

// How far characters talk among themselves.
const (
	maxTurns  = 6         // comments of a pair in a thread
	pairPause = time.Hour // between two threads of a pair
)

// The probabilities that the author of a post answers a comment on it, and that a
// character answers any other comment, by the turns of the pair so far.
const returning = 0.95

var answering = [maxTurns]float64{0.6, 0.6, 0.95, 0.8, 0.6, 0.45}

// Answers decides whether a character answers a comment that is on its post, answers its
// comment, or mentions it; if not, the note says why. It always answers the user. Threads
// among characters end when one of the pair wants that, after six turns of the pair, or by
// chance. A pair that has just talked in another thread pauses, but authors still come
// back to comments on their posts.
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
