package bench

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nodest/memory/lang"
)

// chatFiles are the sets of "nodest-bench retrieval --chat"; chatset/README.md tells their form.
//
//go:embed chatset/*.jsonl
var chatFiles embed.FS

var chatLanguages = []string{"en", "zh"}

// chatSet is what one user and one character have said to each other, and the turns
// that are taken after it.
type chatSet struct {
	people    lang.Names
	now       time.Time
	greetings []string // greetings of the chats, in their order
	replies   []string // the character's replies, where a case has none of its own
	cases     []chatCase
}

// chatCase is one line of a file behind its head.
type chatCase struct {
	Set    string   `json:"set"`
	Said   []string `json:"said"`   // by the user, in this order
	Reply  string   `json:"reply"`  // the character's, to the last of them
	Day    string   `json:"day"`    // on which it was said
	Fact   string   `json:"fact"`   // the user wrote it into the memory by hand
	Ask    string   `json:"ask"`    // the turn; "" = there is none
	Answer string   `json:"answer"` // has to be in the prompt; "|" separates wordings
	Stale  string   `json:"stale"`  // must not be in the prompt before the answer
}

type chatHead struct {
	User      string   `json:"user"`
	Character string   `json:"character"`
	Now       string   `json:"now"`
	Greetings []string `json:"greetings"`
	Replies   []string `json:"replies"`
}

func readChatSet(language string) (*chatSet, error) {
	s := &chatSet{}
	return s, s.read("chatset/"+language+".jsonl", s.begin)
}

// indirect is the set of what is asked for in other words, with the noise of s.
func (s *chatSet) indirect(language string) (*chatSet, error) {
	other := *s
	other.cases = slices.DeleteFunc(slices.Clone(s.cases), func(c chatCase) bool { return c.Set != "noise" })
	return &other, other.read("chatset/"+language+"-indirect.jsonl", other.add)
}

// read takes the lines of a file, the first by a function of its own.
func (s *chatSet) read(name string, first func(line []byte) error) error {
	data, err := chatFiles.ReadFile(name)
	if err != nil {
		return err
	}
	take := first
	return eachLine(name, bytes.NewReader(data), func(line []byte) error {
		err := take(line)
		take = s.add
		return err
	})
}

// add appends the case of a line.
func (s *chatSet) add(line []byte) error {
	var c chatCase
	err := strict(line, &c)
	s.cases = append(s.cases, c)
	return err
}

func (s *chatSet) begin(line []byte) error {
	var h chatHead
	if err := strict(line, &h); err != nil {
		return err
	}
	now, err := readDate(h.Now)
	s.people = lang.Names{User: h.User, Character: h.Character}
	s.now, s.greetings, s.replies = now, h.Greetings, h.Replies
	return err
}

// strict decodes one line and refuses members that it does not know.
func strict(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// The days on which things were said, counted back from the present: first what is
// asked about, then what corrects it, then at least as many days of small talk.
// Days that a case names are left out, so that they hold little else.
const (
	firstFrom, firstTo   = 75, 55
	secondFrom, secondTo = 54, 46
	noiseFrom, noiseTo   = 45, 1
)

// exchange is what the user said and what the character replied.
type exchange struct {
	said, reply string
	at          time.Time
}

// talks are all exchanges, in order, as so many chats as there are greetings.
func (s *chatSet) talks() ([]*talk, error) {
	all, err := s.exchanges()
	if err != nil {
		return nil, err
	}
	var talks []*talk
	for i, greeting := range s.greetings {
		part := all[len(all)*i/len(s.greetings) : len(all)*(i+1)/len(s.greetings)]
		if len(part) == 0 {
			continue
		}
		t := &talk{name: fmt.Sprintf("chat %d", i+1), people: s.people, now: s.now}
		t.items = append(t.items, item{said: []saying{{lang.RoleCharacter, s.people.Character, greeting, part[0].at.Add(-time.Minute)}}})
		for _, e := range part {
			t.items = append(t.items, item{said: []saying{
				{lang.RoleUser, s.people.User, e.said, e.at},
				{lang.RoleCharacter, s.people.Character, e.reply, e.at.Add(30 * time.Second)},
			}})
		}
		talks = append(talks, t)
	}
	return talks, nil
}

func (s *chatSet) exchanges() ([]exchange, error) {
	named := map[string]bool{}
	var first, second, noise, all []exchange
	for i := range s.cases {
		c := &s.cases[i]
		for k, said := range c.Said {
			e := exchange{said: said, reply: s.replies[(7*i+3*k)%len(s.replies)]}
			if c.Reply != "" && k == len(c.Said)-1 {
				e.reply = c.Reply
			}
			switch {
			case c.Day != "":
				day, err := readDate(c.Day)
				if err != nil {
					return nil, err
				}
				e.at, named[c.Day] = day.Add(12*time.Hour+time.Duration(k)*2*time.Minute), true
				all = append(all, e)
			case c.Set == "noise":
				noise = append(noise, e)
			case k == 0:
				first = append(first, e)
			default:
				second = append(second, e)
			}
		}
	}
	// Neighbours in the file are of one kind; in a chat they are far apart.
	all = append(all, s.spread(stride(first), firstFrom, firstTo, named)...)
	all = append(all, s.spread(second, secondFrom, secondTo, named)...)
	all = append(all, s.spread(stride(noise), noiseFrom, noiseTo, named)...)
	slices.SortStableFunc(all, func(a, b exchange) int { return a.at.Compare(b.at) })
	return all, nil
}

// stride reorders exchanges: every eleventh from the first one, then from the second,
// and so on.
func stride(in []exchange) (out []exchange) {
	for from := range 11 {
		for i := from; i < len(in); i += 11 {
			out = append(out, in[i])
		}
	}
	return out
}

// spread dates exchanges evenly over days, in their order.
func (s *chatSet) spread(some []exchange, from, to int, named map[string]bool) []exchange {
	var days []time.Time
	for back := from; back >= to; back-- {
		if day := s.now.AddDate(0, 0, -back).Truncate(24 * time.Hour); !named[day.Format(time.DateOnly)] {
			days = append(days, day)
		}
	}
	for i := range some {
		at := i * len(days) / len(some)
		since := i - (at*len(some)+len(days)-1)/len(days) // its place in the day
		some[i].at = days[at].Add(9*time.Hour + time.Duration(since)*7*time.Minute)
	}
	return some
}
