package index

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"nodest/internal/index/dict"
)

// Source reads what is stored of an index.
type Source interface {
	// Parts returns parts of segments, in the order asked.
	Parts(ctx context.Context, key string, parts []Part) ([][]byte, error)
	// Rows returns rows as they are now, by id, without terms; those that are gone are left out.
	Rows(ctx context.Context, key string, ids []string) ([]Row, error)
	// Vectors returns the vectors of rows by a model, by id; rows without one are left out.
	Vectors(ctx context.Context, key, model string, ids []string) (map[string]Packed, error)
}

// Segment is a stored part of an index: rows whose version was from From+1 to To when it was
// made. A row that has changed since has a later version.
type Segment struct {
	ID       string
	From, To int64
}

// Part is a part of a segment. It never changes.
type Part struct {
	Segment string // id
	Number  int
}

// section is a segment that is searched.
type section struct {
	*Head
	Segment
	from  int // number of its first row
	stale staleRows
	held  *Builder // the rows in memory; nil = the segment is stored
}

// staleRows are rows of a segment that are in memory too, in a later version.
type staleRows struct {
	bits  []uint64
	count int
}

func (s *staleRows) has(n int) bool { return s.count > 0 && s.bits[n/64]&(1<<(n%64)) != 0 }

func (s *staleRows) add(n, of int) {
	if s.bits == nil {
		s.bits = make([]uint64, (of+63)/64)
	}
	if !s.has(n) {
		s.bits[n/64] |= 1 << (n % 64)
		s.count++
	}
}

func (s *staleRows) each(f func(n int)) {
	for at, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			f(64*at + bits.TrailingZeros64(word))
		}
	}
}

// open returns an index of some segments, without rows in memory. It takes those that old has from
// there.
func open(ctx context.Context, source Source, key string, segments []Segment, old *Index) (*Index, error) {
	var stored []*section
	for _, one := range segments {
		s, err := openOne(ctx, source, key, one, old)
		if err != nil {
			return nil, err
		}
		if s.Rows > 0 { // else all of its rows have changed since
			stored = append(stored, s)
		}
	}
	x := newIndex(stored)
	x.source, x.key = source, key
	return x, nil
}

func openOne(ctx context.Context, source Source, key string, one Segment, old *Index) (*section, error) {
	if old != nil {
		for _, s := range old.stored() {
			if s.ID == one.ID {
				return &section{Head: s.Head, Segment: one}, nil
			}
		}
	}
	parts, err := source.Parts(ctx, key, []Part{{one.ID, 0}})
	if err != nil {
		return nil, err
	}
	head, err := Decode(parts[0])
	if err != nil {
		return nil, fmt.Errorf("open segment %s: %w", one.ID, err)
	}
	return &section{Head: head, Segment: one}, nil
}

// supersede notes which stored rows are replaced by others, or gone.
func (x *Index) supersede(ctx context.Context, rows []Row, gone []string) error {
	wanted := wanted[sought]{}
	for _, s := range x.stored() {
		for i := range rows {
			s.seek(wanted, &rows[i])
		}
		for _, id := range gone {
			s.seek(wanted, &Row{ID: id})
		}
	}
	return wanted.read(ctx, x, func(s *section, part []byte, ids []sought) {
		x.mu.Lock()
		defer x.mu.Unlock()
		s.findStale(part, ids)
	})
}

// wanted is what is looked for in parts of segments.
type wanted[T any] map[partOf][]T

type partOf struct {
	in     *section
	number int
}

// read reads the parts, all at once, and calls use for each of them.
func (w wanted[T]) read(ctx context.Context, x *Index, use func(in *section, part []byte, sought []T)) error {
	if len(w) == 0 {
		return nil
	}
	of := slices.SortedFunc(maps.Keys(w), func(a, b partOf) int {
		return cmp.Or(cmp.Compare(a.in.from, b.in.from), cmp.Compare(a.number, b.number))
	})
	numbers := make([]Part, len(of))
	for i, p := range of {
		numbers[i] = Part{p.in.ID, p.number}
	}
	parts, err := x.source.Parts(ctx, x.key, numbers)
	if err != nil {
		return err
	}
	for i, p := range of {
		use(p.in, parts[i], w[p])
	}
	return nil
}

// sought is an id that may be in a part, whose first row is first.
type sought struct {
	id    string
	first int
}

// seek adds the parts in which an older version of a row may be.
func (s *section) seek(wanted wanted[sought], r *Row) {
	if r.Group == "" {
		if part, first := s.LonePart(r.ID); part > 0 {
			wanted[partOf{s, part}] = append(wanted[partOf{s, part}], sought{r.ID, first})
		}
		return
	}
	g := s.Group(r.Group)
	if g == nil || r.Order < g.Lowest || r.Order > g.Highest {
		return
	}
	for n := g.First; n < g.End; n = s.NextIDs(n) {
		part := partOf{s, s.IDPart(n)}
		wanted[part] = append(wanted[part], sought{r.ID, s.FirstOf(n)})
	}
}

