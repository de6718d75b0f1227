// Package archive reads and writes conversations as files: the archive of a whole
// conversation, the file of a save point, SillyTavern's chat log, and the chat history
// of the NodeST app. Files are validated before anything is stored.
package archive

import (
	"context"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Service has the operations on files. It is safe for concurrent use.
type Service struct {
	store chat.Store
}

// New returns a Service.
func New(store chat.Store) *Service { return &Service{store} }

// Answered reports whether an import was carried out before under the key of c. It then
// needs no character: it returns the stored answer without reading anything.
func (svc *Service) Answered(ctx context.Context, c *op.Call) (bool, error) {
	return op.Answered(ctx, svc.store, c)
}

// replayed returns the stored answer of an import, unless looking for it failed with err.
func replayed[T any](ctx context.Context, svc *Service, c *op.Call, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(chat.Tx) (*T, error) {
		return nil, fault.New(fault.InProgress, "the idempotency key has just expired; send the request again with a new one")
	})
}
