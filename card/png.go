package card

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"nodest/card/pngfile"
	"nodest/internal/fault"
)

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

// importPNG reads the card of a picture and keeps the picture without it.
func (im *importer) importPNG(file []byte) (*Character, error) {
	chunks, err := pngfile.Chunks(file)
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
	placeholder := slices.ContainsFunc(chunks, func(c pngfile.Chunk) bool { return c.Keyword() == keywordPlaceholder })
	if !placeholder {
		ch.Avatar, ch.AvatarType = writePNG(chunks), "image/png"
		ch.Original = originalOf(file, chunks, ch)
	}
	return ch, nil
}

// cardInPNG returns the card document: ccv3 before chara, of several chunks with
// one keyword the first. Compressed and international text chunks are read only
// where there is no plain one. A broken ccv3 gives way to chara.
func (im *importer) cardInPNG(chunks []pngfile.Chunk) (json.RawMessage, error) {
	var firstErr error
	for _, kinds := range [][]string{{"tEXt"}, {"zTXt", "iTXt"}} {
		for _, keyword := range []string{keywordV3, keywordV2} {
			i := slices.IndexFunc(chunks, func(c pngfile.Chunk) bool {
				return slices.Contains(kinds, c.Kind) && strings.EqualFold(c.Keyword(), keyword)
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

func (im *importer) cardInChunk(c pngfile.Chunk) (json.RawMessage, error) {
	if !c.Intact() {
		return nil, fault.New(fault.UnsupportedCard, "the card in the PNG file is damaged: wrong checksum in chunk %s", c.Keyword())
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
		return nil, fault.Wrap(err, fault.UnsupportedCard, "the card in the PNG file is damaged: chunk %s is not valid base64", c.Keyword())
	}
	return im.document(doc, fault.UnsupportedCard)
}

// text returns the text behind the keyword of a chunk, unpacked up to limit bytes. The
// unpacked sizes of all chunks of a file count together, whether used or not.
func (im *importer) text(c pngfile.Chunk, limit int) ([]byte, error) {
	_, rest, ok := bytes.Cut(c.Data, []byte{0})
	packed := false
	switch {
	case !ok:
	case c.Kind == "zTXt":
		ok = len(rest) > 0 && rest[0] == 0
		packed = true
		rest = rest[min(1, len(rest)):]
	case c.Kind == "iTXt":
		ok = len(rest) > 2
		if ok {
			packed = rest[0] == 1
			_, rest, _ = bytes.Cut(rest[2:], []byte{0}) // language
			_, rest, ok = bytes.Cut(rest, []byte{0})    // translated keyword
		}
	}
	if !ok {
		return nil, fault.New(fault.UnsupportedCard, "the card in the PNG file is damaged: malformed chunk %s", c.Kind)
	}
	if packed {
		text, err := pngfile.Inflate(rest, min(limit, im.room))
		im.room -= len(text)
		if err == nil {
			err = im.ask(len(text), 0)
		}
		return text, err
	}
	return rest, nil
}

// assetChunks keeps the assets in text chunks, up to the first that cannot be
// read; all together are bounded like an archive.
//
// Errors: those of im.limits.Room.
func (im *importer) assetChunks(chunks []pngfile.Chunk) error {
	left := im.limits.TotalBytes
	for _, c := range chunks {
		path, ok := strings.CutPrefix(c.Keyword(), assetKeyword)
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

func holdsCard(c pngfile.Chunk) bool {
	keyword := c.Keyword()
	return strings.EqualFold(keyword, keywordV2) || strings.EqualFold(keyword, keywordV3) ||
		strings.HasPrefix(keyword, assetKeyword)
}

// writePNG writes a picture with text chunks, each a keyword, NUL and the text, before
// its end. Other chunks with cards are dropped.
func writePNG(chunks []pngfile.Chunk, texts ...string) []byte {
	var b bytes.Buffer
	b.WriteString(pngfile.Signature)
	for _, c := range chunks {
		if c.Kind == "IEND" {
			for _, text := range texts {
				pngfile.Append(&b, "tEXt", []byte(text))
			}
		}
		if !holdsCard(c) {
			pngfile.Append(&b, c.Kind, c.Data)
		}
	}
	return b.Bytes()
}

func cardText(keyword string, doc json.RawMessage) string {
	return keyword + "\x00" + base64.StdEncoding.EncodeToString(doc)
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
