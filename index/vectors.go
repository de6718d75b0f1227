package index

import (
	"context"
	"fmt"
	"math"

	chromem "github.com/philippgille/chromem-go"
)

// spaces holds the vectors of an index: one chromem collection for each model, in
// memory. Queries are exact scans.
type spaces struct {
	db     *chromem.DB
	models map[string]*space
	bytes  int
}

type space struct {
	collection *chromem.Collection
	dim        int
	ids        map[string]bool
}

// check refuses rows that would break a collection: chromem reports a vector of
// another length only when it is searched, for all others as well.
func (s *spaces) check(rows []Row) error {
	dims := map[string]int{}
	for model, sp := range s.models {
		dims[model] = sp.dim
	}
	for i := range rows {
		if rows[i].ID == "" {
			return fmt.Errorf("index: row %d has no id", i)
		}
		for _, v := range rows[i].Vectors {
			if err := checkVector(v, dims[v.Model]); err != nil {
				return fmt.Errorf("index: row %s: %w", rows[i].ID, err)
			}
			dims[v.Model] = len(v.Values)
		}
	}
	return nil
}

func checkVector(v Vector, dim int) error {
	if v.Model == "" {
		return fmt.Errorf("a vector without a model")
	}
	if len(v.Values) == 0 || dim > 0 && len(v.Values) != dim {
		return fmt.Errorf("a vector of %s has %d numbers, not %d", v.Model, len(v.Values), dim)
	}
	var square float64
	for _, f := range v.Values {
		square += float64(f) * float64(f)
	}
	if math.IsNaN(square) || math.IsInf(square, 0) || square == 0 {
		return fmt.Errorf("a vector of %s has no direction", v.Model)
	}
	return nil
}

// add enters the vectors of a row that has none in the spaces.
func (s *spaces) add(ctx context.Context, row *Row) error {
	for _, v := range row.Vectors {
		sp, err := s.space(v)
		if err != nil {
			return err
		}
		if sp.ids[row.ID] {
			continue // two vectors of one model: the first one counts
		}
		if err := sp.collection.AddDocument(ctx, chromem.Document{ID: row.ID, Embedding: v.Values}); err != nil {
			return fmt.Errorf("index: keep the vector of %s: %w", row.ID, err)
		}
		sp.ids[row.ID] = true
		s.bytes += vectorBytes + 4*sp.dim
	}
	return nil
}

func (s *spaces) space(v Vector) (*space, error) {
	if sp := s.models[v.Model]; sp != nil {
		return sp, nil
	}
	if s.db == nil {
		s.db, s.models = chromem.NewDB(), map[string]*space{}
	}
	name := fmt.Sprintf("%s/%d", v.Model, len(v.Values))
	c, err := s.db.CreateCollection(name, nil, refuse)
	if err != nil {
		return nil, fmt.Errorf("index: vectors of %s: %w", name, err)
	}
	sp := &space{collection: c, dim: len(v.Values), ids: map[string]bool{}}
	s.models[v.Model] = sp
	return sp, nil
}

// refuse stands where chromem would embed by itself, over the network.
func refuse(context.Context, string) ([]float32, error) {
	return nil, fmt.Errorf("index: rows come with their vectors")
}

func (s *spaces) remove(id string) {
	for model, sp := range s.models {
		if !sp.ids[id] {
			continue
		}
		// In memory, with an id, a deletion cannot fail.
		_ = sp.collection.Delete(context.Background(), nil, nil, id)
		delete(sp.ids, id)
		s.bytes -= vectorBytes + 4*sp.dim
		if len(sp.ids) == 0 { // a model may come back with another length
			_ = s.db.DeleteCollection(fmt.Sprintf("%s/%d", model, sp.dim))
			delete(s.models, model)
		}
	}
}

// near returns at most n rows of v's model by cosine, the nearest first; nothing
// for a model or a length that no row has.
func (s *spaces) near(ctx context.Context, v Vector, n int) ([]chromem.Result, error) {
	sp := s.models[v.Model]
	if sp == nil || len(v.Values) != sp.dim || n <= 0 || checkVector(v, sp.dim) != nil {
		return nil, nil
	}
	// More than there are is an error in chromem.
	return sp.collection.QueryEmbedding(ctx, v.Values, min(n, sp.collection.Count()), nil, nil)
}
