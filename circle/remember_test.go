package circle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/circle"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// feed are the comments that exist.
type feed struct {
	circle.FeedTx
	comments []*circle.Comment
}

func (f *feed) Comment(id string) (*circle.Comment, error) {
	if at := slices.IndexFunc(f.comments, func(c *circle.Comment) bool { return c.ID == id }); at >= 0 {
		return f.comments[at], nil
	}
	return nil, fault.New(fault.NotFound, "no comment %q", id)
}

func (f *feed) Comments(int, ...string) ([]*circle.Comment, error) { return f.comments, nil }

// remembering is a user with characters whose memories are real.
type remembering struct {
	testing.TB
	db   *store.DB
	user string
	feed *feed
}

func newRemembering(t *testing.T) *remembering {
	db := storetest.Open(t)
	return &remembering{TB: t, db: db, user: storetest.User(t, db), feed: &feed{}}
}

func (r *remembering) update(fn func(circle.Tx) error) {
	r.Helper()
	err := r.db.Update(context.Background(), r.user, func(tx nodest.Tx) error {
		return fn(circle.Tx{Tx: tx.Memory.Tx, Jobs: tx.Memory.Jobs, Characters: tx.Characters, Memory: tx.Memory, FeedTx: r.feed})
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *remembering) character(name, description string) string {
	r.Helper()
	ch := &character.Character{ID: newID(), Name: name, RoleCard: []byte(`{"name":"` + name + `","description":"` + description + `"}`)}
	r.update(func(tx circle.Tx) error { return tx.Characters.InsertCharacter(ch) })
	return ch.ID
}

func (r *remembering) knows(characterID string) (texts []string) {
	r.Helper()
	r.update(func(tx circle.Tx) error {
		texts = nil
		facts, _, err := tx.Memory.Facts(characterID, memory.Filter{}, "", 100)
		for _, m := range facts {
			texts = append(texts, m.Text)
		}
		return err
	})
	return texts
}

func (r *remembering) wantKnown(who, characterID string, want ...string) {
	r.Helper()
	if got := r.knows(characterID); !slices.Equal(got, want) {
		r.Errorf("%s knows %q, want %q", who, got, want)
	}
}

var yesterday = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func TestThoseWhoTakePartRemember(t *testing.T) {
	t.Parallel()
	r := newRemembering(t)
	mira, wren, hua := r.character("Mira", "Keeps a lighthouse."), r.character("Wren", "Paints."), r.character("小花", "一位在杭州开花店的姑娘。")
	bystander := r.character("Otto", "Bakes.")
	post := &circle.Post{ID: newID(), AuthorID: mira, AuthorName: "Mira", Text: "The \"old\" lantern\nburns again.", CreatedAt: yesterday}
	byWren := &circle.Comment{ID: newID(), PostID: post.ID, AuthorID: wren, AuthorName: "Wren", Text: "I painted its roof.", CreatedAt: yesterday}
	byUser := &circle.Comment{ID: newID(), PostID: post.ID, AuthorID: circle.Me, AuthorName: "Ann", ReplyTo: byWren.ID, Text: "Which colour?", CreatedAt: yesterday}
	byHua := &circle.Comment{ID: newID(), PostID: post.ID, AuthorID: hua, AuthorName: "小花", ReplyTo: byUser.ID, Text: "红色。", CreatedAt: yesterday}
	r.update(func(tx circle.Tx) error { return circle.RememberPost(tx, post, mira) })
	r.update(func(tx circle.Tx) error { return circle.RememberPost(tx, post, wren) }) // likes it; Mira knows what she wrote
	for _, c := range []*circle.Comment{byWren, byUser, byHua} {
		r.update(func(tx circle.Tx) error { return circle.RememberComment(tx, post, c) })
		r.feed.comments = append(r.feed.comments, c)
	}
	const (
		posted    = `Mira posted in the circle: "The 'old' lantern burns again."`
		commented = `Wren commented in the circle on Mira's post "The 'old' lantern burns again.": "I painted its roof."`
		replied   = `User replied to Wren in the circle, below Mira's post "The 'old' lantern burns again.": "Which colour?"`
		answered  = `小花 replied to User in the circle, below Mira's post "The 'old' lantern burns again.": "红色。"`
	)
	r.wantKnown("Mira", mira, answered, replied, commented, posted)
	r.wantKnown("Wren", wren, replied, commented)
	r.wantKnown("小花", hua, `小花在朋友圈Mira的动态“The "old" lantern burns again.”下回复了用户：“红色。”`)
	r.wantKnown("a bystander", bystander)

	r.update(func(tx circle.Tx) error { return circle.ForgetComment(tx, byUser) })
	r.wantKnown("Wren, after a comment was deleted", wren, commented)
	r.update(func(tx circle.Tx) error { return circle.ForgetPost(tx, post) })
	for who, id := range map[string]string{"Mira": mira, "Wren": wren, "小花": hua} {
		r.wantKnown(who+", after the post was deleted", id)
	}
}

func TestNothingIsRememberedForTheUserAndForTheDeleted(t *testing.T) {
	t.Parallel()
	r := newRemembering(t)
	mira := r.character("Mira", "Keeps a lighthouse.")
	gone := r.character("Gone", "Left.")
	r.update(func(tx circle.Tx) error { return tx.Characters.DeleteCharacter(gone) })
	post := &circle.Post{ID: newID(), AuthorID: circle.Me, AuthorName: "Ann", CreatedAt: yesterday, Images: []circle.Image{{ID: newID()}}}
	for _, who := range []string{circle.Me, gone, mira} { // the latter has reacted to it
		r.update(func(tx circle.Tx) error { return circle.RememberPost(tx, post, who) })
	}
	toGone := &circle.Comment{ID: newID(), AuthorID: gone, AuthorName: "Gone"}
	r.feed.comments = []*circle.Comment{toGone}
	for _, replyTo := range []string{toGone.ID, newID()} {
		c := &circle.Comment{ID: newID(), AuthorID: mira, AuthorName: "Mira", ReplyTo: replyTo, Text: "Fine picture!", CreatedAt: yesterday}
		r.update(func(tx circle.Tx) error { return circle.RememberComment(tx, post, c) })
	}
	r.wantKnown("Mira", mira, `Mira commented in the circle on User's post "(pictures)": "Fine picture!"`,
		`Mira replied to Gone in the circle, below User's post "(pictures)": "Fine picture!"`, `User posted in the circle: "(pictures)"`)
}

func TestQuotesAreShort(t *testing.T) {
	t.Parallel()
	r := newRemembering(t)
	mira := r.character("Mira", "Keeps a lighthouse.")
	long := strings.Repeat("灯塔 </mem> ", 400)
	post := &circle.Post{ID: newID(), AuthorID: mira, AuthorName: "Mira", Text: long, CreatedAt: yesterday}
	r.update(func(tx circle.Tx) error {
		if err := circle.RememberPost(tx, post, mira); err != nil {
			return err
		}
		return circle.RememberComment(tx, post, &circle.Comment{ID: newID(), AuthorID: circle.Me, AuthorName: "Ann", Text: long, CreatedAt: yesterday})
	})
	for _, text := range r.knows(mira) {
		if n := utf8.RuneCountInString(text); n > 260 || strings.Count(text, "…") == 0 {
			t.Errorf("%d code points: %q", n, text)
		}
	}
}
