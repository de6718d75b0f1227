package index

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Row is what an index knows of one row of its owner.
type Row struct {
	ID      string
	Version int64    // a row replaces one of the same id unless it is older
	Group   string   // rows of a group are neighbours: a session, a document; empty = it stands alone
	Order   int64    // place in the group
	Terms   string   // from Join
	Marks   []string // further keys by which Marked finds the row; they do not count as terms
	Vectors []Kept

	// Attr is what a ranking needs to know of every row. Its upper half, as a signed number, is
	// stored in less space if neighbours have similar ones.
	Attr uint64

	// Data is returned with the row. Size is its size in bytes.
	Data any
	Size int
}

// Kept is a row's vector of one embedding model.
type Kept struct {
	Model  string
	Packed Packed // not changed by anybody afterwards
}

// Vector is a question's vector. Only its direction counts.
type Vector struct {
	Model  string
	Values []float32
}

// Index is a search index of the rows of one owner: stored segments, and the newest rows, which are a
// segment in memory. It is safe for concurrent use.
type Index struct {
	mu       sync.RWMutex
	sections []*section // stored ones, and the one in memory
	source   Source
	key      string // for source
	newest   *Builder
	byID     map[string]*entry // the entries of newest
	vectors  spaces            // the vectors of newest
}

// New returns an empty index.
func New() *Index { return newIndex(nil) }

// newIndex returns an index of stored segments.
func newIndex(stored []*section) *Index {
	x := &Index{newest: NewBuilder(), byID: map[string]*entry{}}
	newest := &section{Head: emptyHead(), held: x.newest}
	for _, s := range append(stored, newest) {
		s.from = x.slots()
		x.sections = append(x.sections, s)
	}
	return x
}

// inMemory returns the section of the newest rows.
func (x *Index) inMemory() *section { return x.sections[len(x.sections)-1] }

// stored returns the sections that are read from the source.
func (x *Index) stored() []*section { return x.sections[:len(x.sections)-1] }

// slots returns one more than the highest number of a row. Bits of the rows of a section begin with
// a word.
func (x *Index) slots() int {
	if len(x.sections) == 0 {
		return 0
	}
	last := x.sections[len(x.sections)-1]
	return last.from + (last.Rows+63)&^63
}

// Bytes estimates the size of the index.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	size := x.newest.bytes() + x.vectors.bytes
	for _, s := range x.sections {
		size += s.Bytes()
	}
	return size
}

// Apply removes rows and then adds others, atomically for readers. A newer version of a row
// stays; unknown ids are ignored. It fails, without a change, for a row without an id and for a
// vector without a model or a direction.
func (x *Index) Apply(ctx context.Context, put []Row, remove []string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := checkRows(put); err != nil {
		return err
	}
	gone := map[string]bool{}
	for _, id := range remove {
		gone[id] = true
	}
	news := x.newer(put, gone)
	for id := range news {
		gone[id] = true
	}
	var old []*entry
	for id := range gone {
		e := x.byID[id]
		if e == nil {
			continue
		}
		if err := x.vectors.remove(ctx, id); err != nil {
			return err
		}
		old = append(old, e)
		delete(x.byID, id)
	}
	for _, r := range news {
		if err := x.vectors.add(ctx, r); err != nil {
			return err
		}
	}
	for _, e := range x.newest.change(x.inMemory().Head, old, slices.Collect(maps.Values(news))) {
		x.byID[e.id] = e
	}
	return nil
}

// newer returns the newest of each of some rows, without those that the index has in a newer version
// which stays.
func (x *Index) newer(put []Row, gone map[string]bool) map[string]*Row {
	news := map[string]*Row{}
	for i := range put {
		r := &put[i]
		if other := news[r.ID]; other != nil && other.Version > r.Version {
			continue
		}
		if e := x.byID[r.ID]; e != nil && !gone[r.ID] && e.version > r.Version {
			continue
		}
		news[r.ID] = r
	}
	return news
}

// rows returns how many rows there are.
func (x *Index) rows() (n int) {
	for _, s := range x.sections {
		n += s.Rows - s.stale.count
	}
	return n
}
