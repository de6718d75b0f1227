package openai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"nodest/internal/cite"
	"nodest/llm"
)

var _ cite.LateChunker = (*lateEmbedder)(nil)

// jinaRequest is all that a request of embeddings may have.
type jinaRequest struct {
	Model        string   `json:"model"`
	Task         string   `json:"task"`
	Dimensions   int      `json:"dimensions"`
	LateChunking bool     `json:"late_chunking"`
	Input        []string `json:"input"`
}

// newJina starts a server that reads strictly and answers as Jina does; it refuses what is too much to be
// read together.
func newJina(t *testing.T) (*Client, func() []jinaRequest) {
	t.Helper()
	var mu sync.Mutex
	var got []jinaRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in jinaRequest
		body := json.NewDecoder(r.Body)
		body.DisallowUnknownFields()
		if err := body.Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer jina-key" || len(in.Input) == 0 {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		tokens := 0
		for _, text := range in.Input {
			tokens += (len(text) + 1) / 2
		}
		if in.LateChunking && tokens > 8192 {
			http.Error(w, `{"detail":"too many tokens for late chunking"}`, http.StatusUnprocessableEntity)
			return
		}
		mu.Lock()
		got = append(got, in)
		mu.Unlock()
		type item struct {
			Object    string    `json:"object"`
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []item
		for i := range in.Input {
			vector := make([]float32, max(in.Dimensions, 4))
			vector[i%len(vector)] = 2
			data = append(data, item{"embedding", i, vector})
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"model": in.Model, "object": "list", "data": data, "usage": map[string]int{"total_tokens": tokens, "prompt_tokens": tokens}}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(llm.ParseKeys("jina-key"), Options{Name: Jina, BaseURL: server.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []jinaRequest {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func TestJinaIsToldWhatVectorsAreFor(t *testing.T) {
	c, requests := newJina(t)
	e := c.Embedder(c.EmbeddingModel(t.Context()), 16)
	for _, task := range []llm.EmbedTask{llm.Similarity, llm.Passage, llm.Query} {
		got, err := e.Embed(t.Context(), task, []string{"a", ""})
		if err != nil {
			t.Fatal(err)
		}
		if got.Model != "jina:jina-embeddings-v3@16" || got.Dim != 16 || len(got.Vectors) != 2 {
			t.Fatalf("got %d vectors of %d numbers by %q", len(got.Vectors), got.Dim, got.Model)
		}
	}
	var want []jinaRequest
	for _, task := range []string{"text-matching", "retrieval.passage", "retrieval.query"} {
		want = append(want, jinaRequest{Model: "jina-embeddings-v3", Task: task, Dimensions: 16, Input: []string{"a", " "}})
	}
	if got := requests(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestJinaReadsTheChunksOfATextTogether(t *testing.T) {
	c, requests := newJina(t)
	late, ok := c.Embedder("", 0).(cite.LateChunker)
	if !ok {
		t.Fatal("it is no LateChunker")
	}
	got, err := late.EmbedChunks(t.Context(), []string{"Berlin is a city.", "It has lakes."})
	if err != nil || len(got.Vectors) != 2 || got.Usage.PromptTokens == 0 {
		t.Fatalf("%d vectors, %+v, %v", len(got.Vectors), got.Usage, err)
	}
	want := []jinaRequest{{Model: "jina-embeddings-v3", Task: "retrieval.passage", LateChunking: true, Input: []string{"Berlin is a city.", "It has lakes."}}}
	if got := requests(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestTextThatIsTooLongForJinaIsReadInParts(t *testing.T) {
	c, requests := newJina(t)
	chunks := make([]string, 60)
	for i := range chunks {
		chunks[i] = strings.Repeat("湖", 300)
	}
	got, err := c.Embedder("", 0).(cite.LateChunker).EmbedChunks(t.Context(), chunks)
	if err != nil || len(got.Vectors) != len(chunks) {
		t.Fatalf("%d vectors, %v", len(got.Vectors), err)
	}
	all := 0
	for _, r := range requests() {
		if all += len(r.Input); !r.LateChunking || len(r.Input) < 2 {
			t.Fatalf("a part of %d chunks, late: %t", len(r.Input), r.LateChunking)
		}
	}
	if all != len(chunks) {
		t.Fatalf("%d chunks were sent, want %d", all, len(chunks))
	}
}
