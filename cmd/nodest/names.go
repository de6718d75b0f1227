package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/width"

	"nodest/internal/fault"
)

// kind is a sort of thing that a user has, and that commands list and find.
type kind struct {
	noun  string // in messages, and for --as
	list  string // nodest list …
	path  string // of the list in REST
	first string // how to get the first one
	all   string // the command that lists them; empty: nodest list

	columns []string // of a table, behind id, time and name
}

var (
	characters = &kind{noun: "character", list: "characters", path: "/api/v1/characters", first: "nodest import card.png, or nodest import --sample", columns: []string{"TAGS"}}
	chats      = &kind{noun: "chat", list: "chats", path: "/api/v1/conversations", first: "nodest chat", columns: []string{"CHARACTER", "LAST MESSAGE", "TAGS"}}
	books      = &kind{noun: "book", list: "books", path: "/api/v1/worldbooks", first: "nodest import book.json", columns: boundColumn}
	presets    = &kind{noun: "preset", list: "presets", path: "/api/v1/presets", first: "nodest import preset.json", columns: boundColumn}
	scripts    = &kind{noun: "script", list: "scripts", path: "/api/v1/regexscripts", first: "nodest import regex.json", columns: boundColumn}
	personas   = &kind{noun: "persona", list: "personas", path: "/api/v1/personas",
		first: "nodest import me.json, with {\"name\": …, \"description\": …}", columns: boundColumn}

	tokens = &kind{noun: "token", list: "tokens", path: "/api/v1/tokens", first: "nodest token create", all: "nodest token list", columns: []string{"LAST USED", "EXPIRES"}}
	users  = &kind{noun: "user", list: "users", path: "/api/v1/users", first: "nodest user create NAME", all: "nodest user list", columns: []string{"ROLE", "PASSWORD"}}

	boundColumn = []string{"BOUND TO"}

	kinds     = []*kind{characters, chats, books, presets, scripts, personas}
	resources = []*kind{books, presets, scripts, personas} // what can be bound to characters
)

// belongs reports whether a list of the kind names the characters of each entry.
func (k *kind) belongs() bool { return k != characters && k.all == "" }

// item is what every entry of a list may have.
type item struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Title        string    `json:"title"`    // of a chat
	Username     string    `json:"username"` // of a user
	CharacterID  string    `json:"characterId"`
	CharacterIDs []string  `json:"characterIds"`
	Tags         []string  `json:"tags"` // of a character or chat; of a post its author
	BindAll      bool      `json:"bindAll"`
	Version      int64     `json:"version"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`  // tokens and users have none
	LastUsedAt   time.Time `json:"lastUsedAt"` // of a token, like ExpiresAt; zero: never
	ExpiresAt    time.Time `json:"expiresAt"`
	Role         string    `json:"role"`        // of a user
	HasPassword  bool      `json:"hasPassword"` // of a user
	Files        int       `json:"files"`       // of a knowledge base, as is Access
	Access       string    `json:"access"`
	State        string    `json:"state"` // of a file
	LastMessage  *struct {
		Text string `json:"text"`
	} `json:"lastMessage"`

	kind *kind
}

// called is the name of an item.
func (i item) called() string { return i.Name + i.Title + i.Username }

func (i item) path() string { return i.kind.path + "/" + url.PathEscape(i.ID) }

// items reads the lists of some kinds.
func (c *client) items(ctx context.Context, of ...*kind) ([]item, error) {
	var items []item
	for _, k := range of {
		some, err := all[item](ctx, c, k.path)
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].kind = k
		}
		items = append(items, some...)
	}
	return items, nil
}

// find returns the item that a user names: by its id, its name in any case, the
// beginning of its id or, unless c wants whole names, the beginning of its name.
//
// Errors: NotFound with names that are near; a usage error that lists the items
// when several fit.
func (c *client) find(ctx context.Context, word string, of ...*kind) (item, error) {
	if _, err := uuid.Parse(word); err == nil && len(of) == 1 {
		return c.get(ctx, of[0], strings.ToLower(word))
	}
	items, err := c.items(ctx, of...)
	if err != nil {
		return item{}, err
	}
	return c.choice(ctx, word, items, of...)
}

