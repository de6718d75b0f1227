package sqldb

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"nodest/fault"
)

// files are what an open SQLite database consists of on the disk: the database and its log
// of changes, each by its path.
type files struct {
	paths []string
	known []atomic.Pointer[os.FileInfo] // as it was when it was first seen
}

func newFiles(path string) *files {
	return &files{paths: []string{path, path + "-wal"}, known: make([]atomic.Pointer[os.FileInfo], 2)}
}

// check returns fault.StorageDown when another file, or none, is where one of them was: what
// is written then goes to a file that nobody will find again. It costs two calls of stat.
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
