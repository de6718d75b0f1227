package llm

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// The tags that every reader of replies knows as those of thoughts.
const (
	openThoughts = "<think>"
	shutThoughts = "</think>"
)

// Marked writes the marks of a model's own format as the tags <think> and </think>, so that
// nobody else has to know them, and removes those that end a turn. Servers are meant to do both
// and often do not. Thoughts are looked for at the beginning of a reply, and the end of a turn at
// its end: what stands elsewhere is the model's text. Channels of the Harmony format other than
// the final one are thoughts.
func Marked(gen Generator) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		var m marks
		ended := false
		for c, err := range gen.Stream(ctx, req) {
			ended = err != nil || c.Last
			if err != nil {
				if rest := m.close(false); rest != "" && !yield(Chunk{Text: rest}, nil) {
					return
				}
				yield(c, err)
				return
			}
			c.Text = m.feed(c.Text)
			if c.Last {
				c.Text += m.close(true)
			}
			if !yield(c, nil) || c.Last {
				return
			}
		}
		if rest := m.close(false); !ended && rest != "" {
			yield(Chunk{Text: rest}, nil)
		}
	})
}

// thoughtMarks begin and end thoughts. Those that are special tokens of models stand for nothing
// else, so that the closing one is known without the other, which a prompt template may have
// written. The tags are words that a reply may have for itself; they may be in any case.
var thoughtMarks = [...]struct {
	open, shut string
	special    bool
}{
	{"<thought>", "</thought>", false},
	{"<reason>", "</reason>", false},
	{"<reasoning>", "</reasoning>", false},
	{"<seed:think>", "</seed:think>", true},              // Seed-OSS
	{"◁think▷", "◁/think▷", true},                        // Kimi
	{"[THINK]", "[/THINK]", true},                        // Magistral
	{"<|begin_of_thought|>", "<|end_of_thought|>", true}, // OpenThinker
	{"<|START_THINKING|>", "<|END_THINKING|>", true},     // Command A
}

// endMarks end a turn. All begin with "<".
var endMarks = []string{
	"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|endoftext|>", "<|end_of_text|>", "<|end_of_turn|>",
	"<end_of_turn>", "<eos>", strikeEnd, "<｜end▁of▁sentence｜>", "<|end_of_solution|>", "<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>",
}

// strikeEnd ends a turn, or struck text in HTML that strike begins.
const (
	strikeEnd = "</s>"
	strike    = "<s>"
)

// lone are the marks that are known anywhere, with what is written for them; loneMarks are those.
// The opening ones stay as they are: they tell that the closing one behind them is text, too.
var (
	lone      = map[string]string{"<|begin_of_solution|>": "", "<|START_RESPONSE|>": ""} // the text begins
	loneMarks []string
)

func init() {
	for _, m := range thoughtMarks {
		if m.special {
			lone[m.open], lone[m.shut] = m.open, shutThoughts
		}
	}
	loneMarks = slices.Sorted(maps.Keys(lone))
}

// longestHold bounds what is held back of blanks and of marks that end a turn, in bytes: some models
// write those until they are stopped.
const longestHold = 256

// marks rewrites one reply. The zero value is at its beginning.
type marks struct {
	begun   bool
	shut    string // the mark that ends the thoughts; "" = there are none
	fold    bool   // that mark may be in any case
	harmony *harmony
	quoted  string // the mark that ends thoughts which are text; "" = there are none
	hold    string // may begin a mark, or be those that end the turn
	struck  bool   // HTML has struck text
	last    string // the last bytes of the text, in which a tag may begin
}

// feed returns what is certain of the reply with its next piece.
func (m *marks) feed(piece string) string {
	if m.begun && m.hold == "" && m.shut == "" && m.harmony == nil && !mayMark(piece) {
		m.note(piece)
		return piece
	}
	text := m.hold + piece
	m.hold = ""
	var out strings.Builder
	if !m.begun {
		if text = m.begin(&out, text); !m.begun {
			return ""
		}
	}
	if m.harmony != nil {
		return m.harmony.feed(&out, text)
	}
	if m.shut != "" {
		at, size := index(text, m.fold, m.shut)
		if size == 0 {
			held := partly(text, m.fold, m.shut)
			m.hold = text[held:]
			return out.String() + text[:held]
		}
		out.WriteString(text[:at] + shutThoughts)
		text, m.shut = text[at+size:], ""
	}
	m.plain(&out, text)
	return out.String()
}

