package main

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
func (i item) called() string {
	if i.kind == posts {
		return i.Text
	}
	return i.Name + i.Title + i.Username
}

// items reads the lists of some kinds.
func (c *client) items(ctx context.Context, of ...*kind) ([]item, error) {
	var items []item
	for _, k := range of {
		some, err := c.list(ctx, k, k.path)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// list reads a list of things of a kind.
func (c *client) list(ctx context.Context, k *kind, path string) ([]item, error) {
	items, err := all[item](ctx, c, path)
	for i := range items {
		items[i] = items[i].of(k)
	}
	return items, err
}

// of is the item as one of a kind.
func (i item) of(k *kind) item {
	i.kind, i.path = k, k.path+"/"+url.PathEscape(i.ID)
	return i
}

// find returns the item that a user names: by its id, its name in any case, the
// beginning of its id or, unless c wants whole names, the beginning of its name.
//
// Errors: NotFound with names that are near; a usage error that lists the items
// when several fit.
func (c *client) find(ctx context.Context, word string, of ...*kind) (item, error) {
	if isID(word) && len(of) == 1 && !of[0].listed {
		return c.get(ctx, of[0], word)
	}
	items, err := c.items(ctx, of...)
	if err != nil {
		return item{}, err
	}
	return c.choice(ctx, word, items, of...)
}

func isID(word string) bool {
	_, err := uuid.Parse(word)
	return err == nil
}

// get returns the item of a kind with an id.
func (c *client) get(ctx context.Context, k *kind, id string) (item, error) {
	found := item{ID: strings.ToLower(id)}.of(k)
	err := c.call(ctx, http.MethodGet, found.path, nil, &found)
	return found, err
}

// choice is find among items that are there already.
func (c *client) choice(ctx context.Context, word string, items []item, of ...*kind) (item, error) {
	found := matches(word, items)
	if len(found) == 0 && !c.wholeNames {
		found = begunBy(word, items)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return item{}, c.ambiguous(ctx, word, found)
	case len(items) == 0:
		return item{}, fault.New(fault.NotFound, "no %s yet; add one with: %s", of[0].noun, of[0].first)
	}
	var names []string
	for _, i := range items {
		names = append(names, i.called())
	}
	slices.Sort(names)
	return item{}, notFound(of, word, near(word, slices.Compact(names)))
}

func notFound(of []*kind, word string, names []string) error {
	nouns := make([]string, len(of))
	for i, k := range of {
		nouns[i] = k.noun
	}
	hint := didYouMean(names)
	if hint == "" {
		hint = fmt.Sprintf("; run %s to see all", cmp.Or(of[0].all, "nodest list "+of[0].list))
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

// findChat is find for chats. A chat can be named by its character too, when it
// is the only one with that character. The whole name of a character comes before
// the beginning of a title.
func (c *client) findChat(ctx context.Context, word string) (item, error) {
	var missing error
	for _, by := range []*client{c.whole(), c} {
		for _, k := range []*kind{chats, characters} {
			found, err := by.find(ctx, word, k)
			switch {
			case err == nil && k == characters:
				return c.onlyChatWith(ctx, word, found)
			case !fault.Is(err, fault.NotFound):
				return found, err
			case k == chats:
				missing = err
			}
		}
	}
	return item{}, missing
}

// onlyChatWith returns the only chat with a character that word names.
func (c *client) onlyChatWith(ctx context.Context, word string, with item) (item, error) {
	list, err := c.list(ctx, chats, chats.path+"?characterId="+url.QueryEscape(with.ID))
	switch {
	case err != nil:
		return item{}, err
	case len(list) == 0:
		return item{}, fault.New(fault.NotFound, "no chat with %s yet; start one with: nodest chat %q", with.Name, with.Name)
	case len(list) > 1:
		return item{}, c.ambiguous(ctx, word, list)
	}
	return list[0], nil
}

// leastPrefix is how much of an id must be given: every id begins with the same
// digit, and the word may be a slip.
const leastPrefix = 4

// matches returns the items that word names by their whole name or their id.
func matches(word string, items []item) []item {
	return best(items,
		func(i item) bool { return i.ID == strings.ToLower(word) },
		func(i item) bool { return i.called() == word },
		func(i item) bool { return strings.EqualFold(strings.TrimSpace(i.called()), strings.TrimSpace(word)) },
		func(i item) bool { return len(word) >= leastPrefix && strings.HasPrefix(i.ID, strings.ToLower(word)) },
	)
}

// begunBy returns the items whose name begins with word: with whole words of the
// name, else within one, as in languages that put no space between words.
func begunBy(word string, items []item) []item {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return nil
	}
	rest := func(i item) (string, bool) {
		return strings.CutPrefix(strings.ToLower(strings.TrimSpace(i.called())), word)
	}
	return best(items,
		func(i item) bool {
			rest, ok := rest(i)
			next, _ := utf8.DecodeRuneInString(rest)
			return ok && !unicode.IsLetter(next) && !unicode.IsDigit(next) && !unicode.IsMark(next)
		},
		func(i item) bool { _, ok := rest(i); return ok },
	)
}

// best returns the items that the first test of any success fits.
func best(items []item, tests ...func(i item) bool) []item {
	for _, fits := range tests {
		var found []item
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

// ambiguous is a usage error that lists what a word may mean.
func (c *client) ambiguous(ctx context.Context, word string, found []item) error {
	rows, err := c.rows(ctx, found)
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%q is ambiguous (%d matches); use an id:\n", word, len(found))
	if err := table(text, rows); err != nil {
		return err
	}
	return usage("%s", strings.TrimRight(text.String(), "\n"))
}
