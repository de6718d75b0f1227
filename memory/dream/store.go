package dream

import (
	"nodest/internal/op"
	"nodest/memory"
)

// Store is the storage of a Service.
type Store = op.Store[Tx]

// Tx is one transaction of the acting user. A character that is not the user's is fault.NotFound
// for every method that takes one.
type Tx struct {
	op.Tx
	DocumentTx
	Memory memory.Tx
}

// DocumentTx stores the documents of memories. Writers call memory.Tx.LockMemory first.
type DocumentTx interface {
	// MemoryDocuments returns all documents of a memory, in the version in force.
	MemoryDocuments(characterID string) ([]*Document, error)
	// MemoryDocument returns a document in a version, 0 = the one in force; fault.NotFound.
	MemoryDocument(characterID, path string, version int64) (*Document, error)
	// PutMemoryDocument stores d as its next version, and sets d.Version and d.UpdatedAt. It returns
	// fault.PreconditionFailed unless d.Newest is the version in force, 0 = there is no document.
	PutMemoryDocument(characterID string, d *Document) error
	// LockMemoryDocument says whether only the user may change a document.
	LockMemoryDocument(characterID, path string, locked bool) error
	// DeleteMemoryDocument removes a document with all its versions.
	DeleteMemoryDocument(characterID, path string) error
	// DocumentVersions lists the versions of a document, newest first.
	DocumentVersions(characterID, path, cursor string, limit int) (items []Version, next string, err error)
	// VersionsOfDocuments returns the versions of all documents of a memory, in any order.
	VersionsOfDocuments(characterID string) ([]Version, error)
}
