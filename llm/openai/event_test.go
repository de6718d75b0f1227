package openai

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/llm"
)

const typical = `{"id":"gen-1731000000-abc","provider":"X","model":"openai/gpt-4o-mini","object":"chat.completion.chunk","created":1731000000,"choices":[{"index":0,"delta":{"role":"assistant","content":" hello"},"logprobs":null,"finish_reason":null,"native_finish_reason":null}],"system_fingerprint":"fp_1"}`

func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		typical, `{}`, `{"choices":[]}`, `[`, `{"`, `{"choices":[{"delta":{"content":"a\u00e9\n"}}]}`, `{"choices":1}`,
		`{"choices":[{"delta":{"content":null,"reasoning":"x"},"finish_reason":"stop"}],"usage":null}`,
		"{\"choices\":[{\"delta\":{\"content\":\"\x98\x80 \xf0\x9f\"}}]}", `{"choices":[{"delta":{"content":"\ud83d\ude00"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := readEvent(data)
		if err == nil && utf8.Valid(data) && !utf8.Valid(ev.text) {
			t.Errorf("%q is damaged", ev.text)
		}
	})
}

// BenchmarkStream is the cost of one token of a long reply, the socket excluded.
func BenchmarkStream(b *testing.B) {
	const tokens = 1000
	body := strings.Repeat("data: "+typical+"\n\n", tokens) + "data: [DONE]\n\n"
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		s := stream{ctx: b.Context(), provider: OpenAI, yield: func(c llm.Chunk, err error) bool {
			n += len(c.Text) / len(" hello")
			return err == nil
		}}
		s.events(strings.NewReader(body))
		if n != tokens {
			b.Fatalf("%d tokens", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tokens), "ns/token")
}

func TestAnEventInTheMouldOfTheLastReadsTheSame(t *testing.T) {
	moulds := []string{
		typical,
		strings.ReplaceAll(typical, `"role":"assistant",`, ""),
		strings.ReplaceAll(typical, " hello", "X"), // is elsewhere in the event, too
		strings.ReplaceAll(typical, `" hello"`, `[{"type":"text","text":" hello"}]`),
		strings.ReplaceAll(typical, `"content"`, `"refusal":"!","content"`),
		strings.ReplaceAll(typical, `"content"`, `"reasoning":"so","content"`),
		strings.ReplaceAll(typical, `"finish_reason":null`, `"finish_reason":"stop"`),
		strings.ReplaceAll(typical, `"object"`, `"usage":{"prompt_tokens":3},"object"`),
	}
	texts := []string{` hello`, ``, `x`, `茶`, `\n`, `a\"b`, `","content":"twice`, "\x00", "\xe8\x8c", `"`, `\`, `\u8336`}
	kept := 0
	for _, first := range moulds {
		ev, err := readEvent([]byte(first))
		if err != nil {
			t.Fatal(err)
		}
		m := mouldOf([]byte(first), ev)
		for _, text := range texts {
			data := []byte(strings.ReplaceAll(first, " hello", text))
			got, ok := m.fill(data)
			if !ok {
				continue
			}
			kept++
			want, err := readEvent(data)
			if err != nil || string(got.text) != string(want.text) || got.model != want.model ||
				want.finish != "" || want.usage != nil || len(want.reasoning) > 0 || len(want.deltas) > 0 {
				t.Errorf("%s is read as %+v, want %+v, %v", data, got, want, err)
			}
		}
	}
	if kept != 2*5 {
		t.Errorf("%d events were not decoded again, want 10", kept)
	}
}

// BenchmarkEvent is the cost of an event that is not in the mould of the last one.
func BenchmarkEvent(b *testing.B) {
	data := []byte(typical)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readEvent(data); err != nil {
			b.Fatal(err)
		}
	}
}
