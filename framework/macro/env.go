// Package macro expands the macro language of SillyTavern in the texts of prompts: {{char}}, {{if …}},
// variables, dice, dates. It reads no clock and draws no number of its own, and it expands no result
// again; texts come from strangers, so nesting, work and output have limits.
package macro

import (
	"strings"
	"time"
)

// Env is what macros have for values. The zero value is usable: it has empty texts. An Env
// belongs to one prompt, whose limits it counts; it is not safe for concurrent use. Copies
// made before the first Expand count for themselves.
type Env struct {
	Names People
	Card  Card
	Chat  Chat
	Model Model

	Now    time.Time // in the user's time zone; zero = macros about time stay as they are
	Locale *Locale   // language of dates and durations; nil = English

	Rand func() float64 // from 0 to below 1, for random and roll; nil = always 0
	Seed uint64         // seed of pick: the same in a chat gives the same choices

	Local, Global *Vars // variables of the chat and of the user; nil = none, and none are stored

	Input    string            // text that the user is typing
	Outlets  map[string]string // world info by the name of its outlet
	Extra    map[string]string // more macros, by their names in lower case; they win
	Done     <-chan struct{}   // once it is closed, macros stay as they are; nil = never
	original *original
	spent    *spent
}

// People are the names in a chat.
type People struct {
	User, Char    string
	Group         string // names of all members joined by ", "; "" = not a group
	GroupNotMuted string // the same without muted members; "" = Group
	NotChar       string // everybody but the character; "" = the user
}

// Card holds texts that are expanded where a macro puts them.
type Card struct {
	Description, Personality, Scenario string
	Persona                            string
	MesExamples                        string
	CharPrompt, CharInstruction        string
	DepthPrompt                        string
	CreatorNotes                       string
	Greetings                          []string // the first one, then the alternates

	Version string // it is not expanded
}

// Model is what is known of the model and of the request.
type Model struct {
	Name       string
	MaxContext int // tokens; 0 = unknown
	MaxReply   int
	Generation string // normal, continue, impersonate, swipe, regenerate, quiet
}

// Chat is the end of a chat, oldest message first.
type Chat struct {
	Messages []Message
	Before   int // messages before the first one of Messages
	Included int // index in the chat of the first message that is in the prompt; -1 = unknown
}

// Message is a message of a chat.
type Message struct {
	User   bool // written by the user
	Hidden bool // not in prompts
	Text   string
	At     time.Time
	Swipes int // how many there are; 0 = the message has none
	Swipe  int // index of the shown one; Swipes = it is being written
}

// original is the value of {{original}}, for once.
type original struct {
	text string
	used bool
}

// spent counts the work for a prompt.
type spent struct {
	bytes int // made by macros, parts of longer ones included, and of the texts of the card that they name
	calls int
	over  bool // a limit was reached

	done   <-chan struct{}
	fields map[string]*Text // fields of the card, by their names, as they were read last
}

// MaxText is how long a text may become by its macros, in bytes.
const MaxText = 4 << 20

// The limits of what strangers' texts may cost.
const (
	maxBytes  = 16 << 20 // that macros make for one prompt, in all
	maxText   = MaxText
	maxCalls  = 200_000 // macros for one prompt
	maxNested = 64      // macros within macros, and blocks within blocks
)

// WithOriginal returns an Env for a text that replaces another one, which {{original}} stands for
// once. Without it, that macro stays as it is. It shares variables and limits with e.
func (e *Env) WithOriginal(text string) *Env {
	e.start()
	c := *e
	c.original = &original{text: text}
	return &c
}

// Limited reports that a limit was reached, so that macros stayed as they are.
func (e *Env) Limited() bool { return e.spent != nil && e.spent.over }

func (e *Env) start() {
	if e.spent == nil {
		e.spent = &spent{done: e.Done, fields: map[string]*Text{}}
	}
}

// Expand replaces the macros in a text. Unknown ones stay, those in their arguments do not.
func (e *Env) Expand(text string) string {
	if Plain(text) {
		return text
	}
	return Parse(text).Expand(e)
}

// ExpandPattern replaces the macros in a regular expression. <USER> and its like, which may be the
// names of groups, and backslashes before braces stay. escape, if not nil, is applied to each value.
func (e *Env) ExpandPattern(source string, escape func(string) string) string {
	if !strings.Contains(source, "{{") {
		return source
	}
	e.start()
	t := parse(source, true)
	r := run{env: e, text: t, escape: escape}
	return r.string(t.nodes)
}

// Plain reports that nothing in a text can be a macro.
func Plain(text string) bool {
	return !strings.Contains(text, "{{") && strings.IndexByte(text, '<') < 0 &&
		!strings.Contains(text, `\{`) && !strings.Contains(text, `\}`)
}

// Fixed reports that a text is the same whatever an Env has: it has no macro, and no brace that is escaped.
func Fixed(text string) bool {
	if Plain(text) {
		return true
	}
	for _, n := range Parse(text).nodes {
		if n.call != nil || !strings.HasPrefix(text, n.text) {
			return false
		}
		text = text[len(n.text):]
	}
	return text == ""
}

// charge counts work, and reports whether it is within the limits.
func (s *spent) charge(bytes int) bool {
	s.calls++
	s.bytes += bytes
	if s.calls > maxCalls || s.bytes > maxBytes || s.calls%checkCalls == 0 && s.ended() {
		s.over = true
	}
	return !s.over
}

// checkCalls is after how many macros an Env looks whether it is done.
const checkCalls = 64

func (s *spent) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
