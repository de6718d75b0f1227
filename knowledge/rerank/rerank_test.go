package rerank_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/internal/fault"
	"nodest/knowledge/rerank"
	"nodest/llm"
)

// server answers as a test says, and refuses what a strict server refuses.
func server(t *testing.T, status int, answer string) (*rerank.Client, *int) {
	t.Helper()
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		var in map[string]any
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil, json.Unmarshal(body, &in) != nil, r.Method != http.MethodPost, r.URL.Path != "/v1/rerank":
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Header.Get("Authorization") != "Bearer the-secret-key":
			w.WriteHeader(http.StatusUnauthorized)
			return
		case len(in) != 4, in["model"] != "small", in["query"] != "Who?", len(in["documents"].([]any)) != 3, in["top_n"] != 3.0:
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return client(t, s.URL+"/v1/", "the-secret-key"), &calls
}

func client(t *testing.T, url, key string) *rerank.Client {
	t.Helper()
	c, err := rerank.New(rerank.Config{
		Server: rerank.Jina, BaseURL: url, Model: "small", Keys: llm.ParseKeys(key), Client: llm.HTTPClient(llm.Transport()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var texts = []string{"a", "b", "c"}

func TestOrderIsThatOfTheScores(t *testing.T) {
	c, _ := server(t, http.StatusOK, `{"model":"small","results":[{"index":0,"relevance_score":0.1},{"index":2,"relevance_score":0.9,"document":{"text":"c"}}]}`)
	order, err := c.Order(t.Context(), "Who?", texts)
	if err != nil {
		t.Fatal(err)
	}
	if want := ([]int{2, 0}); !reflect.DeepEqual(order, want) {
		t.Fatalf("order is %+v, want %+v", order, want)
	}
}

// A result that cannot be read does not cost the others.
func TestOddResultsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{"results":[{"index":"0","relevance_score":"0.1"},{"index":2.0,"relevance_score":9e-1}]}`,
		`{"results":[{"index":2,"relevance_score":0.9,"document":5},null,"x",{"index":{},"relevance_score":1},{"index":1,"relevance_score":"high"},{"index":0,"relevance_score":0.1}],"usage":[],"model":7}`,
	} {
		c, _ := server(t, http.StatusOK, answer)
		order, err := c.Order(t.Context(), "Who?", texts)
		if err != nil {
			t.Fatal(err)
		}
		if want := ([]int{2, 0}); !reflect.DeepEqual(order, want) {
			t.Fatalf("%s: order is %+v, want %+v", answer, order, want)
		}
	}
}

func TestAnswersThatFitNothingAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON": "<html>", "no results": `{}`, "none": `{"results":[]}`, "unknown": `{"results":[{"index":3,"relevance_score":1}]}`,
		"negative": `{"results":[{"index":-1,"relevance_score":1}]}`, "no index": `{"results":[{"relevance_score":1}]}`, "no score": `{"results":[{"index":1}]}`,
		"twice": `{"results":[{"index":1,"relevance_score":1},{"index":1,"relevance_score":0}]}`, "not a number": `{"results":[{"index":"b","relevance_score":1}]}`,
		"too large": `{"results":[],"x":"` + strings.Repeat("x", 3<<20) + `"}`,
	} {
		c, _ := server(t, http.StatusOK, answer)
		_, err := c.Order(t.Context(), "Who?", texts)
		if !fault.Is(err, fault.UpstreamBadAnswer) {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func TestARefusalHasItsCodeAndNoKey(t *testing.T) {
	for status, code := range map[int]fault.Code{401: fault.UpstreamAuth, 402: fault.UpstreamQuota, 429: fault.UpstreamRate, 503: fault.UpstreamDown, 302: fault.UpstreamBadAnswer} {
		c, calls := server(t, status, `{"detail":"the-secret-key is wrong"}`)
		_, err := c.Order(t.Context(), "Who?", texts)
		if !fault.Is(err, code) {
			t.Fatalf("%d: %v", status, err)
		}
		if got := err.Error(); strings.Contains(got, "the-secret-key") {
			t.Fatalf("err.Error() is %q, want it without %q", got, "the-secret-key")
		}
		if *calls != 1 {
			t.Fatalf("*calls is %d, want %d", *calls, 1)
		}
	}
}

func TestAServerOfOnesOwnNeedsNoKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"results":[{"index":1,"relevance_score":-3.5},{"index":0,"relevance_score":-8}]}`)
	}))
	defer s.Close()
	order, err := client(t, s.URL, "").Order(t.Context(), "Who?", texts)
	if err != nil {
		t.Fatal(err)
	}
	if want := ([]int{1, 0}); !reflect.DeepEqual(order, want) {
		t.Fatalf("order is %+v, want %+v", order, want)
	}
}

// stuck is a server that does not answer.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAStuckServerCostsTheTimeOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := rerank.New(rerank.Config{Server: rerank.Cohere, Keys: llm.ParseKeys("k"), Client: llm.HTTPClient(stuck{})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		_, err = c.Order(ctx, "Who?", texts)
		if err == nil {
			t.Fatal("got no error, want one")
		}
		if got := time.Since(begun); got != 2*time.Second {
			t.Fatalf("time.Since(begun) is %d, want %d", got, 2*time.Second)
		}
	})
}

func TestAServiceNeedsAKey(t *testing.T) {
	_, err := rerank.New(rerank.Config{Server: rerank.Cohere})
	if !fault.Is(err, fault.NotConfigured) {
		t.Fatal(err)
	}
}

// Text around the list of a model, and an element that is no number, does not cost the others.
func TestAModelsOrderIsReadAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string][]int{
		`[3,1,2]`: {2, 0, 1}, `["3",1.0,null,"x",2]`: {2, 0, 1}, "<think>[1,2]?</think>\n[3]": {2}, `{}`: nil, `none`: nil, `[]`: nil, `["x"]`: nil,
	} {
		model := llm.AskerFunc(func(context.Context, llm.Prompt) (string, error) { return reply, nil })
		order, err := rerank.ByModel(t.Context(), model, "test", "Who?", texts)
		if !reflect.DeepEqual(order, want) {
			t.Fatalf("%s: order is %+v, want %+v", reply, order, want)
		}
		if got, expected := fault.Is(err, fault.UpstreamBadAnswer), want == nil; got != expected {
			t.Fatalf("%s: %v: fault.Is(err, fault.UpstreamBadAnswer) is %v, want %v", reply, err, got, expected)
		}
	}
}
