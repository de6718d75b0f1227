package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
)

// Row is what an index knows of one row of its owner.
type Row struct {
	ID      string
	Version int64  // a row replaces one of the same id unless it is older
	Group   string // rows of a group are neighbours: a session, a document; empty = it stands alone
	Order   int64  // place in the group
	Terms   string // from Analyser.Join
	Vectors []Vector

	// Data comes back with the row; the index does not look into it. Size is what
	// it takes in memory, in bytes.
	Data any
	Size int
}

// Vector is the place of a row in the space of one embedding model.
type Vector struct {
	Model  string
	Values []float32 // of length one; not changed by anybody afterwards
}

// Index is a search index of the rows of one owner. Make one with New. It is safe
// for concurrent use.
type Index struct {
	mu      sync.RWMutex
	docs    []doc // by ordinal, with gaps where rows were removed
	byID    map[string]int32
	groups  map[string]*group
	vocab   map[string]int32
	terms   []term
	vectors spaces
	removed int // gaps in docs
	length  int // terms of all rows
	grouped int // terms of rows in groups
	size    int // bytes of rows and terms
}

// doc is a row in the index.
type doc struct {
	id      string
	version int64
	order   int64
	group   *group // nil in a gap
	at      int32  // place in group
	terms   []int32
	data    any
	size    int
}

// group keeps its rows in order. before[i] is the sum of the lengths in front of
// row i, so that a window's length is one subtraction.
type group struct {
	name   string
	docs   []int32
	before []int32
}

type term struct {
	text     string
	postings []posting
	rows     int // that have it; postings also has those of gaps
}

type posting struct {
	doc   int32
	count int32
}

// New returns an empty index.
func New() *Index {
	x := &Index{}
	x.reset(0)
	return x
}

func (x *Index) reset(rows int) {
	x.docs = make([]doc, 0, rows)
	x.byID = make(map[string]int32, rows)
	x.groups = map[string]*group{}
	x.vocab = make(map[string]int32, rows)
	x.terms, x.removed, x.length, x.grouped, x.size = nil, 0, 0, 0, 0
}

// What a row, a distinct term of a row and a term of the vocabulary cost besides
// their texts, in bytes, measured with 10,000 rows.
const (
	rowBytes     = 220
	postingBytes = 12
	tokenBytes   = 4
	termBytes    = 110
	vectorBytes  = 260
)

// Bytes estimates what the index takes in memory.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.size + x.vectors.bytes
}

// Len returns the number of rows.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Apply removes rows and then puts others, all at once for readers. A row that is
// there in a newer version stays; an unknown id is no error. It fails, with nothing
// changed, for a row without an id and for a vector without a model or a direction.
func (x *Index) Apply(ctx context.Context, put []Row, remove []string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := checkRows(put); err != nil {
		return err
	}
	if err := x.removeAll(ctx, remove...); err != nil {
		return err
	}
	if len(x.docs) == 0 {
		x.reset(len(put))
	}
	unsorted := map[*group]bool{}
	for i := range put {
		if at, ok := x.byID[put[i].ID]; ok {
			if x.docs[at].version > put[i].Version {
				continue
			}
			if err := x.removeAll(ctx, put[i].ID); err != nil {
				return err
			}
		}
		if g, sorted := x.add(&put[i]); !sorted {
			unsorted[g] = true
		}
		if err := x.vectors.add(ctx, &put[i]); err != nil {
			return err
		}
	}
	for g := range unsorted {
		slices.SortFunc(g.docs, x.inOrder)
		x.renumber(g, 0)
	}
	if x.removed > 64 && x.removed > len(x.byID)/4 {
		x.compact()
	}
	return nil
}

// inOrder compares rows of a group.
func (x *Index) inOrder(a, b int32) int {
	return cmp.Or(cmp.Compare(x.docs[a].order, x.docs[b].order), strings.Compare(x.docs[a].id, x.docs[b].id))
}

