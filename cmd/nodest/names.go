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
	noun   string // in messages, and for --as
	list   string // nodest list …
	path   string // of the list in REST
	first  string // how to get the first one
	all    string // the command that lists them; empty: nodest list
	listed bool   // one cannot be read by its id

	columns []string                                            // of a table, behind id, time and name
	cells   func(i item, characters map[string]string) []string // of these columns; the names of characters by id
}

var (
	characters = &kind{
		noun: "character", list: "characters", path: "/api/v1/characters", first: "nodest import card.png, or nodest import --sample",
		columns: []string{"TAGS"}, cells: func(i item, _ map[string]string) []string { return []string{i.tags()} },
	}
	chats    = &kind{noun: "chat", list: "chats", path: "/api/v1/conversations", first: "nodest chat", columns: []string{"CHARACTER", "LAST MESSAGE", "TAGS"}, cells: chatCells}
	books    = &kind{noun: "book", list: "books", path: "/api/v1/worldbooks", first: "nodest import book.json", columns: boundColumn, cells: boundCells}
	presets  = &kind{noun: "preset", list: "presets", path: "/api/v1/presets", first: "nodest import preset.json", columns: boundColumn, cells: boundCells}
	scripts  = &kind{noun: "script", list: "scripts", path: "/api/v1/regexscripts", first: "nodest import regex.json", columns: boundColumn, cells: boundCells}
	personas = &kind{
		noun: "persona", list: "personas", path: "/api/v1/personas", first: "nodest import me.json, with {\"name\": …, \"description\": …}",
		columns: boundColumn, cells: boundCells,
	}

	boundColumn = []string{"BOUND TO"}

	kinds     = []*kind{characters, chats, books, presets, scripts, personas}
	resources = []*kind{books, presets, scripts, personas} // what can be bound to characters
)

// Kinds that have commands of their own. Posts are named by the beginning of their text.
var (
	tokens = &kind{
		noun: "token", list: "tokens", path: "/api/v1/tokens", first: "nodest token create", all: "nodest token list", listed: true,
		columns: []string{"LAST USED", "EXPIRES"},
		cells: func(i item, _ map[string]string) []string {
			return []string{shortTime(i.LastUsedAt), shortTime(i.ExpiresAt)}
		},
	}
	users = &kind{
		noun: "user", list: "users", path: "/api/v1/users", first: "nodest user create NAME", all: "nodest user list", listed: true,
		columns: []string{"ROLE", "PASSWORD"},
		cells: func(i item, _ map[string]string) []string {
			return []string{i.Role, map[bool]string{true: "yes", false: "no"}[i.HasPassword]}
		},
	}
	posts = &kind{
		noun: "post", path: "/api/v1/circle/posts", first: "nodest circle post TEXT", all: "nodest circle",
		columns: []string{"AUTHOR"}, cells: func(i item, _ map[string]string) []string { return []string{i.Author.called()} },
	}
	saves = &kind{
		noun: "save point", list: "saves", path: "/api/v1/saves", first: "nodest save create", all: "nodest save list",
		cells: func(item, map[string]string) []string { return nil },
	}
	knowledgeBases = &kind{
		noun: "knowledge base", path: "/api/v1/knowledge-bases", first: "nodest kb create NAME", all: "nodest kb list",
		columns: []string{"FILES", "ACCESS"}, cells: func(i item, _ map[string]string) []string { return []string{strconv.Itoa(i.Files), i.Access} },
	}
	userFiles   = filesOf("file", "nodest kb files")
	failedFiles = filesOf("failed file", "nodest kb files --state failed")
)

// filesOf are the user's own files, or some of them, which a command lists.
func filesOf(noun, list string) *kind {
	return &kind{
		noun: noun, path: "/api/v1/files", first: "nodest kb add FILE", all: list,
		columns: []string{"STATE"}, cells: func(i item, _ map[string]string) []string { return []string{i.State} },
	}
}

func chatCells(i item, characters map[string]string) []string {
	last := ""
	if i.LastMessage != nil {
		last = i.LastMessage.Text
	}
	return []string{brief(characters[i.CharacterID], 24), brief(last, 40), i.tags()}
}

func boundCells(i item, characters map[string]string) []string {
	return []string{i.boundTo(characters)}
}

func (i item) tags() string { return brief(strings.Join(i.Tags, ", "), 40) }

// belongs reports whether a list of the kind names the characters of each entry.
func (k *kind) belongs() bool { return k != characters && k.all == "" }

// member is who wrote or likes something.
type member struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	IsUser bool   `json:"isUser"`
}

func (m member) called() string {
	if m.IsUser {
		return "you"
	}
	return cmp.Or(m.Name, m.ID)
}

// item is what every entry of a list may have.
type item struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Title        string    `json:"title"`    // of a chat
	Username     string    `json:"username"` // of a user
	CharacterID  string    `json:"characterId"`
	CharacterIDs []string  `json:"characterIds"`
	Text         string    `json:"text"` // of a post, as is Author
	Author       member    `json:"author"`
	Tags         []string  `json:"tags"`
	BindAll      bool      `json:"bindAll"`
	Version      int64     `json:"version"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`  // tokens and users have none
	LastUsedAt   time.Time `json:"lastUsedAt"` // of a token, like ExpiresAt; zero: never
	ExpiresAt    time.Time `json:"expiresAt"`
	Role         string    `json:"role"` // of a user, as is HasPassword
	HasPassword  bool      `json:"hasPassword"`
	Files        int       `json:"files"` // of a knowledge base, as is Access
	Access       string    `json:"access"`
	State        string    `json:"state"` // of a file
	LastMessage  *struct {
		Text string `json:"text"`
	} `json:"lastMessage"`

	kind *kind
	path string // in REST
}

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
		rows = append(rows, append(row, i.kind.cells(i, names)...))
	}
	return rows, nil
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
