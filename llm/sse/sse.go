// Package sse reads streams of server-sent events as the WHATWG's grammar has them: lines end in
// CR LF, LF or CR, a stream may begin with a byte order mark, and the data lines of an event are
// joined. Names, ids and comments are skipped, for no model provider says anything in them alone.
//
// Providers stray from the grammar, so the package also understands events without the empty line
// behind them and errors as bare JSON. It must not know what the data mean.
package sse

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is the error of a line or an event that is longer than the limit.
var ErrTooLong = errors.New("a line or an event of the stream is too long")

// Reader reads the events of one stream. It is for one goroutine.
//
// An event ends at its empty line, and at the end of the stream. Many servers leave the empty line
// out. Their events end, too: data that are a whole JSON object or list are an event as soon as the
// next data line follows or nothing more has arrived; so is the mark [DONE]. A line that begins
// with an object, or with a list of them, is no field of the grammar: servers send errors so, and
// whole answers. It is an event with all lines up to the end of the object or list.
type Reader struct {
	in    io.Reader
	limit int
	err   error // the error of in, or ErrTooLong

	buf      []byte
	from, to int // the part that was read of in and is not yet taken
	seen     int // that much of it has no end of a line
	begun    bool
	afterCR  bool // the last line ended in CR, so that an LF is its second half

	data, spare []byte
	pending     bool // there are data lines
	bare        bool // they are bare JSON
	nest        nest // the nesting of data
	wasBare     bool // the last event was
}

// The size of the buffer in the beginning, and of the steps in which the end of a line is looked
// for, in bytes.
const (
	firstBuffer = 4 << 10
	step        = 512
)

// emptyReads is how often a reader may return nothing in a row.
const emptyReads = 100

// NewReader returns the reader of a stream. No line and no event may have more than limit bytes.
func NewReader(in io.Reader, limit int) *Reader {
	return &Reader{in: in, limit: limit, buf: make([]byte, min(firstBuffer, limit+1))}
}

// Next returns the data of the next event, which are valid until the next call; they may be empty.
// An event is returned before more is read of the stream.
//
// Errors: io.EOF at the end, ErrTooLong, those of the stream. Each is returned again.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, ok := r.line()
		switch {
		case ok:
			if data, ends := r.take(line); ends {
				return data, nil
			}
		case r.pending && (r.nest.closed(r.data) || errors.Is(r.err, io.EOF)):
			return r.event(), nil
		case r.err != nil:
			return nil, r.err
		default:
			r.fill()
		}
	}
}

// Bare reports that the last event was bare JSON, as in an answer that is not streamed.
func (r *Reader) Bare() bool { return r.wasBare }

// line takes the next line, without its end.
func (r *Reader) line() (line []byte, ok bool) {
	if r.afterCR && r.from < r.to {
		r.afterCR = false
		if r.buf[r.from] == '\n' {
			r.from++
		}
	}
	rest := r.buf[r.from:r.to]
	if n := lineEnd(rest[r.seen:]); n >= 0 {
		n += r.seen
		line, r.afterCR = rest[:n], rest[n] == '\r'
		r.from += n + 1
	} else if errors.Is(r.err, io.EOF) && len(rest) > 0 { // the last line needs no end
		line, r.from = rest, r.to
	} else {
		r.seen = len(rest)
		return nil, false
	}
	r.seen = 0
	if !r.begun {
		r.begun, line = true, bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, true
}

// lineEnd is the index of the first CR or LF in b, -1 if there is none.
func lineEnd(b []byte) int {
	for at := 0; at < len(b); at += step {
		part := b[at:min(at+step, len(b))]
		end := bytes.IndexByte(part, '\n')
		if end >= 0 {
			part = part[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end = cr
		}
		if end >= 0 {
			return at + end
		}
	}
	return -1
}

// take looks at a line. It returns the data of the event that ends at it, or before it.
func (r *Reader) take(line []byte) (data []byte, ends bool) {
	if r.bare && !r.nest.closed(r.data) {
		r.add(line)
		return nil, false
	}
	if len(line) == 0 {
		if !r.pending {
			return nil, false
		}
		return r.event(), true
	}
	bare := isBare(line)
	value := line
	if !bare {
		var isData bool
		if value, isData = dataOf(line); !isData {
			return nil, false
		}
	}
	if ends = r.pending && (bare || r.nest.closed(r.data)); ends {
		data = r.event()
	}
	r.bare = bare
	r.add(value)
	return data, ends
}

// add adds a line to the data.
func (r *Reader) add(line []byte) {
	if r.pending {
		r.data = append(r.data, '\n')
	}
	r.data, r.pending = append(r.data, line...), true
	if len(r.data) > r.limit {
		r.refuse()
	}
}

// isBare reports that a line begins with a JSON object, or with a list of them.
func isBare(line []byte) bool {
	if c := line[0]; c != '{' && c != '[' && c != ' ' && c != '\t' {
		return false
	}
	line = bytes.TrimLeft(line, " \t")
	if list, ok := bytes.CutPrefix(line, []byte("[")); ok {
		list = bytes.TrimLeft(list, " \t")
		return len(list) == 0 || list[0] == '{'
	}
	return len(line) > 0 && line[0] == '{'
}

// dataOf is the value of a data line.
func dataOf(line []byte) (value []byte, ok bool) {
	value, ok = bytes.CutPrefix(line, []byte("data"))
	switch {
	case !ok, len(value) > 0 && value[0] != ':':
		return nil, false
	case len(value) == 0:
		return nil, true
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

// event ends the event and returns its data.
func (r *Reader) event() []byte {
	data := r.data
	r.data, r.spare, r.pending, r.nest = r.spare[:0], data, false, nest{}
	r.bare, r.wasBare = false, r.bare
	return data
}

// nest is how deep data are nested, as far as they were looked at.
type nest struct {
	at, depth       int
	quoted, escaped bool
	done            bool
}

// closed reports that data, which only grow, are a whole object or list, so that no further line
// can belong to them. [DONE] is such a list.
func (n *nest) closed(data []byte) bool {
	for ; n.at < len(data) && !n.done; n.at++ {
		switch c := data[n.at]; {
		case n.escaped:
			n.escaped = false
		case n.quoted:
			n.escaped, n.quoted = c == '\\', c != '"'
		case c == '{', c == '[':
			n.depth++
		case n.depth == 0 && c != ' ' && c != '\t' && c != '\n':
			return false // neither an object nor a list
		case c == '}', c == ']':
			n.depth--
			n.done = n.depth == 0
		case c == '"':
			n.quoted = true
		}
	}
	return n.done
}

// refuse ends a stream that keeps to no bound.
func (r *Reader) refuse() {
	r.err, r.from, r.to, r.seen, r.pending, r.bare = ErrTooLong, 0, 0, 0, false, false
}

// fill reads more of the stream.
func (r *Reader) fill() {
	if r.from > 0 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	if r.to == len(r.buf) {
		if r.to > r.limit {
			r.refuse()
			return
		}
		larger := make([]byte, min(2*len(r.buf), r.limit+1))
		copy(larger, r.buf)
		r.buf = larger
	}
	for range emptyReads {
		n, err := r.in.Read(r.buf[r.to:])
		r.to += n
		if r.err = err; n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
