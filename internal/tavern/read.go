package tavern

import (
	"io"
	"slices"
)

// partsKept is how many parts are in memory.
const partsKept = 8

// parts reads what is stored in parts of partSize. It is for one goroutine.
type parts struct {
	read func(n int) ([]byte, error) // from 0
	size int64
	kept []part // the one used last is the first
}

type part struct {
	n    int
	data []byte
}

// ReadAt implements io.ReaderAt.
func (p *parts) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		if at >= p.size {
			return n, io.EOF
		}
		data, err := p.part(int(at / partSize))
		if err != nil {
			return n, err
		}
		off := int(at % partSize)
		if off >= len(data) {
			return n, io.ErrUnexpectedEOF
		}
		m := copy(b[n:], data[off:])
		n, at = n+m, at+int64(m)
	}
	return n, nil
}

func (p *parts) part(n int) ([]byte, error) {
	if i := slices.IndexFunc(p.kept, func(k part) bool { return k.n == n }); i >= 0 {
		found := p.kept[i]
		p.kept = slices.Insert(slices.Delete(p.kept, i, i+1), 0, found)
		return found.data, nil
	}
	data, err := p.read(n)
	if err != nil {
		return nil, err
	}
	p.kept = slices.Insert(p.kept, 0, part{n, data})
	p.kept = p.kept[:min(len(p.kept), partsKept)]
	return data, nil
}
