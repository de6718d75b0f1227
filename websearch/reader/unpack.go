package reader

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
)

// mostCodings is how many compressions of a body, one within another, are undone.
const mostCodings = 3

// unpacked returns the decompressed body of a response. As in browsers, bytes behind the
// end of a compressed body are left out, deflate may come without the head of zlib, and a
// word that is no encoding says nothing. A body that ends too early is an error: half of a
// page would pass for all of it.
func unpacked(resp *http.Response, h *hold) (body io.Reader, err error) {
	body = resp.Body
	codings := strings.Split(strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")), ",")
	if len(codings) > mostCodings {
		return nil, fmt.Errorf("unsupported: a body of %d content encodings", len(codings))
	}
	for _, coding := range slices.Backward(codings) {
		if body, err = unpack(strings.TrimSpace(coding), bufio.NewReader(&bounded{body, maxWire}), h); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// unpack undoes one encoding.
func unpack(encoding string, wire *bufio.Reader, h *hold) (io.Reader, error) {
	if encoding == "" || encoding == "identity" {
		return wire, nil
	}
	head, err := wire.Peek(2)
	if len(head) == 0 && errors.Is(err, io.EOF) { // nothing, and so nothing to unpack
		return wire, nil
	}
	switch encoding {
	case "gzip", "x-gzip":
		return newGzip(wire)
	case "br":
		if window := brotliWindow(head[0]); window > smallBody {
			if err := h.take(int64(maxHTML + window)); err != nil {
				return nil, err
			}
		}
		return &brotliBody{brotli.NewReader(wire)}, nil
	case "deflate":
		if len(head) == 2 && head[0]&15 == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			return zlib.NewReader(wire)
		}
		return flate.NewReader(wire), nil
	case "zstd", "compress", "x-compress", "dcb", "dcz":
		return nil, fmt.Errorf("unsupported content encoding %q", encoding)
	}
	return wire, nil // "none", or a charset
}

// gzipBody reads the members of a gzip body until there is none.
type gzipBody struct {
	wire *bufio.Reader
	z    *gzip.Reader
}

func newGzip(wire *bufio.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(wire)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipBody{wire, z}, nil
}

func (b *gzipBody) Read(p []byte) (int, error) {
	n, err := b.z.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		if errors.Is(err, io.EOF) { // the next Read says so again
			err = nil
		}
		return n, err
	}
	if head, _ := b.wire.Peek(2); len(head) < 2 || head[0] != 0x1F || head[1] != 0x8B {
		return 0, io.EOF
	}
	if err := b.z.Reset(b.wire); err != nil {
		return 0, err
	}
	b.z.Multistream(false)
	return 0, nil
}

// brotliWindow is how much of a body its decoder keeps, by the first byte of the stream
// (RFC 7932, 9.1), in bytes.
func brotliWindow(first byte) int {
	switch low, high := first>>1&7, first>>4&7; {
	case first&1 == 0:
		return 1 << 16
	case low != 0:
		return 1 << (17 + low)
	case high > 1:
		return 1 << (8 + high)
	}
	return 1 << 17
}

// brotliBody ends where its compressed bytes do.
type brotliBody struct{ *brotli.Reader }

func (b *brotliBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err.Error() == "brotli: excessive input" { // the library does not export it
		err = io.EOF
	}
	return n, err
}
