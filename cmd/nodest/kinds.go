package main

import (
	"cmp"
	"strconv"
	"strings"
	"time"
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
