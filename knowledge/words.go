package knowledge

import (
	"context"
	"fmt"

	"nodest/knowledge/chunk"
	"nodest/knowledge/search"
)

// IndexWords makes the index for words of files that have text and chunks but no index: those that came with the file
// of an account.
func (s *Service) IndexWords(ctx context.Context, userID string) error {
	for after := ""; ; {
		var files []FileEdition
		err := s.store.View(ctx, userID, func(tx Tx) (err error) {
			files, err = tx.Wordless(after, sweepBatch)
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range files {
			after = f.FileID
			if err := s.indexFile(ctx, userID, f); err != nil {
				return fmt.Errorf("index file %s: %w", f.FileID, err)
			}
		}
		if len(files) < sweepBatch {
			return nil
		}
	}
}

func (s *Service) indexFile(ctx context.Context, userID string, f FileEdition) error {
	var edition *Edition
	var text string
	var stored []StoredChunk
	err := s.store.View(ctx, userID, func(tx Tx) (err error) {
		if edition, err = tx.EditionOf(userID, f.FileID, f.Edition); err != nil {
			return err
		}
		if text, err = tx.TextRange(userID, f.FileID, f.Edition, 0, -1); err != nil {
			return err
		}
		stored, err = tx.ChunkRange(userID, f.FileID, f.Edition, "", 0, mostChunks)
		return err
	})
	if err != nil {
		return err
	}
	length := pointsIn(text)
	chunks := make([]chunk.Chunk, 0, len(stored))
	for _, c := range stored {
		if c.Start < 0 || c.End > length || c.Start >= c.End || len(chunks) > 0 && c.Start < chunks[len(chunks)-1].Start {
			continue // it is of no text: somebody has changed the file of the account
		}
		chunks = append(chunks, chunk.Chunk{Start: c.Start, End: c.End, Heading: c.Heading, Page: c.Page, Kind: c.Kind, Context: c.Context, Text: c.Text})
	}
	segment, _, err := search.Encode(ctx, edition.Name, text, chunks)
	if err != nil {
		return err
	}
	return s.store.Update(ctx, userID, func(tx Tx) error { return tx.PutFileSegment(f.FileID, f.Edition, segment) })
}
