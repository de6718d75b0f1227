package nodest_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/openai"
	"nodest/nodest"
)

// records keeps the lines of a log.
type records struct {
	mu    sync.Mutex
	lines []string
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(p))
	return len(p), nil
}

func (r *records) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "")
}

// A provider that repeats the prompt in its errors, in whatever form, does not bring it into the log.
func TestTheLogHasNothingOfAPromptThatAProviderRepeats(t *testing.T) {
	t.Parallel()
	const prompt = "Vermilion lighthouse diary"
	backwards := []rune(prompt)
	slices.Reverse(backwards)
	log := &records{}
	s := newFixture(t, nodest.Options{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	fake := llmtest.NewOpenAI(t)
	client, err := openai.New(llm.ParseKeys("sk-test"), openai.Options{BaseURL: fake.URL, Model: "m-1"})
	s.Must(err)
	s.RealModel = &nodest.Model{Generator: llm.Checked("openai", client), Provider: "openai", Name: "m-1", ContextTokens: 8000}
	c := s.Chat()
	forms := []string{
		prompt, strings.ToUpper(prompt), string(backwards), base64.StdEncoding.EncodeToString([]byte(prompt)),
		"bad word 1: Vermilion; bad word 2: lighthouse; bad word 3: diary", fmt.Sprintf("%q", strings.Split(prompt, "")),
	}
	for _, form := range forms {
		for _, reply := range []llmtest.Reply{{Status: 400, Message: form}, {Status: 503, Message: form}, {Status: 429, Plain: form}, {End: llmtest.MidError, Message: form}} {
			fake.Always(func(llmtest.Request) llmtest.Reply { return reply })
			if m := s.SayAndWait(c, prompt); m.Error == nil {
				t.Errorf("%+v: no error", reply)
			}
		}
	}
	text := log.text()
	if n := strings.Count(text, "generation failed"); n != 4*len(forms) {
		t.Errorf("%d failures are in the log, want %d", n, 4*len(forms))
	}
	for _, part := range append([]string{"Vermilion", "VERMILION", "lighthouse", "diary"}, forms...) {
		if strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
			t.Errorf("the log has %q:\n%s", part, text)
		}
	}
}
