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
