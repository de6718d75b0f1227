package sse

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// read returns the events of a stream and how it ended.
func read(in io.Reader, limit int) (events []string, err error) {
	r := NewReader(in, limit)
	for {
		data, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

func TestTheGrammarOfEventStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"nothing", "", nil},
		{"line feeds", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"line ends of Windows", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"carriage returns alone", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"all line ends", "data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", []string{"a", "b", "c"}},
		{"a byte order mark", "\ufeffdata: a\n\n", []string{"a"}},
		{"a second byte order mark is a field's", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []string{"b"}},
		{"a byte order mark later", "data: a\n\n\ufeffdata: b\n\n", []string{"a"}},
		{"two data lines", "data: a\ndata: b\n\n", []string{"a\nb"}},
		{"a JSON object in two data lines", "data: {\"a\":\ndata: 1}\n\n", []string{"{\"a\":\n1}"}},
		{"comments", ": hi\n\n:\n\ndata: a\n: within\n\n", []string{"a"}},
		{"other fields", "event: e\nid: 7\nretry: 10\ndata: a\nfoo: b\n\nevent: alone\n\n", []string{"a"}},
		{"a field that only begins like data", "database: x\ndata: a\n\n", []string{"a"}},
		{"data without a colon", "data\n\n", []string{""}},
		{"two without a colon", "data\ndata\n\n", []string{"\n"}},
		{"no blank after the colon", "data:a\n\n", []string{"a"}},
		{"one blank only is cut", "data:  a \n\n", []string{" a "}},
		{"a colon in the value", "data: a: b\n\n", []string{"a: b"}},
		{"the last event without its empty line", "data: a\n\ndata: b\n", []string{"a", "b"}},
		{"the last line without its end", "data: a\n\ndata: b", []string{"a", "b"}},
		{"the mark of the end", "data: [DONE]\n\n", []string{"[DONE]"}},
	} {
		for name, in := range map[string]io.Reader{"in one read": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)), "with the end in the last read": iotest.DataErrReader(strings.NewReader(c.stream))} {
			if got, err := read(in, 1000); !slices.Equal(got, c.want) || !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %q, %v; want %q", c.name, name, got, err, c.want)
			}
		}
	}
}

func TestServersThatStrayFromTheGrammar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         []string
	}{
		{"no empty lines", "data: {\"a\":\"}\"}\ndata: [1,{}]\ndata: [DONE]\n", []string{`{"a":"}"}`, "[1,{}]", "[DONE]"}},
		{"no empty lines, objects in several lines", "data: {\ndata: }\ndata: {\"\\\"{\":\ndata: []}\ndata: {}\n", []string{"{\n}", "{\"\\\"{\":\n[]}", "{}"}},
		{"an error as bare JSON", "data: a\n\n{\"error\":1}\n\n", []string{"a", `{"error":1}`}},
		{"lines of JSON", "{\"a\":1}\n{\"b\":2}\r\n", []string{`{"a":1}`, `{"b":2}`}},
		{"JSON in many lines", "{\n \"a\": [\n\n  \"data: }\"\n ]\n}\n", []string{"{\n \"a\": [\n\n  \"data: }\"\n ]\n}"}},
		{"an error in many lines", "data: a\n {\n}\ndata: b\n\n", []string{"a", " {\n}", "b"}},
		{"a list of errors", "[{\n\"error\": 1}\r\n]", []string{"[{\n\"error\": 1}\n]"}},
		{"the log of a server", "[info] ready\ndata: a\n\n", []string{"a"}},
		{"an error behind an event without its empty line", "data: {}\n{\"error\":1}\n", []string{"{}", `{"error":1}`}},
	} {
		for _, in := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
			if got, err := read(in, 1000); !slices.Equal(got, c.want) || !errors.Is(err, io.EOF) {
				t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
			}
		}
	}
}

func TestBareJSONIsTold(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader("data: {}\n{}\ndata: a\n\n"), 100)
	for _, want := range []bool{false, true, false} {
		if data, err := r.Next(); err != nil || r.Bare() != want {
			t.Errorf("%s: bare %v, %v", data, r.Bare(), err)
		}
	}
}

// An event is returned before more is read: for its empty line, however that ends, and for a whole
// object without one.
func TestAnEventIsNotHeldBack(t *testing.T) {
	t.Parallel()
	for _, packet := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r", "data: {}\n", "{}\n", "data: [DONE]\n"} {
		r := NewReader(io.MultiReader(strings.NewReader(packet), unread{t}), 1000)
		if data, err := r.Next(); len(data) == 0 || err != nil {
			t.Errorf("%q: %q, %v", packet, data, err)
		}
	}
}

// unread must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the stream was read on")
	return 0, io.EOF
}

func TestLinesAndEventsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 94) // "data: " and that are 100 bytes
	for _, c := range []struct {
		name, stream string
		events       int
		err          error
	}{
		{"a line at the limit", "data: " + long + "\n\n", 1, io.EOF},
		{"a line beyond it", "data: y" + long + "\n\n", 0, ErrTooLong},
		{"a comment beyond it", "data: a\n\n: " + long + long + "\n\ndata: b\n\n", 1, ErrTooLong},
		{"a line that never ends", strings.Repeat("x", 1<<20), 0, ErrTooLong},
		{"an event beyond it", "data: a\n\ndata: " + long + "\ndata: " + long + "\n\n", 1, ErrTooLong},
		{"many events", strings.Repeat("data: "+long+"\n\n", 1000), 1000, io.EOF},
	} {
		events, err := read(strings.NewReader(c.stream), 100)
		if len(events) != c.events || !errors.Is(err, c.err) {
			t.Errorf("%s: %d events, %v; want %d, %v", c.name, len(events), err, c.events, c.err)
		}
	}
}

// Half an event behind which the connection broke is none; one that is whole counts.
func TestABrokenStream(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	for stream, want := range map[string][]string{
		"data: a\n\ndata: {\"b\"": {"a"}, "data: a\n\ndata: b\n": {"a"}, "data: a\n\ndata: {}\n": {"a", "{}"}, "": nil,
	} {
		got, err := read(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(broken)), 1000)
		if !slices.Equal(got, want) || !errors.Is(err, broken) {
			t.Errorf("%q: %q, %v; want %q", stream, got, err, want)
		}
	}
	if _, err := read(stuck{}, 10); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a stream without anything: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// slow reads a whole stream in the words of the grammar, and splits what is joined where a line
// ends an object or a list.
func slow(stream string) (events []string) {
	lines := regexp.MustCompile("\r\n|\r|\n").Split(strings.TrimPrefix(stream, "\ufeff"), -1)
	var data []string
	bare := false
	end := func() {
		if data != nil {
			events = append(events, strings.Join(data, "\n"))
		}
		data, bare = nil, false
	}
	for _, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		switch closed := balanced(strings.Join(data, "\n")); {
		case bare && !closed:
			data = append(data, line)
		case line == "":
			end()
		case bareLine.MatchString(line):
			end()
			data, bare = append(data, line), true
		case field == "data":
			if closed {
				end()
			}
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	if n := len(data); bare && data[n-1] == "" && !balanced(strings.Join(data, "\n")) {
		data = data[:n-1] // behind the last line end is no line
	}
	end()
	return events
}

var bareLine = regexp.MustCompile(`^[ \t]*(\{|\[[ \t]*(\{|$))`)

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\(?s:.))*"?`)

// balanced reports that s begins with a bracket and closes as many as it opens somewhere.
func balanced(s string) bool {
	s = strings.TrimLeft(s, " \t\n")
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return false
	}
	depth := 0
	for _, c := range quotedText.ReplaceAllString(s, "") {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 && strings.ContainsRune("]}", c) {
			return true
		}
	}
	return false
}

// cut is a reader that returns the given numbers of bytes, again and again.
type cut struct {
	rest  []byte
	sizes []byte
	at    int
}

func (c *cut) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := 1
	if len(c.sizes) > 0 {
		n += int(c.sizes[c.at%len(c.sizes)] % 7)
		c.at++
	}
	n = copy(b[:min(n, len(b))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func compare(t *testing.T, stream string, sizes []byte) {
	t.Helper()
	want := slow(stream)
	for _, in := range []io.Reader{strings.NewReader(stream), &cut{rest: []byte(stream), sizes: sizes}} {
		if got, err := read(in, 1<<20); !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
			t.Fatalf("%q in pieces of %v: %q, %v; want %q", stream, sizes, got, err, want)
		}
	}
}

// Random streams, cut at random places, are read as the slow reader reads them.
func TestStreamsAreReadAsTheGrammarSays(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	if s := os.Getenv("NODEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	tokens := []string{"data", "data:", "data: ", "\n", "\r", "\r\n", "\n\n", "\r\r", ":", " ", "{", "}", "[", "]", "\"", "\\", "[DONE]", "{}", "a", "字", "\ufeff", "event: x", "id: 1"}
	for range 5_000 {
		var stream strings.Builder
		for range r.IntN(20) {
			stream.WriteString(tokens[r.IntN(len(tokens))])
		}
		sizes := make([]byte, r.IntN(5))
		for i := range sizes {
			sizes[i] = byte(r.IntN(7))
		}
		compare(t, stream.String(), sizes)
	}
}

func FuzzReader(f *testing.F) {
	f.Add("data: {}\n\ndata: a\rdata: b\r\r", []byte{1, 2})
	f.Add("\ufeff: x\r\ndata\r\n\r\n{\"", []byte{})
	f.Fuzz(func(t *testing.T, stream string, sizes []byte) {
		if len(stream) < 300 { // the slow reader is quadratic
			compare(t, stream, sizes)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	event := "data: " + strings.Repeat("x", 300)
	for name, end := range map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"} {
		b.Run(name, func(b *testing.B) {
			body := []byte(strings.Repeat(event+end+end, 1000))
			for b.Loop() {
				events, in := 0, NewReader(bytes.NewReader(body), 1<<20)
				for {
					if _, err := in.Next(); err != nil {
						break
					}
					events++
				}
				if events != 1000 {
					b.Fatal(events)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1000), "ns/event")
		})
	}
}