// get returns the item of a kind with an id.
func (c *client) get(ctx context.Context, k *kind, id string) (item, error) {
	found := item{kind: k, ID: id}
	err := c.call(ctx, http.MethodGet, found.path(), nil, &found)
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

// remove deletes what a user names in full, if confirm agrees.
func (c *client) remove(ctx context.Context, word string, of *kind, confirm func(item) error) error {
	items, err := c.items(ctx, of)
	if err != nil {
		return err
	}
	found, err := c.whole().choice(ctx, word, items, of)
	if err != nil {
		return err
	}
	if err := confirm(found); err != nil {
		return err
	}
	return c.call(ctx, http.MethodDelete, found.path(), nil, nil)
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
	list, err := all[item](ctx, c, chats.path+"?characterId="+url.QueryEscape(with.ID))
	switch {
	case err != nil:
		return item{}, err
	case len(list) == 0:
		return item{}, fault.New(fault.NotFound, "no chat with %s yet; start one with: nodest chat %q", with.Name, with.Name)
	}
	for i := range list {
		list[i].kind = chats
	}
	if len(list) > 1 {
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

// rows are items (one at least) as a table shows them, with a heading.
func (c *client) rows(ctx context.Context, items []item) ([][]string, error) {
	var names map[string]string
	if slices.ContainsFunc(items, func(i item) bool { return i.kind.belongs() }) {
		var err error
		if names, err = c.characterNames(ctx); err != nil {
			return nil, err
		}
	}
	mixed := slices.ContainsFunc(items, func(i item) bool { return i.kind != items[0].kind })
	rows := [][]string{append([]string{"ID", "CHANGED", "NAME"}, items[0].kind.columns...)}
	if items[0].UpdatedAt.IsZero() {
		rows[0][1] = "CREATED"
	}
	if mixed {
		rows[0] = slices.Insert(rows[0], 3, "KIND")
	}
	for _, i := range items {
		row := []string{i.ID, shortTime(cmp.Or(i.UpdatedAt, i.CreatedAt)), brief(i.called(), 40)}
		if mixed {
			row = append(row, i.kind.noun)
		}
		rows = append(rows, append(row, i.cells(names)...))
	}
	return rows, nil
}

// cells are the columns of the kind.
func (i item) cells(names map[string]string) []string {
	switch i.kind {
	case characters:
		return []string{brief(strings.Join(i.Tags, ", "), 40)}
	case chats:
		last := ""
		if i.LastMessage != nil {
			last = i.LastMessage.Text
		}
		return []string{brief(names[i.CharacterID], 24), brief(last, 40), brief(strings.Join(i.Tags, ", "), 40)}
	case posts:
		return i.Tags
	case knowledgeBases:
		return []string{strconv.Itoa(i.Files), i.Access}
	case userFiles:
		return []string{i.State}
	case tokens:
		return []string{shortTime(i.LastUsedAt), shortTime(i.ExpiresAt)}
	case users:
		password := "no"
		if i.HasPassword {
			password = "yes"
		}
		return []string{i.Role, password}
	}
	return []string{i.boundTo(names)}
}

// shortTime is a time in the zone of this machine.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// characterNames are the names of the characters by id.
func (c *client) characterNames(ctx context.Context) (map[string]string, error) {
	list, err := c.items(ctx, characters)
	names := make(map[string]string, len(list))
	for _, ch := range list {
		names[ch.ID] = ch.Name
	}
	return names, err
}

// boundTo names the characters that a resource works for.
func (i item) boundTo(names map[string]string) string {
	if i.BindAll {
		return "all characters"
	}
	var bound []string
	for _, id := range i.CharacterIDs {
		bound = append(bound, names[id])
	}
	return brief(strings.Join(bound, ", "), 60)
}

// brief is the beginning of a text on one line.
func brief(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if long := []rune(s); len(long) > n {
		return string(long[:n-1]) + "…"
	}
	return s
}

// table prints rows in columns. A wide character, as of Chinese, takes two places.
func table(out io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = oneRow.Replace(visible(cell))
			row[i] = cell
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], places(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-places(cell)+2)
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// oneRow keeps a name with line breaks from looking like further rows.
var oneRow = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`)

// places counts the columns that a text takes in a terminal.
func places(s string) int {
	n := 0
	for _, r := range s {
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}
