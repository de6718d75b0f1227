package sharedtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path begins at the root of the project wherever a test runs, and variables name other folders.
func TestPathsOfSharedData(t *testing.T) {
	for _, variable := range []string{"NODEST_GOLDEN", "NODEST_KB"} {
		t.Setenv(variable, "")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	beside := filepath.Join(root, "..", "shared")
	require.Equal(t, filepath.Join(beside, "golden/nodest/summary.json"), Path("golden/nodest/summary.json"))
	require.Equal(t, filepath.Join(beside, "data/kb/docs"), Path("data/kb/docs"))
	require.Equal(t, filepath.Join(beside, "seeds"), Path("seeds"))

	t.Setenv("NODEST_GOLDEN", "/elsewhere/golden")
	t.Setenv("NODEST_KB", "../kb")
	require.Equal(t, "/elsewhere/golden/nodest/summary.json", Path("golden/nodest/summary.json"))
	require.Equal(t, "/elsewhere/data/cards", Path("data/cards"))
	require.Equal(t, filepath.Join(root, "..", "kb", "docs"), Path("data/kb/docs"))
}

// A test whose data is absent skips instead of failing.
func TestAbsentDataSkips(t *testing.T) {
	t.Setenv("NODEST_GOLDEN", filepath.Join(t.TempDir(), "golden"))
	require.Empty(t, Find("data/cards/*"))
	for name, use := range map[string]func(*testing.T){
		"a folder": func(t *testing.T) { Require(t, "data/cards") },
		"files":    func(t *testing.T) { Files(t, "data/cards/*") },
		"a file":   func(t *testing.T) { Read(t, "data/cards/a.json") },
		"vectors":  func(t *testing.T) { Replay(t, "a.json", func(*testing.T, Vector[string, string]) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { require.True(t, t.Skipped()) })
			use(t)
			t.Error("it goes on without its data")
		})
	}
}

// Both forms of a file give the vectors, with the output of the specification where it differs.
func TestVectorsOfBothForms(t *testing.T) {
	const cases = `[{"name":"a","bug":"b","input":1,"output":"x"},{"name":"c","input":2,"output":"y","spec_output":"z"}]`
	want := []Vector[int, string]{{"a", "b", 1, "x"}, {"c", "", 2, "z"}}
	require.Equal(t, want, Vectors[int, string](t, []byte(cases)))
	require.Equal(t, want, Vectors[int, string](t, []byte(`{"function":"f","cases":`+cases+`}`)))

	dir := filepath.Join(t.TempDir(), "golden")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(cases), 0o600))
	t.Setenv("NODEST_GOLDEN", dir)
	var names []string
	Replay(t, "a.json", func(_ *testing.T, v Vector[int, string]) { names = append(names, v.Name) })
	require.Equal(t, []string{"a", "c"}, names)
}
