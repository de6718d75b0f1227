package memory

import (
	"context"
	"io"
	"slices"

	"nodest/internal/op"
	"nodest/memory/recall"
)

// Import stores JSON Lines and reports invalid ones; a repeated import skips what exists.
func (s *Service) Import(ctx context.Context, c *op.Call, characterID string, r io.Reader) (*Imported, error) {
	parsed, err := parseImport(r)
	if err != nil {
		return nil, err
	}
	so := &Imported{Failed: parsed.Failed, LeftOut: parsed.LeftOut}
	return op.InPieces(ctx, s.store, c, so, pieces(parsed.Memories), func(tx Tx, so *Imported, piece []Memory) (*Imported, error) {
		done, err := importPiece(tx, c.By(), characterID, piece)
		if err != nil {
			return nil, err
		}
		sum := *so
		sum.Created, sum.Skipped = so.Created+done.Created, so.Skipped+done.Skipped
		return &sum, nil
	})
}

// Bulk applies one action to all memories that a filter selects, at most maxBulk. A repeated
// call after a failure does the rest.
//
// Errors: Invalid with the field; NotFound, also for an unknown id or conversation.
func (s *Service) Bulk(ctx context.Context, c *op.Call, characterID string, in Bulk) (*BulkDone, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	if q := in.Filter.Query; q != nil {
		if err := op.CheckText("filter.q", *q, longestQuery); err != nil {
			return nil, err
		}
	}
	if !in.DryRun {
		answer, known, err := op.Earlier[*BulkDone](ctx, s.store, c)
		if known || err != nil {
			return answer, err
		}
	}
	var roots []string
	var done *BulkDone
	err := s.store.View(ctx, c.UserID, func(tx Tx) error {
		if id := in.Filter.Conversation; id != nil {
			if err := tx.TalkedIn(characterID, *id); err != nil {
				return err
			}
		}
		var err error
		if roots, done, err = selectBulk(tx, characterID, &in); err != nil || !in.DryRun {
			return err
		}
		plan, err := in.plan(tx, characterID, done, roots)
		done = plan.done
		return err
	})
	if err != nil || in.DryRun {
		return done, err
	}
	parts := slices.Collect(slices.Chunk(roots, bulkPiece))
	if len(parts) == 0 {
		parts = [][]string{nil}
	}
	return op.InPieces(ctx, s.store, c, done, parts, func(tx Tx, so *BulkDone, piece []string) (*BulkDone, error) {
		return applyBulk(tx, c.By(), characterID, &in, so, piece)
	})
}

// Listed is a memory in a list.
type Listed struct {
	Memory
	Shown bool `json:"shown"` // it counts where the conversations stand now (Counting)
}

// List lists facts, newest first; limit is 1 to 200, 0 = 50.
func (s *Service) List(ctx context.Context, userID, characterID string, f Filter, cursor string, limit int) (*op.Page[Listed], error) {
	return op.List(ctx, s.store, userID, limit, func(tx Tx, limit int) ([]Listed, string, error) {
		if err := tx.TalkedIn(characterID, f.ConversationID); err != nil {
			return nil, "", err
		}
		facts, next, err := tx.Facts(characterID, f, cursor, limit)
		if err != nil {
			return nil, "", err
		}
		shown, err := counting(tx, characterID, facts)
		if err != nil {
			return nil, "", err
		}
		items := make([]Listed, len(facts))
		for i := range facts {
			items[i] = Listed{facts[i], shown[i]}
		}
		return items, next, nil
	})
}

// counting reports for each version whether it counts with the branches that the conversations
// show now: searches find it, and prompts may contain it.
func counting(tx Tx, characterID string, items []Memory) ([]bool, error) {
	units := make([]*recall.Unit, len(items))
	for i := range items {
		units[i] = &recall.Unit{ID: items[i].ID, Layer: recall.Fact, Claim: recall.Claim{Root: items[i].RootID}}
	}
	b := newBranch(nil, "", &Ask{CharacterID: characterID}, "")
	if err := b.load(tx, units); err != nil {
		return nil, err
	}
	return b.countsOf(units), nil
}
