package knowledge

import (
	"context"

	"nodest/op"
)

// allowedFiles turns a request into the files that may be searched or read for it. It is the
// only way to an index or a text, and its result is for one call: a grant that is taken back
// and a file that is removed take effect at the next one.
//
// Errors: NotFound if one of the knowledge bases is not readable.
func (s *Service) allowedFiles(ctx context.Context, userID string, scope Scope) ([]FileRef, error) {
	return op.Read(ctx, s.store, userID, func(tx Tx) ([]FileRef, error) { return tx.Allowed(scope) })
}
