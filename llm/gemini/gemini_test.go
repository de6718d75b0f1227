package gemini

import (
	"testing"

	"go.uber.org/goleak"

	"nodest/llm"
	"nodest/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t testing.TB, f *llmtest.Fake, opts Options, keys ...llm.Key) *Provider {
	t.Helper()
	opts.BaseURL = f.URL
	p, err := New(keys, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
