package llm

import (
	"slices"
	"strings"
)

// The tokens of the Harmony format: <|start|>role<|channel|>name<|message|>text<|end|>. A server
// that does not read it passes it on, mostly from the channel on, because the prompt has the rest.
const (
	harmonyStart   = "<|start|>"
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
	harmonyFinal   = "final" // the channel whose text is the reply
)

var harmonyTokens = []string{harmonyStart, harmonyChannel, harmonyMessage, "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"}

// longestHeader bounds role and channel of a message, in bytes. What is longer is none.
const longestHeader = 256

// harmony rewrites a reply in the Harmony format.
type harmony struct {
	hold    string // may begin a token
	head    bool   // the header of a message is being read
	channel bool   // it names one
	header  string // as far as it was read
	thinks  bool   // a message that is thought is open
}

// feed writes what is certain with the next piece of the reply.
func (h *harmony) feed(out *strings.Builder, piece string) string {
	text := h.hold + piece
	for {
		at, size := index(text, false, harmonyTokens...)
		if size == 0 {
			break
		}
		h.say(out, text[:at])
		h.token(out, text[at:at+size])
		text = text[at+size:]
	}
	held := partly(text, false, harmonyTokens...)
	h.say(out, text[:held])
	h.hold = text[held:]
	return out.String()
}

func (h *harmony) say(out *strings.Builder, text string) {
	if !h.head {
		out.WriteString(text)
		return
	}
	if h.header += text; len(h.header) > longestHeader {
		out.WriteString(h.unread())
	}
}

// harmonyRoles are the roles and channels that a header begins with.
var harmonyRoles = []string{"assistant", "user", "system", "developer", "tool", "analysis", "commentary", harmonyFinal}

// unread ends a header without a message. It is the text that was taken for it, "" if it was one.
func (h *harmony) unread() (text string) {
	role, _, _ := strings.Cut(strings.TrimLeft(h.header, blanks), " ")
	isHeader := slices.ContainsFunc(harmonyRoles, func(word string) bool { return strings.HasPrefix(word, role) })
	if h.head && (len(h.header) > longestHeader || !isHeader) {
		text = harmonyStart + h.header
		if h.channel {
			text = harmonyChannel + h.header
		}
	}
	h.head = false
	return text
}

func (h *harmony) token(out *strings.Builder, token string) {
	switch token {
	case "<|constrain|>": // is a part of the header
	case harmonyStart, harmonyChannel:
		h.end(out)
		h.head, h.channel, h.header = true, token == harmonyChannel, ""
	case harmonyMessage:
		h.end(out)
		if h.head && !h.isReply() {
			out.WriteString(openThoughts)
			h.thinks = true
		}
		h.head = false
	default:
		h.end(out)
		out.WriteString(h.unread())
	}
}

// isReply reports that the message with this header is what the user reads.
func (h *harmony) isReply() bool {
	words := strings.Fields(h.header)
	if len(words) == 0 {
		return !h.channel
	}
	return words[0] == harmonyFinal && h.channel || words[0] == "assistant" && !h.channel
}

// end ends a message.
func (h *harmony) end(out *strings.Builder) {
	if h.thinks {
		out.WriteString(shutThoughts)
		h.thinks = false
	}
}
