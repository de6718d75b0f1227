// Package knowledge has files and knowledge bases: a file becomes text, chunks and vectors in
// the background, and is searched and read by everybody who may read it, and by their
// characters.
//
// A file and a knowledge base belong to one user. The owner of a knowledge base may let others
// read it, or also add files of their own. Who may read a knowledge base may read its files.
// What a user may not read does not exist for the user (fault.NotFound); what the user may read
// but not change is fault.Forbidden. Nothing of this is remembered between two calls.
package knowledge

import (
	"cmp"
	"context"

	"nodest/internal/op"
)

// Service has the operations. It is safe for concurrent use.
type Service struct {
	store  Store
	opts   Options
	engine *engine
}

// Options configure a Service. Limits of 0 are the defaults.
type Options struct {
	MaxFile  int64 // bytes of one file, and of a zip archive; default 100 MiB
	MaxFiles int   // files of a user; default 5,000
	MaxBytes int64 // bytes of all files of a user; default 10 GiB

	// ReadPage reads a page of the web for a user, with all that guards such reads; nil =
	// pages cannot be read.
	ReadPage func(ctx context.Context, userID, url string) (*WebPage, error)

	// Answered is told of each answer for a conversation, in the transaction that stores it; an error undoes that. nil =
	// nobody wants to know.
	Answered func(tx Tx, a *Asked) error

	Pipeline
}

// WebPage is a page of the web as text.
type WebPage struct {
	URL      string // where it is, after all redirections
	Title    string
	Markdown string
}

func (o Options) withDefaults() Options {
	o.MaxFile = cmp.Or(o.MaxFile, 100<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 5000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 10<<30)
	o.Pipeline = o.Pipeline.withDefaults()
	return o
}

// New returns a Service.
func New(store Store, o Options) *Service {
	o = o.withDefaults()
	return &Service{store: store, opts: o, engine: newEngine(o.Pipeline)}
}

// View runs read in a transaction that sees what a user may read.
func (s *Service) View(ctx context.Context, userID string, read func(Tx) error) error {
	return s.store.View(ctx, userID, read)
}

// page is op.List for methods that return a page by value.
func page[T any](ctx context.Context, s *Service, userID string, limit int, read func(tx Tx, limit int) ([]T, string, error)) (op.Page[T], error) {
	p, err := op.List(ctx, s.store, userID, limit, read)
	if err != nil {
		return op.Page[T]{}, err
	}
	return *p, nil
}
