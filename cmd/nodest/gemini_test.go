package main

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/fault"
	"nodest/llm/llmtest"
)

// livingGemini is Google with these models. Every other one has ended, also those that it lists
// by mistake. A list without models cannot be read.
func livingGemini(t *testing.T, models ...string) *llmtest.Fake {
	t.Helper()
	fake := llmtest.NewGemini(t)
	fake.SetModels(append(slices.Clone(models), "gemini-embedding-001")...)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		switch {
		case strings.HasSuffix(r.Path, "/models"):
			if len(models) == 0 {
				return llmtest.Reply{Status: http.StatusServiceUnavailable, Message: "The service is currently unavailable."}
			}
			return llmtest.Say()
		case strings.HasSuffix(r.Path, ":batchEmbedContents"), slices.Contains(models, r.Model), len(models) == 0 && r.Model == "gemini-flash-latest":
			return llmtest.Say("Good ", "evening.")
		}
		return ended(r.Model)
	})
	return fake
}

func ended(model string) llmtest.Reply {
	return llmtest.Reply{Status: http.StatusNotFound, Message: "models/" + model + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
}

// geminiReply is a message as the API shows it.
type geminiReply struct {
	ID, Text, Model, RequestedModel, GenerationID string
}

// firstMessage starts the program with nothing set but a key, and sends a message.
func firstMessage(t *testing.T, fake *llmtest.Fake) (p *process, r geminiReply, conversation string) {
	t.Helper()
	p = newInstallation(t, "", "NODEST_PROVIDER=", "GEMINI_API_KEY=k", "NODEST_GEMINI_BASE_URL="+fake.URL).start(t)
	conversation = newConversation(t, p.client, sampleCharacter(t, p.client))
	r, err := say(t, p, conversation, map[string]any{"text": "Good evening."})
	require.NoError(t, err)
	return p, r, conversation
}

func say(t *testing.T, p *process, conversation string, body map[string]any) (geminiReply, error) {
	t.Helper()
	var sent struct{ Message geminiReply }
	err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, &sent)
	return sent.Message, err
}

type storedGeneration struct{ Model, RequestedModel, PromptID string }

func generation(t *testing.T, p *process, r geminiReply) storedGeneration {
	t.Helper()
	var answer struct{ Generation storedGeneration }
	require.NoError(t, p.client.Call(t.Context(), http.MethodGet, "/api/v1/generations/"+r.GenerationID, nil, &answer))
	return answer.Generation
}

// chatRequests are the requests for replies so far, as "model through SDK".
func chatRequests(fake *llmtest.Fake) (list []string) {
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, ":streamGenerateContent") && strings.Contains(string(r.Body), "Good evening.") {
			list = append(list, r.Model+" through "+r.Transport)
		}
	}
	return list
}

// With nothing but a key of Gemini the first message gets a reply, whatever Google's list has, and
// the reply names its model.
func TestTheFirstMessageToGeminiGetsAReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		models []string
		want   string
	}{
		"the list has the alias":      {[]string{"gemini-3.6-flash", "gemini-flash-latest", "gemini-3.7-flash"}, "gemini-flash-latest"},
		"the list has no alias":       {[]string{"gemini-3.6-flash", "gemini-3.7-flash", "gemini-4-flash-preview"}, "gemini-3.7-flash"},
		"the list cannot be read":     {nil, "gemini-flash-latest"},
		"the list has no flash":       {[]string{"gemini-3.7-pro", "gemma-3-27b-it"}, "gemini-3.7-pro"},
		"versions of several numbers": {[]string{"gemini-9-flash", "gemini-11.2-flash", "gemini-11.10-flash"}, "gemini-11.10-flash"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := livingGemini(t, tt.models...)
			p, r, _ := firstMessage(t, fake)
			require.Equal(t, "Good evening.", r.Text)
			require.Equal(t, tt.want, r.Model)
			require.Equal(t, []string{tt.want + " through generative-ai-go"}, chatRequests(fake))
			var providers struct {
				Items []struct{ Name, DefaultModel, Transport string }
			}
			require.NoError(t, p.client.Call(t.Context(), http.MethodGet, "/api/v1/providers", nil, &providers))
			require.Equal(t, "gemini", providers.Items[0].Name)
			require.Equal(t, tt.want, providers.Items[0].DefaultModel)
			require.Equal(t, "generative-ai-go", providers.Items[0].Transport)
		})
	}
}

// A default that ends while the server runs is replaced in the same turn, once, and the prompt says
// so. A model that the user has named is not replaced: the error names models that exist.
func TestADefaultThatEndsIsReplaced(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	fake.SetModels("gemini-flash-latest", "gemini-3.6-flash", "gemini-3.7-flash", "gemini-embedding-001")
	var over atomic.Bool
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if over.Load() && r.Model == "gemini-flash-latest" || strings.HasPrefix(r.Model, "gemini-2") {
			return ended(r.Model)
		}
		return llmtest.Say("Good evening.")
	})
	p, r, conversation := firstMessage(t, fake)
	require.Equal(t, "gemini-flash-latest", r.Model)

	over.Store(true)
	r, err := say(t, p, conversation, map[string]any{"text": "Good evening."})
	require.NoError(t, err)
	require.Equal(t, "gemini-3.7-flash", r.Model)
	var prompt struct {
		Warnings []struct{ Code, Detail string }
	}
	require.NoError(t, p.client.Call(t.Context(), http.MethodGet, "/api/v1/prompts/"+generation(t, p, r).PromptID, nil, &prompt))
	require.Contains(t, prompt.Warnings, struct{ Code, Detail string }{"model_replaced", "gemini-flash-latest no longer exists; gemini-3.7-flash answered"})

	_, err = say(t, p, conversation, map[string]any{"text": "Good evening."})
	require.NoError(t, err)
	require.Equal(t, []string{"gemini-flash-latest through generative-ai-go", "gemini-flash-latest through generative-ai-go",
		"gemini-3.7-flash through generative-ai-go", "gemini-3.7-flash through generative-ai-go"}, chatRequests(fake), "the next turn knows it")

	_, err = say(t, p, conversation, map[string]any{"text": "Good evening.", "options": map[string]any{"model": "gemini-2.0-flash"}})
	require.True(t, fault.Is(err, fault.ModelNotFound), err)
	require.ErrorContains(t, err, `(model "gemini-2.0-flash"); models that exist: gemini-3.7-flash, gemini-3.6-flash`)
}

// The name that was asked stays beside the version that answered.
func TestAnAliasStaysBesideTheVersionThatAnswered(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	reply := llmtest.Say("Good evening.")
	reply.Model = "gemini-3.7-flash-001"
	fake.Always(func(llmtest.Request) llmtest.Reply { return reply })
	p, r, _ := firstMessage(t, fake)
	require.Equal(t, "gemini-3.7-flash-001", r.Model)
	require.Equal(t, "gemini-flash-latest", r.RequestedModel)
	g := generation(t, p, r)
	require.Equal(t, "gemini-3.7-flash-001", g.Model)
	require.Equal(t, "gemini-flash-latest", g.RequestedModel)
}
