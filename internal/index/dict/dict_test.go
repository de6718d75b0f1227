package dict_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"nodest/internal/index/dict"
)

// block makes a block of terms that are in every row whose number their place divides, as often as
// the quotient.
func block(terms []string, rows int) (b dict.Block) {
	before := ""
	for i, t := range terms {
		l := dict.List{}
		for row := 0; row < rows; row += i + 1 {
			l.Add(dict.Posting{Row: int32(row), Count: int32(row/(i+1) + 1)})
		}
		b, before = b.Append(before, t, len(l.All()), l.Postings), t
	}
	return b
}

func TestABlockHasItsTermsAndNoOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var terms, others []string
	for range 400 {
		word := fmt.Sprintf("%b茶%b", r.IntN(64), r.IntN(16)) // with long common beginnings
		terms, others = append(terms, word), append(others, word[:r.IntN(len(word))], word+"1")
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	b := block(terms, 300)
	all := b.Terms()
	for i, term := range terms {
		number, p := b.Find(term)
		next := 0
		for _, at := range p.All() {
			if int(at.Row) != next || int(at.Count) != next/(i+1)+1 {
				t.Fatalf("%q: row %d has it %d times", term, at.Row, at.Count)
			}
			next += i + 1
		}
		if next < 300 || number != (299/(i+1))+1 {
			t.Fatalf("%q: %d rows, ending before %d", term, number, next)
		}
		if !all.Next() || string(all.Term) != term || all.Number != number || !slices.Equal(all.Postings, p) {
			t.Fatalf("at %d: %q, want %q", i, all.Term, term)
		}
	}
	if all.Next() {
		t.Errorf("there is also %q", all.Term)
	}
	for _, other := range others {
		if _, p := b.Find(other); (p != nil) != slices.Contains(terms, other) {
			t.Errorf("%q is found: %v", other, p != nil)
		}
	}
}

func TestSealedDataIsNotReadDamaged(t *testing.T) {
	data := dict.AppendText(make([]byte, dict.HeadBytes), "tea")
	dict.Seal(3, data)
	if r, err := dict.Open(3, data); err != nil || r.Text() != "tea" || r.Failed {
		t.Fatalf("it cannot be read: %v", err)
	}
	for i := range data {
		broken := slices.Clone(data)
		broken[i]++
		for _, d := range [][]byte{broken, data[:i]} {
			if _, err := dict.Open(3, d); !errors.Is(err, dict.ErrDamaged) {
				t.Errorf("byte %d: %v", i, err)
			}
		}
	}
}

func FuzzBlock(f *testing.F) {
	f.Add([]byte(block([]string{"tea", "team", "teapot"}, 20)), "team")
	f.Fuzz(func(t *testing.T, data []byte, term string) {
		b := dict.Block(data)
		_, p := b.Find(term)
		p.All()
		for all := b.Terms(); all.Next(); {
			all.Postings.All()
		}
	})
}

func TestBitsAreThePostingsOfCommonTerms(t *testing.T) {
	const rows = 1000
	r := rand.New(rand.NewPCG(3, 4))
	among := make([]uint64, (rows+63)/64)
	for i := range among {
		among[i] = r.Uint64()
	}
	for _, often := range []int{1, 3, rows} {
		l := dict.List{}
		for row := range rows {
			if r.IntN(2) == 0 {
				l.Add(dict.Posting{Row: int32(row), Count: int32(1 + r.IntN(often))})
			}
		}
		b := dict.Bits(dict.Stored(nil, l.All(), rows))
		for _, among := range [][]uint64{nil, among} {
			want := l.Postings.Append(nil, among)
			if got := b.Append(nil, among, rows); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("up to %d times: %d rows, want %d", often, len(got), len(want))
			}
		}
		if got := b[:len(among)].Append(nil, nil, rows); got != nil {
			t.Errorf("of damaged bits: %d rows", len(got))
		}
		clear(b[:8*len(among)]) // their counts are left
		if got := b.Append(nil, nil, rows); len(got) > 0 {
			t.Errorf("of damaged bits: %d rows", len(got))
		}
	}
}