// begin looks for the mark that a reply begins with. It returns the text behind that.
func (m *marks) begin(out *strings.Builder, text string) string {
	lead := strings.TrimLeft(text, blanks)
	undecided := lead == "" && len(text) <= longestHold
	for _, t := range thoughtMarks {
		if at, size := index(lead[:min(len(lead), len(t.open))], !t.special, t.open); at == 0 && size > 0 {
			m.begun, m.shut, m.fold = true, t.shut, !t.special
			out.WriteString(openThoughts)
			return lead[size:]
		}
		undecided = undecided || lead != "" && partly(lead, !t.special, t.open) == 0
	}
	for _, token := range []string{harmonyChannel, harmonyStart} {
		if strings.HasPrefix(lead, token) {
			m.begun, m.harmony = true, &harmony{}
			return lead
		}
		undecided = undecided || lead != "" && strings.HasPrefix(token, lead)
	}
	if m.begun = !undecided; undecided {
		m.hold = text
	}
	return text
}

const blanks = " \t\r\n"

// plain writes text without thoughts, and holds back what may end the turn.
func (m *marks) plain(out *strings.Builder, text string) {
	for mayMark(text) {
		at, size := index(text, false, loneMarks...)
		if size == 0 {
			held := min(partly(text, false, loneMarks...), m.turnEnd(text))
			m.write(out, text[:held])
			m.keep(text[held:])
			return
		}
		m.write(out, text[:at])
		out.WriteString(m.known(text[at : at+size]))
		text = text[at+size:]
	}
	m.write(out, text)
}

// known is what is written for a mark in a text.
func (m *marks) known(mark string) string {
	if mark == m.quoted {
		m.quoted = ""
		return mark
	}
	for _, t := range thoughtMarks {
		if mark == t.open {
			m.quoted = t.shut
		}
	}
	return lone[mark]
}

// keep holds text back. Of many marks that end the turn the first will do.
func (m *marks) keep(text string) {
	if mark := endMarkOf(text, strings.HasPrefix); mark != "" && len(text) > longestHold {
		text = mark + text[partly(text, false, endMarks...):]
	}
	m.hold = text
}

// write writes text.
func (m *marks) write(out *strings.Builder, text string) {
	out.WriteString(text)
	m.note(text)
}

// mayMark reports that one of the marks that are known in a text may begin in it.
func mayMark(text string) bool {
	return strings.IndexByte(text, '<') >= 0 || strings.IndexByte(text, '[') >= 0 || strings.Contains(text, "◁")
}

// note looks for struck text in what was written.
func (m *marks) note(text string) {
	if !m.struck && strings.IndexByte(text, '>') >= 0 {
		m.struck = strings.Contains(m.last+text, strike)
	}
	const kept = len(strike) - 1
	if len(text) < kept {
		text = m.last + text
	}
	m.last = text[max(len(text)-kept, 0):]
}

// turnEnd is where the marks at the end of text begin that end a turn, the beginning of one
// included; len(text) if there are none.
func (m *marks) turnEnd(text string) int {
	struck := m.struck || strings.Contains(m.last+text, strike)
	at := partly(text, false, endMarks...)
	for {
		before := strings.TrimRight(text[:at], blanks)
		mark := endMarkOf(before, strings.HasSuffix)
		if mark == "" || mark == strikeEnd && struck {
			return at
		}
		at = len(before) - len(mark)
	}
}

// endMarkOf is the mark of the end of a turn that text begins or ends with.
func endMarkOf(text string, has func(text, mark string) bool) string {
	for _, mark := range endMarks {
		if has(text, mark) {
			return mark
		}
	}
	return ""
}

// close returns what was held back. The marks that end a turn go if the reply has ended.
func (m *marks) close(ended bool) string {
	rest := m.hold
	if m.harmony != nil {
		rest = m.harmony.unread() + m.harmony.hold
	}
	m.hold = ""
	if ended && m.begun && m.shut == "" && endMarkOf(rest, strings.HasPrefix) != "" {
		return ""
	}
	return rest
}

// index is where the first of some marks stands in text, and its size; 0 = nowhere.
func index(text string, fold bool, all ...string) (at, size int) {
	for i := range len(text) {
		for _, mark := range all {
			if text[i] == mark[0] && len(text)-i >= len(mark) && same(text[i:i+len(mark)], mark, fold) {
				return i, len(mark)
			}
		}
	}
	return 0, 0
}

// partly is where the beginning of one of some marks stands at the end of text; len(text) if none
// does.
func partly(text string, fold bool, all ...string) int {
	first := len(text)
	for _, mark := range all {
		for n := min(len(mark)-1, len(text)); n > len(text)-first; n-- {
			if same(text[len(text)-n:], mark[:n], fold) {
				first = len(text) - n
				break
			}
		}
	}
	return first
}

func same(a, b string, fold bool) bool { return a == b || fold && strings.EqualFold(a, b) }
