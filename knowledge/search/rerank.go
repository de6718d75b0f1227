package search

import "context"

// rerank orders the best candidates by what their texts say.
func (s *searching) rerank(ctx context.Context) error {
	if s.q.Texts == nil || len(s.list) == 0 {
		return nil
	}
	head := s.list[:min(reranked, len(s.list))]
	refs := make([]Ref, len(head))
	for i, c := range head {
		refs[i] = c.Ref
	}
	passages, err := s.q.Texts(ctx, refs)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || len(passages) != len(refs) {
		s.result.Degraded = append(s.result.Degraded, "rerank")
		return nil
	}
	return nil
}
