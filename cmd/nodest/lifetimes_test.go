package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/internal/sharedtest"
)

// lifetimes is llm/lifetimes.json: models that have ended. It is judged by its own date, not by the
// clock, so that a test that passes today passes in a year.
type lifetimes struct {
	AsOf   string `json:"as_of"`
	Models []struct{ Model, Ended string }
}

func readLifetimes(t *testing.T) (l lifetimes) {
	t.Helper()
	b, err := os.ReadFile("../../llm/lifetimes.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &l))
	require.NotEmpty(t, l.AsOf)
	require.NotEmpty(t, l.Models)
	return l
}

// modelNames finds what can be the name of a model, with or without its vendor.
var modelNames = regexp.MustCompile(`[A-Za-z0-9]+(?:[-._:][A-Za-z0-9]+)+`)

// ended returns the models in a text that have ended.
func (l lifetimes) ended(text string) (found []string) {
	for _, name := range modelNames.FindAllString(text, -1) {
		name = strings.ToLower(name)
		if slices.ContainsFunc(l.Models, func(m struct{ Model, Ended string }) bool {
			prefix, all := strings.CutSuffix(m.Model, "*")
			return m.Ended <= l.AsOf && (name == m.Model || all && strings.HasPrefix(name, prefix))
		}) {
			found = append(found, name)
		}
	}
	return found
}

// shipped are the files that people read or run: settings and their defaults, examples, prices.
func shipped(path string) bool {
	switch filepath.Ext(path) {
	case ".go":
		return !strings.HasSuffix(path, "_test.go")
	case ".md", ".yaml", ".yml", ".ts", ".svelte", ".html", ".sh", ".env", ".json", ".toml":
		return path != "llm/lifetimes.json" && !strings.Contains(path, "testdata/")
	}
	return slices.Contains([]string{"Dockerfile", "Makefile"}, filepath.Base(path))
}

// No default, example or price that we ship names a model that has ended.
func TestNothingShippedNamesAModelThatHasEnded(t *testing.T) {
	t.Parallel()
	l, seen := readLifetimes(t), map[string]int{}
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "node_modules", "web/dist", "third_party", "bin", "data"}, path) || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !shipped(path) {
			return nil
		}
		b, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		seen[strings.SplitN(path, "/", 2)[0]]++
		for _, name := range l.ended(string(b)) {
			t.Errorf("%s names %s, which has ended", path, name)
		}
		return nil
	}))
	for _, place := range []string{"README.md", "docs", "server", "web", "llm", "cmd", "websearch", "compose.yaml"} {
		require.NotZero(t, seen[place], "%s was looked through", place)
	}
}

// Our list has every end that the shared facts have.
func TestTheListOfEndedModelsIsWhole(t *testing.T) {
	t.Parallel()
	b := sharedtest.Read(t, "data/models/lifetimes.json")
	var facts struct {
		AsOf   string `json:"as_of"`
		Gemini []struct{ Model, Ended string }
	}
	require.NoError(t, json.Unmarshal(b, &facts))
	l := readLifetimes(t)
	for _, f := range facts.Gemini {
		if f.Ended != "" {
			require.Equal(t, []string{strings.ReplaceAll(f.Model, "*", "x")}, l.ended(strings.ReplaceAll(f.Model, "*", "x")))
		}
	}
}

func TestEndedModelsAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	l := readLifetimes(t)
	for text, want := range map[string][]string{
		`NODEST_MODEL=gemini-2.0-flash-exp`:              {"gemini-2.0-flash-exp"},
		`examples: [gemini-2.5-flash]`:                   {"gemini-2.5-flash"},
		"`models/gemini-1.5-pro-002`, openrouter":        {"gemini-1.5-pro-002"},
		`"openai/gpt-3.5-turbo-0125"`:                    {"gpt-3.5-turbo-0125"},
		`text-embedding-004.`:                            {"text-embedding-004"},
		`Gemini-2.5-Flash: $0.30`:                        {"gemini-2.5-flash"},
		`google/gemini-2.0-flash-001:free`:               {"gemini-2.0-flash-001:free"},
		`gemini-flash-latest gemini-3.7-flash`:           nil,
		`gemini-embedding-001 text-embedding-3-small`:    nil, // the end of the first is known, and lies ahead
		`gemini-2.5-flash-lite gpt-4.1-mini ChatGPT 4.0`: nil,
	} {
		require.Equal(t, want, l.ended(text), text)
	}
}
