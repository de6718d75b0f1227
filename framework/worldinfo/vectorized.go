package worldinfo

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"strings"
)

// Vectorized are the entries that a search by meaning may bring in (Input.Forced). They are not changed.
type Vectorized struct {
	Entries []VectorizedEntry
	Hash    [sha256.Size]byte // identifies the texts in their order
}

// VectorizedEntry is an entry as a search sees it.
type VectorizedEntry struct {
	ID   string // as Book.Entry takes it
	Text string // its content without decorators
}

// Vectorized returns the vectorised entries that are switched on and have a text. Those that are
// always on, and those whose decorators decide, need no search.
func (b *Book) Vectorized() *Vectorized { return b.vectorized() }

func (b *Book) listVectorized() *Vectorized {
	v, hash, length := &Vectorized{}, sha256.New(), make([]byte, 8)
	for i := range b.entries {
		e := &b.entries[i]
		decided := e.deco != nil && (e.deco.activate || e.deco.dont)
		if !e.Vectorized || e.Disable || e.Constant || decided || strings.TrimSpace(e.text) == "" {
			continue
		}
		v.Entries = append(v.Entries, VectorizedEntry{e.id, e.text})
		binary.LittleEndian.PutUint64(length, uint64(len(e.text)))
		_, _ = hash.Write(length) // it never fails
		_, _ = io.WriteString(hash, e.text)
	}
	hash.Sum(v.Hash[:0])
	return v
}
