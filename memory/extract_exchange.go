package memory

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/framework"
)

// Role says which side speaks.
type Role string

// The roles whose words are evidence. Messages of any other role (system,
// narrator, summary) never are.
const (
	RoleUser      Role = "user"
	RoleCharacter Role = "assistant"
)

// Message is one entry of the shown path of a conversation, oldest first. One that
// is still being written is not passed.
type Message struct {
	Evidence        // names its text
	Role     Role   // anything but RoleUser and RoleCharacter is left out
	Name     string // of the speaker; may be empty
	Text     string // as stored
	At       time.Time
	Injected bool // not said by anybody: a depth entry, a hidden entry of an imported log
	Failed   bool // the reply broke off with an error
}

// Turn is one exchange: a message of the user and the replies to it, as they were
// said. What a character says before the user's first message is a turn too.
type Turn struct {
	Messages []Message
}

// TurnsOf returns the exchanges of a path, clean: without tagged blocks, injected
// entries, summaries, and replies that are empty or failed.
func TurnsOf(path []Message) []Turn {
	var turns []Turn
	for _, m := range path {
		if m.Role != RoleUser && m.Role != RoleCharacter || m.Injected || m.Failed {
			continue
		}
		if m.Text = Clean(m.Role, m.Text); m.Text == "" {
			continue
		}
		if last := len(turns) - 1; m.Role == RoleCharacter && last >= 0 {
			turns[last].Messages = append(turns[last].Messages, m)
			continue
		}
		turns = append(turns, Turn{Messages: []Message{m}})
	}
	return turns
}

// From and To are the seqs of the first and the last message.
func (t Turn) From() int64 { return t.Messages[0].Seq }

// To is the seq of the last message.
func (t Turn) To() int64 { return t.Messages[len(t.Messages)-1].Seq }

// At is when the turn began.
func (t Turn) At() time.Time { return t.Messages[0].At }

// Evidence names the texts of the turn.
func (t Turn) Evidence() []Evidence {
	out := make([]Evidence, len(t.Messages))
	for i, m := range t.Messages {
		out[i] = m.Evidence
	}
	return out
}

// Text is the turn word for word, each message behind the name of its speaker.
func (t Turn) Text(names Names) string {
	var b strings.Builder
	for i, m := range t.Messages {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(names.speaker(m) + ": " + m.Text)
	}
	return b.String()
}

// Names are what the two sides are called where a message has no name of its own.
type Names struct{ User, Character string }

func (n Names) speaker(m Message) string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Role == RoleUser && n.User != "":
		return n.User
	case m.Role == RoleUser:
		return "User"
	case n.Character != "":
		return n.Character
	}
	return "Character"
}

// recallHeads are the headings of the block of memories, without their colon.
var recallHeads = func() (heads []string) {
	for _, h := range framework.MemoryHeadings() {
		heads = append(heads, strings.TrimRight(h, ":："))
	}
	return heads
}()

var (
	// addedBlock is what a prompt puts behind a user's message; a log of the app
	// may have it inside the text.
	addedBlock = regexp.MustCompile(`(?is)<mem\s*>.*?</mem\s*>|<websearch\s*>.*?</websearch\s*>|<response_guidelines\s*>.*?</response_guidelines\s*>`)
	// recallEcho is the head of a recall block and its numbered lines, that a model
	// repeats without the tags.
	recallEcho = regexp.MustCompile(`(?m)^[ \t]*(?:` + strings.Join(recallHeads, "|") + `)[：:][ \t]*\n?(?:[ \t]*\d+[.、．][^\n]*\n?)*`)
)

// Clean returns what was really said in a message.
func Clean(role Role, text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
	tagged := strings.Contains(text, "<") // else no block can be in it
	if tagged {
		text = addedBlock.ReplaceAllString(text, "")
	}
	switch {
	case role != RoleCharacter:
		text = framework.WithoutRewrite(text)
	case tagged:
		text = framework.StripBlocks(text)
	}
	if slices.ContainsFunc(recallHeads, func(head string) bool { return strings.Contains(text, head) }) {
		text = recallEcho.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}

// Window is what one run of the extraction looks at.
type Window struct {
	Names   Names
	Context []Turn // earlier, to understand the window by; never a source
	Turns   []Turn
}

// Sizes of a window, in code points as a prompt shows them.
const (
	contextTurns = 2
	windowSize   = 12000 // what is more waits for the next run
	leastTurns   = 5     // but so many are read at once, because each run costs calls of the model
	largestSize  = 48000 // unless they are larger than this
)

// NextWindow returns the turns that follow upTo, with two earlier ones as context,
// and the seq up to which they reach: what is recorded with the facts. Turns that
// are too many for one run are left for the next. An empty window returns upTo.
func NextWindow(turns []Turn, upTo int64, names Names) (w Window, until int64) {
	w.Names = names
	until = upTo
	first := len(turns)
	for i, t := range turns {
		if t.To() > upTo {
			first = i
			break
		}
	}
	w.Context = turns[max(0, first-contextTurns):first]
	size := 0
	for i := first; i < len(turns); i++ {
		for _, m := range turns[i].Messages {
			size += min(utf8.RuneCountInString(m.Text), longestShown)
		}
		if i > first && (size > largestSize || size > windowSize && i >= first+leastTurns) {
			break
		}
		w.Turns = turns[first : i+1]
		until = max(until, turns[i].To())
	}
	return w, until
}

// dense reports whether the window is mostly in a script that writes without
// blanks; its facts are then to be in it too.
func (w Window) dense() bool {
	var b strings.Builder
	for _, t := range w.Turns {
		for _, m := range t.Messages {
			b.WriteString(m.Text)
		}
	}
	return mostlyCJK(b.String())
}

func isCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func hasCJK(s string) bool { return strings.ContainsFunc(s, isCJK) }

// mostlyCJK weighs a character of such a script like a word of another: three
// letters.
func mostlyCJK(s string) bool {
	cjk, other := 0, 0
	for _, r := range s {
		switch {
		case isCJK(r):
			cjk++
		case unicode.IsLetter(r):
			other++
		}
	}
	return cjk*3 > other
}
