package framework

import "strings"

// Part is the kind of text in a reply.
type Part string

// The parts.
const (
	PartText  Part = "text"
	PartMem   Part = "mem"
	PartWeb   Part = "websearch"
	PartThink Part = "think"
)

// Piece is a step of a split reply: text of a part, or a change of a block.
type Piece struct {
	Part  Part
	Text  string
	State string // "" = text
}

// The states of a block. The reply has ended in a block that is StateUnclosed; the
// Text of the piece is the white space that stood before it. StateThought tells that
// everything so far, which is the Text of the piece, was thought.
const (
	StateOpen     = "open"
	StateClose    = "close"
	StateUnclosed = "unclosed"
	StateThought  = "thought"
)

// Splitter finds <mem>, <websearch>, <think> and <thinking> blocks in a streamed
// reply. What it gives does not depend on how the reply was cut into chunks, except
// into how many pieces a text falls. The zero value is ready to use; it is for one
// reply.
//
// Tags may be in any case and have blanks before the ">". A block ends at its
// closing tag or at the opening of another block; within thoughts all other tags
// are text. Some prompt templates open the thoughts themselves, so that the reply has
// only their closing tag: what precedes the first tag of thoughts, if that is a
// closing one, is thought, other tags in it included. All other closing tags without a
// block are left out. The visible text has no hole where a block stood: of the white
// space around it as much stays as separates what is before from what is behind. A
// reply without tags comes through unchanged.
type Splitter struct {
	said     []byte // the reply, until a tag of thoughts has come
	thoughts bool   // such a tag has come

	block  Part   // the open block; "" = none
	hold   string // from a "<" that may begin a tag
	spoken bool   // visible text has begun
	filled bool   // the open block has text

	gap      []byte // white space that waits for what comes next
	afterTag bool   // a block stood before gap, in visible text
	before   string // white space before that block
}

// Feed takes the next chunk and returns what is certain by now.
func (s *Splitter) Feed(chunk string) []Piece {
	var out []Piece
	rest := s.hold + chunk
	s.hold = ""
	for at := 0; ; {
		next := strings.IndexByte(rest[at:], '<')
		if next < 0 {
			return s.text(out, rest)
		}
		at += next
		tag, size, open := readTag(rest[at:])
		switch {
		case size == 0, size > 0 && s.block == PartThink && tag != PartThink:
			at++
			continue
		case size < 0: // perhaps a tag, when more has come
			s.hold = rest[at:]
			return s.text(out, rest[:at])
		}
		out = s.text(out, rest[:at])
		if tag == PartThink && !open && !s.thoughts {
			out = s.thought(out)
		} else {
			out = s.tag(out, tag, open)
		}
		s.note(rest[at:at+size], tag == PartThink)
		rest, at = rest[at+size:], 0
	}
}

// Close ends the reply: it returns what was held back, and tells of a block that
// was never closed.
func (s *Splitter) Close() []Piece {
	out := s.text(nil, s.hold)
	s.hold = ""
	if s.block != "" {
		return append(out, Piece{Part: s.block, Text: s.before, State: StateUnclosed})
	}
	if !s.afterTag {
		out = appendText(out, PartText, string(s.gap))
	}
	s.gap = nil
	return out
}

// text takes text of the current part.
func (s *Splitter) text(out []Piece, t string) []Piece {
	s.note(t, false)
	core := strings.TrimLeft(t, blanks)
	s.gap = append(s.gap, t[:len(t)-len(core)]...)
	if core == "" {
		return out
	}
	tail := core[len(strings.TrimRight(core, blanks)):]
	core = core[:len(core)-len(tail)]
	gap := string(s.gap)
	s.gap = append(s.gap[:0], tail...)
	if s.block != "" {
		if !s.filled {
			gap = "" // a block begins with its first word
		}
		s.filled = true
		return appendText(out, s.block, gap+core)
	}
	if s.afterTag {
		gap = s.joint(gap)
	}
	s.spoken, s.afterTag = true, false
	return appendText(out, PartText, gap+core)
}

