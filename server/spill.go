package server

import (
	"bytes"
	"context"
	"io"

	"github.com/labstack/echo/v4"

	"nodest/card"
)

// spill keeps what is written to it: in memory while that is small and there is room, and
// in a temporary file otherwise. Both are counted for the holder of the request.
type spill struct {
	memory *hold // the request's hold
	disk   hold
	small  bytes.Buffer
	file   *temp // nil = everything is in small
	size   int64
	values int64 // upper bound of the JSON values: characters that can begin one
}

// newSpill returns an empty spill; drop ends it.
func newSpill(c echo.Context) *spill {
	h := holdOf(c)
	return &spill{memory: h, disk: hold{s: h.s, g: &h.s.disk, who: h.who}}
}

// Write implements io.Writer.
func (p *spill) Write(b []byte) (n int, err error) {
	if p.file == nil && (p.size+int64(len(b)) > largeBody || !p.memory.try(int64(len(b)))) {
		if err := p.toFile(); err != nil {
			return 0, err
		}
	}
	if p.file == nil {
		n, err = p.small.Write(b)
	} else if !p.disk.try(int64(len(b))) {
		err = errCrowded()
	} else if n, err = p.file.Write(b); err != nil {
		err = cannotSpool(err)
	}
	p.size += int64(n)
	for _, sign := range []string{"{", "[", ","} {
		p.values += int64(bytes.Count(b[:n], []byte(sign)))
	}
	return n, err
}

// toFile moves what is in memory to a file.
func (p *spill) toFile() error {
	if !p.disk.try(p.size) {
		return errCrowded()
	}
	file, err := p.memory.s.newTemp()
	if err != nil {
		return err
	}
	p.file = &file
	if _, err := file.Write(p.small.Bytes()); err != nil {
		return cannotSpool(err)
	}
	p.small = bytes.Buffer{}
	p.memory.release()
	return nil
}

// load returns the content in memory. If it is in a file, load first waits for room, so that a
// body takes memory only when all of it has arrived.
func (p *spill) load(ctx context.Context) ([]byte, error) {
	if p.isPacked() || p.memory.document && p.file != nil {
		if err := p.memory.takeTurn(ctx, false); err != nil {
			return nil, err
		}
	}
	if p.file == nil {
		return p.small.Bytes(), nil
	}
	if err := p.memory.take(ctx, work*p.size+valueWork*p.values); err != nil {
		return nil, err
	}
	data := make([]byte, p.size) // it is read once, not copied while it grows
	_, err := io.ReadFull(p.reader(), data)
	p.drop()
	return data, err
}

// isPacked reports whether the content is a PNG image or a zip archive, whatever comes before it.
func (p *spill) isPacked() bool {
	head := make([]byte, 4)
	n, _ := p.reader().ReadAt(head, 0)
	return string(head[:n]) == "\x89PNG" || card.IsArchive(p.reader(), p.size)
}

// reader reads everything from the beginning.
func (p *spill) reader() *io.SectionReader {
	if p.file == nil {
		return io.NewSectionReader(bytes.NewReader(p.small.Bytes()), 0, p.size)
	}
	return io.NewSectionReader(p.file, 0, p.size)
}

// drop removes the file.
func (p *spill) drop() {
	if p.file != nil {
		p.file.drop()
		p.disk.release()
		p.file = nil
	}
}
