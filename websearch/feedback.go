package websearch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"nodest/internal/feedback"
	"nodest/internal/op"
	"nodest/websearch/weburl"
)

// judge lets evaluations of hosts move candidates, by a bounded factor. If some of those that are read first were
// evaluated, one of the places is for a host that never was. Without evaluations nothing moves.
func (s *Service) judge(ctx context.Context, t Turn, all []candidate) []candidate {
	if t.NoFeedback || len(all) == 0 {
		return all
	}
	hosts := make([]string, len(all))
	for i, c := range all {
		hosts[i] = weburl.Hostname(c.url)
	}
	votes, err := op.Read(ctx, s.store, t.UserID, func(tx Tx) (map[string][]feedback.Vote, error) {
		return tx.Feedback.Votes(t.CharacterID, feedback.Host, hosts...)
	})
	if err != nil {
		s.opts.Log.WarnContext(ctx, "evaluations of hosts are not known", "err", err)
		return all
	}
	now := s.opts.Now()
	for i := range all {
		all[i].weigh(votes[hosts[i]], now)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	first := min(pagesRead, len(all))
	next, tried, replaced := feedback.Explore(all[:first], all[first:], func(c candidate) bool { return c.judged })
	if len(tried) == 0 {
		return all
	}
	rest := slices.DeleteFunc(slices.Clone(all[first:]), func(c candidate) bool {
		return slices.ContainsFunc(tried, func(one candidate) bool { return one.url == c.url })
	})
	return slices.Concat(next, replaced, rest)
}

// weigh multiplies the score of a candidate by what votes on its host say.
func (c *candidate) weigh(votes []feedback.Vote, now time.Time) {
	c.factor, c.judged = feedback.Factor(votes, now), len(votes) > 0
	c.score *= c.factor
}
