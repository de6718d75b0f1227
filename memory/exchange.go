package memory

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"nodest/framework"
	"nodest/internal/cite"
	"nodest/memory/lang"
)

// Message is a message of the shown path of a conversation.
type Message struct {
	Evidence           // names its text
	Role     lang.Role // anything but lang.RoleUser and lang.RoleCharacter is left out
	Name     string    // the speaker's name; may be empty
	Text     string    // as stored
	At       time.Time
	Failed   bool // the reply ended with an error
}

// Turn is one exchange: a message of the user and the replies to it. What a character says
// before the user's first message is a turn too.
type Turn struct {
	Messages []Message
}

// TurnsOf returns the exchanges of a path, without summaries and what Clean removes.
func TurnsOf(path []Message) []Turn {
	var turns []Turn
	for _, m := range path {
		if m.Role != lang.RoleUser && m.Role != lang.RoleCharacter || m.Failed {
			continue
		}
		if m.Text = Clean(m.Role, m.Text); m.Text == "" {
			continue
		}
		if last := len(turns) - 1; m.Role == lang.RoleCharacter && last >= 0 {
			turns[last].Messages = append(turns[last].Messages, m)
			continue
		}
		turns = append(turns, Turn{Messages: []Message{m}})
	}
	return turns
}

func (t Turn) From() int64 { return t.Messages[0].Seq }

func (t Turn) To() int64 { return t.Messages[len(t.Messages)-1].Seq }

// recallHeads are the headings of the block of memories, without their colon.
var recallHeads = func() (heads []string) {
	for _, h := range framework.MemoryHeadings() {
		heads = append(heads, strings.TrimRight(h, ":："))
	}
	return heads
}()

var (
	// addedBlock is added to a user's message by a prompt; an imported log may have it too.
	addedBlock = regexp.MustCompile(`(?is)<mem\s*>.*?</mem\s*>|<websearch\s*>.*?</websearch\s*>|<response_guidelines\s*>.*?</response_guidelines\s*>`)
	// recallEcho is a block of memories that a model repeats without the tags.
	recallEcho = regexp.MustCompile(`(?m)^[ \t]*(?:` + strings.Join(recallHeads, "|") + `)[：:][ \t]*\n?(?:[ \t]*\d+[.、．][^\n]*\n?)*`)
)

// Clean returns a message without what prompts and models add to it.
func Clean(role lang.Role, text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
	tagged := strings.Contains(text, "<") // else no block can be in it
	if tagged {
		text = addedBlock.ReplaceAllString(text, "")
	}
	switch {
	case role != lang.RoleCharacter:
		text = framework.WithoutRewrite(text)
	case tagged:
		text = framework.StripBlocks(text)
	}
	if role == lang.RoleCharacter {
		text = cite.StripMarks(text)
	}
	if slices.ContainsFunc(recallHeads, func(head string) bool { return strings.Contains(text, head) }) {
		text = recallEcho.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}

func (m Message) Line() lang.Line {
	return lang.Line{Role: m.Role, Name: m.Name, Text: m.Text, At: m.At}
}

func Lines(messages []Message) []lang.Line {
	out := make([]lang.Line, len(messages))
	for i, m := range messages {
		out[i] = m.Line()
	}
	return out
}
