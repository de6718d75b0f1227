package index

import (
	"context"
	"errors"
	"fmt"

	chromem "github.com/philippgille/chromem-go"
)

// space names vectors that can be compared. A provider may change the length of a model's
// vectors, for which chromem would fail the whole search.
type space struct {
	model string
	dim   int
}

func (v Vector) space() space { return space{v.Model, len(v.Values)} }

func (k Kept) space() space { return space{k.Model, k.Packed.Dim()} }

// spaces holds the vectors of rows in memory whole, and chromem compares all of a space.
type spaces struct {
	db    *chromem.DB
	in    map[space]*chromem.Collection // by the ids of rows
	bytes int
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
	case k.Packed.scale() > 0:
		return nil
	}
	return errors.New("no direction")
}

// add enters the vectors of a new row.
func (s *spaces) add(ctx context.Context, row *Row) error {
	for _, v := range row.Vectors {
		c, err := s.collection(v.space())
		if err != nil {
			return err
		}
		before := c.Count()
		if err := c.AddDocument(ctx, chromem.Document{ID: row.ID, Embedding: v.Packed.Unit()}); err != nil {
			return fmt.Errorf("index: keep the vector of %s: %w", row.ID, err)
		}
		s.bytes += (c.Count() - before) * bytesOf(v.space())
	}
	return nil
}

func (s *spaces) collection(sp space) (*chromem.Collection, error) {
	if c := s.in[sp]; c != nil {
		return c, nil
	}
	if s.db == nil {
		s.db, s.in = chromem.NewDB(), map[space]*chromem.Collection{}
	}
	c, err := s.db.CreateCollection(sp.name(), nil, refuse)
	if err != nil {
		return nil, fmt.Errorf("index: vectors of %s: %w", sp.model, err)
	}
	s.in[sp] = c
	return c, nil
}

func bytesOf(sp space) int { return vectorBytes + 4*sp.dim }

const vectorBytes = 120 // bytes of a vector besides its numbers

func (sp space) name() string { return fmt.Sprintf("%s/%d", sp.model, sp.dim) }

// refuse replaces chromem's own embedding over the network.
func refuse(context.Context, string) ([]float32, error) {
	return nil, errors.New("index: rows come with their vectors")
}

// remove removes the vectors of a row, and empty spaces.
func (s *spaces) remove(ctx context.Context, id string) error {
	for sp, c := range s.in {
		before := c.Count()
		if err := c.Delete(ctx, nil, nil, id); err != nil {
			return fmt.Errorf("index: drop the vector of %s: %w", id, err)
		}
		s.bytes -= (before - c.Count()) * bytesOf(sp)
		if c.Count() > 0 {
			continue
		}
		if err := s.db.DeleteCollection(sp.name()); err != nil {
			return fmt.Errorf("index: drop the vectors of %s: %w", sp.model, err)
		}
		delete(s.in, sp)
	}
	return nil
}

// near returns at most n rows of v's space, nearest first; q is v packed.
func (s *spaces) near(ctx context.Context, v Vector, q Packed, n int) ([]chromem.Result, error) {
	c := s.in[v.space()]
	if c == nil || n <= 0 {
		return nil, nil
	}
	found, err := c.QueryEmbedding(ctx, q.Unit(), min(n, c.Count()), nil, nil) // more than there are is an error
	if err != nil {
		return nil, fmt.Errorf("index: search vectors of %s: %w", v.Model, err)
	}
	return found, nil
}

// of returns the vector of a row that can be compared with v; nil = there is none.
func (s *spaces) of(ctx context.Context, id string, v Vector) Packed {
	if c := s.in[v.space()]; c != nil {
		if d, err := c.GetByID(ctx, id); err == nil { // an error says that there is none
			return Pack(d.Embedding)
		}
	}
	return nil
}
