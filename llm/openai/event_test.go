package openai

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/llm"
)

const typical = `{"id":"gen-1731000000-abc","provider":"X","model":"openai/gpt-4o-mini","object":"chat.completion.chunk","created":1731000000,"choices":[{"index":0,"delta":{"role":"assistant","content":" hello"},"logprobs":null,"finish_reason":null,"native_finish_reason":null}],"system_fingerprint":"fp_1"}`

// FuzzEvent holds the reader without reflection to the one with it.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		typical, `{}`, `{"choices":[]}`, `[`, `{"`, `{"choices":[{"delta":{"content":"a\u00e9\n"}}]}`, `{"choices":1}`,
		`{"choices":[{"delta":{"content":null,"reasoning":"x"},"finish_reason":"stop"}],"usage":null}`,
		`{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, `{"a":{"b":["]",{"}":1}]}, "model" : "m" }`,
		`{"choices":[{"delta":{"reasoning":"x","reasoning_content":"x"}}]}`, `{"choices":[{"delta":{"content":"\ud83d\ude00"}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fast, ok := fastEvent(data)
		if !ok {
			return
		}
		slow, err := slowEvent(data)
		if err != nil || odd(string(data)) {
			return
		}
		valid := func(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
		for _, pair := range [][2][]byte{{fast.text, slow.text}, {fast.reasoning, slow.reasoning}, {fast.finish, slow.finish}, {fast.model, slow.model}} {
			// Bytes that are not UTF-8 become one mark or several.
			if got, want := valid(pair[0]), string(pair[1]); got != want && utf8.Valid(data) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		if fast.err != nil || fast.usage != nil {
			t.Error("the fast reader judges errors or usage")
		}
	})
}

// odd reports a member that stands twice or in capitals, where the two readers may
// differ.
func odd(s string) bool {
	for _, key := range []string{"choices", "delta", "message", "content", "reasoning", "finish_reason", "model", "refusal"} {
		if strings.Count(strings.ToLower(s), key) > 1 {
			return true
		}
	}
	return strings.ToLower(s) != s || strings.ContainsRune(s, '\u017f') || strings.ContainsRune(s, '\u212a')
}

func TestFastEventReadsTheUsual(t *testing.T) {
	ev, ok := fastEvent([]byte(typical))
	if !ok || string(ev.text) != " hello" || string(ev.model) != "openai/gpt-4o-mini" || len(ev.finish) != 0 {
		t.Errorf("%v %q %q %q", ok, ev.text, ev.model, ev.finish)
	}
	for _, rare := range []string{
		`{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`, `{"error":{"code":1}}`, `{"choices":[{"delta":{"content":[]}}]}`,
		`{"choices":[{"message":{"content":"a"}}]}`, `{"choices":[{"delta":{"content":"\ud83d"}}]}`, `{"choices":[]}`, `{"choices"`,
	} {
		if _, ok := fastEvent([]byte(rare)); ok {
			t.Errorf("%s was not left to the full reader", rare)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	data := []byte(typical)
	b.Run("fast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := fastEvent(data); !ok {
				b.Fatal("not read")
			}
		}
	})
	b.Run("full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := slowEvent(data); err != nil {
				b.Fatal(err)
			}
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
			n++
			return err == nil
		}}
		s.events(strings.NewReader(body))
		if n != tokens+1 {
			b.Fatalf("%d chunks", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tokens), "ns/token")
}
