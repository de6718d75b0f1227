package dict

import "encoding/binary"

// most is the greatest number that Int reads.
const most = 1 << 40

// Reader reads numbers and texts from the front of Data; after a failure it gives zeros.
type Reader struct {
	Data   []byte
	Failed bool
}

// Int reads a number from 0 to most.
func (r *Reader) Int() int {
	n, k := uvarint(r.Data)
	if k <= 0 || n > most {
		r.fail()
		return 0
	}
	r.Data = r.Data[k:]
	return int(n)
}

// Signed reads a number that may be negative.
func (r *Reader) Signed() int64 {
	n, k := binary.Varint(r.Data)
	if k <= 0 {
		r.fail()
		return 0
	}
	r.Data = r.Data[k:]
	return n
}

// Uint32 reads a number of four bytes.
func (r *Reader) Uint32() uint32 {
	b := r.Take(4)
	if len(b) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// Take reads n bytes.
func (r *Reader) Take(n int) []byte {
	if n < 0 || n > len(r.Data) {
		r.fail()
		return nil
	}
	part := r.Data[:n]
	r.Data = r.Data[n:]
	return part
}

// Text reads a length and a text.
func (r *Reader) Text() string { return string(r.Take(r.Int())) }

// Texts reads n texts, at most as many as there can be.
func (r *Reader) Texts(n int) []string {
	if n > len(r.Data) {
		r.fail()
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = r.Text()
	}
	return all
}

func (r *Reader) fail() { r.Failed, r.Data = true, nil }

// AppendInts adds numbers from 0.
func AppendInts(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// AppendText adds the length of a text and the text.
func AppendText(b []byte, text string) []byte { return append(AppendInts(b, len(text)), text...) }

// Shared returns how many bytes two texts have in common at their beginning.
func Shared[A, B string | []byte](a A, b B) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
