package circle

import (
	"context"
	"fmt"
	"time"

	"nodest/circle"
	"nodest/internal/op"
)

// act is something that the user does at a time.
type act struct {
	at time.Time
	do func(ctx context.Context) error
}

// visits are what the user does until a time: a look at the feed three times a day, on most
// days a post, and now and then a comment or a like. In the third week the user is away, so
// that the circle falls asleep and wakes again.
func (w *circleWorld) visits(end time.Time) (list []act) {
	for day := w.clock.Now().In(w.zone); day.Before(end); day = day.AddDate(0, 0, 1) {
		if n := int(day.Sub(circleStart).Hours() / 24); n >= 14 && n < 19 {
			continue
		}
		for i, hour := range []int{8, 13, 19} {
			at := time.Date(day.Year(), day.Month(), day.Day(), hour, w.rnd.IntN(60), 0, 0, w.zone)
			if at.After(w.clock.Now()) && at.Before(end) {
				list = append(list, act{at, func(ctx context.Context) error { return w.visit(ctx, i == 1 && w.rnd.IntN(10) < 7) }})
			}
		}
	}
	return list
}

// visit looks at the feed, and reacts to what is new.
func (w *circleWorld) visit(ctx context.Context, posts bool) error {
	call := func() *op.Call { return &op.Call{UserID: w.call.UserID} }
	feed, err := w.first().circle.Feed(ctx, call(), circle.FeedFilter{}, "", 10)
	if err != nil {
		return err
	}
	for _, entry := range feed.Items {
		if entry.Post.AuthorID == circle.Me {
			err = w.answerOne(ctx, entry)
		} else if w.rnd.IntN(4) == 0 {
			_, err = w.first().circle.Like(ctx, call(), entry.Post.ID)
		}
		if err != nil {
			return err
		}
	}
	if len(feed.Items) > 0 && w.rnd.IntN(2) == 0 {
		p := feed.Items[w.rnd.IntN(len(feed.Items))].Post
		if _, err := w.first().circle.Comment(ctx, call(), p.ID, w.userText("Ada wonders about"), ""); err != nil {
			return err
		}
	}
	if posts {
		_, err = w.first().circle.Post(ctx, call(), circle.PostInput{Text: w.userText("Today I thought about")})
	}
	return err
}

// answerOne answers the newest comment on a post of the user, now and then.
func (w *circleWorld) answerOne(ctx context.Context, entry *circle.Entry) error {
	if len(entry.Comments) == 0 || w.rnd.IntN(3) > 0 {
		return nil
	}
	newest := entry.Comments[len(entry.Comments)-1]
	if newest.AuthorID == circle.Me || newest.DeletedAt != nil {
		return nil
	}
	_, err := w.first().circle.Comment(ctx, &op.Call{UserID: w.call.UserID}, entry.Post.ID, w.userText("I see it like this:"), newest.ID)
	return err
}

// userText is a text that the user has not written before.
func (w *circleWorld) userText(opening string) string {
	return fmt.Sprintf("%s %s, and what %s means (%d).", opening, scriptEN.compose(w.rnd, "Ada", ""), w.characters[w.rnd.IntN(len(w.characters))].Name, w.rnd.IntN(1_000_000))
}

// eachPost reads all posts with their comments, newest first.
func (w *circleWorld) eachPost(ctx context.Context, use func(*circle.Entry)) error {
	for cursor := ""; ; {
		var page []*circle.Post
		err := w.first().db.Circle().View(ctx, w.call.UserID, func(tx circle.Tx) (err error) {
			page, cursor, err = tx.Posts(circle.PostFilter{}, cursor, 100)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range page {
			var comments []*circle.Comment
			err := w.first().db.Circle().View(ctx, w.call.UserID, func(tx circle.Tx) (err error) {
				comments, err = tx.Comments(0, p.ID)
				return err
			})
			if err != nil {
				return err
			}
			use(&circle.Entry{Post: p, Comments: comments})
		}
		if cursor == "" {
			return nil
		}
	}
}

// eachTurn reads all turns.
func (w *circleWorld) eachTurn(ctx context.Context, use func(*circle.Turn)) error {
	for cursor := ""; ; {
		var page []*circle.Turn
		err := w.first().db.Circle().View(ctx, w.call.UserID, func(tx circle.Tx) (err error) {
			page, cursor, err = tx.Turns(circle.TurnFilter{}, cursor, 200)
			return err
		})
		if err != nil {
			return err
		}
		for _, t := range page {
			use(t)
		}
		if cursor == "" {
			return nil
		}
	}
}
