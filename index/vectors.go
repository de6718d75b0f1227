package index

import (
	"context"
	"errors"
	"fmt"
	"math"

	chromem "github.com/philippgille/chromem-go"
)

// space names a set of vectors that can be compared. A provider may change the
// length of a model's vectors; chromem would report one of another length only when
// it is searched, and fail the whole search.
type space struct {
	model string
	dim   int
}

func (v Vector) space() space { return space{v.Model, len(v.Values)} }

// collection is a space in chromem, in memory. Queries are exact scans.
type collection struct {
	*chromem.Collection
	ids map[string]bool
}

// spaces holds the vectors of an index.
type spaces struct {
	db    *chromem.DB
	of    map[space]*collection
	bytes int
}

// checkRows refuses what an index cannot hold.
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

func (v Vector) check() error {
	switch {
	case v.Model == "":
		return errors.New("no model")
	case !v.directed():
		return errors.New("no direction")
	}
	return nil
}

// directed reports whether cosines with v can be reckoned.
func (v Vector) directed() bool {
	var square float64
	for _, f := range v.Values {
		square += float64(f) * float64(f)
	}
	return square > 0 && !math.IsInf(square, 0)
}

// add enters the vectors of a row that has none yet. Of two in one space the first
// one counts.
func (s *spaces) add(ctx context.Context, row *Row) error {
	for _, v := range row.Vectors {
		c, err := s.collection(v.space())
		if err != nil {
			return err
		}
		if c.ids[row.ID] {
			continue
		}
		if err := c.AddDocument(ctx, chromem.Document{ID: row.ID, Embedding: v.Values}); err != nil {
			return fmt.Errorf("index: keep the vector of %s: %w", row.ID, err)
		}
		c.ids[row.ID] = true
		s.bytes += vectorBytes + 4*len(v.Values)
	}
	return nil
}

func (s *spaces) collection(sp space) (*collection, error) {
	if c := s.of[sp]; c != nil {
		return c, nil
	}
	if s.db == nil {
		s.db, s.of = chromem.NewDB(), map[space]*collection{}
	}
	c, err := s.db.CreateCollection(sp.name(), nil, refuse)
	if err != nil {
		return nil, fmt.Errorf("index: vectors of %s: %w", sp.model, err)
	}
	s.of[sp] = &collection{c, map[string]bool{}}
	return s.of[sp], nil
}

func (sp space) name() string { return fmt.Sprintf("%s/%d", sp.model, sp.dim) }

// refuse stands where chromem would embed by itself, over the network.
func refuse(context.Context, string) ([]float32, error) {
	return nil, errors.New("index: rows come with their vectors")
}

// remove takes the vectors of a row out, and spaces that are empty then.
func (s *spaces) remove(ctx context.Context, id string) error {
	for sp, c := range s.of {
		if !c.ids[id] {
			continue
		}
		if err := c.Delete(ctx, nil, nil, id); err != nil {
			return fmt.Errorf("index: drop the vector of %s: %w", id, err)
		}
		delete(c.ids, id)
		s.bytes -= vectorBytes + 4*sp.dim
		if len(c.ids) > 0 {
			continue
		}
		if err := s.db.DeleteCollection(sp.name()); err != nil {
			return fmt.Errorf("index: drop the vectors of %s: %w", sp.model, err)
		}
		delete(s.of, sp)
	}
	return nil
}

// near returns at most n rows of v's space by cosine, the nearest first.
func (s *spaces) near(ctx context.Context, v Vector, n int) ([]chromem.Result, error) {
	c := s.of[v.space()]
	if c == nil || n <= 0 || !v.directed() {
		return nil, nil
	}
	n = min(n, c.Count()) // more than there are is an error
	found, err := c.QueryEmbedding(ctx, v.Values, n, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("index: search vectors of %s: %w", v.Model, err)
	}
	return found, nil
}

// vector returns a copy of the vector of a row, or nil.
func (s *spaces) vector(ctx context.Context, id string, sp space) []float32 {
	c := s.of[sp]
	if c == nil || !c.ids[id] {
		return nil
	}
	d, err := c.GetByID(ctx, id)
	if err != nil { // only for an id that is not there
		return nil
	}
	return d.Embedding
}
