package circle

import (
	"embed"
	"fmt"
	"time"

	"nodest/framework"
	"nodest/internal/lexicon"
)

// words are the built-in words of the circle in one language. Verbs of formats are in the order of
// their arguments.
type words struct {
	Rules            string
	Author           string // name of a post's author
	Images, Pictures string // a post's images: names, for models that do not see; number, for models that see
	User             string // name for a user without a name
	You              string // name
	Language         string // name of the language of the answer

	timeWords
	headings
	tasks
	shapes

	Relation string            // name, type, strength
	Did      map[string]string // name, by the type of the item; of an alert by its text
	Quote    string            // text
	Offers   map[string]string // name, by the type of the action

	TellPost      tellWords
	Happened      happened
	ForwardedPost struct{ Post, Images, Note string } // that the user shows in a private chat: author; names; its text in a message box
}

// timeWords tell when something happened.
type timeWords struct {
	Now                           string // day, weekday, time
	Weekdays                      [7]string
	JustNow, Minutes, Hours, Days string
}

// headings stand above the parts of a prompt.
type headings struct {
	Relations, Box, Memories, OwnPosts, History, Hint, Context string
}

// tasks say what the character is asked to do, and why an answer was sent back.
type tasks struct {
	ReactToPost                     string // author, age
	ReactToComment, AnswerOnOwnPost string // id, author, text
	Write, Own, Continued           string
	Forwarded                       string // author
	Repeats, Unfounded              string // the fault of an answer
	Review                          string // types
}

// shapes describe the JSON that an answer must be.
type shapes struct {
	ShapeReaction, ShapeResponse, ShapePost, ShapeReview string
}

//go:embed words
var wordFiles embed.FS

var wordsIn = lexicon.Texts[framework.Language, words](wordFiles)

func wordsOf(l framework.Language) *words {
	if w := wordsIn[l]; w != nil {
		return w
	}
	return wordsIn[framework.English]
}

// age is how long ago something happened.
func (w *words) age(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return w.JustNow
	case d < 2*time.Hour:
		return fmt.Sprintf(w.Minutes, int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf(w.Hours, int(d.Hours()))
	}
	return fmt.Sprintf(w.Days, int(d.Hours()/24))
}

// moment is the sentence that tells the time, in the user's zone.
func (w *words) moment(now time.Time) string {
	return fmt.Sprintf(w.Now, now.Format(time.DateOnly), w.Weekdays[now.Weekday()], now.Format("15:04"))
}
