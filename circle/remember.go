package circle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/character"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/memory"
)

// Most code points that a memory quotes of what was posted and commented.
const (
	quotedPost    = 200 // in the memory of the post itself
	quotedAbout   = 60  // of the post that a comment is about
	quotedComment = 140
)

// happened are the sentences of what characters remember; arguments are the quotes and those who
// wrote them. They say that it was in the circle, and stand by themselves.
type happened struct {
	posted    string // author, text
	commented string // author, post's author, post, text
	replied   string // author, whom it answers, post's author, post, text
	user      string
	pictures  string                   // of a post without a text
	quotes    func(text string) string // so that no quote ends early
}

var happenings = map[framework.Language]happened{
	framework.English: {
		posted:    `%[1]s posted in the circle: "%[2]s"`,
		commented: `%[1]s commented in the circle on %[2]s's post "%[3]s": "%[4]s"`,
		replied:   `%[1]s replied to %[2]s in the circle, below %[3]s's post "%[4]s": "%[5]s"`,
		user:      "User", pictures: "(pictures)", quotes: strings.NewReplacer(`"`, "'").Replace,
	},
	framework.Chinese: {
		posted:    "%[1]s在朋友圈发布：“%[2]s”",
		commented: "%[1]s在朋友圈评论了%[2]s的动态“%[3]s”：“%[4]s”",
		replied:   "%[1]s在朋友圈%[3]s的动态“%[4]s”下回复了%[2]s：“%[5]s”",
		user:      "用户", pictures: "（图片）", quotes: strings.NewReplacer("“", "‘", "”", "’").Replace,
	},
}

// rememberPost adds a post to the memory of a character: of its author, and, if it is the
// user's, of those who react to it.
func rememberPost(tx Tx, p *Post, characterID string) error {
	if characterID != p.AuthorID && p.AuthorID != Me {
		return nil
	}
	return remember(tx, p.ID, p.CreatedAt, func(words happened) string {
		return fmt.Sprintf(words.posted, words.name(p.AuthorID, p.AuthorName), words.quote(p.Text, quotedPost))
	}, characterID)
}

// rememberComment adds a comment to the memories of its author, of the one it answers, and of the
// author of the post.
func rememberComment(tx Tx, p *Post, c *Comment) error {
	var answered *Comment
	if c.ReplyTo != "" {
		var err error
		answered, err = tx.Comment(c.ReplyTo)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	holders := []string{c.AuthorID, p.AuthorID}
	if answered != nil {
		holders = append(holders, answered.AuthorID)
	}
	return remember(tx, c.ID, c.CreatedAt, func(words happened) string {
		author, poster := words.name(c.AuthorID, c.AuthorName), words.name(p.AuthorID, p.AuthorName)
		post, text := words.quote(p.Text, quotedAbout), words.quote(c.Text, quotedComment)
		if answered == nil {
			return fmt.Sprintf(words.commented, author, poster, post, text)
		}
		return fmt.Sprintf(words.replied, author, words.name(answered.AuthorID, answered.AuthorName), poster, post, text)
	}, holders...)
}

// forgetPost removes a post and its comments from all memories.
func forgetPost(tx Tx, p *Post) error {
	comments, err := tx.Comments(0, p.ID)
	if err != nil {
		return err
	}
	for _, c := range comments {
		if err := forgetComment(tx, c); err != nil {
			return err
		}
	}
	return memory.RemoveHappenings(tx.Memory, p.ID)
}

// forgetComment removes a comment from all memories. Those of its replies stay; they do not quote
// it.
func forgetComment(tx Tx, c *Comment) error { return memory.RemoveHappenings(tx.Memory, c.ID) }

// remember adds what happened to the memories of characters, each in its language. The user has
// none.
func remember(tx Tx, source string, at time.Time, text func(happened) string, holders ...string) error {
	if at.IsZero() {
		at = tx.Now()
	}
	slices.Sort(holders)
	var list []memory.Happening
	for _, id := range slices.Compact(holders) {
		if id == Me {
			continue
		}
		ch, err := tx.Characters.CharacterCard(id)
		if fault.Is(err, fault.NotFound) { // it was deleted
			continue
		}
		if err != nil {
			return err
		}
		words, err := wordsFor(ch)
		if err != nil {
			return err
		}
		list = append(list, memory.Happening{CharacterID: id, Text: text(words), At: at, Source: source})
	}
	return memory.AddHappenings(tx.Memory, list...)
}

func wordsFor(ch *character.Character) (happened, error) {
	language, err := ch.Language()
	return happenings[language], err
}

// name is what facts call an author.
func (w *happened) name(id, name string) string {
	if id == Me {
		return w.user
	}
	return w.line(name)
}

// quote is the beginning of a text as one line, at most limit code points.
func (w *happened) quote(text string, limit int) string {
	line := w.line(text)
	if utf8.RuneCountInString(line) <= limit {
		return cmp.Or(line, w.pictures)
	}
	return strings.TrimSpace(string([]rune(line)[:limit-1])) + "…"
}

func (w *happened) line(text string) string { return w.quotes(strings.Join(strings.Fields(text), " ")) }
