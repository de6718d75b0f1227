package cli_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/cli"
)

// TestUnpackHostileArchives: no name leads out of the folder, and an archive that was cut off is refused.
func TestUnpackHostileArchives(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../evil", "/evil", "a/../../evil", "C:/evil", "a//b", "nul\x00l", `..\evil`, "a/" + strings.Repeat("x", 300)} {
		parent := t.TempDir()
		file, err := os.Create(filepath.Join(parent, "x.zip")) //nolint:gosec // a folder of the test
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(file)
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		n, err := cli.Unpack(file.Name(), filepath.Join(parent, "out"))
		if err == nil && name != `..\evil` {
			t.Errorf("%q: %d files were written", name, n)
		}
		if left, _ := os.ReadDir(parent); len(left) != 2 {
			t.Errorf("%q: %d entries beside the folder", name, len(left))
		}
	}
	cut := filepath.Join(t.TempDir(), "cut.zip")
	if err := os.WriteFile(cut, []byte("PK\x03\x04 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Unpack(cut, filepath.Join(t.TempDir(), "out")); err == nil {
		t.Error("a cut archive was unpacked")
	}
}
