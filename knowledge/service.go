// Package knowledge has files and knowledge bases: a file becomes text, chunks and vectors in
// the background, and is searched and read by everybody who may read it, and by their
// characters.
package knowledge

import (
	"cmp"
	"context"
	"io"

	"nodest/fault"
	"nodest/op"
)

// Service has the operations. It is safe for concurrent use.
type Service struct {
	store  Store
	opts   Options
	engine engine
}

// Options configure a Service. Limits of 0 are the defaults.
type Options struct {
	MaxFile  int64 // bytes of one file; default 100 MiB
	MaxFiles int   // of a user; default 5,000
	MaxBytes int64 // of all files of a user; default 10 GiB

	// ReadPage reads a page of the web for a user, with all that guards such reads; nil =
	// pages cannot be read.
	ReadPage func(ctx context.Context, userID, url string) (*WebPage, error)

	Pipeline
}

// WebPage is a page of the web as text.
type WebPage struct {
	URL      string // where it is in the end
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

var errTodo = fault.New(fault.Internal, "not written yet")

// Upload stores a file and enqueues its processing. A file that the user has already is
// returned with Duplicate.
func (s *Service) Upload(ctx context.Context, c *op.Call, in NewFile) (*File, error) {
	return nil, errTodo
}

// Replace gives a file another content; the old one is searched until the new one is complete.
func (s *Service) Replace(ctx context.Context, c *op.Call, id string, ifVersion int64, in NewFile) (*File, error) {
	return nil, errTodo
}

// Unzip stores the files of a zip archive. It returns those that were stored, and why others
// were not, by name.
func (s *Service) Unzip(ctx context.Context, c *op.Call, in NewFile) ([]*File, map[string]string, error) {
	return nil, nil, errTodo
}

// Fetch stores a page of the web as a file.
func (s *Service) Fetch(ctx context.Context, c *op.Call, url, baseID string) (*File, error) {
	return nil, errTodo
}

func (s *Service) File(ctx context.Context, userID, id string) (*File, error) { return nil, errTodo }

// Files lists the user's own files, newest first; state "" = all.
func (s *Service) Files(ctx context.Context, userID, state, cursor string, limit int) (op.Page[*File], error) {
	return op.Page[*File]{}, errTodo
}

// Content returns the original; the caller closes it.
func (s *Service) Content(ctx context.Context, userID, id string) (*File, io.ReadSeekCloser, error) {
	return nil, nil, errTodo
}

// Retry processes a failed file again.
func (s *Service) Retry(ctx context.Context, c *op.Call, id string) (*File, error) {
	return nil, errTodo
}

func (s *Service) DeleteFile(ctx context.Context, c *op.Call, id string) error { return errTodo }

// NewBase is what a knowledge base is created or changed with; nil = as it is.
type NewBase struct {
	Name         *string
	Description  *string
	ChunkSize    *int
	ChunkOverlap *int
}

func (s *Service) CreateBase(ctx context.Context, c *op.Call, in NewBase) (*Base, error) {
	return nil, errTodo
}

func (s *Service) Base(ctx context.Context, userID, id string) (*Base, error) { return nil, errTodo }

// Bases lists those that the user may read.
func (s *Service) Bases(ctx context.Context, userID, cursor string, limit int) (op.Page[*Base], error) {
	return op.Page[*Base]{}, errTodo
}

func (s *Service) UpdateBase(ctx context.Context, c *op.Call, id string, ifVersion int64, in NewBase) (*Base, error) {
	return nil, errTodo
}

// DeleteBase deletes a knowledge base; with files also its files that are in no other one and
// belong to the user.
func (s *Service) DeleteBase(ctx context.Context, c *op.Call, id string, files bool) error {
	return errTodo
}

func (s *Service) BaseFiles(ctx context.Context, userID, id, cursor string, limit int) (op.Page[*File], error) {
	return op.Page[*File]{}, errTodo
}

func (s *Service) AddFile(ctx context.Context, c *op.Call, baseID, fileID string) error {
	return errTodo
}

func (s *Service) RemoveFile(ctx context.Context, c *op.Call, baseID, fileID string) error {
	return errTodo
}

func (s *Service) Grants(ctx context.Context, userID, baseID string) ([]Grant, error) {
	return nil, errTodo
}

func (s *Service) PutGrant(ctx context.Context, c *op.Call, baseID, userID, role string) (*Grant, error) {
	return nil, errTodo
}

func (s *Service) DeleteGrant(ctx context.Context, c *op.Call, baseID, userID string) error {
	return errTodo
}

func (s *Service) Bound(ctx context.Context, userID, characterID string) (*Bound, error) {
	return nil, errTodo
}

func (s *Service) BindBase(ctx context.Context, c *op.Call, characterID, baseID string, enabled *bool) (*BoundBase, error) {
	return nil, errTodo
}

func (s *Service) UnbindBase(ctx context.Context, c *op.Call, characterID, baseID string) error {
	return errTodo
}

func (s *Service) BindFile(ctx context.Context, c *op.Call, characterID, fileID string, enabled *bool, position *int) (*BoundFile, error) {
	return nil, errTodo
}

func (s *Service) UnbindFile(ctx context.Context, c *op.Call, characterID, fileID string) error {
	return errTodo
}
