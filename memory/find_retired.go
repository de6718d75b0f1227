package memory

import (
	"context"

	"nodest/index"
)

// findRetired returns the facts retired by the user that fit a.Text by their words, best first.
// They are not recalled, but can be forgotten.
func (s *Service) findRetired(ctx context.Context, userID string, a Ask) ([]Hit, error) {
	var rows []index.Row
	err := s.store.View(ctx, userID, func(tx Tx) error {
		rows = nil
		return EachFact(tx, a.CharacterID, Filter{Status: Retired}, func(m *Memory) bool {
			if len(m.EndedBy) == 0 { // else it is searched with the others
				u := Unit{
					ID: m.ID, Layer: Fact, Root: m.RootID, Text: m.Text, Hash: m.ContentHash, At: m.at(),
					Importance: m.Importance, Evidence: m.Evidence, Terms: index.Join(m.Text),
				}
				rows = append(rows, u.Row())
			}
			return true
		})
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	x := index.New()
	if err := x.Apply(ctx, rows, nil); err != nil {
		return nil, err
	}
	return Recall(ctx, x, Query{Text: a.Text, Names: a.Names, Now: a.Now, Everything: true, Relevant: true, Limit: a.Limit})
}
