// Package rights is what every user may do with all of their data: take it out as one file, bring such a file in,
// and have a chat gone at once. It knows the file, not what is in a row: that is the store's.
package rights

import (
	"context"
	"io"
	"log/slog"

	"nodest/internal/audit"
	"nodest/internal/op"
	"nodest/internal/stream"
)

// Bundle names what a file moves as one: a row that belongs to nothing but the user, with all rows that belong
// to it, such as a chat with its messages.
type Bundle struct {
	Table string
	ID    string // "" = a user has one row in the table
}

// Counts are numbers of rows by table.
type Counts map[string]int64

// add adds more to c.
func (c Counts) add(more Counts) {
	for table, n := range more {
		c[table] += n
	}
}

// Presence is whether a user has a bundle.
type Presence int

// Presences.
const (
	Absent  Presence = iota
	Present          // it stays as it is
	Deleted          // it is there until maintenance removes it
)

// Content is a bundle in a file. Each call of its functions reads from the beginning.
type Content struct {
	Bundle
	Lines func() (io.ReadCloser, error)
	File  func() (io.ReadCloser, error) // nil = the bundle has none
	Size  int64                         // bytes of File
}

// Store reads and writes bundles; package store provides it. Rows of other users are never read, and what is written
// belongs to the user.
type Store interface {
	// BundleTables are the tables whose rows make bundles, those first that others refer to.
	BundleTables(ctx context.Context) ([]string, error)
	// Bundles calls fn with all bundles of a user that a file has, those first that others refer to.
	//
	// Errors: Busy while a reply is being written.
	Bundles(ctx context.Context, userID string, fn func(Bundle) error) error
	// ReadBundle writes the rows of a bundle to lines, and calls file with the name and the parts of its file if it
	// has one. NotFound if it was deleted meanwhile.
	ReadBundle(ctx context.Context, userID string, b Bundle, lines io.Writer, file func(name string) io.Writer) (Counts, error)
	// CheckBundle reads a bundle and returns how many rows it has; InvalidImport for one that cannot be stored.
	CheckBundle(ctx context.Context, c *Content) (Counts, error)
	// Presence says what a user has of some bundles of one table, by id.
	Presence(ctx context.Context, userID, table string, ids []string) (map[string]Presence, error)
	// WriteBundle stores a bundle in one transaction. It returns no counts if the user has it, or its document,
	// already. What is made of rows is made anew.
	WriteBundle(ctx context.Context, userID string, c *Content) (Counts, error)
	// PurgeDeleted removes what the user has deleted from the database.
	PurgeDeleted(ctx context.Context, userID string) error
	// PurgeChat removes a conversation that was deleted from the database. Busy while it is being copied or written.
	PurgeChat(ctx context.Context, userID, id string) error
	// Tell adds an entry to the audit log and an event to the user's log.
	Tell(ctx context.Context, userID string, note audit.Entry, event *stream.Event) error
}

// Options tune a Service.
type Options struct {
	Program string // version of the program
	TempDir string // folder for temporary files; "" = the system's
	// DeleteChat deletes a conversation so that nobody sees it any more; NotFound if there is none.
	DeleteChat func(ctx context.Context, c *op.Call, id string) error
	// Imported is called after something was imported, to make what is made of rows; nil = nothing is.
	Imported func(ctx context.Context, userID string) error
	Log      *slog.Logger // default slog.Default()
}

// Service has the operations. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
}

// New returns a Service.
func New(store Store, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Imported == nil {
		o.Imported = func(context.Context, string) error { return nil }
	}
	return &Service{store, o}
}
