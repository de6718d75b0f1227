package archive

import (
	"bufio"
	"io"
)

// writer writes a JSON document piece by piece, so that only one piece is in memory. Errors are
// kept: finish returns the first one.
type writer struct{ *bufio.Writer }

func newWriter(w io.Writer) writer { return writer{bufio.NewWriterSize(w, 64<<10)} }

func (w writer) value(v any) error {
	_, err := w.Write(encoded(v))
	return err
}

// object writes an object member by member. It needs at least one member.
type object struct {
	writer
	begun bool
}

// member begins a member, whose value is written next.
func (o *object) member(name string) {
	sep := byte('{')
	if o.begun {
		sep = ','
	}
	o.begun = true
	_ = o.WriteByte(sep)
	_ = o.value(name)
	_ = o.WriteByte(':')
}

func (o *object) put(name string, v any) {
	o.member(name)
	_ = o.value(v)
}

// list writes a member that is a list of the values that each passes to add.
func (o *object) list(name string, each func(add func(v any) error) error) error {
	o.member(name)
	return o.elements(each)
}

// listIf writes a list that is left out if it is empty.
func (o *object) listIf(name string, n int, each func(add func(v any) error) error) error {
	if n == 0 {
		return nil
	}
	return o.list(name, each)
}

// elements writes a list of the values that each passes to add.
func (w writer) elements(each func(add func(v any) error) error) error {
	sep := byte('[')
	err := each(func(v any) error {
		_ = w.WriteByte(sep)
		sep = ','
		return w.value(v)
	})
	if sep == '[' {
		_ = w.WriteByte(sep)
	}
	_ = w.WriteByte(']')
	return err
}

func (o *object) end() { _ = o.WriteByte('}') }