func (s *section) findStale(part []byte, ids []sought) {
	rows := readIDs(part)
	for _, w := range ids {
		if at := rows.Find(w.id); at >= 0 {
			s.stale.add(w.first+at, s.Rows)
		}
	}
}

// at returns the section that row n is in, and its number there.
func (x *Index) at(n int) (*section, int) {
	i, end := 0, len(x.sections)
	for end-i > 1 {
		if middle := (i + end) / 2; x.sections[middle].from <= n {
			i = middle
		} else {
			end = middle
		}
	}
	return x.sections[i], n - x.sections[i].from
}

// list is where a key is in a section.
type list struct {
	in *section
	Postings
	held []dict.Posting // the postings of the section in memory
}

// appendTo appends the rows to a list, in order; only those whose bit is set in among, unless it is nil.
func (l *list) appendTo(to []dict.Posting, among []uint64) []dict.Posting {
	if l.in.held == nil {
		return l.in.Append(to, l.Postings, among)
	}
	for _, p := range l.held {
		if among == nil || among[p.Row/64]>>(p.Row%64)&1 == 1 {
			to = append(to, p)
		}
	}
	return to
}

// lists returns where each of some keys is.
func (x *Index) lists(ctx context.Context, keys []string) (map[string][]list, error) {
	found, wanted := make(map[string][]list, len(keys)), wanted[string]{}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for _, s := range x.stored() {
		for _, key := range keys {
			if part := (partOf{s, s.TermPart(key)}); part.number > 0 {
				wanted[part] = append(wanted[part], key)
			}
		}
	}
	err := wanted.read(ctx, x, func(s *section, part []byte, keys []string) {
		for _, key := range keys {
			if p := find(part, key); p.Rows > 0 {
				found[key] = append(found[key], list{s, p, nil})
			}
		}
	})
	for _, key := range keys {
		if all := x.newest.find(key); len(all) > 0 {
			found[key] = append(found[key], list{x.inMemory(), Postings{Rows: len(all)}, all})
		}
	}
	return found, err
}

// ids returns the ids of stored rows.
func (x *Index) ids(ctx context.Context, numbers []int) (map[int]string, error) {
	found, wanted := make(map[int]string, len(numbers)), wanted[int]{} // local numbers
	for _, n := range numbers {
		if s, local := x.at(n); s.held == nil {
			part := partOf{s, s.IDPart(local)}
			wanted[part] = append(wanted[part], local)
		}
	}
	err := wanted.read(ctx, x, func(s *section, part []byte, locals []int) {
		ids, first := readIDs(part), s.FirstOf(locals[0])
		for _, n := range locals {
			found[s.from+n] = ids.At(n - first)
		}
	})
	return found, err
}

// Found is a row that was read.
type Found struct {
	N      int // its number
	ID     string
	Data   any
	vector Packed // the vector of the model that was asked for
}

// Rows returns rows as they are now, in the order of numbers, with their vectors of q's model (none
// if q has no numbers). Those that are gone, or have changed since they were stored, are left out.
func (v View) Rows(ctx context.Context, numbers []int, q Vector) ([]Found, error) {
	x := v.x
	names, err := x.ids(ctx, numbers)
	if err != nil {
		return nil, err
	}
	rows, err := x.read(ctx, slices.Sorted(maps.Values(names)))
	if err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(numbers))
	for _, n := range numbers {
		s, local := x.at(n)
		if s.held != nil {
			e := s.held.rows[local]
			found = append(found, Found{n, e.id, e.data, x.vectors.of(ctx, e.id, q)})
			continue
		}
		if r := rows[names[n]]; r != nil && r.Version <= s.To && r.Version > s.From {
			found = append(found, Found{n, r.ID, r.Data, r.vector(q)})
		}
	}
	return found, nil
}

// read reads rows by id.
func (x *Index) read(ctx context.Context, ids []string) (map[string]*Row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := x.source.Rows(ctx, x.key, ids)
	rows := make(map[string]*Row, len(all))
	for i := range all {
		rows[all[i].ID] = &all[i]
	}
	return rows, err
}

// vector returns the vector of q's model; nil = there is none, or q has no numbers.
func (r *Row) vector(q Vector) Packed {
	for _, k := range r.Vectors {
		if k.Model == q.Model && len(q.Values) > 0 {
			return k.Packed
		}
	}
	return nil
}

// ByID is Rows by id. The numbers of the rows are -1.
func (v View) ByID(ctx context.Context, ids []string, q Vector) (found []Found, err error) {
	var missing []string
	for _, id := range ids {
		if e := v.x.byID[id]; e != nil {
			found = append(found, Found{-1, id, e.data, v.x.vectors.of(ctx, id, q)})
		} else if v.x.source != nil {
			missing = append(missing, id)
		}
	}
	rows, err := v.x.read(ctx, missing)
	for _, r := range rows {
		found = append(found, Found{-1, r.ID, r.Data, r.vector(q)})
	}
	return found, err
}
