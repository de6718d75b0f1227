package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"nodest/llm"
	"nodest/llm/sse"
)

// cleaner stands between the network and either SDK. It reads a streamed answer in every form that
// occurs, a JSON array, server-sent events or objects one after the other, and gives the SDK the
// form that it expects, with nothing in it but what both SDKs read rightly: the texts, and the other
// parts for the one that knows them. Everything else that an answer says goes past the SDK, in the
// exchange.
//
// So neither SDK can stumble: generative-ai-go mistakes an error object for an empty answer and a
// hidden thought for text, fails on a part with only a signature and on half a surrogate, and accepts
// an array that is never closed. genai ends the reply at any line that is not data and at a number
// where it expects a word.
type cleaner struct {
	x     *exchange
	body  *body
	array bool // the SDK expects a JSON array, as generative-ai-go does

	src  source // nil = nothing was read yet
	out  bytes.Buffer
	sent int // answers
	end  bool
}

func newCleaner(x *exchange, b *body) *cleaner {
	return &cleaner{x: x, body: b, array: x.sdk == cardSDK}
}

// Close closes the connection.
func (c *cleaner) Close() error { return c.body.Close() }

// Read gives the SDK one answer at a time: the exchange then has what was heard with it.
func (c *cleaner) Read(p []byte) (int, error) {
	for c.out.Len() == 0 && !c.end {
		c.next()
	}
	return c.out.Read(p)
}

// next passes on the next answer. Whatever happens, the SDK sees an orderly end: genai would
// write another one to the process's log.
func (c *cleaner) next() {
	if c.src == nil {
		if c.src = c.open(); c.src == nil {
			c.fail(io.ErrUnexpectedEOF)
			return
		}
	}
	raw, err := c.src.next()
	if errors.Is(err, io.EOF) {
		c.end, c.x.whole = true, true
		if c.array {
			c.out.WriteString("[]"[min(c.sent, 1):])
		}
		return
	}
	var clean []byte
	if err == nil {
		c.body.event = eventLimit
		clean, err = c.x.read(raw)
	}
	if err != nil {
		c.fail(err)
		return
	}
	before, behind := "data: ", "\n\n"
	if c.array {
		before, behind = "[,"[min(c.sent, 1):][:1], ""
	}
	c.sent++
	c.out.WriteString(before)
	c.out.Write(clean)
	c.out.WriteString(behind)
}

// fail ends the stream, with the body's reason if it has one.
func (c *cleaner) fail(err error) {
	c.end = true
	var syntax *json.SyntaxError
	switch {
	case c.x.err != nil:
	case errors.Is(err, sse.ErrTooLong):
		c.x.err = llm.BadAnswer(name, nil, "sent too much data")
	case errors.As(err, &syntax), errors.Is(err, errNoStream):
		c.x.err = llm.BadAnswer(name, nil, "sent an unreadable response")
	case errors.Is(err, io.ErrUnexpectedEOF):
		c.x.err = llm.CutOff(name, nil)
	default:
		c.x.err = err
	}
}

// source gives the answers of a stream one by one, io.EOF behind the last one.
type source interface {
	next() (json.RawMessage, error)
}

var errNoStream = errors.New("not a stream of answers")

// open finds out which form the stream has; nil if it is empty.
func (c *cleaner) open() source {
	in := bufio.NewReader(c.body)
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // they were peeked at
	}
	for {
		b, err := in.ReadByte()
		if err != nil {
			return nil
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		_ = in.UnreadByte() // it was just read
		switch b {
		case '[':
			return &arrayOf{dec: json.NewDecoder(in)}
		case '{', '"':
			return &objects{json.NewDecoder(in)}
		}
		return &events{in: sse.NewReader(in, eventLimit)}
	}
}

const byteOrderMark = "\ufeff"

// arrayOf is a stream in the form of a JSON array.
type arrayOf struct {
	dec  *json.Decoder
	open bool
}

func (a *arrayOf) next() (json.RawMessage, error) {
	if !a.open {
		if _, err := a.dec.Token(); err != nil { // the bracket that open has seen
			return nil, noEOF(err)
		}
		a.open = true
	}
	if !a.dec.More() {
		if _, err := a.dec.Token(); err != nil { // the bracket that closes it
			return nil, noEOF(err)
		}
		return nil, io.EOF
	}
	var raw json.RawMessage
	return raw, noEOF(a.dec.Decode(&raw))
}

// noEOF makes a truncation of the end of the input: the array was not closed.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// objects are answers one after the other: a single one, where a gateway does not stream.
type objects struct{ dec *json.Decoder }

func (o *objects) next() (raw json.RawMessage, err error) {
	return raw, o.dec.Decode(&raw)
}

// events is a stream of server-sent events. Data that are no JSON, such as [DONE], are skipped.
type events struct {
	in   *sse.Reader
	more []json.RawMessage // answers of an event with several
	read bool              // an answer
}

func (e *events) next() (json.RawMessage, error) {
	for len(e.more) == 0 {
		data, err := e.in.Next()
		if errors.Is(err, io.EOF) && !e.read {
			return nil, errNoStream
		}
		if err != nil {
			return nil, err
		}
		if e.more, err = answersIn(bytes.Clone(data)); err != nil {
			return nil, err
		}
	}
	raw := e.more[0]
	e.more, e.read = e.more[1:], true
	return raw, nil
}

// answersIn are the answers in the data of an event: one, or a list. A truncated one is
// io.ErrUnexpectedEOF.
func answersIn(data []byte) (list []json.RawMessage, err error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' && (data[0] != '[' || string(data) == "[DONE]") {
		return nil, nil
	}
	if data[0] == '[' {
		return list, json.Unmarshal(data, &list)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, raw)
	}
}
