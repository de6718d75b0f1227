// Package pngfile cuts PNG files into their chunks, and writes them.
package pngfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"

	"nodest/internal/fault"
)

// Signature begins a PNG file.
const Signature = "\x89PNG\r\n\x1a\n"

// maxChunks bounds the parts of a PNG file. Encoders write a picture in parts of some KiB.
const maxChunks = 100_000

// Chunk is a part of the file; data is not copied.
type Chunk struct {
	Kind string
	Data []byte
	crc  uint32
}

func (c Chunk) Intact() bool {
	return crc32.Update(crc32.ChecksumIEEE([]byte(c.Kind)), crc32.IEEETable, c.Data) == c.crc
}

// Chunks cuts a file into its chunks, up to IEND; what follows is ignored. A chunk
// that claims more than the rest of the file is an error.
func Chunks(file []byte) ([]Chunk, error) {
	rest, ok := bytes.CutPrefix(file, []byte(Signature))
	if !ok {
		return nil, fault.New(fault.UnsupportedCard, "not a PNG file")
	}
	var chunks []Chunk
	for len(rest) >= 12 {
		if len(chunks) == maxChunks {
			return nil, fault.New(fault.TooLarge, "the PNG file has more than %d chunks", maxChunks).With("limit", maxChunks)
		}
		n := uint64(binary.BigEndian.Uint32(rest))
		kind := string(rest[4:8])
		if n > uint64(len(rest)-12) {
			return nil, fault.New(fault.UnsupportedCard,
				"the PNG file is truncated or damaged: chunk %q claims %d bytes, %d are left", kind, n, len(rest)-12)
		}
		chunks = append(chunks, Chunk{kind, rest[8 : 8+n], binary.BigEndian.Uint32(rest[8+n:])})
		rest = rest[12+n:]
		if kind == "IEND" {
			return chunks, nil
		}
	}
	return nil, fault.New(fault.UnsupportedCard, "the PNG file is truncated")
}

// Keyword returns the keyword of a text chunk, "" of other chunks. It has at
// most 79 bytes by the PNG specification; asset chunks may be longer.
func (c Chunk) Keyword() string {
	if c.Kind != "tEXt" && c.Kind != "zTXt" && c.Kind != "iTXt" {
		return ""
	}
	keyword, _, _ := bytes.Cut(c.Data[:min(len(c.Data), 1024)], []byte{0})
	return string(keyword)
}

// Inflate unpacks up to limit bytes. If it fails, it also returns what it has unpacked so far.
func Inflate(packed []byte, limit int) ([]byte, error) {
	var text []byte
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	}
	if err != nil {
		return text, fault.Wrap(err, fault.UnsupportedCard, "the card in the PNG file is damaged: decompression failed")
	}
	if len(text) > limit {
		return text, fault.New(fault.TooLarge, "the card in the PNG file is too large, limit %s", fault.Size(limit))
	}
	return text, nil
}

// Append appends a chunk to a file.
func Append(b *bytes.Buffer, kind string, data []byte) {
	var head [8]byte
	binary.BigEndian.PutUint32(head[:4], uint32(len(data)))
	copy(head[4:], kind)
	b.Write(head[:])
	b.Write(data)
	crc := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, data)
	b.Write(binary.BigEndian.AppendUint32(nil, crc))
}
