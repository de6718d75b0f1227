package parse

import (
	"os"
	"path/filepath"
	"testing"
)

// cacheFiles are the files with compiled code in a cache.
func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := codeCache{dir}.files()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Compiled code is kept once, is loaded only as it was compiled, and is compiled again else: what is
// damaged, of another version or half written is removed, and never in the way of a document.
func TestCompiledCodeIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.CopyFS(dir, os.DirFS(compiled(t))); err != nil {
		t.Fatal(err)
	}
	in := Input{Name: "a.pdf", Data: pdfFile("one page"), CacheDir: dir}
	first := cacheFiles(t, dir)
	if len(first) != 1 {
		t.Fatalf("the cache has %q", first)
	}
	code := filepath.Join(dir, first[0])
	whole, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := os.ReadFile(filepath.Join(dir, sealName))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"nothing": func() error { return nil },
		"another version": func() error {
			other := filepath.Join(dir, "wazero-v0.0.1-amd64-linux")
			if err := os.MkdirAll(other, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(other, "0123"), whole, 0o600)
		},
		"a half-written file": func() error { return os.WriteFile(code+".1.tmp", whole[:1000], 0o600) },
		"an offset that wazero does not check": func() error {
			spoilt := append([]byte(nil), whole...)
			spoilt[40] ^= 0x55
			return os.WriteFile(code, spoilt, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			if doc := mustParse(t, in); doc.Text != "one page" {
				t.Errorf("the text is %q", doc.Text)
			}
			if got := cacheFiles(t, dir); len(got) != 1 || got[0] != first[0] {
				t.Errorf("the cache has %q, want %q", got, first)
			}
			if again, err := os.ReadFile(filepath.Join(dir, sealName)); err != nil || string(again) != string(seal) {
				t.Errorf("the seal is %q instead of %q: %v", again, seal, err)
			}
		})
	}
}

// compiled is a cache with the code of this version.
func compiled(t *testing.T) string {
	t.Helper()
	dir := cacheDir(t)
	mustParse(t, Input{Name: "warm.pdf", Data: pdfFile("warm"), CacheDir: dir})
	return dir
}

// A child finds the cache of its parent under a path that is relative to the parent's folder.
func TestAChildUsesTheCacheOfItsParent(t *testing.T) { //nolint:paralleltest // it changes the folder of the process
	t.Chdir(t.TempDir())
	if err := os.CopyFS("cache", os.DirFS(compiled(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join("cache", sealName)); err != nil {
		t.Fatal(err)
	}
	child := &Child{CacheDir: "cache", Limits: Limits{Memory: 4 << 30}} // the race detector takes several times the memory
	if err := child.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("cache", sealName)); err != nil {
		t.Error("the child has used another folder:", err)
	}
}
