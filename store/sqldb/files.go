package sqldb

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"nodest/internal/fault"
)

// files are the files of an open SQLite database: the database and its write-ahead log.
type files struct {
	paths []string
	known []atomic.Pointer[os.FileInfo] // as it was when it was first seen
}

func newFiles(path string) *files {
	return &files{paths: []string{path, path + "-wal"}, known: make([]atomic.Pointer[os.FileInfo], 2)}
}

// check returns fault.StorageDown when one of the files was removed or replaced: writes would go
// to a file that nobody finds again. It costs two calls of stat.
func (f *files) check() error {
	for i, path := range f.paths {
		info, err := os.Stat(path)
		known := f.known[i].Load()
		switch {
		case err == nil && known == nil:
			f.known[i].Store(&info)
		case err == nil && os.SameFile(info, *known), known == nil && errors.Is(err, fs.ErrNotExist):
		default:
			return fault.Wrap(errors.Join(errReplaced, err), fault.StorageDown,
				"the file of the database was removed or replaced while the server was running; stop the server, put the file back or restore a backup, and start it again")
		}
	}
	return nil
}

var errReplaced = errors.New("sqldb: the database file is another one than was opened")
