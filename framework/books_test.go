package framework

import (
	"fmt"
	"strings"
	"testing"

	"nodest/card"
)

// Every entry of every book is reported once: first those of the prompt, in its order.
func TestBooksReportsEveryEntry(t *testing.T) {
	entry := func(id string, order float64, at card.Position, keys ...string) card.Entry {
		return card.Entry{ID: id, Comment: id, Content: "About " + id + ".", Order: order, Position: at, Depth: 1, Key: keys}
	}
	always := entry("always", 5, card.AtDepth)
	always.Constant = true
	off := entry("off", 0, card.AtDepth, "tea")
	off.Disable = true
	blank := entry("blank", 0, card.AtDepth, "tea")
	blank.Content = " "
	s := Sources{
		Book: card.WorldBook{Entries: []card.Entry{
			entry("shared", 0, card.AtDepth, "tea"), always, entry("tea", 1, card.AtDepth, "milk", "Tea"), entry("coffee", 0, card.AtDepth, "coffee"),
			off, blank, entry("outlet", 0, 7, "tea"), entry("before", 9, card.BeforeChar, "coffee"), entry("note", 0, card.AfterNote, "tea"),
		}},
		GlobalBook: &card.WorldBook{Entries: []card.Entry{entry("shared", 2, card.AtDepth, "tea")}}, GlobalPriority: GlobalLater,
		MoreBooks: []BoundBook{{ID: "b2", Book: card.WorldBook{Entries: []card.Entry{entry("key", 0, card.AfterChar, "tea")}}, FilterKeyed: true}},
	}
	c := Compile(s)
	p := build(t, Input{Compiled: c, User: Message{Text: "More tea?"}})
	var got []string
	for _, e := range c.Books(p) {
		line := fmt.Sprintf("%s %s %d/%v", e.Source, e.ID, e.Position, e.Order)
		if e.Fires {
			line += fmt.Sprintf(" %s %s %d", e.Why, e.Key, e.Tokens)
		} else {
			line += " " + e.Reason
		}
		if e.Depth != nil {
			line += fmt.Sprintf(" @%d", *e.Depth)
		}
		got = append(got, line)
	}
	want := `worldbook before 0/9 fixed  8
worldbook b2/key 1/0 key tea 7
worldbook tea 4/1 key Tea 7 @1
global_worldbook shared 4/2 key tea 8 @1
worldbook always 4/5 constant  8 @1
worldbook shared 4/0 replaced @1
worldbook coffee 4/0 no_key @1
worldbook off 4/0 disabled @1
worldbook blank 4/0 empty @1
worldbook outlet 7/0 position
worldbook note 3/0 no_note`
	if strings.Join(got, "\n") != want {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
}
