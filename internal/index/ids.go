package index

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"nodest/internal/index/dict"
)

// A part of ids has the length of the rest of each, the bytes that all begin with, and the rests,
// filled with zeros: so each is found at once.

// The mark before an id tells a UUID, as its bytes, from another text. Zeros at the end of
// a UUID are left out: those that op.NewID makes have five.
const (
	textID = 0
	uuidID = 1
)

func packID(id string) []byte {
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		return append([]byte{uuidID}, bytes.TrimRight(u[:], "\x00")...)
	}
	return append([]byte{textID}, id...)
}

func unpackID(packed []byte) string {
	id := bytes.TrimRight(packed[1:], "\x00")
	if packed[0] == textID {
		return string(id)
	}
	var u uuid.UUID
	copy(u[:], id)
	return u.String()
}

// idsPart returns the part of some ids, at least one.
func idsPart(ids []string) []byte {
	packed := make([][]byte, len(ids))
	for i, id := range ids {
		packed[i] = packID(id)
	}
	shared, longest := packed[0], 0
	for _, id := range packed {
		shared, longest = shared[:dict.Shared(shared, id)], max(longest, len(id))
	}
	width := max(1, longest-len(shared))
	part := dict.AppendText(dict.AppendInts(nil, width), string(shared))
	for _, id := range packed {
		part = append(part, id[len(shared):]...)
		part = append(part, make([]byte, len(shared)+width-len(id))...)
	}
	return part
}

// IDs is a part of ids.
type IDs struct {
	shared []byte
	width  int // bytes of each one in rest
	rest   []byte
}

// readIDs reads a part of ids; a damaged one has none, or others.
func readIDs(part []byte) IDs {
	r := dict.Reader{Data: part}
	width, shared := r.Int(), r.Take(r.Int())
	if width < 1 || width > len(r.Data) {
		return IDs{width: 1}
	}
	return IDs{shared, width, r.Data}
}

// At returns the id of a row by its place in the part; "" = there is none.
func (p IDs) At(at int) string {
	if at >= len(p.rest)/p.width {
		return ""
	}
	return unpackID(slices.Concat(p.shared, p.rest[at*p.width:][:p.width]))
}

// Find returns the place of a row in the part; -1 = it is not there.
func (p IDs) Find(id string) int {
	rest, ok := bytes.CutPrefix(packID(id), p.shared)
	if !ok || len(rest) > p.width {
		return -1
	}
	rest = append(rest, make([]byte, p.width-len(rest))...)
	for at := 0; at < len(p.rest)/p.width; at++ {
		if bytes.Equal(rest, p.rest[at*p.width:][:p.width]) {
			return at
		}
	}
	return -1
}
