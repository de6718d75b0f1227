package memory

import "context"

// Compact builds the segments that a scope lacks.
func (s *Service) Compact(ctx context.Context, scope Scope) error { return s.compact(ctx, scope) }
