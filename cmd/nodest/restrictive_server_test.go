package main

import (
	"net/http"
	"strings"
	"testing"

	"nodest/llm/llmtest"
)

// TestARestrictiveServer chats with a common kind of local server: it requires strict
// turns, generates at most 8,192 tokens, and has no embeddings.
func TestARestrictiveServer(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewOpenAI(t)
	fake.SetModels("deepseek-chat")
	fake.Always(withoutEmbeddings(llmtest.TokenLimit(8192, llmtest.StrictTurns(func(llmtest.Request) llmtest.Reply {
		return llmtest.Say("<mem>You like tea.", "\n\nGood evening.")
	}))))
	inst := newDatabase(t, "NODEST_PROVIDER=openai", "NODEST_MODEL=deepseek-chat",
		"OPENAI_BASE_URL="+fake.URL, "OPENAI_API_KEY=sk-4711-secret")
	inst.mustRun(t, "import", tempFile(t, "mira.json", miraCard))
	out, errOut, err := inst.command(t, strings.NewReader("Good evening.\nI like tea, and I live in Rome.\n/quit\n"), "chat", "Mira", "--new")
	if err != nil {
		t.Fatalf("%s: %v", errOut, err)
	}
	if got := strings.Count(out, "Mira: You like tea.\n\nGood evening."); got != 2 {
		t.Fatalf("%s\n%s: got %d, want %d", out, errOut, got, 2)
	}
	chats := 0
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/chat/completions") && len(r.Messages) > 1 {
			if strings.Contains(string(r.Body), "max_tokens") {
				t.Fatalf("string(r.Body) is %q, want it without %q", string(r.Body), "max_tokens")
			}
			chats++
		}
	}
	if chats != 2 {
		t.Fatalf("chats is %d, want %d", chats, 2)
	}

	report := inst.mustRun(t, "doctor")
	if !strings.Contains(report, "✓ embeddings: offline-hash-512-1, because the server has no embeddings") {
		t.Fatalf("report is %q, want it with %q", report, "✓ embeddings: offline-hash-512-1, because the server has no embeddings")
	}
	if strings.Contains(report, "✗") {
		t.Fatalf("report is %q, want it without %q", report, "✗")
	}
	inst.env = append(inst.env, "NODEST_MODEL=deepseek-chart")
	report, _, err = inst.command(t, nil, "doctor")
	if err == nil {
		t.Fatal("got no error, want one")
	}
	if !strings.Contains(report, `model "deepseek-chart" is not among the models the server lists (1); did you mean deepseek-chat?`) {
		t.Fatalf("report is %q, want it with %q", report, `model "deepseek-chart" is not among the models the server lists (1); did you mean deepseek-chat?`)
	}
}

// withoutEmbeddings is a server that answers 404 to embedding requests.
func withoutEmbeddings(next llmtest.Server) llmtest.Server {
	return func(r llmtest.Request) llmtest.Reply {
		if strings.HasSuffix(r.Path, "/embeddings") {
			return llmtest.Reply{Status: http.StatusNotFound, Message: "404 page not found"}
		}
		return next(r)
	}
}
