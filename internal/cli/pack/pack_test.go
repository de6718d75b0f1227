package pack_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nodest/internal/cli/pack"
)

// write puts files into a folder; a name that ends with a slash is a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestUserFolder(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // "" = none
		words string
	}{
		"itself":        {map[string]string{"characters/a.png": ""}, ".", ""},
		"the program":   {map[string]string{"data/default-user/chats/a/b.jsonl": "", "public/scripts/x.js": "", "package.json": ""}, "data/default-user", ""},
		"data":          {map[string]string{"default-user/worlds/a.json": "", "_storage/x": ""}, "default-user", ""},
		"old":           {map[string]string{"public/characters/a.png": "", "public/chats/a/b.jsonl": ""}, "public", ""},
		"another user":  {map[string]string{"data/ann/settings.json": ""}, "data/ann", ""},
		"several users": {map[string]string{"data/ann/settings.json": "", "data/bo/settings.json": ""}, "", "several users"},
		"none":          {map[string]string{"x/a.png": ""}, "", "no folder of a SillyTavern user"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			got, err := pack.UserFolder(dir)
			switch {
			case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.words)):
				t.Errorf("%s, %v", got, err)
			case c.want != "" && (err != nil || got != filepath.Join(dir, c.want)):
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// An archive has what may be taken whole, and of all else the name. Links are followed inside of the folder only.
func TestFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"passwd": "zorbalik", "more/a.json": "zorbalik"})
	write(t, dir, map[string]string{
		"chats/Wren/a.jsonl": "{}", "secrets.json": "zorbalik", "thumbnails/a/b.png": "zorbalik", "backups/c.jsonl": "zorbalik",
		"themes/Dark.json": "zorbalik", "groups/large.json": strings.Repeat("a", 2<<20), "worlds/real.json": "real", "notes.txt": "zorbalik",
	})
	for name, to := range map[string]string{
		"worlds/out.json": filepath.Join(outside, "passwd"), "worlds/up.json": "../../" + filepath.Base(outside) + "/passwd",
		"worlds/same.json": "real.json", "worlds/nowhere.json": "gone.json", "worlds/folder": filepath.Join(outside, "more"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	packed, err := pack.Folder(t.Context(), dir, &out)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"chats/Wren/a.jsonl": "{}", "secrets.json": "", "thumbnails/a/b.png": "", "backups/c.jsonl": "", "themes/Dark.json": "", "notes.txt": "",
		"worlds/real.json": "real", "worlds/same.json": "real", "worlds/out.json": "link", "worlds/up.json": "link", "worlds/nowhere.json": "link", "worlds/folder": "link",
	}
	if len(archive.File) != len(want) || packed.Files != len(want) {
		t.Errorf("%d entries, want %d", len(archive.File), len(want))
	}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		got := string(data)
		if f.Mode()&fs.ModeSymlink != 0 {
			got += "link"
		}
		if text, ok := want[f.Name]; err != nil || !ok || got != text {
			t.Errorf("%s is %q, %v; want %q", f.Name, got, err, text)
		}
	}
	if len(packed.Left) != 1 || packed.Left[0].Path != "groups/large.json" || !strings.Contains(packed.Left[0].Reason, "may have 1 MiB") {
		t.Errorf("%+v", packed.Left)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := pack.Folder(stopped, dir, io.Discard); err == nil {
		t.Error("it is packed although nobody waits")
	}
}
