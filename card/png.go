package card

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"nodest/internal/fault"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// Keywords of the text chunks that hold a card, the better one first.
const (
	keywordV3 = "ccv3"
	keywordV2 = "chara"
)

// keywordPlaceholder marks a picture that Export made up because the character
// has none, so that Import does not take it for an avatar.
const keywordPlaceholder = "nodest-placeholder"

// assetKeyword begins the keyword of a text chunk that holds an asset.
const assetKeyword = "chara-ext-asset_"

// maxChunks bounds the parts of a PNG file. Encoders write a picture in parts of some KiB.
const maxChunks = 100_000

// pngChunk is a part of the file; data is not copied.
type pngChunk struct {
	kind string
	data []byte
	crc  uint32
}

func (c pngChunk) intact() bool {
	return crc32.Update(crc32.ChecksumIEEE([]byte(c.kind)), crc32.IEEETable, c.data) == c.crc
}

// pngChunks cuts a file into its chunks, up to IEND; what follows is ignored. A chunk
// that claims more than the rest of the file is an error.
func pngChunks(file []byte) ([]pngChunk, error) {
	rest, ok := bytes.CutPrefix(file, []byte(pngSignature))
	if !ok {
		return nil, fault.New(fault.UnsupportedCard, "not a PNG file")
	}
	var chunks []pngChunk
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
		chunks = append(chunks, pngChunk{kind, rest[8 : 8+n], binary.BigEndian.Uint32(rest[8+n:])})
		rest = rest[12+n:]
		if kind == "IEND" {
			return chunks, nil
		}
	}
	return nil, fault.New(fault.UnsupportedCard, "the PNG file is truncated")
}

// importPNG reads the card of a picture and keeps the picture without it.
func (im *importer) importPNG(file []byte) (*Character, error) {
	chunks, err := pngChunks(file)
	if err != nil {
		return nil, err
	}
	im.packed = true
	doc, err := im.cardInPNG(chunks)
	if err != nil {
		return nil, err
	}
	ch, err := im.importJSON(doc)
	if err != nil {
		return nil, err
	}
	if err := im.assetChunks(chunks); err != nil {
		return nil, err
	}
	placeholder := slices.ContainsFunc(chunks, func(c pngChunk) bool { return c.keyword() == keywordPlaceholder })
	if !placeholder {
		ch.Avatar, ch.AvatarType = writePNG(chunks), "image/png"
		ch.Original = originalOf(file, chunks, ch)
	}
	return ch, nil
}

// cardInPNG returns the card document: ccv3 before chara, of several chunks with
// one keyword the first. Compressed and international text chunks are read only
// where there is no plain one. A broken ccv3 gives way to chara.
func (im *importer) cardInPNG(chunks []pngChunk) (json.RawMessage, error) {
	var firstErr error
	for _, kinds := range [][]string{{"tEXt"}, {"zTXt", "iTXt"}} {
		for _, keyword := range []string{keywordV3, keywordV2} {
			i := slices.IndexFunc(chunks, func(c pngChunk) bool {
				return slices.Contains(kinds, c.kind) && strings.EqualFold(c.keyword(), keyword)
			})
			if i < 0 {
				continue
			}
			doc, err := im.cardInChunk(chunks[i])
			if err == nil {
				if firstErr != nil {
					im.warn("", "damaged_chunk", "another card chunk of the image is damaged and was ignored")
				}
				return doc, nil
			}
			if !fault.Is(err, fault.UnsupportedCard) { // it is too large
				return nil, err
			}
			if firstErr == nil {
				firstErr = err
			}
		}
	}
	if firstErr != nil {
		return nil, firstErr
	}
	return nil, fault.New(fault.UnsupportedCard, "the PNG image contains no character card (no ccv3 or chara text chunk)")
}

func (im *importer) cardInChunk(c pngChunk) (json.RawMessage, error) {
	if !c.intact() {
		return nil, fault.New(fault.UnsupportedCard, "the card in the PNG file is damaged: wrong checksum in chunk %s", c.keyword())
	}
	// Base64 takes four bytes for three.
	text, err := im.text(c, im.limits.JSONBytes/3*4+1024)
	if err != nil {
		return nil, err
	}
	if startsWith(text, '{') {
		return im.document(text, fault.UnsupportedCard)
	}
	if bytes.HasPrefix(text, []byte("rcc||")) {
		return nil, fault.New(fault.UnsupportedCard, "the card is encrypted by Risu; export it there without a password")
	}
	doc, err := decodeBase64(text)
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "the card in the PNG file is damaged: chunk %s is not valid base64", c.keyword())
	}
	return im.document(doc, fault.UnsupportedCard)
}

