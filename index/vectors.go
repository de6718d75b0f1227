package index

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	chromem "github.com/philippgille/chromem-go"
)

// space names vectors that can be compared. A provider may change the length of a model's
// vectors, for which chromem would fail the whole search.
type space struct {
	model string
	dim   int
}

func (v Vector) space() space { return space{v.Model, len(v.Values)} }

func (k Kept) space() space { return space{k.Model, len(k.Packed)} }

// collection is a space: chromem scans a sketch of each vector, and the cosines of the best are
// computed with the vectors themselves. So a scan costs the same for every model.
type collection struct {
	*chromem.Collection
	wholes []whole // by slot; the id in chromem is that number
	slots  map[string]int32
	free   []int32
}

// whole is a vector of a row, and the factor that gives it length one.
type whole struct {
	row    string // empty in a free slot
	packed Packed
	scale  float32
}

func (c *collection) take(row string) int32 {
	n := int32(len(c.wholes))
	if last := len(c.free) - 1; last >= 0 {
		n, c.free = c.free[last], c.free[:last]
	} else {
		c.wholes = append(c.wholes, whole{})
	}
	c.slots[row] = n
	return n
}

// shortlist is how many vectors, the best by their sketches, are compared in full; smaller
// spaces are searched exactly. docs/decisions/0012-retrieval.md describes what larger ones
// miss.
const shortlist = 768

// sketchLen is the length of the sketch of a vector with dim numbers.
func sketchLen(dim int) int { return min(dim, max(128, min(256, dim/4))) }

type spaces struct {
	db    *chromem.DB
	in    map[space]*collection
	bytes int
	room  []float32 // for sketches that lie together, as a scan likes it
}

func (s *spaces) expect(rows []Row) {
	need := 0
	for i := range rows {
		for _, v := range rows[i].Vectors {
			need += sketchLen(len(v.Packed))
		}
	}
	s.room = make([]float32, need)
}

func checkRows(rows []Row) error {
	for i := range rows {
		if rows[i].ID == "" {
			return fmt.Errorf("index: row %d has no id", i)
		}
		for _, v := range rows[i].Vectors {
			if err := v.check(); err != nil {
				return fmt.Errorf("index: row %s: vector of %q: %w", rows[i].ID, v.Model, err)
			}
		}
	}
	return nil
}

func (k Kept) check() error {
	switch {
	case k.Model == "":
		return errors.New("no model")
	case bytes.Count(k.Packed, []byte{0}) == len(k.Packed):
		return errors.New("no direction")
	}
	return nil
}

// directed reports whether v has cosines.
func (v Vector) directed() bool {
	var square float64
	for _, f := range v.Values {
		square += float64(f) * float64(f)
	}
	return square > 0 && !math.IsInf(square, 0)
}

// add enters the vectors of a new row. Of two in one space the first one counts.
func (s *spaces) add(ctx context.Context, row *Row) error {
	for _, v := range row.Vectors {
		c, err := s.collection(v.space())
		if err != nil {
			return err
		}
		if _, ok := c.slots[row.ID]; ok {
			continue
		}
		n := sketchLen(len(v.Packed))
		into := s.room[:n:n]
		s.room = s.room[n:]
		v.Packed.sketch(into)
		slot := c.take(row.ID)
		if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(int(slot)), Embedding: into}); err != nil {
			return fmt.Errorf("index: keep the vector of %s: %w", row.ID, err)
		}
		c.wholes[slot] = whole{row.ID, v.Packed, v.Packed.scale()}
		s.bytes += bytesOf(v.space())
	}
	return nil
}

func (s *spaces) collection(sp space) (*collection, error) {
	if c := s.in[sp]; c != nil {
		return c, nil
	}
	if s.db == nil {
		s.db, s.in = chromem.NewDB(), map[space]*collection{}
	}
	c, err := s.db.CreateCollection(sp.name(), nil, refuse)
	if err != nil {
		return nil, fmt.Errorf("index: vectors of %s: %w", sp.model, err)
	}
	s.in[sp] = &collection{Collection: c, slots: map[string]int32{}}
	return s.in[sp], nil
}

// bytesOf is the size of a vector and its sketch.
func bytesOf(sp space) int { return vectorBytes + sp.dim + 4*sketchLen(sp.dim) }

func (sp space) name() string { return fmt.Sprintf("%s/%d", sp.model, sp.dim) }

// refuse replaces chromem's own embedding over the network.
func refuse(context.Context, string) ([]float32, error) {
	return nil, errors.New("index: rows come with their vectors")
}

// remove removes the vectors of a row, and empty spaces.
func (s *spaces) remove(ctx context.Context, id string) error {
	for sp, c := range s.in {
		slot, ok := c.slots[id]
		if !ok {
			continue
		}
		if err := c.Delete(ctx, nil, nil, strconv.Itoa(int(slot))); err != nil {
			return fmt.Errorf("index: drop the vector of %s: %w", id, err)
		}
		delete(c.slots, id)
		c.wholes[slot], c.free = whole{}, append(c.free, slot)
		s.bytes -= bytesOf(sp)
		if len(c.slots) > 0 {
			continue
		}
		if err := s.db.DeleteCollection(sp.name()); err != nil {
			return fmt.Errorf("index: drop the vectors of %s: %w", sp.model, err)
		}
		delete(s.in, sp)
	}
	return nil
}

type neighbour struct {
	id     string
	cosine float32
}

// near returns at most n rows of v's space by cosine, nearest first.
func (s *spaces) near(ctx context.Context, v Vector, n int) ([]neighbour, error) {
	c := s.in[v.space()]
	if c == nil || n <= 0 || !v.directed() {
		return nil, nil
	}
	q := Pack(v.Values)
	into := make([]float32, sketchLen(len(q)))
	q.sketch(into)
	among := min(max(n, shortlist), c.Count()) // more than there are is an error
	found, err := c.QueryEmbedding(ctx, into, among, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("index: search vectors of %s: %w", v.Model, err)
	}
	near, scale := make([]neighbour, len(found)), q.scale()
	for i := range found {
		slot, err := strconv.Atoi(found[i].ID)
		if err != nil {
			return nil, fmt.Errorf("index: search vectors of %s: %w", v.Model, err)
		}
		w := &c.wholes[slot]
		near[i] = neighbour{w.row, float32(q.product(w.packed)) * scale * w.scale}
	}
	slices.SortFunc(near, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.id, b.id))
	})
	return near[:min(n, len(near))], nil
}

// of returns the vector of a row that can be compared with v; nil = there is none.
func (s *spaces) of(id string, v Vector) Packed {
	if c := s.in[v.space()]; c != nil {
		if slot, ok := c.slots[id]; ok {
			return c.wholes[slot].packed
		}
	}
	return nil
}
