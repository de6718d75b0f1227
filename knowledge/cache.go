package knowledge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"nodest/framework"
	"nodest/knowledge/chunk"
	"nodest/knowledge/search"
)

// cacheKey names the segment of an edition, or with a model its vectors, or with a tokenizer how
// many tokens its text has. An edition does not change, so what is kept is never stale.
type cacheKey struct {
	owner, file      string
	edition          int64
	model, tokenizer string
}

// loadBatch is how many files one statement reads at most.
const loadBatch = 500

// byOwner groups the places of files in a list by their owners.
func byOwner(refs []FileRef) map[string][]int {
	owners := map[string][]int{}
	for i, r := range refs {
		owners[r.OwnerID] = append(owners[r.OwnerID], i)
	}
	return owners
}

// library has the files of one search: search.Library. It holds one group of files at a time,
// of about as many bytes as the cache may have. Of a scope that is larger than the cache the
// first files are kept in it and the others are read each time; else each search would throw
// out what the next one needs.
type library struct {
	s      *Service
	userID string
	refs   []FileRef // whose editions may be later ones, once they were read
	model  string    // the vectors' model
	dim    int       // the vectors' dimension; 0 = none are searched

	room     int    // bytes of the cache that this search may still use
	segments []bool // files whose segments were read
	packed   []bool // likewise vectors
	fixed    []bool // files of which something was read: their edition stays
}

// The index of a file takes this much memory, in bytes: half of it for long English texts, and
// twice as much for texts that hardly repeat a word.
const (
	bytesPerChar  = 4
	bytesPerChunk = 40
)

func (s *Service) library(userID string, refs []FileRef, model string, dim int) *library {
	return &library{
		s: s, userID: userID, refs: refs, model: model, dim: dim,
		room: s.opts.CacheBytes, segments: make([]bool, len(refs)), packed: make([]bool, len(refs)), fixed: make([]bool, len(refs)),
	}
}

// IDs names the files.
func (l *library) IDs() []string {
	ids := make([]string, len(l.refs))
	for i := range l.refs {
		ids[i] = l.refs[i].ID
	}
	return ids
}

// Segments reads segments. A file that is gone meanwhile has none. One that has another edition
// when it is first read is searched in that; later it has none.
func (l *library) Segments(ctx context.Context, files []int, do func(files []int, segments []*search.Segment) error) error {
	return inGroups(ctx, l, "", files, do, func(tx Tx, owner string, of map[string]int, found func(i int, s *search.Segment, whole bool)) error {
		rows, err := tx.FileSegments(owner, slices.Collect(maps.Keys(of)))
		for _, row := range rows {
			i := of[row.FileID]
			if !l.fixed[i] {
				l.refs[i].Edition = row.Edition
			} else if row.Edition != l.refs[i].Edition {
				continue
			}
			segment, err := decoded(ctx, tx, owner, row)
			if err != nil {
				return err
			}
			found(i, segment, true)
		}
		return err
	})
}

// Vectors reads vectors. Those of a file that is still being embedded are not kept in memory.
func (l *library) Vectors(ctx context.Context, files []int, do func(files []int, vectors []*search.Vectors) error) error {
	return inGroups(ctx, l, l.model, files, do, func(tx Tx, owner string, of map[string]int, found func(i int, v *search.Vectors, whole bool)) error {
		rows, err := tx.Vectors(owner, l.model, slices.Collect(maps.Keys(of)))
		for _, row := range rows {
			if i := of[row.FileID]; row.Edition == l.refs[i].Edition {
				found(i, search.NewVectors(row.Vectors), row.Whole)
			}
		}
		return err
	})
}

// expected estimates the bytes of a file's segment, or with a model of its vectors.
func (l *library) expected(file int, model string) int {
	r := &l.refs[file]
	if model != "" {
		return r.Chunks * (l.dim + bytesPerChunk)
	}
	return r.Chars*bytesPerChar + r.Chunks*bytesPerChunk
}

// weight estimates what the search of all files holds at once, in bytes.
func (l *library) weight() int64 {
	sum := 0
	for i := range l.refs {
		sum += l.expected(i, "")
		if l.dim > 0 {
			sum += l.expected(i, l.model)
		}
	}
	most := l.s.opts.CacheBytes
	return max(1, min(max(int64(sum), leastOfSearch(l.s.opts.Pipeline)), int64(most)))
}

