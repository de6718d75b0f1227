package framework

import (
	"math"
	"strconv"
	"strings"
)

// macros are the values of the placeholders in prompt texts.
//
//	{{lastMessage}}, {{lastUserMessage}}  the message that is answered
//	{{char}}, {{user}}                    names; the user's may be empty
//	{{lastCharMessage}}                   the newest message of the character
//	{{date}}, {{time}}, {{weekday}}       of now, in the language of the built-in words
//	{{isodate}}, {{isotime}}              2026-11-22, 14:05
//	{{idle_duration}}                     since the user's message before the newest one: 3 hours
//	{{random}}                            a number from 0 to below 1
//	{{random::a::b}}, {{random:a,b}}      one of the values; "," separates them where no "::" does, "\," is a comma
//	{{pick::a::b}}, {{pick:a,b}}          the same, but always the same one in a conversation
//	{{roll::6}}, {{roll::d6}}             1 to 6; 1 when the number is no good
//	{{// text}}                           a comment; it is removed
//
// Names are found without regard to case; unknown macros stay (card.UnknownMacros lists them). Values are put in
// literally, and in this order: a value may hold macros that come later in it.
// Random values depend on Seed (those of pick on PickSeed), the text and their place in
// it alone. Without a time the macros about time are unknown.
type macros struct {
	Char, User      string
	LastUserMessage string
	LastCharMessage string
	Seed, PickSeed  uint64

	clock clock
	grown int // bytes that the macros of all texts have added so far
}

// expand replaces the macros in text, until together they have added maxGrown.
func (m *macros) expand(text string) (expanded string) {
	if !strings.Contains(text, "{{") || m.grown > maxGrown {
		return text
	}
	text = withoutComments(text)
	origin := text
	defer func() { m.grown += max(0, len(expanded)-len(origin)) }()
	for _, v := range [...]struct{ name, value string }{
		{"lastmessage", m.LastUserMessage},
		{"lastusermessage", m.LastUserMessage},
		{"char", m.Char},
		{"user", m.User},
		{"lastcharmessage", m.LastCharMessage},
	} {
		text = replaceMacro(text, v.name, func(string) (string, bool) { return v.value, true })
	}
	text = m.clock.expand(text)
	draws := m.Seed ^ hashText(origin)
	text = replaceMacro(text, "random", func(string) (string, bool) {
		return strconv.FormatFloat(draw(&draws), 'f', -1, 64), true
	})
	text = replaceMacro(text, "random:", func(args string) (string, bool) { return oneOf(args, &draws) })
	picks := m.PickSeed ^ hashText(origin)
	text = replaceMacro(text, "pick:", func(args string) (string, bool) { return oneOf(args, &picks) })
	return replaceMacro(text, "roll::", func(args string) (string, bool) {
		return strconv.Itoa(1 + int(draw(&draws)*float64(sides(args)))), true
	})
}

// oneOf draws one of the values in the arguments of random and pick, split as
// SillyTavern does it: by "::" where there is one, else by commas.
func oneOf(args string, draws *uint64) (string, bool) {
	args = strings.TrimPrefix(args, ":")
	if args == "" {
		return "", false
	}
	values := strings.Split(args, "::")
	if len(values) == 1 {
		values = strings.Split(strings.ReplaceAll(args, `\,`, "\x00"), ",")
		for i, v := range values {
			values[i] = strings.ReplaceAll(strings.TrimSpace(v), "\x00", ",")
		}
	}
	return values[int(draw(draws)*float64(len(values)))], true
}

// maxExpanded bounds what macros can make of a text, in bytes: what would go
// beyond it stays as it is.
const maxExpanded = 4 << 20

// maxGrown bounds what macros add to all texts of one prompt, in bytes. In the
// texts behind it they stay: thousands of entries that each repeat a long
// message would make gigabytes of a card of a few.
const maxGrown = 16 << 20

// replaceMacro replaces every {{name…}} by its value. A name that ends in ":"
// takes arguments: all up to the closing braces; any other must stand alone.
// What value refuses stays.
func replaceMacro(text, name string, value func(args string) (string, bool)) string {
	withArgs := strings.HasSuffix(name, ":")
	var b strings.Builder
	done := 0
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 || b.Len() > maxExpanded {
			break
		}
		open += at
		at = open + 1 // "{{{user}}" holds a macro as well
		inner := open + 2
		if len(text) < inner+len(name)+2 || !strings.EqualFold(text[inner:inner+len(name)], name) {
			continue
		}
		end := inner + len(name)
		args := ""
		if withArgs {
			size := strings.Index(text[end:], "}}")
			if size < 0 {
				break
			}
			if size == 0 {
				continue
			}
			args, end = text[end:end+size], end+size
		}
		if !strings.HasPrefix(text[end:], "}}") {
			continue
		}
		v, ok := value(args)
		if !ok {
			continue
		}
		b.WriteString(text[done:open])
		b.WriteString(v)
		done = end + 2
		at = done
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// withoutComments removes {{// comments}}, which may hold other macros. One that
// does not end stays.
func withoutComments(text string) string {
	const mark = "{{//"
	if !strings.Contains(text, mark) {
		return text
	}
	var open []int        // where braces opened that have not been closed yet
	var comments [][2]int // from, until; none inside another
	for i := 0; i+1 < len(text); i++ {
		switch braces := text[i : i+2]; {
		case braces == "{{":
			open = append(open, i)
			i++
		case braces == "}}" && len(open) > 0:
			from := open[len(open)-1]
			open = open[:len(open)-1]
			i++
			if !strings.HasPrefix(text[from:], mark) {
				continue
			}
			for n := len(comments); n > 0 && comments[n-1][0] > from; n-- {
				comments = comments[:n-1]
			}
			comments = append(comments, [2]int{from, i + 1})
		}
	}
	var b strings.Builder
	done := 0
	for _, c := range comments {
		b.WriteString(text[done:c[0]])
		done = c[1]
	}
	b.WriteString(text[done:])
	return b.String()
}

// sides reads the argument of roll: "6" or "d6", up to 2^31; bad ones are 1.
func sides(arg string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(arg)), "d"))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 1
	}
	return n
}

// draw returns a number from 0 to below 1 and moves state on (splitmix64).
func draw(state *uint64) float64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