const blanks = " \t\r\n"

// joint is the white space that remains in the visible text where a block stood.
func (s *Splitter) joint(behind string) string {
	lines := max(strings.Count(s.before, "\n"), strings.Count(behind, "\n"))
	switch {
	case !s.spoken: // at the beginning of the reply
		return ""
	case lines > 0:
		return strings.Repeat("\n", min(lines, 2))
	case s.before+behind != "":
		return " "
	}
	return ""
}

// note keeps what may turn out to be thought.
func (s *Splitter) note(t string, thoughts bool) {
	if s.thoughts = s.thoughts || thoughts; s.thoughts {
		s.said = nil
		return
	}
	s.said = append(s.said, t...)
}

// thought takes the closing tag of thoughts that the reply began in.
func (s *Splitter) thought(out []Piece) []Piece {
	if s.block != "" {
		out = append(out, Piece{Part: s.block, State: StateClose})
	}
	all := strings.Trim(string(s.said), blanks)
	*s = Splitter{afterTag: true}
	return append(out, Piece{Part: PartThink, Text: all, State: StateThought})
}

func (s *Splitter) tag(out []Piece, part Part, open bool) []Piece {
	if s.block != "" && open == (part != s.block) {
		out = append(out, Piece{Part: s.block, State: StateClose})
		s.block, s.gap, s.afterTag = "", nil, true
	}
	if open && s.block == "" {
		if gap := string(s.gap); !s.afterTag || strings.Count(gap, "\n") > strings.Count(s.before, "\n") {
			s.before = gap
		}
		s.block, s.gap, s.filled = part, nil, false
		out = append(out, Piece{Part: part, State: StateOpen})
	}
	return out
}

// appendText adds text to the last piece if it is of the same part.
func appendText(out []Piece, part Part, text string) []Piece {
	if text == "" {
		return out
	}
	if n := len(out); n > 0 && out[n-1].Part == part && out[n-1].State == "" {
		out[n-1].Text += text
		return out
	}
	return append(out, Piece{Part: part, Text: text})
}

// tagBlanks is how many blanks a tag may have before its ">".
const tagBlanks = 8

// readTag reads a tag at the beginning of s, which begins with "<". size is 0
// when there is none, and -1 when more text is needed to tell.
func readTag(s string) (part Part, size int, open bool) {
	for _, head := range [...]struct {
		text string
		part Part
		open bool
	}{
		{"<mem", PartMem, true},
		{"</mem", PartMem, false},
		{"<websearch", PartWeb, true},
		{"</websearch", PartWeb, false},
		{"<thinking", PartThink, true},
		{"</thinking", PartThink, false},
		{"<think", PartThink, true},
		{"</think", PartThink, false},
	} {
		if len(s) < len(head.text) {
			if strings.EqualFold(s, head.text[:len(s)]) {
				return "", -1, false
			}
			continue
		}
		if !strings.EqualFold(s[:len(head.text)], head.text) {
			continue
		}
		rest := s[len(head.text):]
		tail := strings.TrimLeft(rest, blanks)
		switch skipped := len(rest) - len(tail); {
		case skipped > tagBlanks:
		case tail == "":
			return "", -1, false
		case tail[0] == '>':
			return head.part, len(head.text) + skipped + 1, head.open
		}
	}
	return "", 0, false
}

// StripBlocks returns the visible text of a whole reply, without its blocks. A block
// that is never closed is text; thoughts are so where there is no other.
func StripBlocks(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	var s Splitter
	var visible, block strings.Builder
	for _, p := range append(s.Feed(text), s.Close()...) {
		switch {
		case p.State == StateOpen:
			block.Reset()
		case p.State == StateThought:
			visible.Reset()
		case p.State == StateUnclosed && visible.Len() == 0:
			return block.String()
		case p.State == StateUnclosed && p.Part != PartThink:
			visible.WriteString(p.Text + block.String())
		case p.State != "":
		case p.Part == PartText:
			visible.WriteString(p.Text)
		default:
			block.WriteString(p.Text)
		}
	}
	return visible.String()
}
