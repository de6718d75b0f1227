package cli

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Kind is a sort of thing that a user has, and that commands list and find.
type Kind struct {
	Noun   string // in messages, and for --as
	List   string // nodest list …
	Path   string // path of the list in REST
	First  string // how to get the first one
	all    string // the command that lists them; empty: nodest list
	listed bool   // one cannot be read by its id

	columns []string                                            // columns of a table, behind id, time and name
	cells   func(i Item, characters map[string]string) []string // texts of these columns; the names of characters by id
}

var (
	Characters = &Kind{
		Noun: "character", List: "characters", Path: "/api/v1/characters", First: "nodest import card.png, or nodest import --sample",
		columns: []string{"TAGS"}, cells: func(i Item, _ map[string]string) []string { return []string{i.tags()} },
	}
	Chats    = &Kind{Noun: "chat", List: "chats", Path: "/api/v1/conversations", First: "nodest chat", columns: []string{"CHARACTER", "LAST MESSAGE", "TAGS"}, cells: chatCells}
	Books    = &Kind{Noun: "book", List: "books", Path: "/api/v1/worldbooks", First: "nodest import book.json", columns: boundColumn, cells: boundCells}
	Presets  = &Kind{Noun: "preset", List: "presets", Path: "/api/v1/presets", First: "nodest import preset.json", columns: boundColumn, cells: boundCells}
	Scripts  = &Kind{Noun: "script", List: "scripts", Path: "/api/v1/regexscripts", First: "nodest import regex.json", columns: boundColumn, cells: boundCells}
	Personas = &Kind{
		Noun: "persona", List: "personas", Path: "/api/v1/personas", First: "nodest import me.json, with {\"name\": …, \"description\": …}",
		columns: boundColumn, cells: boundCells,
	}
	Templates = &Kind{
		Noun: "template", List: "templates", Path: "/api/v1/templates", First: "nodest import instruct.json",
		cells: func(Item, map[string]string) []string { return nil },
	}

	boundColumn = []string{"BOUND TO"}

	Kinds     = []*Kind{Characters, Chats, Books, Presets, Scripts, Personas, Templates}
	Resources = []*Kind{Books, Presets, Scripts, Personas} // kinds that can be bound to characters
)

// Kinds that have commands of their own. Posts are named by the beginning of their text.
var (
	Tokens = &Kind{
		Noun: "token", List: "tokens", Path: "/api/v1/tokens", First: "nodest token create", all: "nodest token list", listed: true,
		columns: []string{"LAST USED", "EXPIRES"},
		cells: func(i Item, _ map[string]string) []string {
			return []string{ShortTime(i.LastUsedAt), ShortTime(i.ExpiresAt)}
		},
	}
	Users = &Kind{
		Noun: "user", List: "users", Path: "/api/v1/users", First: "nodest user create NAME", all: "nodest user list", listed: true,
		columns: []string{"ROLE", "PASSWORD"},
		cells: func(i Item, _ map[string]string) []string {
			return []string{i.Role, map[bool]string{true: "yes", false: "no"}[i.HasPassword]}
		},
	}
	Posts = &Kind{
		Noun: "post", Path: "/api/v1/circle/posts", First: "nodest circle post TEXT", all: "nodest circle",
		columns: []string{"AUTHOR"}, cells: func(i Item, _ map[string]string) []string { return []string{i.Author.Called()} },
	}
	Saves = &Kind{
		Noun: "save point", List: "saves", Path: "/api/v1/saves", First: "nodest save create", all: "nodest save list",
		cells: func(Item, map[string]string) []string { return nil },
	}
	KnowledgeBases = &Kind{
		Noun: "knowledge base", Path: "/api/v1/knowledge-bases", First: "nodest kb create NAME", all: "nodest kb list",
		columns: []string{"FILES", "ACCESS"}, cells: func(i Item, _ map[string]string) []string { return []string{strconv.Itoa(i.Files), i.Access} },
	}
	Files       = filesOf("file", "nodest kb files")
	FailedFiles = filesOf("failed file", "nodest kb files --state failed")
)

// filesOf are the user's own files, or some of them, which a command lists.
func filesOf(noun, list string) *Kind {
	return &Kind{
		Noun: noun, Path: "/api/v1/files", First: "nodest kb add FILE", all: list,
		columns: []string{"STATE"}, cells: func(i Item, _ map[string]string) []string { return []string{i.State} },
	}
}

func chatCells(i Item, characters map[string]string) []string {
	last := ""
	if i.LastMessage != nil {
		last = i.LastMessage.Text
	}
	return []string{Brief(characters[i.CharacterID], 24), Brief(last, 40), i.tags()}
}

func boundCells(i Item, characters map[string]string) []string {
	return []string{i.BoundTo(characters)}
}

func (i Item) tags() string { return Brief(strings.Join(i.Tags, ", "), 40) }

// belongs reports whether a list of the kind names the characters of each entry.
func (k *Kind) belongs() bool { return k != Characters && k.all == "" }

// Member is who wrote or likes something.
type Member struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	IsUser bool   `json:"isUser"`
}

func (m Member) Called() string {
	if m.IsUser {
		return "you"
	}
	return cmp.Or(m.Name, m.ID)
}

// Item is what every entry of a list may have.
type Item struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title"` // a chat's
	userFacts
	CharacterID  string    `json:"characterId"`
	CharacterIDs []string  `json:"characterIds"`
	Text         string    `json:"text"` // a post's, as is Author
	Author       Member    `json:"author"`
	Tags         []string  `json:"tags"`
	BindAll      bool      `json:"bindAll"`
	Version      int64     `json:"version"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"` // tokens and users have none
	tokenTimes
	Files       int    `json:"files"` // a knowledge base's, as is Access
	Access      string `json:"access"`
	State       string `json:"state"` // a file's
	LastMessage *struct {
		Text string `json:"text"`
	} `json:"lastMessage"`

	Kind *Kind  `json:"-"`
	Path string `json:"-"` // in REST
}

// userFacts are what only a user has.
type userFacts struct {
	Username    string `json:"username"`
	Role        string `json:"role"`
	HasPassword bool   `json:"hasPassword"`
}

// tokenTimes are what only a token has.
type tokenTimes struct {
	LastUsedAt time.Time `json:"lastUsedAt"` // zero: never
	ExpiresAt  time.Time `json:"expiresAt"`
}
