package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"

	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/loose"
	"nodest/llm/sse"
)

// Limits in bytes: of one line of a stream or an answer that is not streamed, and of a whole stream.
const (
	lineLimit   = 4 << 20
	streamLimit = 256 << 20
)

// stream turns one answer into chunks. It yields until the reader breaks off or something is wrong.
type stream struct {
	ctx      context.Context
	provider string
	hide     llm.Secrets
	yield    func(llm.Chunk, error) bool

	finish  string    // as the server named it
	done    bool      // [DONE] was seen
	pieces  bool      // text came in pieces
	message bool      // the last event had a whole message
	entire  bool      // that message is the whole answer, which is JSON and no stream
	over    bool      // nothing more may be yielded
	model   string    // that answered
	used    wireUsage // as far as it was told

	text, reasoning loose.Tail
	said            llm.Chunk // the part that was read and is not passed on yet
	alive           bool      // something was
	mould           mould     // the mould of the last event that was decoded

	tools bool  // were offered
	asked asked // those that the model asks for
}

// events reads an answer by its form, whatever its label says: server-sent events, or JSON of
// a server that does not stream. What arrives together is one chunk.
func (s *stream) events(body io.Reader) {
	paced := llm.NewPaced(s.ctx, body)
	defer paced.Close()
	limited := &io.LimitedReader{N: streamLimit, R: passing{s, paced}}
	in := sse.NewReader(limited, lineLimit)
	var err error
	for n := 0; !s.over && !s.done; n++ {
		var data []byte
		if data, err = in.Next(); err != nil {
			break
		}
		if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
			s.done = true
		} else if len(data) > 0 {
			s.event(data)
			s.entire = n == 0 && in.Bare() && s.message
		}
	}
	if limited.N <= 0 {
		err = sse.ErrTooLong
	}
	s.end(err)
}

// end ends the reply when nothing more can be read, for the reason err.
func (s *stream) end(err error) {
	orderly := errors.Is(err, io.EOF)
	if orderly {
		err = nil // is no cause
	}
	switch {
	case s.over:
	case s.done, s.ctx.Err() == nil && (s.finish != "" || s.entire && orderly):
		s.last() // a reply stays complete if the connection breaks after it
	case errors.Is(err, sse.ErrTooLong):
		s.fail(llm.BadAnswer(s.provider, nil, "sent too much data"))
	case s.ctx.Err() != nil:
		s.fail(llm.NetworkError(s.ctx, s.provider, err))
	default:
		s.fail(llm.CutOff(s.provider, err))
	}
}

// event takes one event.
func (s *stream) event(data []byte) {
	ev, ok := s.mould.fill(data)
	if !ok {
		if data[0] != '{' {
			s.odd(data)
			return
		}
		var err error
		if ev, err = readEvent(data); err != nil {
			s.odd(data)
			return
		}
		s.mould = mouldOf(data, ev)
	}
	if ev.err != nil {
		s.fail(readError(s.provider, ev.err, s.hide))
		return
	}
	s.model = cmp.Or(ev.model, s.model)
	if s.message = ev.message; ev.message && s.pieces { // the end of some streams repeats all of it
		ev.text, ev.reasoning = nil, nil
	}
	s.pieces = s.pieces || len(ev.text) > 0 && !ev.message
	for _, u := range ev.usage {
		s.used.add(u)
	}
	if ev.finish != "" {
		s.finish = ev.finish
		if s.finish == "error" {
			s.fail(llm.Upstream(s.provider, fault.UpstreamDown, 0, errors.New("the finish reason is error")))
			return
		}
	}
	s.take(ev)
}

// odd takes an event that is no object. A list of objects are several events; what is no JSON may
// have been text, unless the reply has ended; anything else says nothing.
func (s *stream) odd(data []byte) {
	var list []json.RawMessage
	switch {
	case !json.Valid(data) && s.finish == "":
		s.fail(llm.BadAnswer(s.provider, nil, "sent an event that is not valid JSON"))
	case data[0] == '[' && json.Unmarshal(data, &list) == nil:
		for _, one := range list {
			if one[0] == '{' && !s.over {
				s.event(one)
			}
		}
	}
}

// take takes the text and the calls of an event.
func (s *stream) take(ev event) {
	c := llm.Chunk{Text: s.text.Join(ev.text), Reasoning: s.reasoning.Join(ev.reasoning)}
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
	usage := s.used.usage()
	if s.finish == "content_filter" {
		s.over = usage != nil && !s.yield(llm.Chunk{Usage: usage}, nil)
		s.fail(llm.BlockedError(s.provider, llm.StageReply, s.finish))
		return
	}
	s.over = true
	last := llm.Chunk{
		Text: s.text.Rest(), Reasoning: s.reasoning.Rest(),
		Last: true, Finish: finishOf(s.finish), Usage: usage, Model: s.model,
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
	switch word {
	case "length", "max_tokens", "model_length", "max_output_tokens": // the third is Mistral's
		return llm.FinishLength
	}
	return llm.FinishStop
}
