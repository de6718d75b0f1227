package gemini

import (
	"net/http"
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

// TestConformance holds both SDKs to the same promises: each is shown every trap,
// also thoughts from a model that is served by generative-ai-go and should have
// none.
func TestConformance(t *testing.T) {
	for _, tt := range []struct{ sdk, model, embeddings string }{
		{cardSDK, "gemini-2.0-flash", "text-embedding-004"},
		{currentSDK, "gemini-2.5-pro", ""},
	} {
		t.Run(tt.sdk, func(t *testing.T) {
			llmtest.Run(t, func(t testing.TB, keys ...llm.Key) llmtest.Adapter {
				f := llmtest.NewGemini(t)
				p := connect(t, f, Options{Model: tt.model}, keys...)
				t.Cleanup(func() {
					for _, req := range f.Requests() {
						if req.Method == http.MethodPost && req.Transport != tt.sdk {
							t.Errorf("%s went through %s", req.Path, req.Transport)
						}
					}
				})
				return llmtest.Adapter{Provider: p, Embedder: p.Embedder(tt.embeddings, 0), Fake: f}
			})
		})
	}
}
