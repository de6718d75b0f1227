package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
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

// Index is a search index of the rows of one owner: those in memory, and stored segments. It is
// safe for concurrent use.
type Index struct {
	mu      sync.RWMutex
	stored  []*stored
	base    int // number of the first row in memory
	source  Source
	key     string  // for source
	docs    []doc   // by ordinal, with gaps where rows were removed
	places  []place // likewise
	byID    map[string]int32
	groups  map[string]*group
	numbers int32 // of groups; some have gone
	vocab   map[string]int32
	terms   []term
	pairs   map[rune][]int32 // terms of two characters by each of them
	marks   map[string][]int32
	vectors spaces
	removed int // gaps in docs
	length  int // terms of all rows
	grouped int // terms of rows in groups
	size    int // bytes of rows and terms
}

type doc struct {
	id      string
	version int64
	order   int64
	attr    uint64
	terms   []int32
	marks   []string
	data    any
	size    int
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

func New() *Index {
	x := &Index{}
	x.reset(0)
	return x
}

func (x *Index) reset(rows int) {
	x.docs, x.places = make([]doc, 0, rows), make([]place, 0, rows)
	x.byID = make(map[string]int32, rows)
	x.groups, x.numbers = map[string]*group{}, 0
	x.vocab = make(map[string]int32, rows)
	x.terms, x.removed, x.length, x.grouped, x.size = nil, 0, 0, 0, 0
	x.pairs, x.marks = map[rune][]int32{}, map[string][]int32{}
}

// Sizes, in bytes, of a row, a distinct term of a row and a term of the vocabulary besides
// their texts, measured with 10,000 rows.
const (
	rowBytes     = 240
	postingBytes = 12
	tokenBytes   = 4
	termBytes    = 110
	vectorBytes  = 120
	markBytes    = 80
)

// Bytes estimates the size of the index.
func (x *Index) Bytes() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	size := x.size + x.vectors.bytes
	for _, s := range x.stored {
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
	changed := map[*group]bool{} // true = rows may be out of order, or gone
	if err := x.removeAll(ctx, changed, remove...); err != nil {
		return err
	}
	if len(x.docs) == 0 {
		x.reset(len(put))
	}
	for i := range put {
		if at, ok := x.byID[put[i].ID]; ok {
			if x.docs[at].version > put[i].Version {
				continue
			}
			if err := x.removeAll(ctx, changed, put[i].ID); err != nil {
				return err
			}
		}
		x.add(&put[i], changed)
		if err := x.vectors.add(ctx, &put[i]); err != nil {
			return err
		}
	}
	x.arrange(changed)
	if x.removed > 64 && x.removed > len(x.byID)/4 {
		x.compact()
	}
	return nil
}

// add puts a new row at the end of its group.
func (x *Index) add(row *Row, changed map[*group]bool) {
	g := x.group(row.Group)
	n := int32(len(x.docs))
	last := len(g.docs) - 1
	changed[g] = changed[g] || last >= 0 && x.docs[g.docs[last]].order >= row.Order
	d := doc{id: row.ID, version: row.Version, order: row.Order, attr: row.Attr, marks: row.Marks, data: row.Data, size: rowBytes + len(row.ID) + row.Size}
	d.terms = x.post(n, row.Terms)
	for _, m := range row.Marks {
		x.marks[m] = append(x.marks[m], n)
		x.size += markBytes + len(m)
	}
	g.docs = append(g.docs, n)
	d.size += len(d.terms) * (tokenBytes + postingBytes)
	x.docs, x.places = append(x.docs, d), append(x.places, place{group: g})
	x.byID[row.ID] = n
	x.length += len(d.terms)
	if row.Group != "" {
		x.grouped += len(d.terms)
	}
	x.size += d.size
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
			x.size += termBytes + len(text) + x.pair(t, text)
		}
		numbers = append(numbers, t)
		x.terms[t].count(n)
	}
	return numbers
}

const pairBytes = 12

