// Package codec compresses what the database stores of long texts. A compressed value is one
// zstd frame, which `zstd -d -D internal/codec/dictionary` reads; it knows nothing of what is in it.
package codec

import (
	"bytes"
	_ "embed" // the dictionary
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Least is the length in bytes from which on a text is compressed: below it, a frame saves little
// and the database is easier to read without one.
const Least = 1 << 8

// dictionary is what rows have in common, most of it built-in texts and names of JSON members. Frames name it
// by its number, so it never changes: scripts/train-dictionary makes another one, for another version of the
// schema.
//
//go:embed dictionary
var dictionary []byte

// maxText bounds what a frame may grow to, in bytes. It is above what any operation stores.
const maxText = 128 << 20

// magic is how a zstd frame begins (RFC 8878, 3.1.1).
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Pack returns a frame of the text, or the text itself where it is short or a frame is no shorter.
// A text that begins like a frame always becomes one, so Unpack knows which it has.
func Pack(text []byte) []byte { return pack(text, textEncoder()) }

// PackNumbers is Pack for bytes that are no text, to which the dictionary is of no use.
func PackNumbers(data []byte) []byte { return pack(data, numberEncoder()) }

func pack(text []byte, encoder *zstd.Encoder) []byte {
	framed := bytes.HasPrefix(text, magic)
	if len(text) < Least && !framed {
		return text
	}
	frame := encoder.EncodeAll(text, make([]byte, 0, len(text)/2))
	if len(frame) >= len(text) && !framed {
		return text
	}
	return frame
}

// Unpack returns the text of which Pack or PackNumbers made stored. It returns an error for a damaged frame, and
// for one of more than 128 MiB.
func Unpack(stored []byte) ([]byte, error) {
	if !bytes.HasPrefix(stored, magic) {
		return stored, nil
	}
	text, err := decoder().DecodeAll(stored, nil)
	if err != nil {
		return nil, fmt.Errorf("codec: read a frame: %w", err)
	}
	return text, nil
}

// Encoders are safe for concurrent use, with tables of several 100 KB for each processor. Numbers that repeat
// nothing still have common ones, which get shorter codes.
var (
	textEncoder   = encoderOf(zstd.WithEncoderDict(dictionary))
	numberEncoder = encoderOf(zstd.WithAllLitEntropyCompression(true))
)

func encoderOf(option zstd.EOption) func() *zstd.Encoder {
	return sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), option,
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			panic(err) // only for options that it does not know
		}
		return e
	})
}

// decoder is safe for concurrent use.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxText), zstd.WithDecoderDicts(dictionary))
	if err != nil {
		panic(err)
	}
	return d
})
