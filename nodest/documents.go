package nodest

import (
	"context"
	"errors"

	"nodest/memory/dream"
)

// WithDocuments returns the source of memories that also reads the documents of the memory. They stand
// beside its profile: that has what facts say of the user now, they have what dreams and the user have
// written.
func WithDocuments(memories Source, d *dream.Service) Source {
	find := memories.Find
	memories.Find = func(ctx context.Context, q *Question) (Findings, error) {
		docs := q.Setup.Docs
		if docs.Settings.Dream.Mode == dream.Off {
			return find(ctx, q)
		}
		notes, failed := d.ForPrompt(ctx, q.UserID, docs.CharacterID, q.Here, docs.Language)
		f, err := find(ctx, q)
		f.Notes = notes
		return f, errors.Join(err, failed)
	}
	return memories
}
