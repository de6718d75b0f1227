package main

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/generations/"+r.GenerationID, nil, &answer); err != nil {
		t.Fatal(err)
	}
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
			if r.Text != "Good evening." {
				t.Fatalf("r.Text is %q, want %q", r.Text, "Good evening.")
			}
			if r.Model != tt.want {
				t.Fatalf("r.Model is %q, want %q", r.Model, tt.want)
			}
			if got, expected := chatRequests(fake), ([]string{tt.want + " through generative-ai-go"}); !reflect.DeepEqual(got, expected) {
				t.Fatalf("chatRequests(fake) is %q, want %q", got, expected)
			}
			var providers struct {
				Items []struct{ Name, DefaultModel, Transport string }
			}
			if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/providers", nil, &providers); err != nil {
				t.Fatal(err)
			}
			if providers.Items[0].Name != "gemini" {
				t.Fatalf("providers.Items[0].Name is %q, want %q", providers.Items[0].Name, "gemini")
			}
			if providers.Items[0].DefaultModel != tt.want {
				t.Fatalf("providers.Items[0].DefaultModel is %q, want %q", providers.Items[0].DefaultModel, tt.want)
			}
			if providers.Items[0].Transport != "generative-ai-go" {
				t.Fatalf("providers.Items[0].Transport is %q, want %q", providers.Items[0].Transport, "generative-ai-go")
			}
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
	if r.Model != "gemini-flash-latest" {
		t.Fatalf("r.Model is %q, want %q", r.Model, "gemini-flash-latest")
	}

	over.Store(true)
	r, err := say(t, p, conversation, map[string]any{"text": "Good evening."})
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "gemini-3.7-flash" {
		t.Fatalf("r.Model is %q, want %q", r.Model, "gemini-3.7-flash")
	}
	var prompt struct {
		Warnings []struct{ Code, Detail string }
	}
	if err := p.client.Call(t.Context(), http.MethodGet, "/api/v1/prompts/"+generation(t, p, r).PromptID, nil, &prompt); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(prompt.Warnings, struct{ Code, Detail string }{"model_replaced", "gemini-flash-latest no longer exists; gemini-3.7-flash answered"}) {
		t.Fatalf("prompt.Warnings is %+v, want it with %+v", prompt.Warnings, struct{ Code, Detail string }{"model_replaced", "gemini-flash-latest no longer exists; gemini-3.7-flash answered"})
	}

	_, err = say(t, p, conversation, map[string]any{"text": "Good evening."})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := chatRequests(fake), ([]string{"gemini-flash-latest through generative-ai-go", "gemini-flash-latest through generative-ai-go",
		"gemini-3.7-flash through generative-ai-go", "gemini-3.7-flash through generative-ai-go"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("the next turn knows it: chatRequests(fake) is %q, want %q", got, want)
	}

	_, err = say(t, p, conversation, map[string]any{"text": "Good evening.", "options": map[string]any{"model": "gemini-2.0-flash"}})
	if !fault.Is(err, fault.ModelNotFound) {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), `(model "gemini-2.0-flash"); models that exist: gemini-3.7-flash, gemini-3.6-flash`) {
		t.Fatalf("got error %v, want one with %q", err, `(model "gemini-2.0-flash"); models that exist: gemini-3.7-flash, gemini-3.6-flash`)
	}
}

// The name that was asked stays beside the version that answered.
func TestAnAliasStaysBesideTheVersionThatAnswered(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewGemini(t)
	reply := llmtest.Say("Good evening.")
	reply.Model = "gemini-3.7-flash-001"
	fake.Always(func(llmtest.Request) llmtest.Reply { return reply })
	p, r, _ := firstMessage(t, fake)
	if r.Model != "gemini-3.7-flash-001" {
		t.Fatalf("r.Model is %q, want %q", r.Model, "gemini-3.7-flash-001")
	}
	if r.RequestedModel != "gemini-flash-latest" {
		t.Fatalf("r.RequestedModel is %q, want %q", r.RequestedModel, "gemini-flash-latest")
	}
	g := generation(t, p, r)
	if g.Model != "gemini-3.7-flash-001" {
		t.Fatalf("g.Model is %q, want %q", g.Model, "gemini-3.7-flash-001")
	}
	if g.RequestedModel != "gemini-flash-latest" {
		t.Fatalf("g.RequestedModel is %q, want %q", g.RequestedModel, "gemini-flash-latest")
	}
}
