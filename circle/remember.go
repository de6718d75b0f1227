package circle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/internal/fault"
	"nodest/memory"
)

// Most code points that a memory quotes of what was posted and commented.
const (
	quotedPost    = 200 // in the memory of the post itself
	quotedAbout   = 60  // for the post that a comment is about
	quotedComment = 140
)

// happened are the sentences of what characters remember; arguments are the quotes and those who
// wrote them. They say that it was in the circle, and stand by themselves.
type happened struct {
	Posted    string // author, text
	Commented string // author, post's author, post, text
	Replied   string // author, whom it answers, post's author, post, text
	User      string
	Pictures  string   // stands for a post without a text
	Quotes    []string // each with what takes its place in a quote, so that none ends early
}

// rememberPost adds a post to the memory of a character: of its author, and, if it is the
// user's, of those who react to it.
func rememberPost(tx Tx, p *Post, characterID string) error {
	if characterID != p.AuthorID && p.AuthorID != Me {
		return nil
	}
	return remember(tx, p.ID, p.CreatedAt, func(words *happened) string {
		return fmt.Sprintf(words.Posted, words.name(p.AuthorID, p.AuthorName), words.quote(p.Text, quotedPost))
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
	return remember(tx, c.ID, c.CreatedAt, func(words *happened) string {
		author, poster := words.name(c.AuthorID, c.AuthorName), words.name(p.AuthorID, p.AuthorName)
		post, text := words.quote(p.Text, quotedAbout), words.quote(c.Text, quotedComment)
		if answered == nil {
			return fmt.Sprintf(words.Commented, author, poster, post, text)
		}
		return fmt.Sprintf(words.Replied, author, words.name(answered.AuthorID, answered.AuthorName), poster, post, text)
	}, holders...)
}

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
func remember(tx Tx, source string, at time.Time, text func(*happened) string, holders ...string) error {
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
		language, err := ch.Language()
		if err != nil {
			return err
		}
		list = append(list, memory.Happening{CharacterID: id, Text: text(&wordsOf(language).Happened), At: at, Source: source})
	}
	return memory.AddHappenings(tx.Memory, list...)
}

// name is what facts call an author.
func (w *happened) name(id, name string) string {
	if id == Me {
		return w.User
	}
	return w.line(name)
}

// quote is the beginning of a text as one line, at most limit code points.
func (w *happened) quote(text string, limit int) string {
	line := w.line(text)
	if utf8.RuneCountInString(line) <= limit {
		return cmp.Or(line, w.Pictures)
	}
	return strings.TrimSpace(string([]rune(line)[:limit-1])) + "…"
}

func (w *happened) line(text string) string {
	return strings.NewReplacer(w.Quotes...).Replace(strings.Join(strings.Fields(text), " "))
}
