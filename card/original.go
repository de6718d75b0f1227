package card

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"nodest/card/pngfile"
)

// Original is what a PNG file has that its character lacks, so that a character which was not changed can be
// written as the file that it came in.
type Original struct {
	Digest string          `json:"digest"` // SHA-256 of the file, in hexadecimal
	Chunks []OriginalChunk `json:"chunks"` // that the picture is without
}

// OriginalChunk is a text chunk: a keyword, and a document in base64.
type OriginalChunk struct {
	At      int    `json:"at"` // chunks of the picture before it
	Keyword string `json:"keyword"`
	Spec    string `json:"spec,omitempty"` // the document is the role card; v2 = with this version of the specification
	Doc     string `json:"doc,omitempty"`  // the document, where it is not
}

// maxOriginal bounds the documents that are kept of a file, in bytes.
const maxOriginal = 1 << 20

// originalOf is how a PNG file differs from what is kept of it; nil where that does not make the file again.
func originalOf(file []byte, chunks []pngfile.Chunk, ch *Character) *Original {
	sum := sha256.Sum256(file)
	o := &Original{Digest: hex.EncodeToString(sum[:])}
	at, size := 0, 0
	for _, c := range chunks {
		if !holdsCard(c) {
			at++
			continue
		}
		keyword, text, _ := bytes.Cut(c.Data, []byte{0})
		doc, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil || c.Kind != "tEXt" || strings.HasPrefix(string(keyword), assetKeyword) {
			return nil
		}
		kept := OriginalChunk{At: at, Keyword: string(keyword)}
		for _, spec := range []string{specAsIs, string(SpecV2)} {
			if bytes.Equal(ch.inSpec(spec), doc) {
				kept.Spec = spec
			}
		}
		if kept.Spec == "" {
			kept.Doc = string(doc)
			size += len(doc)
		}
		o.Chunks = append(o.Chunks, kept)
	}
	if size > maxOriginal || ch.fileOf(o) == nil {
		return nil
	}
	return o
}

const specAsIs = "card"

// inSpec is the role card as it is, or as SillyTavern writes it beside a newer one.
func (ch *Character) inSpec(spec string) json.RawMessage {
	if spec == specAsIs {
		return ch.RoleCard
	}
	o, err := parseObject(ch.RoleCard)
	if err != nil {
		return nil
	}
	o.put("spec", "chara_card_v2")
	o.put("spec_version", "2.0")
	return o.encode()
}

// fileOf makes the file again; nil where it is not the same.
func (ch *Character) fileOf(o *Original) []byte {
	chunks, err := pngfile.Chunks(ch.Avatar)
	if err != nil {
		return nil
	}
	for _, c := range slices.Backward(o.Chunks) {
		doc := json.RawMessage(c.Doc)
		if c.Spec != "" {
			doc = ch.inSpec(c.Spec)
		}
		if c.At > len(chunks) {
			return nil
		}
		chunks = slices.Insert(chunks, c.At, pngfile.Chunk{Kind: "tEXt", Data: []byte(cardText(c.Keyword, doc))})
	}
	var b bytes.Buffer
	b.WriteString(pngfile.Signature)
	for _, c := range chunks {
		pngfile.Append(&b, c.Kind, c.Data)
	}
	if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != o.Digest {
		return nil
	}
	return b.Bytes()
}

// OriginalFile is the PNG file that a character came in, byte for byte; nil if it was changed since, or came in no such file.
func (ch *Character) OriginalFile() []byte {
	if ch.Original == nil || ch.AvatarType != "image/png" {
		return nil
	}
	file := ch.fileOf(ch.Original)
	if file == nil {
		return nil
	}
	was, err := Import(file, "", Limits{})
	if err != nil || was.Dialect != ch.Dialect {
		return nil
	}
	for _, doc := range [][2]json.RawMessage{
		{was.RoleCard, ch.RoleCard}, {was.WorldBook, ch.WorldBook}, {was.Preset, ch.Preset}, {was.AuthorNote, ch.AuthorNote},
		{was.RegexScripts, ch.RegexScripts}, {was.Extra, ch.Extra},
	} {
		if !sameJSON(doc[0], doc[1]) {
			return nil
		}
	}
	return file
}
