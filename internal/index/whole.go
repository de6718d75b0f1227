package index

import (
	"bytes"

	"nodest/internal/index/dict"
)

// Whole is a stored segment that is read as a whole.
type Whole struct {
	*Head
	data []byte
	ends []uint32 // ends of the parts in data
}

// EncodeWhole returns the segment in one piece: how many parts there are, the length of each, and
// the parts.
func (b *Builder) EncodeWhole() []byte {
	parts := b.Encode()
	data := dict.AppendInts(make([]byte, dict.HeadBytes), len(parts))
	for _, p := range parts {
		data = dict.AppendInts(data, len(p))
	}
	for _, p := range parts {
		data = append(data, p...)
	}
	dict.Seal(version, data)
	return data
}

// DecodeWhole reads what EncodeWhole wrote, and keeps data: it must not be changed. The error is
// dict.ErrDamaged: the segment must be built again.
func DecodeWhole(data []byte) (*Whole, error) {
	r, err := dict.Open(version, data)
	if err != nil {
		return nil, err
	}
	w := &Whole{ends: make([]uint32, min(r.Int(), len(data)))}
	end := 0
	for i := range w.ends {
		end += r.Int()
		w.ends[i] = uint32(end)
	}
	w.data = r.Data
	if r.Failed || end != len(w.data) || end == 0 {
		return nil, dict.ErrDamaged
	}
	w.Head, err = Decode(w.data[:w.ends[0]])
	if err == nil && len(w.ends) <= len(w.firsts) {
		err = dict.ErrDamaged
	}
	return w, err
}

// Bytes estimates the memory that w takes.
func (w *Whole) Bytes() int { return w.Head.Bytes() + 4*len(w.ends) + len(w.data) }

// block returns the block of the dictionary in a part.
func (w *Whole) block(part int) dict.Block { return w.data[w.ends[part-1]:w.ends[part]] }

// Find looks a term up.
func (w *Whole) Find(term string) Postings {
	if part := w.TermPart(term); part > 0 {
		return find(w.block(part), term)
	}
	return Postings{}
}

// Around returns, for each of some characters of scripts without spaces, the postings of all terms that
// have it. It reads all of the dictionary that may have such terms.
func (w *Whole) Around(characters []string) [][]Postings {
	found := make([][]Postings, len(characters))
	for part := max(1, w.TermPart(string(firstDense))); part <= len(w.firsts); part++ {
		for t := w.block(part).Terms(); t.Next(); {
			for i, c := range characters {
				if bytes.Contains(t.Term, []byte(c)) {
					found[i] = append(found[i], Postings{t.Number, t.Postings})
				}
			}
		}
	}
	return found
}
