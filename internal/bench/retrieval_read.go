package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"nodest/memory/lang"
)

// questions is a file of conversations and of questions about them.
type questions struct {
	kind  string // locomo or memorybank
	talks []*talk
	asked []question
}

// talk is one conversation of a file, with a character of its own.
type talk struct {
	name   string
	people lang.Names
	items  []item
	now    time.Time // the time of the last item: questions come after it

	character string         // its id in the store
	itemOf    map[string]int // by the id of a text, once it is stored
}

// item is what a question may be answered by: a turn, or an exchange of two messages.
type item struct {
	id   string
	said []saying
}

// saying is one message.
type saying struct {
	role lang.Role
	name string
	text string
	at   time.Time
}

type question struct {
	talk           *talk
	category, text string
	right          []int // items, each once; none = the file does not say, and it is not asked
}

// questionLine is one line of a file: a conversation, an item of it, or a question.
type questionLine struct {
	T        string          `json:"t"`
	Talk     string          `json:"c"`
	ID       string          `json:"id"`
	User     json.RawMessage `json:"a"` // a question has its answer here, which is not looked at
	Other    string          `json:"b"`
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
	q := &questions{kind: kind}
	var asked []questionLine // until all items are known
	err = eachLine(name, f, func(line []byte) error {
		var l questionLine
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		switch {
		case l.T == "conv":
			q.begin(&l)
		case q.talk(l.Talk) == nil:
			return fmt.Errorf("no conversation %q", l.Talk)
		case l.T == "turn":
			return q.talk(l.Talk).add(&l)
		case l.T == "qa":
			asked = append(asked, l)
		}
		return nil
	})
	for i := range asked {
		q.ask(&asked[i])
	}
	return q, err
}

// eachLine calls take with every line that is not blank, and tells which one it refuses.
func eachLine(name string, r io.Reader, take func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := take(lines.Bytes()); err != nil {
			return fmt.Errorf("%s line %d: %w", name, n, err)
		}
	}
	return lines.Err()
}

func (q *questions) talk(name string) *talk {
	for _, t := range slices.Backward(q.talks) {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (q *questions) begin(l *questionLine) {
	if q.talk(l.Talk) != nil {
		return
	}
	var user string
	_ = json.Unmarshal(l.User, &user) // anything else is no name
	q.talks = append(q.talks, &talk{name: l.Talk, people: lang.Names{User: cmp.Or(user, "User"), Character: cmp.Or(l.Other, "Character")}})
}

// add appends a turn, or an exchange where the line has a reply. A picture is told
// by its caption.
func (t *talk) add(l *questionLine) error {
	at, err := readDate(l.Date)
	if err != nil {
		return err
	}
	said := saying{role: lang.RoleCharacter, name: l.Speaker, text: l.Text, at: at}
	if l.Speaker == t.people.User {
		said.role = lang.RoleUser
	}
	if l.Caption != "" {
		said.text = strings.TrimSpace(said.text + " [image: " + l.Caption + "]")
	}
	i := item{id: l.ID}
	for _, s := range []saying{said, {lang.RoleCharacter, cmp.Or(l.Replier, t.people.Character), l.Reply, at}} {
		if strings.TrimSpace(s.text) != "" {
			i.said = append(i.said, s)
		}
	}
	t.items = append(t.items, i)
	t.now = at
	return nil
}

// readDate reads a time without a zone, to the minute or the second, or only a day.
func readDate(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("d must be a date such as 2023-05-08T13:56, not " + s)
}

// ask takes a question in. Items that do not exist are no answers.
func (q *questions) ask(l *questionLine) {
	t := q.talk(l.Talk)
	one := question{talk: t, category: strings.Trim(string(l.Category), `"`), text: l.Question}
	for _, id := range l.Right {
		at := slices.IndexFunc(t.items, func(i item) bool { return i.id == id })
		if at >= 0 && !slices.Contains(one.right, at) {
			one.right = append(one.right, at)
		}
	}
	q.asked = append(q.asked, one)
}