// pair enters a pair of characters under each of them, and returns the cost in bytes. Korean
// words begin with their meaning and end in particles, so only their first syllables count.
func (x *Index) pair(t int32, text string) int {
	first, n := utf8.DecodeRuneInString(text)
	second, m := utf8.DecodeRuneInString(text[n:])
	if m == 0 || n+m != len(text) || !isDense(first) || !isDense(second) {
		return 0
	}
	x.pairs[first] = append(x.pairs[first], t)
	if second != first && !unicode.Is(unicode.Hangul, second) {
		x.pairs[second] = append(x.pairs[second], t)
	}
	return pairBytes
}

// term returns a term by its text; an unknown one has no postings. A single character consists
// of itself and of the pairs that have it.
func (x *Index) term(text string) *term {
	found := &term{}
	if at, ok := x.vocab[text]; ok {
		found = &x.terms[at]
	}
	r, n := utf8.DecodeRuneInString(text)
	if n != len(text) || len(x.pairs[r]) == 0 {
		return found
	}
	lists := [][]posting{found.postings}
	for _, t := range x.pairs[r] {
		lists = append(lists, x.terms[t].postings)
	}
	all := &term{text: text, postings: merge(lists)}
	for _, p := range all.postings {
		if x.places[p.doc].group != nil {
			all.rows++
		}
	}
	return all
}

// merge joins lists of postings. A row has a character as often as its most common pair.
func merge(lists [][]posting) []posting {
	length := 0
	for _, l := range lists {
		length += len(l)
	}
	all := make([]posting, 0, length)
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.SortFunc(all, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) })
	kept := all[:0]
	for _, p := range all {
		if last := len(kept) - 1; last >= 0 && kept[last].doc == p.doc {
			kept[last].count = max(kept[last].count, p.count)
			continue
		}
		kept = append(kept, p)
	}
	return kept
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

// removeAll removes rows and notes their groups for arrange.
func (x *Index) removeAll(ctx context.Context, changed map[*group]bool, ids ...string) error {
	for _, id := range ids {
		n, ok := x.byID[id]
		if !ok {
			continue
		}
		d, g := &x.docs[n], x.places[n].group
		seen := make(map[int32]bool, len(d.terms))
		for _, t := range d.terms {
			if !seen[t] {
				seen[t] = true
				x.terms[t].rows--
			}
		}
		x.length -= len(d.terms)
		if g.name != "" {
			x.grouped -= len(d.terms)
		}
		x.size -= d.size
		changed[g] = true
		if err := x.vectors.remove(ctx, id); err != nil {
			return err
		}
		delete(x.byID, id)
		*d, x.places[n] = doc{}, place{}
		x.removed++
	}
	return nil
}

// compact closes the gaps and drops unused terms.
func (x *Index) compact() {
	docs, places, terms := x.docs, x.places, x.terms
	x.reset(len(x.byID))
	changed := map[*group]bool{}
	for i := range docs {
		d, g := &docs[i], places[i].group
		if g == nil {
			continue
		}
		row := Row{ID: d.id, Version: d.version, Group: g.name, Order: d.order, Attr: d.attr, Marks: d.marks, Data: d.data}
		words := make([]string, len(d.terms))
		for j, t := range d.terms {
			words[j] = terms[t].text
		}
		row.Terms = strings.Join(words, " ")
		row.Size = d.size - rowBytes - len(d.id) - len(d.terms)*(tokenBytes+postingBytes)
		x.add(&row, changed)
	}
	x.arrange(changed)
}

// rows returns how many rows there are, stored ones included.
func (x *Index) rows() int {
	n := len(x.byID)
	for _, s := range x.stored {
		n += s.Rows - s.stale.count
	}
	return n
}

func (x *Index) idf(rows int) float32 {
	n := float64(max(rows, x.rows()))
	return float32(math.Log(1 + (n-float64(rows)+0.5)/(float64(rows)+0.5)))
}

// usual is added to the number of rows when computing rarity: in a small index every word is
// rare, and few of them mean anything.
const usual = 1000

// rarity of a term that is in so many rows, at most 1. Unlike idf it means the same in indexes
// of all sizes.
func (x *Index) rarity(rows int) float32 {
	n := float64(x.rows() + usual)
	of := func(rows float64) float64 { return math.Log(1 + (n-rows+0.5)/(rows+0.5)) }
	return float32(of(float64(max(1, rows))) / of(1))
}
