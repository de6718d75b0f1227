package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.NoError(t, err, errOut)
	require.Equal(t, 2, strings.Count(out, "Mira: You like tea.\n\nGood evening."), "%s\n%s", out, errOut)
	chats := 0
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/chat/completions") && len(r.Messages) > 1 {
			require.NotContains(t, string(r.Body), "max_tokens")
			chats++
		}
	}
	require.Equal(t, 2, chats)

	report := inst.mustRun(t, "doctor")
	require.Contains(t, report, "✓ embeddings: offline-hash-512-1, because the server has no embeddings")
	require.NotContains(t, report, "✗")
	inst.env = append(inst.env, "NODEST_MODEL=deepseek-chart")
	report, _, err = inst.command(t, nil, "doctor")
	require.Error(t, err)
	require.Contains(t, report, `model "deepseek-chart" is not among the models the server lists (1); did you mean deepseek-chat?`)
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
