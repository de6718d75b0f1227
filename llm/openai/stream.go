package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"nodest/fault"
	"nodest/llm"
)

// Limits in bytes: of one line of a stream or an answer that is not streamed, and of a whole stream.
const (
	lineLimit   = 4 << 20
	streamLimit = 256 << 20
)

// stream turns one answer into chunks. It yields until the reader breaks off or
// something is wrong.
type stream struct {
	ctx      context.Context
	provider string
	hide     llm.Secrets
	yield    func(llm.Chunk, error) bool

	finish string     // as the server named it
	done   bool       // [DONE] was seen
	over   bool       // nothing more may be yielded
	model  string     // that answered
	usage  *llm.Usage // the last one seen

	text, reasoning tail
	said            llm.Chunk // what was read and is not passed on yet
	alive           bool      // something was
	mould           mould     // of the last event that was decoded

	tools bool  // were offered
	asked asked // those that the model asks for
}

// events reads server-sent events. Only data lines matter: comments (OpenRouter's
// sign of life), event names and blank lines are skipped, and every data line is
// a whole JSON value, as all these servers send it. What arrives together is one chunk.
func (s *stream) events(body io.Reader) {
	paced := llm.NewPaced(s.ctx, body)
	defer paced.Close()
	limited := &io.LimitedReader{N: streamLimit, R: passing{s, paced}}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4<<10), lineLimit)
	for !s.over && !s.done && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			s.other(lines.Bytes())
			continue
		}
		data = bytes.TrimSpace(data)
		switch {
		case len(data) == 0:
		case string(data) == "[DONE]":
			s.done = true
		default:
			s.event(data)
		}
	}
	if s.over {
		return
	}
	err := lines.Err()
	if s.done || s.finish != "" && s.ctx.Err() == nil {
		s.last() // a reply stays complete if the connection breaks after it
		return
	}
	switch {
	case err == nil && limited.N <= 0, errors.Is(err, bufio.ErrTooLong):
		s.fail(llm.BadAnswer(s.provider, nil, "sent too much data"))
	case s.ctx.Err() != nil:
		s.fail(llm.NetworkError(s.ctx, s.provider, err))
	default:
		s.fail(llm.CutOff(s.provider, err))
	}
}

// other looks at a line without data: some servers send an error as bare JSON in
// the middle of a stream.
func (s *stream) other(line []byte) {
	if len(line) > 0 && line[0] == '{' {
		s.event(line)
	}
}

// whole reads an answer of a server that does not stream.
func (s *stream) whole(body io.Reader) {
	b, err := io.ReadAll(io.LimitReader(body, lineLimit+1))
	if err != nil {
		s.fail(llm.NetworkError(s.ctx, s.provider, err))
		return
	}
	if len(b) > lineLimit {
		s.fail(llm.BadAnswer(s.provider, nil, "sent too much data"))
		return
	}
	s.event(b)
	switch {
	case s.over:
	case s.finish == "":
		s.fail(llm.CutOff(s.provider, nil))
	default:
		s.last()
	}
}

// event takes one JSON value.
func (s *stream) event(data []byte) {
	ev, ok := s.mould.fill(data)
	if !ok {
		var err error
		if ev, err = readEvent(data); err != nil {
			s.fail(llm.BadAnswer(s.provider, nil, "sent an event that is not valid JSON"))
			return
		}
		s.mould = mouldOf(data, ev)
	}
	if ev.err != nil {
		s.fail(readError(s.provider, ev.err, s.hide))
		return
	}
	s.model = cmp.Or(ev.model, s.model)
	if ev.usage != nil {
		s.usage = ev.usage
	}
	if ev.finish != "" {
		s.finish = ev.finish
		if s.finish == "error" {
			s.fail(llm.Upstream(s.provider, fault.UpstreamDown, 0, errors.New("the finish reason is error")))
			return
		}
	}
	c := llm.Chunk{Text: s.text.join(ev.text), Reasoning: s.reasoning.join(ev.reasoning)}
	if s.tools {
		s.asked.text.WriteString(c.Text)
		for _, d := range ev.deltas {
			if err := s.asked.add(s.provider, d); err != nil {
				s.fail(err)
				return
			}
		}
	}
	if c.Reasoning != "" && s.said.Text != "" {
		s.pass()
	}
	s.said.Text += c.Text
	s.said.Reasoning += c.Reasoning
	s.alive = s.alive || c.Text != "" || c.Reasoning != "" || len(s.asked.calls) > 0 // also long arguments are a sign of life
}

// pass passes on what was read, if anything was.
func (s *stream) pass() bool {
	if s.over || !s.alive {
		return false
	}
	c := s.said
	s.said, s.alive = llm.Chunk{}, false
	s.over = !s.yield(c, nil)
	return true
}

// passing reads on when what was read is passed on.
type passing struct {
	s    *stream
	body *llm.Paced
}

func (p passing) Read(b []byte) (int, error) {
	if p.s.pass() {
		p.body.Flows()
	}
	if p.s.over {
		return 0, io.EOF
	}
	return p.body.Read(b)
}

// last ends a whole reply.
func (s *stream) last() {
	if s.pass(); s.over {
		return
	}
	if s.finish == "content_filter" {
		s.over = s.usage != nil && !s.yield(llm.Chunk{Usage: s.usage}, nil)
		s.fail(llm.BlockedError(s.provider, llm.StageReply, s.finish))
		return
	}
	s.over = true
	last := llm.Chunk{
		Text: s.text.rest(), Reasoning: s.reasoning.rest(),
		Last: true, Finish: finishOf(s.finish), Usage: s.usage, Model: s.model,
	}
	last.Calls, last.Echo = s.asked.end(s.provider)
	s.yield(last, nil)
}

func (s *stream) fail(err error) {
	if s.pass(); !s.over {
		s.over = true
		s.yield(llm.Chunk{}, err)
	}
}

// finishOf translates a finish reason. [DONE] without one counts as a stop.
func finishOf(word string) llm.Finish {
	if word == "length" || word == "max_tokens" {
		return llm.FinishLength
	}
	return llm.FinishStop
}

// tail holds back the beginning of a code point that the server has cut in two.
type tail struct{ cut []byte }

// join returns the text that is complete when piece follows what was held back.
func (t *tail) join(piece []byte) string {
	if len(t.cut) > 0 {
		piece = append(t.cut, piece...)
		t.cut = nil
	}
	if n := cutOff(piece); n > 0 {
		t.cut = bytes.Clone(piece[len(piece)-n:])
		piece = piece[:len(piece)-n]
	}
	return strings.ToValidUTF8(string(piece), "\uFFFD")
}

// rest returns what never became whole.
func (t *tail) rest() string { return strings.ToValidUTF8(string(t.cut), "\uFFFD") }

// cutOff returns how many bytes at the end of b begin a code point that needs
// more.
func cutOff(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		c := b[len(b)-n]
		switch {
		case c < utf8.RuneSelf:
			return 0
		case utf8.RuneStart(c):
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
