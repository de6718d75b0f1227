package openai

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"nodest/llm"
)

// packets is a body whose reads return one packet each.
type packets []string

func (p *packets) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

func TestWhatArrivesTogetherIsOneChunk(t *testing.T) {
	say := func(delta string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{%s},"finish_reason":null}]}`+"\n\n", delta)
	}
	a, b, why := say(`"content":"a"`), say(`"content":"b"`), say(`"reasoning":"why"`)
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for _, c := range []struct {
		name    string
		packets packets
		want    []string
	}{
		{"each alone", packets{a, b, end}, []string{"a", "b", "last"}},
		{"two in a packet", packets{a + b, a, end}, []string{"ab", "a", "last"}},
		{"an event in two packets", packets{a + b[:20], b[20:], end}, []string{"a", "b", "last"}},
		{"text in the packet of the end", packets{a, b + end}, []string{"a", "b", "last"}},
		{"reasoning before text", packets{why + a + end}, []string{"(why)a", "last"}},
		{"reasoning behind text", packets{a + why + b + end}, []string{"a", "(why)b", "last"}},
		{"text before an error", packets{a + `data: {"error":{"message":"no"}}` + "\n\n"}, []string{"a", "error"}},
		{"text before the connection breaks", packets{a + b}, []string{"ab", "error"}},
		{"a comment", packets{": waiting\n\n", a + ": waiting\n\n" + b, end}, []string{"ab", "last"}},
	} {
		var got []string
		s := stream{ctx: t.Context(), provider: OpenAI, yield: func(c llm.Chunk, err error) bool {
			switch {
			case err != nil:
				got = append(got, "error")
			case c.Last:
				got = append(got, "last"+c.Text)
			case c.Reasoning != "":
				got = append(got, "("+c.Reasoning+")"+c.Text)
			default:
				got = append(got, c.Text)
			}
			return true
		}}
		s.events(&c.packets)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: chunks %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNothingIsReadForAReaderThatHasLeft(t *testing.T) {
	event := `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
	body := io.MultiReader(strings.NewReader(event), failing{t})
	chunks := 0
	s := stream{ctx: t.Context(), provider: OpenAI, yield: func(llm.Chunk, error) bool { chunks++; return false }}
	s.events(body)
	if chunks != 1 {
		t.Errorf("%d chunks", chunks)
	}
}

// failing must not be read.
type failing struct{ t *testing.T }

func (f failing) Read([]byte) (int, error) {
	f.t.Error("the body was read on")
	return 0, io.ErrUnexpectedEOF
}
