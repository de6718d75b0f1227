package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"nodest/index"
	"nodest/llm"
	"nodest/memory"
)

// questions is a file of conversations and of questions about them. Each
// conversation is a scope of its own.
type questions struct {
	kind    string
	people  map[string]memory.Names
	now     map[string]time.Time // of the last item: questions come after it
	units   map[string][]memory.Unit
	asked   []question
	cache   *index.Cache
	vectors bool
	prompt  bool
	buildMs float64
}

type question struct {
	scope, category, text string
	right                 []string
}

// questionLine is one line of a file: a conversation, an item of it, or a question.
type questionLine struct {
	T        string          `json:"t"`
	Scope    string          `json:"c"`
	ID       string          `json:"id"`
	User     string          `json:"a"` // of a question: its answer
	Other    string          `json:"b"`
	Session  int             `json:"s"`
	Date     string          `json:"d"`
	Speaker  string          `json:"sp"`
	Text     string          `json:"x"`
	Caption  string          `json:"cap"`
	Replier  string          `json:"rsp"`
	Reply    string          `json:"r"`
	Category json.RawMessage `json:"cat"`
	Question string          `json:"q"`
	Right    []string        `json:"ev"`
}

func readQuestions(kind, name string) (*questions, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	q := &questions{kind: kind, people: map[string]memory.Names{}, now: map[string]time.Time{}, units: map[string][]memory.Unit{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := q.line(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, n, err)
		}
	}
	return q, lines.Err()
}

func (q *questions) line(raw []byte) error {
	var kind struct {
		T string `json:"t"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return err
	}
	var l questionLine
	if kind.T == "qa" { // its answer may be a number, and is not looked at
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return err
		}
		delete(fields, "a")
		raw, _ = json.Marshal(fields) // what was read a moment ago
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	switch l.T {
	case "conv":
		q.people[l.Scope] = memory.Names{User: l.User, Character: l.Other}
	case "turn":
		return q.item(&l)
	case "qa":
		q.asked = append(q.asked, question{l.Scope, strings.Trim(string(l.Category), `"`), l.Question, l.Right})
	}
	return nil
}

// item adds a turn, or an exchange where it has a reply.
func (q *questions) item(l *questionLine) error {
	at, err := time.Parse("2006-01-02T15:04", l.Date)
	if err != nil {
		return err
	}
	role := memory.RoleCharacter
	if l.Speaker == q.people[l.Scope].User {
		role = memory.RoleUser
	}
	u := memory.Unit{
		ID: l.ID, Layer: memory.Exchange, Conversation: l.Scope, Session: l.Session, Order: int64(len(q.units[l.Scope])),
		Speaker: role, Text: l.Text, At: at,
	}
	if l.Caption != "" {
		u.Text += " [image: " + l.Caption + "]"
	}
	if l.Reply != "" {
		u.Speaker, u.Text = "", l.Speaker+": "+l.Text+"\n"+l.Replier+": "+l.Reply
	}
	q.units[l.Scope] = append(q.units[l.Scope], u)
	q.now[l.Scope] = at
	return nil
}

// build analyses and embeds all items and loads their indexes.
func (q *questions) build(ctx context.Context, vectors bool) error {
	start := time.Now()
	q.vectors = vectors
	rows := rowsLoader{}
	for scope, units := range q.units {
		for i := range units {
			u := &units[i]
			u.Terms = memory.Terms(u.Text)
			if vectors {
				v, err := embedTexts(ctx, llm.Passage, u.Text)
				if err != nil {
					return err
				}
				u.Vectors = v
			}
			rows[scope] = append(rows[scope], u.Row())
		}
	}
	q.cache = index.NewCache(rows, index.CacheOptions{})
	for scope := range rows {
		if err := q.cache.Use(ctx, scope, func(*index.Index) error { return nil }); err != nil {
			return err
		}
	}
	q.buildMs = float64(time.Since(start).Microseconds()) / 1000
	return nil
}

// rowsLoader is a database that never changes.
type rowsLoader map[string][]index.Row

func (rowsLoader) Version(context.Context, string) (int64, error) { return 1, nil }

func (l rowsLoader) Load(_ context.Context, key string, _ int64) (index.Delta, error) {
	return index.Delta{Version: 1, Rows: l[key], Whole: true}, nil
}