// keyword returns the keyword of a text chunk, "" of other chunks. It has at
// most 79 bytes by the PNG specification; asset chunks may be longer.
func (c pngChunk) keyword() string {
	if c.kind != "tEXt" && c.kind != "zTXt" && c.kind != "iTXt" {
		return ""
	}
	keyword, _, _ := bytes.Cut(c.data[:min(len(c.data), 1024)], []byte{0})
	return string(keyword)
}

// text returns the text behind the keyword of a chunk, unpacked up to limit bytes. The
// unpacked sizes of all chunks of a file count together, whether used or not.
func (im *importer) text(c pngChunk, limit int) ([]byte, error) {
	_, rest, ok := bytes.Cut(c.data, []byte{0})
	packed := false
	switch {
	case !ok:
	case c.kind == "zTXt":
		ok = len(rest) > 0 && rest[0] == 0
		packed = true
		rest = rest[min(1, len(rest)):]
	case c.kind == "iTXt":
		ok = len(rest) > 2
		if ok {
			packed = rest[0] == 1
			_, rest, _ = bytes.Cut(rest[2:], []byte{0}) // language
			_, rest, ok = bytes.Cut(rest, []byte{0})    // translated keyword
		}
	}
	if !ok {
		return nil, fault.New(fault.UnsupportedCard, "the card in the PNG file is damaged: malformed chunk %s", c.kind)
	}
	if packed {
		text, err := inflate(rest, min(limit, im.room))
		im.room -= len(text)
		if err == nil {
			err = im.ask(len(text), 0)
		}
		return text, err
	}
	return rest, nil
}

// inflate unpacks up to limit bytes. If it fails, it also returns what it has unpacked so far.
func inflate(packed []byte, limit int) ([]byte, error) {
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

// decodeBase64 accepts line breaks, both alphabets and missing padding.
func decodeBase64(text []byte) ([]byte, error) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	if n, err := base64.StdEncoding.Decode(data, text); err == nil {
		return data[:n], nil
	}
	plain := make([]byte, 0, len(text))
	for _, c := range text {
		switch c {
		case ' ', '\n', '\r', '\t', '=', 0:
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		plain = append(plain, c)
	}
	n, err := base64.RawStdEncoding.Decode(plain, plain)
	return plain[:n], err
}

// assetChunks keeps the assets in text chunks, up to the first that cannot be
// read; all together are bounded like an archive.
//
// Errors: those of im.limits.Room.
func (im *importer) assetChunks(chunks []pngChunk) error {
	left := im.limits.TotalBytes
	for _, c := range chunks {
		path, ok := strings.CutPrefix(c.keyword(), assetKeyword)
		if !ok {
			continue
		}
		path = strings.TrimPrefix(path, ":")
		data, err := im.text(c, left/3*4+1)
		if err != nil && !fault.Is(err, fault.TooLarge) && !fault.Is(err, fault.UnsupportedCard) {
			return err
		}
		whole := err == nil
		if whole {
			data, err = decodeBase64(data)
			whole = err == nil
		}
		if !whole || path == "" || len(data) > left || len(im.assets) >= im.limits.Files {
			im.warn("", "asset_dropped", "an asset of the image is unreadable or too large; it and all later assets were left out")
			return nil
		}
		left -= len(data)
		im.assets = append(im.assets, Asset{Path: path, Data: data})
	}
	return nil
}

func (c pngChunk) holdsCard() bool {
	keyword := c.keyword()
	return strings.EqualFold(keyword, keywordV2) || strings.EqualFold(keyword, keywordV3) ||
		strings.HasPrefix(keyword, assetKeyword)
}

// writePNG writes a picture with text chunks, each a keyword, NUL and the text, before
// its end. Other chunks with cards are dropped.
func writePNG(chunks []pngChunk, texts ...string) []byte {
	var b bytes.Buffer
	b.WriteString(pngSignature)
	for _, c := range chunks {
		if c.kind == "IEND" {
			for _, text := range texts {
				writeChunk(&b, "tEXt", []byte(text))
			}
		}
		if !c.holdsCard() {
			writeChunk(&b, c.kind, c.data)
		}
	}
	return b.Bytes()
}

func cardText(keyword string, doc json.RawMessage) string {
	return keyword + "\x00" + base64.StdEncoding.EncodeToString(doc)
}

func writeChunk(b *bytes.Buffer, kind string, data []byte) {
	var head [8]byte
	binary.BigEndian.PutUint32(head[:4], uint32(len(data)))
	copy(head[4:], kind)
	b.Write(head[:])
	b.Write(data)
	crc := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, data)
	b.Write(binary.BigEndian.AppendUint32(nil, crc))
}
