package knowledge

import (
	"context"
	"time"

	"nodest/character"
	"nodest/cognition"
	"nodest/internal/feedback"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/knowledge/chunk"
)

// Tx is what a transaction offers for files and knowledge bases. Where a method says "own", a
// row of another user is fault.NotFound; the others also act on what was shared with the acting
// user, and on nothing else.
type Tx struct {
	op.Tx
	FileTx
	BaseTx
	BindingTx
	IndexTx
	VectorTx
	PassageTx
	Jobs       jobs.Tx
	Characters character.Tx
	Feedback   feedback.Tx
	Log        cognition.Tx
}

// Store stores what a Service needs; package store implements it.
type Store interface {
	op.Store[Tx]

	// FileOwners returns users with files, hidden ones too, by id and beginning after one, at most limit.
	FileOwners(ctx context.Context, after string, limit int) ([]string, error)
}

// FileTx stores files and their originals.
type FileTx interface {
	// CountFiles returns how many files the user has and how many bytes these have together;
	// LockFiles does so with a lock until the transaction ends, for InsertFile.
	CountFiles() (files int, bytes int64, err error)
	LockFiles() (files int, bytes int64, err error)
	// InsertFile stores a new own file; fault.Conflict if one has the same content.
	InsertFile(f *File) error
	// OwnFile returns an own file, and locks it in an Update.
	OwnFile(id string) (*File, error)
	// File returns a file that the user may read.
	File(id string) (*File, error)
	// FileByHash returns the own file with a content, FileByURL the newest own one that was
	// read from an address; nil if there is none.
	FileByHash(sha256 string) (*File, error)
	FileByURL(url string) (*File, error)
	// Files lists own files newest first; state "" = all.
	Files(state, cursor string, limit int) (items []*File, next string, err error)
	// UpdateFile stores everything of an own file that can change: its content and what was
	// made of it. Version and UpdatedAt are the caller's: they are of name and content.
	// fault.Conflict if another one has the same content.
	UpdateFile(f *File) error
	// DeleteFile hides an own file, and takes it out of all knowledge bases and characters.
	DeleteFile(id string) error

	// PutPart stores a part of an own content, from 0; FilePart returns one of a file that
	// the user may read. A content is the file's own as soon as InsertFile or UpdateFile
	// names it.
	PutPart(contentID string, part int, data []byte) error
	FilePart(f *File, part int) ([]byte, error)
	// DropParts removes at most limit parts of an own content that no file names, and
	// returns how many these were.
	DropParts(contentID string, limit int) (removed int, err error)

	// DeletedFiles returns own files that are hidden; PurgeFiles removes the rows of such
	// files when nothing else of them is left.
	DeletedFiles(limit int) ([]*File, error)
	PurgeFiles(ids ...string) error
}

// BaseTx stores knowledge bases, what is in them, and who may use them.
type BaseTx interface {
	// LockBases returns how many the user has, with a lock until the transaction ends, for
	// InsertBase.
	LockBases() (int, error)
	InsertBase(b *Base) error
	// Base returns a knowledge base that the user may read, with Access, Files and Languages;
	// in an Update it is locked, so that its grants and files do not change meanwhile.
	Base(id string) (*Base, error)
	// Bases lists those that the user may read, newest first.
	Bases(cursor string, limit int) (items []*Base, next string, err error)
	// UpdateBase stores name, description, rules and version of an own one.
	UpdateBase(b *Base) error
	// DeleteBase hides an own one, and takes it from its grantees and all characters.
	// PurgeBases removes at most limit rows of hidden ones.
	DeleteBase(id string) error
	PurgeBases(limit int) (removed int, err error)

	// AddToBase adds an own file to a knowledge base that the user may write;
	// RemoveFromBase takes any file out of one. They report whether that changed anything.
	AddToBase(b *Base, fileID string, synced bool) (added bool, err error)
	RemoveFromBase(b *Base, fileID string) (removed bool, err error)
	// BaseFiles lists the files of one that the user may read, newest first. The Source of those
	// that were added as synced is SourceSync.
	BaseFiles(b *Base, cursor string, limit int) (items []*File, next string, err error)
	// OnlyIn returns at most limit own files that are in an own knowledge base and in no other one.
	OnlyIn(baseID string, limit int) (ids []string, err error)
	// InUse reports whether a file is in a knowledge base or has a character; a file that is not
	// the user's own always counts as used.
	InUse(fileID string) (bool, error)
	// BasesOf returns the knowledge bases with a file that the user may read.
	BasesOf(f *File) ([]*Base, error)
	// RulesOf returns the chunk rules of the knowledge base that an own file was added to
	// first, of those that have some; nil = those of the server.
	RulesOf(fileID string) (*chunk.Rules, error)
	// WantsContext reports whether an own file is in an own knowledge base with context lines.
	WantsContext(fileID string) (bool, error)

	// Grants lists the grants of a knowledge base that the user may read: all for its owner,
	// else the user's own.
	Grants(b *Base) ([]Grant, error)
	PutGrant(b *Base, g *Grant) error
	// DropGrant takes a grant back: the owner any, others their own; fault.NotFound without
	// one. The files that the grantee has added leave the knowledge base.
	DropGrant(b *Base, granteeID string) error
	// Grantee finds a user by id or name; fault.NotFound if there is none.
	Grantee(idOrName string) (id, username string, err error)

	// Allowed is the one way from a request to what may be searched or read.
	Allowed(s Scope) ([]FileRef, error)
}

// BindingTx stores what characters of the user know.
type BindingTx interface {
	// Bound returns what a character of the user has and the user may read.
	Bound(characterID string) (*Bound, error)
	PutBoundFile(characterID string, f *File, enabled bool, position int) error
	PutBoundBase(characterID string, b *Base, enabled bool) error
	DropBoundFile(characterID, fileID string) error
	DropBoundBase(characterID, baseID string) error
}

// Scope selects files that the acting user may read.
type Scope struct {
	BaseIDs []string // files of these knowledge bases; fault.NotFound if one is not readable; nil = all readable ones
	// FilesOnly takes own files and those of readable knowledge bases, without regard to
	// BaseIDs.
	FilesOnly bool
	// CharacterID leaves only what is enabled for this character of the user: its files and
	// the files of its knowledge bases. It goes with BaseIDs, which then must be among the
	// latter.
	CharacterID string

	FileIDs []string  // only these; nil = all. Others are left out without an error
	Types   []string  // only these content types; nil = all
	Folder  string    // only names that begin with this folder; "" = all
	After   time.Time // only what changed later; zero = all
}

// FileRef is a file that the acting user may read.
type FileRef struct {
	OwnerID     string
	ID          string
	Edition     int64 // 0 = cannot be searched yet
	Name        string
	ContentType string
	State       string
	Chars       int
	Chunks      int
	UpdatedAt   time.Time
	BaseID      string // a selected knowledge base that has it; "" = none
	BaseName    string
}
