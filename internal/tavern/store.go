package tavern

import (
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// Known is a file that an import has taken, and what it became.
type Known struct {
	ID         string
	Key        string // kind, digest, and what else tells it from others
	Kind       folder.Kind
	Path       string // in the folder
	Digest     string // SHA-256 of its content, in hexadecimal
	Size       int64
	ObjectKind string
	ObjectID   string // "" = it is kept as a file alone
	Times      int    // how often it became an object
	Version    int64  // the object's, when the import was done with it; 0 = it has none
	Parts      int    // its content has so many, of 1 MiB; 0 = it is not kept
	CreatedAt  time.Time

	older bool // another state of the file at the same path became something that is there
}

// Tx is what a transaction offers for imports.
type Tx struct {
	op.Tx
	FolderTx
	Jobs       jobs.Tx
	Characters character.Tx
	Chats      chat.Tx
}

// FolderTx stores imports, their reports, and what files became.
type FolderTx interface {
	// PutUpload stores a part of the archive of an import, from 0; Upload returns one. DropUpload
	// removes at most limit parts, and returns how many these were.
	PutUpload(importID string, part int, data []byte) error
	Upload(importID string, part int) ([]byte, error)
	DropUpload(importID string, limit int) (removed int, err error)

	// InsertImport stores an import; FolderImport returns one, locked in an Update.
	InsertImport(i *Import) error
	FolderImport(id string) (*Import, error)
	// FolderImports lists them, newest first.
	FolderImports(cursor string, limit int) (items []*Import, next string, err error)
	// OpenImports returns how many have not ended, with a lock until the transaction ends, for
	// InsertImport.
	OpenImports() (int, error)
	// UpdateImport stores how far an import is.
	UpdateImport(i *Import) error
	// DeleteImport removes an import and its report.
	DeleteImport(id string) error

	// AddReports adds files to the report of an import, of which it has so many.
	AddReports(importID string, first int, files []*File) error
	// Reports lists them in their order, behind the one with a number; last is the number of the last one,
	// -1 if there are no more.
	Reports(importID string, f Filter, after int64, limit int) (files []*File, last int64, err error)

	// KnownFile returns what is known of the file with a key, KnownAt of the newest one of a kind
	// at a path; nil = nothing.
	KnownFile(key string) (*Known, error)
	KnownAt(kind folder.Kind, path string) (*Known, error)
	// KnownID returns one by its id.
	KnownID(id string) (*Known, error)
	// KnownFiles lists them, newest first; "" = of all kinds, of all objects. With kept, only those are listed
	// whose content is kept, and whose object is there.
	KnownFiles(kind folder.Kind, objectID string, kept bool, cursor string, limit int) (items []*Known, next string, err error)
	// PutKnown stores what a file became, in the place of an earlier one with its key, whose id stays.
	PutKnown(k *Known) error
	// DeleteKnown removes one with its content.
	DeleteKnown(id string) error
	// PutKnownPart stores a part of the content of a file, from 0; KnownPart returns one.
	PutKnownPart(fileID string, part int, data []byte) error
	KnownPart(fileID string, part int) ([]byte, error)

	// PutReflected notes that the messages of conversations need no dream: ten thousand old chats are no day.
	PutReflected(conversationIDs ...string) error
}

// Store stores what a Service needs; package store implements it.
type Store = op.Store[Tx]
