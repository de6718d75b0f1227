package knowledge

import (
	"context"
	"fmt"

	"nodest/knowledge/chunk"
	"nodest/knowledge/search"
)

// cacheKey names the segment of an edition, or with a model its vectors. An edition does not
// change, so what is kept is never stale.
type cacheKey struct {
	owner, file string
	edition     int64
	model       string
}

// loadBatch is how many files one statement reads.
const loadBatch = 500

// byOwner groups the places of files in a list by their owners.
func byOwner(refs []FileRef) map[string][]int {
	owners := map[string][]int{}
	for i, r := range refs {
		owners[r.OwnerID] = append(owners[r.OwnerID], i)
	}
	return owners
}

// segments loads the segments of files, those that are not in memory with one query for many
// files. A file that is gone meanwhile has none; one with another edition gets that.
func (s *Service) segments(tx Tx, refs []FileRef) ([]*search.Segment, error) {
	found := make([]*search.Segment, len(refs))
	for owner, places := range byOwner(refs) {
		missing := map[string]int{}
		for _, i := range places {
			if kept, ok := s.engine.cache.Get(cacheKey{owner, refs[i].ID, refs[i].Edition, ""}); ok {
				found[i] = kept.(*search.Segment)
			} else {
				missing[refs[i].ID] = i
			}
		}
		for some := range chunksOf(missing, loadBatch) {
			rows, err := tx.Segments(owner, some)
			if err != nil {
				return nil, err
			}
			for _, row := range rows {
				i := missing[row.FileID]
				refs[i].Edition = row.Edition
				if found[i], err = s.segment(tx, owner, row); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}

// segment decodes a stored segment, and keeps it. One of an earlier format is built again.
func (s *Service) segment(tx Tx, owner string, row FileSegment) (*search.Segment, error) {
	seg, err := search.Decode(row.Data)
	if err != nil {
		data, again := rebuild(tx, owner, row.FileID, row.Edition)
		if again == nil {
			seg, again = search.Decode(data)
		}
		if again != nil {
			return nil, fmt.Errorf("segment of file %s: %w, and again: %w", row.FileID, err, again)
		}
	}
	s.engine.cache.Put(cacheKey{owner, row.FileID, row.Edition, ""}, seg, seg.Bytes())
	return seg, nil
}

// rebuild encodes the segment of an edition from its stored text and chunks.
func rebuild(tx Tx, owner, fileID string, edition int64) ([]byte, error) {
	e, err := tx.EditionOf(owner, fileID, edition)
	if err != nil {
		return nil, err
	}
	text, err := tx.TextRange(owner, fileID, edition, 0, -1)
	if err != nil {
		return nil, err
	}
	stored, err := tx.ChunkRange(owner, fileID, edition, "", 0, e.Chunks)
	if err != nil {
		return nil, err
	}
	chunks := make([]chunk.Chunk, len(stored))
	for i, c := range stored {
		chunks[i] = chunk.Chunk{Start: c.Start, End: c.End, Text: c.Text, Heading: c.Heading, Page: c.Page, Kind: c.Kind, Context: c.Context}
	}
	return search.Encode(e.Name, text, chunks), nil
}

// vectors loads the vectors of files in a model. Those of a file that is still being embedded
// are not kept in memory.
func (s *Service) vectors(tx Tx, refs []FileRef, model string) ([]*search.Vectors, error) {
	found := make([]*search.Vectors, len(refs))
	for owner, places := range byOwner(refs) {
		missing := map[string]int{}
		for _, i := range places {
			if kept, ok := s.engine.cache.Get(cacheKey{owner, refs[i].ID, refs[i].Edition, model}); ok {
				found[i] = kept.(*search.Vectors)
			} else {
				missing[refs[i].ID] = i
			}
		}
		for some := range chunksOf(missing, loadBatch) {
			rows, err := tx.Vectors(owner, model, some)
			if err != nil {
				return nil, err
			}
			for _, row := range rows {
				i := missing[row.FileID]
				if row.Edition != refs[i].Edition { // it was replaced between two queries
					continue
				}
				found[i] = search.NewVectors(row.Vectors)
				if row.Whole {
					s.engine.cache.Put(cacheKey{owner, row.FileID, row.Edition, model}, found[i], found[i].Bytes())
				}
			}
		}
	}
	return found, nil
}

// chunksOf yields the keys of a map, at most n at a time.
func chunksOf(m map[string]int, n int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		some := make([]string, 0, min(n, len(m)))
		for key := range m {
			if some = append(some, key); len(some) == n {
				if !yield(some) {
					return
				}
				some = some[:0]
			}
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// queryVector embeds a question with the model that is searched. nil = that failed, or took
// too long.
func (s *Service) queryVector(ctx context.Context, userID, model, text string) []float32 {
	ctx, cancel := context.WithTimeout(ctx, s.opts.QueryTime)
	defer cancel()
	e := s.embedderOf(ctx, userID, model)
	if e == nil {
		return nil
	}
	return embedQuery(ctx, e, text)
}
