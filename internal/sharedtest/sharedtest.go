// Package sharedtest finds the data of tests that stands beside the project, in ../shared:
// vectors recorded from other programs (golden) and data sets (data). A test whose data is
// absent skips and says so. The package knows no subject; it is for tests only.
package sharedtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Path returns the place of a file or folder of ../shared. NODEST_GOLDEN names another folder
// of vectors, which has its data sets beside it; NODEST_KB, NODEST_MINIWEB, NODEST_ARTICLES and
// their like name the folder of one data set. A relative path begins at the root of the project.
func Path(name string) string {
	golden := os.Getenv("NODEST_GOLDEN")
	if golden == "" {
		golden = "../shared/golden"
	}
	kind, rest, _ := strings.Cut(name, "/")
	set, file, _ := strings.Cut(rest, "/")
	folder := os.Getenv("NODEST_" + strings.ToUpper(set))
	switch {
	case kind == "golden":
		return fromRoot(filepath.Join(golden, rest))
	case kind == "data" && folder != "":
		return fromRoot(filepath.Join(folder, file))
	}
	return fromRoot(filepath.Join(golden, "..", name))
}

// fromRoot resolves a path at the root of the project, the nearest folder above with go.mod.
func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	root, _ := os.Getwd() // without one, nothing is found below
	for !exists(filepath.Join(root, "go.mod")) && root != filepath.Dir(root) {
		root = filepath.Dir(root)
	}
	return filepath.Join(root, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Require is Path; the test is skipped if nothing is there.
func Require(tb testing.TB, name string) string {
	tb.Helper()
	path := Path(name)
	if !exists(path) {
		tb.Skipf("skipped: no test data at %s (%s of ../shared)", path, name)
	}
	return path
}

// Files returns the files of ../shared that match a pattern; the test is skipped if there are none.
func Files(tb testing.TB, pattern string) []string {
	tb.Helper()
	files := Find(pattern)
	if len(files) == 0 {
		tb.Skipf("skipped: no test data at %s (%s of ../shared)", Path(pattern), pattern)
	}
	return files
}

// Find is Files without skipping: the caller has data of its own as well.
func Find(pattern string) []string {
	files, _ := filepath.Glob(Path(pattern)) // the only error is of a malformed pattern, which finds nothing
	return files
}

// Read returns a file of ../shared; the test is skipped if it is absent.
func Read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(Require(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
