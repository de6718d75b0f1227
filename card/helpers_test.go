package card_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/card"
	"nodest/internal/fault"
)

// rawAsText compares documents as text, so that differences are readable.
var rawAsText = cmp.Transformer("text", func(doc json.RawMessage) string { return string(doc) })

const simpleV2 = `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada","description":"d","first_mes":"Hi."}}`

func mustImport(t *testing.T, file string) *card.Character {
	t.Helper()
	ch, err := card.Import([]byte(file), "test", card.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func mustExport(t *testing.T, ch *card.Character, format card.Format, spec card.Spec) *card.File {
	t.Helper()
	file, err := card.Export(ch, format, spec)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// exportChat is the file of a log.
func exportChat(chat *card.Chat) []byte {
	file := append(chat.HeaderLine(), '\n')
	for _, m := range chat.Messages {
		file = append(append(file, m.Line()...), '\n')
	}
	return file
}

// wantCode fails unless err has the code and contains words.
func wantCode(t *testing.T, err error, code fault.Code, words string) {
	t.Helper()
	if !fault.Is(err, code) || !strings.Contains(fault.Public(err).Message, words) {
		t.Fatalf("err = %v, want %s with %q", err, code, words)
	}
}

// at returns a document's member by its path of keys.
func at(t *testing.T, doc []byte, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no object above %q in %s", key, doc)
		}
		v = m[key]
	}
	return v
}

func chunk(kind, data string) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.BigEndian, uint32(len(data)))
	b.WriteString(kind + data)
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE([]byte(kind+data)))
	return b.Bytes()
}

func text(keyword, doc string) []byte {
	return chunk("tEXt", keyword+"\x00"+base64.StdEncoding.EncodeToString([]byte(doc)))
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

// picture returns a small PNG file with the given chunks before its end.
func picture(t testing.TB, chunks ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	end := chunk("IEND", "")
	return append(append(bytes.TrimSuffix(b.Bytes(), end), bytes.Join(chunks, nil)...), end...)
}

func jpegPicture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archive returns a ZIP file with the given names and contents, alternating.
func archive(t testing.TB, namesAndContents ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(namesAndContents); i += 2 {
		f, err := w.Create(namesAndContents[i])
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(namesAndContents[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
