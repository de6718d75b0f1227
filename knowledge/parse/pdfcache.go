package parse

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klippa-app/go-pdfium"
	"github.com/tetratelabs/wazero"
)

// codeCache is a folder with PDFium as machine code: compiling it takes five seconds of a core, loading
// it a quarter of one. wazero names the file after its own version, the version of PDFium and the
// features of the processor, so another of these finds none. Code is run without a look at it, so a
// checksum of our own beside it says that it is what was compiled; anything else in the folder is
// removed, and there is never more than one version.
type codeCache struct{ dir string }

// sealName is the file with the name of the code and its SHA-256; lockName is locked while one
// process compiles, for which others wait.
const (
	sealName = "seal"
	lockName = "lock"
)

// open has start load PDFium from the cache, or compile it and fill the cache.
func (c codeCache) open(start func(wazero.CompilationCache) (pdfium.Pool, error)) (pdfium.Pool, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(c.dir, lockName))
	if err != nil {
		return nil, err
	}
	defer unlock()
	sealed, err := c.sealed()
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(c.dir)
	if err != nil {
		return nil, err
	}
	pool, err := start(cache)
	if err != nil {
		return nil, errors.Join(err, cache.Close(context.Background()))
	}
	return pool, c.seal(sealed)
}

// files are the files of the cache but its own two, by their paths within it.
func (c codeCache) files() (names []string, err error) {
	err = filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.dir, path)
		if err == nil && name != sealName && name != lockName {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// sealed returns the file whose checksum is right; "" = there is none. It removes all others.
func (c codeCache) sealed() (string, error) {
	names, err := c.files()
	if err != nil {
		return "", err
	}
	seal, _ := os.ReadFile(filepath.Join(c.dir, sealName)) // without one, no file is right
	found := ""
	for _, name := range names {
		if text, err := c.sealOf(name); err == nil && bytes.Equal(text, seal) {
			found = name
		} else if err := os.Remove(filepath.Join(c.dir, name)); err != nil {
			return "", err
		}
	}
	return found, nil
}

// seal seals the file that was compiled, if one was, and removes the one that was sealed before.
func (c codeCache) seal(before string) error {
	names, err := c.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == before {
			continue
		}
		text, err := c.sealOf(name)
		if err != nil {
			return err
		}
		part := filepath.Join(c.dir, sealName+".tmp")
		if err := errors.Join(os.WriteFile(part, text, 0o600), os.Rename(part, filepath.Join(c.dir, sealName))); err != nil {
			return err
		}
		if before != "" {
			return os.Remove(filepath.Join(c.dir, before))
		}
	}
	return nil
}

// sealOf is the content of the seal for a file.
func (c codeCache) sealOf(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	sum := sha256.Sum256(data)
	return []byte(strings.Join([]string{hex.EncodeToString(sum[:]), filepath.ToSlash(name)}, " ") + "\n"), err
}