// inGroups calls do with groups of files: from the cache, or loaded in batches for one owner
// after the other.
func inGroups[V interface {
	comparable
	Bytes() int
}](ctx context.Context, l *library, model string, files []int, do func([]int, []V) error,
	load func(tx Tx, owner string, of map[string]int, found func(i int, v V, whole bool)) error,
) error {
	most := l.s.opts.CacheBytes
	for len(files) > 0 {
		var group []V
		held := 0
		for len(group) < len(files) && held < most {
			missing, waiting := map[int]int{}, 0 // places in the group, by file; bytes
			for len(group) < len(files) && held+waiting < most && waiting < most/4+1 && len(missing) < loadBatch {
				file := files[len(group)]
				var v V
				if kept, ok := l.s.engine.cache.Get(l.key(file, model)); ok {
					v = kept.(V)
					held += v.Bytes()
					l.fixed[file] = true
					l.mayKeep(file, model, v.Bytes())
				} else {
					missing[file] = len(group)
					waiting += l.expected(file, model)
				}
				group = append(group, v)
			}
			err := l.load(ctx, missing, func(tx Tx, owner string, of map[string]int) error {
				return load(tx, owner, of, func(i int, v V, whole bool) {
					group[missing[i]] = v
					l.fixed[i] = true
					held += v.Bytes()
					if whole && l.mayKeep(i, model, v.Bytes()) {
						l.s.engine.cache.Put(l.key(i, model), v, v.Bytes())
					}
				})
			})
			if err != nil {
				return err
			}
		}
		if err := do(files[:len(group)], group); err != nil {
			return err
		}
		files = files[len(group):]
	}
	return nil
}

func (l *library) key(file int, model string) cacheKey {
	r := &l.refs[file]
	return cacheKey{r.OwnerID, r.ID, r.Edition, model, ""}
}

// mayKeep counts what is read of a file, and reports whether the cache has room for it.
func (l *library) mayKeep(file int, model string, bytes int) bool {
	read := l.segments
	if model != "" {
		read = l.packed
	}
	if !read[file] {
		read[file] = true
		l.room -= bytes
	}
	return l.room >= 0
}

// load reads files, by the owners that they have, in one transaction.
func (l *library) load(ctx context.Context, files map[int]int, read func(tx Tx, owner string, of map[string]int) error) error {
	if len(files) == 0 {
		return nil
	}
	owners := map[string]map[string]int{}
	for i := range files {
		r := &l.refs[i]
		if owners[r.OwnerID] == nil {
			owners[r.OwnerID] = map[string]int{}
		}
		owners[r.OwnerID][r.ID] = i
	}
	return l.s.store.View(ctx, l.userID, func(tx Tx) error {
		for owner, of := range owners {
			if err := read(tx, owner, of); err != nil {
				return err
			}
		}
		return nil
	})
}

// decoded is a stored segment. One of an earlier format is built again.
func decoded(ctx context.Context, tx Tx, owner string, row FileSegment) (*search.Segment, error) {
	segment, err := search.Decode(row.Data)
	if err == nil {
		return segment, nil
	}
	data, again := rebuild(ctx, tx, owner, row.FileID, row.Edition)
	if again == nil {
		segment, again = search.Decode(data)
	}
	if again != nil {
		return nil, fmt.Errorf("segment of file %s: %w, and again: %w", row.FileID, err, again)
	}
	return segment, nil
}

// rebuild encodes the segment of an edition from its stored text and chunks.
func rebuild(ctx context.Context, tx Tx, owner, fileID string, edition int64) ([]byte, error) {
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
	data, _, err := search.Encode(ctx, e.Name, text, chunks)
	return data, err
}

// queryVector embeds a question with the model that is searched, and remembers the vector: a
// character's search asks for it twice. nil = that failed, or took too long.
func (s *Service) queryVector(ctx context.Context, userID, model, text string) []float32 {
	key := cacheKey{owner: userID, file: text, edition: -1, model: model}
	if kept, ok := s.engine.cache.Get(key); ok {
		return kept.([]float32)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.QueryTime)
	defer cancel()
	e := s.embedderOf(ctx, userID, model)
	if e == nil {
		return nil
	}
	v := embedQuery(ctx, e, text)
	if v != nil {
		s.engine.cache.Put(key, v, 4*len(v)+len(text))
	}
	return v
}

// CountTokens counts those of a document's text, once: for OpenAI's models it takes longer than
// everything else about a document.
func (s *Service) CountTokens(f *BoundFile, tokenizer, text string) int {
	key := cacheKey{f.OwnerID, f.ID, f.Edition, "", cmp.Or(tokenizer, "estimate")}
	if kept, ok := s.engine.cache.Get(key); ok {
		return kept.(int)
	}
	n := framework.CountTokens(tokenizer, text)
	s.engine.cache.Put(key, n, 256)
	return n
}
