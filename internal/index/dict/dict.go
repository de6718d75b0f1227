// Package dict is a compressed dictionary, of which stored indexes are made: sorted terms, each
// with a number and its postings. A term takes the length that it shares with the one before it in
// its block, the rest of it, the number, and its postings with their length in bytes. Numbers are
// varints.
package dict

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// HeadBytes is how much room a version and a checksum take.
const HeadBytes = 5

// ErrDamaged tells that bytes are not of this version, or not as they were written.
var ErrDamaged = errors.New("index: damaged, or of another version")

// Seal writes a version and the checksum of what follows into the first HeadBytes of data.
func Seal(version byte, data []byte) {
	data[0] = version
	binary.LittleEndian.PutUint32(data[1:], crc32.ChecksumIEEE(data[HeadBytes:]))
}

// Open returns what follows the head of sealed data. The error is ErrDamaged.
func Open(version byte, data []byte) (*Reader, error) {
	if len(data) < HeadBytes || data[0] != version || binary.LittleEndian.Uint32(data[1:]) != crc32.ChecksumIEEE(data[HeadBytes:]) {
		return nil, ErrDamaged
	}
	return &Reader{Data: data[HeadBytes:]}, nil
}

// Block is some terms of a dictionary in their order.
type Block []byte

// Append adds a term that comes after the one before it in the block, "" at its beginning.
func (b Block) Append(before, term string, number int, p Postings) Block {
	shared := Shared(before, term)
	b = AppendText(AppendInts(b, shared), term[shared:])
	return append(AppendInts(b, number, len(p)), p...)
}

// Find looks a term up. The postings are nil if it is not there.
func (b Block) Find(term string) (number int, p Postings) {
	r := Reader{Data: b}
	same := 0 // bytes that the terms so far, which come before it, have in common with it
	for len(r.Data) > 0 {
		shared, rest := r.Int(), r.Take(r.Int())
		number, list := r.Int(), r.Take(r.Int())
		switch {
		case r.Failed || shared < same:
			return 0, nil
		case shared > same: // it differs from the term where the one before it does
			continue
		}
		n := Shared(rest, term[same:])
		same += n
		switch {
		case n == len(rest) && same == len(term):
			return number, list
		case n < len(rest) && (same == len(term) || rest[n] > term[same]):
			return 0, nil
		}
	}
	return 0, nil
}

// Terms goes through a block.
type Terms struct {
	Term     []byte // valid until the next call of Next
	Number   int
	Postings Postings

	r    Reader
	room [256]byte // room for Term
}

// Terms begins before the first term.
func (b Block) Terms() *Terms {
	t := &Terms{r: Reader{Data: b}}
	t.Term = t.room[:0]
	return t
}

// Next goes to the next term; false = there is none.
func (t *Terms) Next() bool {
	if len(t.r.Data) == 0 {
		return false
	}
	shared := t.r.Int()
	t.Term = append(t.Term[:min(shared, len(t.Term))], t.r.Take(t.r.Int())...)
	t.Number, t.Postings = t.r.Int(), t.r.Take(t.r.Int())
	return !t.r.Failed
}
