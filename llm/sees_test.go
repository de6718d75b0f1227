package llm_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"nodest/llm"
)

func TestKnownToSee(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-4o-mini": true, "chatgpt-4o-latest": true, "openai/gpt-5": true, "gpt-4.1": true, "o3": true, "o4-mini": true,
		"anthropic/claude-3.5-haiku": true, "claude-sonnet-4-5": true, "gemini-2.0-flash": true, "google/gemini-2.5-pro": true, "gemini-flash-latest": true,
		"gemini-pro-vision": true, "gemma3:12b": true, "llava:7b": true, "qwen2.5vl:7b": true, "Qwen/Qwen2-VL-7B-Instruct": true, "llama3.2-vision": true,
		"mistralai/pixtral-12b": true, "meta-llama/llama-4-scout": true,

		"": false, "gpt-3.5-turbo": false, "openai/gpt-oss-120b": false, "o1-mini": false, "o3-mini": false, "claude-2.1": false, "gemini-pro": false,
		"gemini-1.0-pro": false, "gemini-embedding-001": false, "gemini-2.5-flash-preview-tts": false, "gemma3:1b": false, "llama3.1": false, "offline-demo": false,
		"gpt-4o-audio-preview": false, "deepseek/deepseek-chat": false, "qwen2.5:7b": false, "somebody/o12": false,
	} {
		if got := llm.KnownToSee(model); got != want {
			t.Errorf("%q: %v, want %v", model, got, want)
		}
	}
}

func TestABlindModelGetsNoImages(t *testing.T) {
	with := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "look", Images: []llm.Image{{ContentType: "image/png", Data: []byte("cat")}}}}}
	without := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}
	for _, tt := range []struct {
		name         string
		req          llm.Request
		sees         bool
		images, asks int
	}{
		{"an image for a model that sees", with, true, 1, 1},
		{"an image for a blind one", with, false, 0, 1},
		{"no image", without, false, 0, 0},
	} {
		images, asks := 0, 0
		gen := llm.GeneratorFunc(func(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
			images = len(req.Messages[0].Images)
			return func(func(llm.Chunk, error) bool) {}
		})
		llm.WithoutImages(gen, func(context.Context) bool { asks++; return tt.sees }).Stream(t.Context(), tt.req)
		if images != tt.images || asks != tt.asks {
			t.Errorf("%s: %d images, asked %d times; want %d, %d", tt.name, images, asks, tt.images, tt.asks)
		}
	}
	if len(with.Messages[0].Images) != 1 {
		t.Error("the caller's prompt was changed")
	}
}

func TestImagesAreEstimatedAndNeverStored(t *testing.T) {
	m := llm.Message{Role: llm.User, Text: "look", Images: []llm.Image{{Data: []byte("cat")}, {Data: []byte("dog")}}}
	if n := llm.EstimatePrompt([]llm.Message{m}); n != 2005 {
		t.Errorf("estimated at %d tokens, want 2,005", n)
	}
	if stored := llm.JSONLine(m); strings.Contains(stored, "mages") || strings.Contains(stored, "Y2F0") {
		t.Errorf("stored as %s", stored)
	}
}
