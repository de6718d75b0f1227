package cli

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"nodest/internal/tavern/folder"
)

// ExportFolder writes everything that SillyTavern has a place for to a folder, which must not exist or be empty. It appears
// when it is whole.
func (c *Client) ExportFolder(ctx context.Context, dir string) (files int, err error) {
	dir = filepath.Clean(dir)
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return 0, fmt.Errorf("the folder %s is not empty", dir)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return 0, err
	}
	part, err := os.MkdirTemp(parent, ".nodest-export-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(part) }() // it has moved, or the failure is reported
	packed, whole := filepath.Join(part, "export.zip"), filepath.Join(part, "files")
	if err := c.save(ctx, "/api/v1/sillytavern/export", packed); err != nil {
		return 0, err
	}
	if files, err = Unpack(packed, whole); err != nil {
		return 0, fmt.Errorf("the export is incomplete or damaged: %w", err)
	}
	_ = os.Remove(dir) // an empty one, in the place of which this one comes
	return files, os.Rename(whole, dir)
}

// save writes an answer to a new file.
func (c *Client) save(ctx context.Context, at, file string) error {
	res, err := c.Send(ctx, http.MethodGet, at, nil, "*/*")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the person at the terminal names it
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return cmp.Or(err, f.Close())
}

// Unpack writes the files of an archive to a new folder, which no name leads out of.
func Unpack(archive, dir string) (files int, err error) {
	z, err := zip.OpenReader(archive)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return 0, err
	}
	defer func() { _ = z.Close() }()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, root.Close()) }()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if !folder.Safe(f.Name) {
			return 0, fmt.Errorf("%q is no name of a file", f.Name)
		}
		if err := unpackOne(root, f); err != nil {
			return 0, err
		}
		files++
	}
	return files, nil
}

func unpackOne(root *os.Root, f *zip.File) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if at := path.Dir(f.Name); at != "." {
		if err := root.MkdirAll(at, 0o700); err != nil {
			return err
		}
	}
	out, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) //nolint:gosec // it is the user's own server, and as large as the user's data
	return cmp.Or(err, out.Close())
}
