package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	if l.AsOf == "" {
		t.Fatalf("l.AsOf is %q, want more", l.AsOf)
	}
	if len(l.Models) == 0 {
		t.Fatalf("l.Models is %+v, want more", l.Models)
	}
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
	if err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
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
	}); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"README.md", "docs", "server", "web", "llm", "cmd", "websearch", "compose.yaml"} {
		if seen[place] == 0 {
			t.Fatalf("%s was looked through: seen[place] is %d, want more", place, seen[place])
		}
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
	if err := json.Unmarshal(b, &facts); err != nil {
		t.Fatal(err)
	}
	l := readLifetimes(t)
	for _, f := range facts.Gemini {
		if f.Ended != "" {
			if got, want := l.ended(strings.ReplaceAll(f.Model, "*", "x")), ([]string{strings.ReplaceAll(f.Model, "*", "x")}); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
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
		if got := l.ended(text); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: l.ended(text) is %q, want %q", text, got, want)
		}
	}
}
