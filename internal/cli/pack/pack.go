// Package pack packs the folder of a SillyTavern user for an import, and prints what became of its files. It reads no
// file that is never taken, follows no link out of the folder, and must not know a command.
package pack

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"nodest/internal/tavern/folder"
)

// Left is a file that is not in the archive.
type Left struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Packed says what an archive has.
type Packed struct {
	Files int
	Left  []Left
}

// places are where the folder of the user may be in a folder of SillyTavern. The last one is that of old versions.
var places = []string{".", "data/default-user", "default-user", "public"}

// UserFolder finds the folder of the user in a folder: itself, or in it.
func UserFolder(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no folder", dir)
	}
	for _, place := range places {
		if at := filepath.Join(dir, filepath.FromSlash(place)); isUser(at) {
			return at, nil
		}
	}
	var users []string
	for _, parent := range []string{dir, filepath.Join(dir, "data")} {
		entries, _ := os.ReadDir(parent) // one that is not there has none
		for _, e := range entries {
			if at := filepath.Join(parent, e.Name()); isUser(at) {
				users = append(users, at)
			}
		}
	}
	switch len(users) {
	case 0:
		return "", fmt.Errorf("%s has no folder of a SillyTavern user: none of characters, chats, worlds and the like is in it", dir)
	case 1:
		return users[0], nil
	}
	return "", fmt.Errorf("%s has the folders of several users; name one of them: %s", dir, strings.Join(users, ", "))
}

// isUser reports whether a folder has what the folder of a user has.
func isUser(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			name += "/x"
		}
		names = append(names, name)
	}
	root, known := folder.Root(names)
	return known && root == ""
}

// Folder writes the files of a folder to a zip archive. A file that is never taken is an entry without content, and
// so is a link out of the folder, or to a folder.
func Folder(ctx context.Context, dir string, out io.Writer) (*Packed, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	p := &packer{ctx: ctx, root: root, zip: zip.NewWriter(out), packed: &Packed{}}
	p.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	if err := fs.WalkDir(root.FS(), ".", p.visit); err != nil {
		return nil, err
	}
	return p.packed, p.zip.Close()
}

type packer struct {
	ctx    context.Context //nolint:containedctx // fs.WalkDir has none
	root   *os.Root
	zip    *zip.Writer
	packed *Packed
}

func (p *packer) visit(name string, d fs.DirEntry, err error) error {
	switch {
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case err != nil && name == ".":
		return err
	case err != nil:
		p.leave(name, err)
		return nil
	case d.IsDir():
		return nil
	}
	if d.Type()&fs.ModeSymlink != 0 {
		if info, err := p.root.Stat(name); err != nil || !info.Mode().IsRegular() {
			return p.entry(&zip.FileHeader{Name: name}, fs.ModeSymlink, nil)
		}
	} else if !d.Type().IsRegular() {
		return p.entry(&zip.FileHeader{Name: name}, d.Type(), nil)
	}
	rule := folder.RuleOf(folder.Classify(name))
	if rule.Closed || rule.Kind == folder.Unsafe {
		return p.entry(&zip.FileHeader{Name: name}, 0, nil)
	}
	return p.file(name, rule)
}

// file writes a file with its content. One that is too large for its kind, or cannot be read, is left out.
func (p *packer) file(name string, rule *folder.Rule) error {
	f, err := p.root.Open(name)
	if err != nil {
		p.leave(name, err)
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		p.leave(name, err)
		return nil
	}
	if rule.Reason != "" { // the server says why
		return p.entry(&zip.FileHeader{Name: name, Modified: info.ModTime()}, 0, nil)
	}
	if info.Size() > rule.Max {
		p.leave(name, fmt.Errorf("it has %d MiB; files of its kind may have %d MiB", info.Size()>>20, rule.Max>>20))
		return nil
	}
	h := &zip.FileHeader{Name: name, Modified: info.ModTime(), Method: zip.Store}
	if slices.Contains([]string{".json", ".jsonl", ".settings"}, strings.ToLower(path.Ext(name))) {
		h.Method = zip.Deflate
	}
	return p.entry(h, 0, f)
}

// entry writes an entry of the archive; content nil = none.
func (p *packer) entry(h *zip.FileHeader, mode fs.FileMode, content io.Reader) error {
	if mode != 0 {
		h.SetMode(mode | 0o644)
	}
	w, err := p.zip.CreateHeader(h)
	if err == nil && content != nil {
		_, err = io.Copy(w, content)
	}
	p.packed.Files++
	return err
}

func (p *packer) leave(name string, err error) {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	p.packed.Left = append(p.packed.Left, Left{name, err.Error()})
}
