package dream

import (
	"context"
	"time"

	"nodest/cognition"
	"nodest/internal/op"
	"nodest/memory"
)

// Store is the storage of a Service.
type Store interface {
	op.Store[Tx]

	// DueForDreams returns scopes of all users with at least so many messages that no reflection has
	// read, in order, at most limit, after one (zero = start).
	DueForDreams(ctx context.Context, least int, after memory.Scope, limit int) ([]memory.Scope, error)
}

// Tx is one transaction of the acting user. A character that is not the user's is fault.NotFound
// for every method that takes one.
type Tx struct {
	op.Tx
	DocumentTx
	RunTx
	Memory memory.Tx
	Log    cognition.LogTx
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

// RunTx stores runs, and how far they have read.
type RunTx interface {
	// TracesBehind returns conversations with messages that no reflection has read, oldest first.
	TracesBehind(characterID string, limit int) ([]Trace, error)
	// UnreadBefore counts the messages, without greetings, that were made before a time and that no
	// reflection has read.
	UnreadBefore(characterID string, at time.Time) (int64, error)
	// EventsToReflect returns the newest events of some types since the last reflection of a conversation,
	// at most limit, oldest first.
	EventsToReflect(conversationID string, limit int, types ...string) ([]*cognition.Event, error)
	// LastSaidTo returns when something was last said in a chat with a character; zero = never.
	LastSaidTo(characterID string) (time.Time, error)
	// SetReflected moves on how far a conversation is read; fault.PreconditionFailed unless it is from.
	SetReflected(conversationID string, from, to int64) error
	// OpenReflections returns the reflections of a memory that are not consumed, oldest first. Those
	// of deleted conversations are left out.
	OpenReflections(characterID string, limit int) ([]*cognition.Event, error)
	// ConsumeReflections notes that reflections were used; fault.PreconditionFailed if one was before.
	ConsumeReflections(events ...*cognition.Event) error

	// AddDreamRun stores a new run.
	AddDreamRun(run *Run) error
	// PutDreamRun stores what has changed of a run; fault.NotFound if it was purged.
	PutDreamRun(run *Run) error
	DreamRun(characterID, id string) (*Run, error)
	// DreamRuns lists runs, newest first.
	DreamRuns(characterID, cursor string, limit int) (items []*Run, next string, err error)
	// DreamsSince returns what the runs of a memory have cost that began after a time.
	DreamsSince(characterID string, since time.Time) (calls, tokens int, err error)
}

// Trace is a conversation, and how far it is read.
type Trace struct {
	ConversationID    string
	Reflected, Newest int64 // seqs
}
