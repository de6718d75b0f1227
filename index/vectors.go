package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

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

// collection is a space in chromem, in memory. It is searched here and not there:
// chromem passes every document through a channel, which takes longer than the
// products.
type collection struct {
	*chromem.Collection
	at     map[string]int // place by id
	ids    []string
	values [][]float32 // the slices that chromem has
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
	square := v.square()
	return square > 0 && !math.IsInf(square, 0)
}

func (v Vector) square() (sum float64) {
	for _, f := range v.Values {
		sum += float64(f) * float64(f)
	}
	return sum
}

// normal returns the values, of length one.
func (v Vector) normal() []float32 {
	square := v.square()
	if math.Abs(square-1) < 1e-6 {
		return v.Values
	}
	values := make([]float32, len(v.Values))
	for i, f := range v.Values {
		values[i] = float32(float64(f) / math.Sqrt(square))
	}
	return values
}

// add enters the vectors of a row that has none yet. Of two in one space the first
// one counts.
func (s *spaces) add(ctx context.Context, row *Row) error {
	for _, v := range row.Vectors {
		c, err := s.collection(v.space())
		if err != nil {
			return err
		}
		if _, ok := c.at[row.ID]; ok {
			continue
		}
		values := v.normal()
		if err := c.AddDocument(ctx, chromem.Document{ID: row.ID, Embedding: values}); err != nil {
			return fmt.Errorf("index: keep the vector of %s: %w", row.ID, err)
		}
		c.at[row.ID] = len(c.ids)
		c.ids, c.values = append(c.ids, row.ID), append(c.values, values)
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
	s.of[sp] = &collection{Collection: c, at: map[string]int{}}
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
		if _, ok := c.at[id]; !ok {
			continue
		}
		if err := c.Delete(ctx, nil, nil, id); err != nil {
			return fmt.Errorf("index: drop the vector of %s: %w", id, err)
		}
		c.leave(id)
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

// leave fills the place of id with the last one.
func (c *collection) leave(id string) {
	at, last := c.at[id], len(c.ids)-1
	c.ids[at], c.values[at] = c.ids[last], c.values[last]
	c.at[c.ids[at]] = at
	delete(c.at, id)
	c.values[last] = nil
	c.ids, c.values = c.ids[:last], c.values[:last]
}

// similar is a place in a collection and its cosine with a query.
type similar struct {
	at     int
	cosine float32
}

// near returns at most n rows of v's space by cosine, the nearest first; of equally
// near ones those with the lower ids.
func (s *spaces) near(ctx context.Context, v Vector, n int) (*collection, []similar, error) {
	c := s.of[v.space()]
	if c == nil || n <= 0 || !v.directed() {
		return nil, nil, nil
	}
	values := v.normal()
	all := make([]similar, len(c.values))
	for i, other := range c.values {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, nil, fmt.Errorf("index: search vectors of %s: %w", v.Model, context.Cause(ctx))
		}
		all[i] = similar{i, product(values, other)}
	}
	return c, c.best(all, n), nil
}

// best sorts the n best of all. Only what passes the mark of a sample is sorted.
func (c *collection) best(all []similar, n int) []similar {
	order := func(a, b similar) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), strings.Compare(c.ids[a.at], c.ids[b.at]))
	}
	if mark, ok := markOf(all, n); ok {
		passed := make([]similar, 0, 4*n)
		for _, s := range all {
			if s.cosine >= mark {
				passed = append(passed, s)
			}
		}
		if len(passed) >= n {
			all = passed
		}
	}
	slices.SortFunc(all, order)
	return all[:min(n, len(all))]
}

// markOf guesses from a sample what somewhat more than n rows reach. It is not ok
// when there are too few rows to save anything.
func markOf(all []similar, n int) (mark float32, ok bool) {
	const sample = 512
	if len(all) < 4*sample || len(all) < 4*n {
		return 0, false
	}
	picked := make([]float32, sample)
	for i := range picked {
		picked[i] = all[i*len(all)/sample].cosine
	}
	slices.Sort(picked)
	above := min(sample-1, 2*n*sample/len(all)+4)
	return picked[sample-1-above], true
}

// product is the cosine of vectors of length one and of the same number of places.
func product(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0]*b[0] + a[4]*b[4]
		s1 += a[1]*b[1] + a[5]*b[5]
		s2 += a[2]*b[2] + a[6]*b[6]
		s3 += a[3]*b[3] + a[7]*b[7]
		a, b = a[8:], b[8:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return s0 + s1 + s2 + s3
}

// vector returns a copy of the vector of a row, or nil.
func (s *spaces) vector(ctx context.Context, id string, sp space) []float32 {
	c := s.of[sp]
	if c == nil {
		return nil
	}
	d, err := c.GetByID(ctx, id)
	if err != nil { // only for an id that is not there
		return nil
	}
	return d.Embedding
}