// add puts a new row at the end of its group and tells whether that is its place.
func (x *Index) add(row *Row) (g *group, sorted bool) {
	g = x.group(row.Group)
	n := int32(len(x.docs))
	sorted = len(g.docs) == 0 || x.docs[g.docs[len(g.docs)-1]].order < row.Order
	d := doc{id: row.ID, version: row.Version, order: row.Order, group: g, at: int32(len(g.docs)), data: row.Data, size: rowBytes + len(row.ID) + row.Size}
	d.terms = x.post(n, row.Terms)
	g.docs = append(g.docs, n)
	g.before = append(g.before, g.before[len(g.docs)-1]+int32(len(d.terms)))
	d.size += len(d.terms) * (tokenBytes + postingBytes)
	x.docs = append(x.docs, d)
	x.byID[row.ID] = n
	x.length += len(d.terms)
	if row.Group != "" {
		x.grouped += len(d.terms)
	}
	x.size += d.size
	return g, sorted
}

// group returns the group of a name, and a new one for each row that stands alone.
func (x *Index) group(name string) *group {
	g := x.groups[name]
	if g == nil {
		g = &group{name: name, before: []int32{0}}
		if name != "" {
			x.groups[name] = g
		}
	}
	return g
}

// post enters the terms of a row under ordinal n and returns their numbers.
func (x *Index) post(n int32, joined string) []int32 {
	numbers := make([]int32, 0, strings.Count(joined, " ")+1)
	for text := range strings.FieldsSeq(joined) {
		t, ok := x.vocab[text]
		if !ok {
			text = strings.Clone(text) // do not keep the row's whole string
			t = int32(len(x.terms))
			x.vocab[text] = t
			x.terms = append(x.terms, term{text: text})
			x.size += termBytes + len(text)
		}
		numbers = append(numbers, t)
		x.terms[t].count(n)
	}
	return numbers
}

// count enters one more occurrence in row n, the highest one so far.
func (t *term) count(n int32) {
	if last := len(t.postings) - 1; last >= 0 && t.postings[last].doc == n {
		t.postings[last].count++
		return
	}
	t.postings = append(t.postings, posting{n, 1})
	t.rows++
}

func (x *Index) removeAll(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		n, ok := x.byID[id]
		if !ok {
			continue
		}
		d := &x.docs[n]
		seen := make(map[int32]bool, len(d.terms))
		for _, t := range d.terms {
			if !seen[t] {
				seen[t] = true
				x.terms[t].rows--
			}
		}
		x.length -= len(d.terms)
		if d.group.name != "" {
			x.grouped -= len(d.terms)
		}
		x.size -= d.size
		x.leave(d)
		if err := x.vectors.remove(ctx, id); err != nil {
			return err
		}
		delete(x.byID, id)
		*d = doc{}
		x.removed++
	}
	return nil
}

// leave takes d out of its group.
func (x *Index) leave(d *doc) {
	g := d.group
	g.docs = slices.Delete(g.docs, int(d.at), int(d.at)+1)
	if len(g.docs) == 0 {
		delete(x.groups, g.name) // "" is not in it
		return
	}
	x.renumber(g, int(d.at))
}

func (x *Index) renumber(g *group, from int) {
	g.before = g.before[:from+1]
	for i, n := range g.docs[from:] {
		d := &x.docs[n]
		d.at = int32(from + i)
		g.before = append(g.before, g.before[from+i]+int32(len(d.terms)))
	}
}

// compact closes the gaps and drops terms that no row has any more.
func (x *Index) compact() {
	old, terms := x.docs, x.terms
	x.reset(len(x.byID))
	for i := range old {
		d := &old[i]
		if d.group == nil {
			continue
		}
		row := Row{ID: d.id, Version: d.version, Group: d.group.name, Order: d.order, Data: d.data}
		words := make([]string, len(d.terms))
		for j, t := range d.terms {
			words[j] = terms[t].text
		}
		row.Terms = strings.Join(words, " ")
		row.Size = d.size - rowBytes - len(d.id) - len(d.terms)*(tokenBytes+postingBytes)
		x.add(&row)
	}
	for _, g := range x.groups {
		slices.SortFunc(g.docs, x.inOrder)
		x.renumber(g, 0)
	}
}

// idf is the weight of a term that is in rows of the index's rows.
func (x *Index) idf(rows int) float32 {
	n := float64(len(x.byID))
	return float32(math.Log(1 + (n-float64(rows)+0.5)/(float64(rows)+0.5)))
}
