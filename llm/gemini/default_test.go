package gemini

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"nodest/llm"
)

// listed are models that write text.
func listed(ids ...string) (list []llm.Model) {
	for _, id := range ids {
		list = append(list, llm.Model{ID: id, Generates: true})
	}
	return list
}

func TestTheDefaultIsTheAliasElseTheNewestStableFlash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string
		list []llm.Model
	}{
		{"gemini-flash-latest", listed("gemini-3.7-flash", "gemini-flash-lite-latest", "gemini-flash-latest", "gemini-4-flash")},
		{"gemini-3.7-flash", listed("gemini-3.6-flash", "gemini-3.7-flash", "gemini-3.5-flash")},
		{"gemini-3.10-flash", listed("gemini-3.10-flash", "gemini-3.9-flash")}, // by the numbers, not by the letters
		{"gemini-10-flash", listed("gemini-9.9-flash", "gemini-10-flash")},
		{"gemini-4.0.1-flash", listed("gemini-4-flash", "gemini-4.0.1-flash")},
		{"gemini-3.7-flash", listed("gemini-3.7-flash-001", "gemini-3.7-flash", "gemini-3.7-flash-002")},
		{"gemini-3.7-flash-010", listed("gemini-3.7-flash-002", "gemini-3.7-flash-010")},
		{"gemini-3.6-flash", listed("gemini-3.6-flash", "gemini-4-flash-preview", "gemini-4-flash-exp", "gemini-4-flash-thinking", "gemini-4-flash-image",
			"gemini-4-flash-preview-tts", "gemini-4-flash-live", "gemini-4-flash-lite", "gemini-4-flash-8b", "gemini-4-flash-preview-09-2027", "gemini-4-flash-native-audio")},
		{"gemini-flash-lite-latest", listed("gemini-4-pro", "gemini-flash-lite-latest", "gemini-4-flash-lite")},
		{"gemini-4-flash-lite", listed("gemini-4-pro", "gemini-4-flash-lite", "gemini-3-flash-lite")},
		{"gemini-4-pro", listed("gemma-3-27b-it", "gemini-3-pro", "gemini-4-pro")},
		{"gemini-4-flash-preview", listed("gemma-3-27b-it", "gemini-4-flash-preview-tts", "gemini-4-flash-preview")},
		{"gemma-3-27b-it", listed("gemma-3-27b-it")},
		{"", append(listed(), llm.Model{ID: "gemini-flash-latest"}, llm.Model{ID: "gemini-embedding-001", Embeds: true})}, // they do not write
	} {
		if got := choose(tt.list); got != tt.want {
			t.Errorf("of %+v it is %q, want %q", tt.list, got, tt.want)
		}
	}
}

func TestVectorsKeepTheirModelAsLongAsGoogleHasIt(t *testing.T) {
	t.Parallel()
	embeds := func(ids ...string) (list []llm.Model) {
		for _, id := range ids {
			list = append(list, llm.Model{ID: id, Embeds: true})
		}
		return list
	}
	for _, tt := range []struct {
		want string
		list []llm.Model
	}{
		{"gemini-embedding-001", embeds("gemini-embedding-2", "gemini-embedding-001")},
		{"gemini-embedding-10", embeds("gemini-embedding-2", "gemini-embedding-10", "gemini-embedding-11-preview", "embedding-99")},
		{"", listed("gemini-flash-latest")},
	} {
		if got := chooseEmbedding(tt.list); got != tt.want {
			t.Errorf("of %+v it is %q, want %q", tt.list, got, tt.want)
		}
	}
}

// A list that cannot be read does not keep a turn from its model, and rests no key.
func TestAListThatCannotBeReadLeavesTheAlias(t *testing.T) {
	t.Parallel()
	for status, answer := range map[int]string{http.StatusTooManyRequests: `{"error":{"code":429,"details":[{"retryDelay":"3000s"}]}}`, http.StatusForbidden: `{}`, http.StatusServiceUnavailable: `{}`, http.StatusOK: `{"models":7}`} {
		var asked string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprint(w, answer)
				return
			}
			asked = r.URL.Path
			kind, body := forms["array"](today...)
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		}))
		defer s.Close()
		p, err := New([]llm.Key{llm.NewKey("key")}, Options{BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		model := p.DefaultModel(t.Context())
		for _, err := range p.Stream(t.Context(), llm.Request{Model: model, Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}) {
			if err != nil {
				t.Errorf("a list with status %d: %v", status, err)
			}
		}
		if !strings.HasSuffix(asked, "/gemini-flash-latest:streamGenerateContent") {
			t.Errorf("a list with status %d: asked %s", status, asked)
		}
	}
}
