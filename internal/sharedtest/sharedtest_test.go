package sharedtest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// A path begins at the root of the project wherever a test runs, and variables name other folders.
func TestPathsOfSharedData(t *testing.T) {
	for _, variable := range []string{"NODEST_GOLDEN", "NODEST_KB"} {
		t.Setenv(variable, "")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(root, "..", "shared")
	if got, want := Path("golden/nodest/summary.json"), filepath.Join(beside, "golden/nodest/summary.json"); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got, want := Path("data/kb/docs"), filepath.Join(beside, "data/kb/docs"); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got, want := Path("seeds"), filepath.Join(beside, "seeds"); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}

	t.Setenv("NODEST_GOLDEN", "/elsewhere/golden")
	t.Setenv("NODEST_KB", "../kb")
	if got := Path("golden/nodest/summary.json"); got != "/elsewhere/golden/nodest/summary.json" {
		t.Fatalf("got %q, want %q", got, "/elsewhere/golden/nodest/summary.json")
	}
	if got := Path("data/cards"); got != "/elsewhere/data/cards" {
		t.Fatalf("got %q, want %q", got, "/elsewhere/data/cards")
	}
	if got, want := Path("data/kb/docs"), filepath.Join(root, "..", "kb", "docs"); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// A test whose data is absent skips instead of failing.
func TestAbsentDataSkips(t *testing.T) {
	t.Setenv("NODEST_GOLDEN", filepath.Join(t.TempDir(), "golden"))
	if got := Find("data/cards/*"); len(got) != 0 {
		t.Fatalf("got %q, want none", got)
	}
	for name, use := range map[string]func(*testing.T){
		"a folder": func(t *testing.T) { Require(t, "data/cards") },
		"files":    func(t *testing.T) { Files(t, "data/cards/*") },
		"a file":   func(t *testing.T) { Read(t, "data/cards/a.json") },
		"vectors":  func(t *testing.T) { Replay(t, "a.json", func(*testing.T, Vector[string, string]) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if !t.Skipped() {
					t.Fatal("t.Skipped() is false, want true")
				}
			})
			use(t)
			t.Error("it goes on without its data")
		})
	}
}

// Both forms of a file give the vectors, with the output of the specification where it differs.
func TestVectorsOfBothForms(t *testing.T) {
	const cases = `[{"name":"a","bug":"b","input":1,"output":"x"},{"name":"c","input":2,"output":"y","spec_output":"z"}]`
	want := []Vector[int, string]{{"a", "b", 1, "x"}, {"c", "", 2, "z"}}
	if got := Vectors[int, string](t, []byte(cases)); !reflect.DeepEqual(got, want) {
		t.Fatalf("Vectors[int, string](t, []byte(cases)) is %+v, want %+v", got, want)
	}
	if got := Vectors[int, string](t, []byte(`{"function":"f","cases":`+cases+`}`)); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}

	dir := filepath.Join(t.TempDir(), "golden")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(cases), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODEST_GOLDEN", dir)
	var names []string
	Replay(t, "a.json", func(_ *testing.T, v Vector[int, string]) { names = append(names, v.Name) })
	if want := ([]string{"a", "c"}); !reflect.DeepEqual(names, want) {
		t.Fatalf("names is %q, want %q", names, want)
	}
}
