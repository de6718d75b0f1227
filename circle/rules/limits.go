package rules

// Interaction is a reaction that was stored, or that is about to be.
type Interaction struct {
	Author string // whose post or comment it answers; "" = the user
	Thread string // thread of the comment that it answers; "" = it reacts to a post
}

// limits are those of one character in 24 hours.
type limits struct {
	perAuthor int // reactions to the posts of one author
	authors   int // whose posts it reacts to
	perThread int // answers in one thread
}

var limitsOf = map[string]limits{
	"low":    {perAuthor: 1, authors: 5, perThread: 1},
	"medium": {perAuthor: 3, authors: 5, perThread: 3},
	"high":   {perAuthor: 5, authors: 7, perThread: 5},
}

// Allowed reports whether a character may interact once more after what it did in the last
// 24 hours. Any frequency but low and high is medium. Answers to the user are not limited,
// and do not count.
func Allowed(frequency string, done []Interaction, next Interaction) bool {
	if next.Author == "" {
		return true
	}
	limit, ok := limitsOf[frequency]
	if !ok {
		limit = limitsOf["medium"]
	}
	same, authors := 0, map[string]bool{}
	for _, d := range done {
		switch {
		case d.Author == "":
		case next.Thread != "":
			if d.Thread == next.Thread {
				same++
			}
		case d.Thread == "":
			authors[d.Author] = true
			if d.Author == next.Author {
				same++
			}
		}
	}
	if next.Thread != "" {
		return same < limit.perThread
	}
	return same < limit.perAuthor && (authors[next.Author] || len(authors) < limit.authors)
}
