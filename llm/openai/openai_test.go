package openai

import (
	"testing"

	"go.uber.org/goleak"

	"nodest/llm"
	"nodest/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t testing.TB, f *llmtest.Fake, opts Options, keys ...llm.Key) *Client {
	t.Helper()
	opts.BaseURL = f.URL
	c, err := New(keys, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConformance(t *testing.T) {
	for _, name := range []string{OpenAI, OpenRouter} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, func(t testing.TB, keys ...llm.Key) llmtest.Adapter {
				f := llmtest.NewOpenAI(t)
				c := connect(t, f, Options{Name: name}, keys...)
				return llmtest.Adapter{Provider: c, Embedder: c.Embedder("", 0), Fake: f}
			})
		})
	}
}
