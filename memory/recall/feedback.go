package recall

import (
	"cmp"
	"slices"

	"nodest/internal/feedback"
)

// Names of the signals that evaluations cause; they come on top of those that say how well a unit fits.
const (
	SignalFeedback    = "feedback"    // by how much evaluations changed the score; may be negative
	SignalExploration = "exploration" // by how much the unit, which was never shown, fell short of the one whose place it got
)

// leastLift is what exploration adds at least to a score: a step in which signals are stored.
const leastLift = 1e-4

// judge lets evaluations move candidates, by a bounded factor. Without votes nothing moves.
func (r *ranking) judge(found []candidate) error {
	if r.q.Records == nil || len(found) == 0 {
		return nil
	}
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	var err error
	if r.records, err = r.q.Records(r.ctx, ids); err != nil {
		return err
	}
	moved := false
	for i := range found {
		c := &found[i]
		if votes := r.records[c.ID].Votes; len(votes) > 0 {
			score := min(c.score*float32(feedback.Factor(votes, r.q.Now)), r.most())
			c.voted = score - c.score
			c.score, moved = score, moved || c.voted != 0
		}
	}
	if moved {
		slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	}
	return nil
}

// explore gives a share of a prompt's hits, its last places, to units that pass the gate by themselves and
// that no prompt has had. chosen became hits, pool has all that could.
func (r *ranking) explore(hits []Hit, chosen, pool []candidate) []Hit {
	if r.q.Records == nil || !r.q.gated() {
		return hits
	}
	isHit := func(c candidate) bool { return slices.ContainsFunc(hits, func(h Hit) bool { return h.ID == c.ID }) }
	shown := func(c candidate) bool { return r.records[c.ID].Shown }
	block := slices.DeleteFunc(slices.Clone(chosen), func(c candidate) bool { return !isHit(c) })
	others := slices.DeleteFunc(pool, func(c candidate) bool { return isHit(c) || !r.columns.proven.has(c.why) })
	for {
		next, tried, replaced := feedback.Explore(block, others, shown)
		if len(tried) == 0 {
			return hits
		}
		for i := range tried {
			lift := max(replaced[i].score-tried[i].score, leastLift*r.most())
			next[len(next)-len(tried)+i].lifted = lift
		}
		again := r.hits(next, r.q.Characters)
		missing := slices.IndexFunc(tried, func(c candidate) bool {
			return !slices.ContainsFunc(again, func(h Hit) bool { return h.ID == c.ID })
		})
		if missing < 0 {
			return again
		}
		id := tried[missing].ID // it does not fit into the room
		others = slices.DeleteFunc(others, func(c candidate) bool { return c.ID == id })
	}
}
