package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"nodest/internal/fault"
)

// called is the name of an item.
func (i Item) called() string {
	if i.Kind == Posts {
		return i.Text
	}
	return i.Name + i.Title + i.Username
}

// Items reads the lists of some kinds.
func (c *Client) Items(ctx context.Context, of ...*Kind) ([]Item, error) {
	var items []Item
	for _, k := range of {
		some, err := c.list(ctx, k, k.Path)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// list reads a list of things of a kind.
func (c *Client) list(ctx context.Context, k *Kind, path string) ([]Item, error) {
	items, err := All[Item](ctx, c, path)
	for i := range items {
		items[i] = items[i].As(k)
	}
	return items, err
}

// As returns the item as one of a kind.
func (i Item) As(k *Kind) Item {
	i.Kind, i.Path = k, k.Path+"/"+url.PathEscape(i.ID)
	return i
}

// Find returns the item that a user names: by its id, its name in any case, the
// beginning of its id or, unless c wants whole names, the beginning of its name.
//
// Errors: NotFound with names that are near; a usage error that lists the items
// when several fit.
func (c *Client) Find(ctx context.Context, word string, of ...*Kind) (Item, error) {
	if len(of) == 1 && of[0] == Chats {
		return c.findChat(ctx, word)
	}
	return c.find(ctx, word, of...)
}

// find is Find for all kinds but chats.
func (c *Client) find(ctx context.Context, word string, of ...*Kind) (Item, error) {
	if IsID(word) && len(of) == 1 && !of[0].listed {
		return c.Get(ctx, of[0], word)
	}
	items, err := c.Items(ctx, of...)
	if err != nil {
		return Item{}, err
	}
	return c.Choice(ctx, word, items, of...)
}

func IsID(word string) bool {
	_, err := uuid.Parse(word)
	return err == nil
}

// Get returns the item of a kind with an id.
func (c *Client) Get(ctx context.Context, k *Kind, id string) (Item, error) {
	found := Item{ID: strings.ToLower(id)}.As(k)
	err := c.Call(ctx, http.MethodGet, found.Path, nil, &found)
	return found, err
}

// Choice is find among items that are there already.
func (c *Client) Choice(ctx context.Context, word string, items []Item, of ...*Kind) (Item, error) {
	found := Matches(word, items)
	if len(found) == 0 && !c.WholeNames {
		found = BegunBy(word, items)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Item{}, c.Ambiguous(ctx, word, found)
	case len(items) == 0:
		return Item{}, fault.New(fault.NotFound, "no %s yet; add one with: %s", of[0].Noun, of[0].First)
	}
	var names []string
	for _, i := range items {
		names = append(names, i.called())
	}
	slices.Sort(names)
	return Item{}, NotFound(of, word, Near(word, slices.Compact(names)))
}

func NotFound(of []*Kind, word string, names []string) error {
	nouns := make([]string, len(of))
	for i, k := range of {
		nouns[i] = k.Noun
	}
	hint := DidYouMean(names)
	if hint == "" {
		hint = fmt.Sprintf("; run %s to see all", cmp.Or(of[0].all, "nodest list "+of[0].List))
	}
	return fault.New(fault.NotFound, "no %s %q%s", orList(nouns), word, hint)
}

// orList joins words for a sentence: a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// findChat is Find for chats. A chat can be named by its character too, when it
// is the only one with that character. The whole name of a character comes before
// the beginning of a title.
func (c *Client) findChat(ctx context.Context, word string) (Item, error) {
	var missing error
	for _, by := range []*Client{c.Whole(), c} {
		for _, k := range []*Kind{Chats, Characters} {
			found, err := by.find(ctx, word, k)
			switch {
			case err == nil && k == Characters:
				return c.onlyChatWith(ctx, word, found)
			case !fault.Is(err, fault.NotFound):
				return found, err
			case k == Chats:
				missing = err
			}
		}
	}
	return Item{}, missing
}

// onlyChatWith returns the only chat with a character that word names.
func (c *Client) onlyChatWith(ctx context.Context, word string, with Item) (Item, error) {
	list, err := c.list(ctx, Chats, Chats.Path+"?characterId="+url.QueryEscape(with.ID))
	switch {
	case err != nil:
		return Item{}, err
	case len(list) == 0:
		return Item{}, fault.New(fault.NotFound, "no chat with %s yet; start one with: nodest chat %q", with.Name, with.Name)
	case len(list) > 1:
		return Item{}, c.Ambiguous(ctx, word, list)
	}
	return list[0], nil
}

// leastPrefix is how much of an id must be given: every id begins with the same
// digit, and the word may be a slip.
const leastPrefix = 4

// Matches returns the items that word names by their whole name or their id.
func Matches(word string, items []Item) []Item {
	return best(items,
		func(i Item) bool { return i.ID == strings.ToLower(word) },
		func(i Item) bool { return i.called() == word },
		func(i Item) bool { return strings.EqualFold(strings.TrimSpace(i.called()), strings.TrimSpace(word)) },
		func(i Item) bool { return len(word) >= leastPrefix && strings.HasPrefix(i.ID, strings.ToLower(word)) },
	)
}

// BegunBy returns the items whose name begins with word: with whole words of the
// name, else within one, as in languages that put no space between words.
func BegunBy(word string, items []Item) []Item {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return nil
	}
	rest := func(i Item) (string, bool) {
		return strings.CutPrefix(strings.ToLower(strings.TrimSpace(i.called())), word)
	}
	return best(items,
		func(i Item) bool {
			rest, ok := rest(i)
			next, _ := utf8.DecodeRuneInString(rest)
			return ok && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !unicode.IsMark(next)
		},
		func(i Item) bool { _, ok := rest(i); return ok },
	)
}

// best returns the items that the first test of any success fits.
func best(items []Item, tests ...func(i Item) bool) []Item {
	for _, fits := range tests {
		var found []Item
		for _, i := range items {
			if fits(i) {
				found = append(found, i)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// Ambiguous is a usage error that lists what a word may mean.
func (c *Client) Ambiguous(ctx context.Context, word string, found []Item) error {
	rows, err := c.Rows(ctx, found)
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%q is ambiguous (%d matches); use an id:\n", word, len(found))
	if err := Table(text, rows); err != nil {
		return err
	}
	return Usage("%s", strings.TrimRight(text.String(), "\n"))
}
