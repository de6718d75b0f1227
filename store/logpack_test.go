package store

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// What deflateShort writes, any reader of deflated data with the dictionary reads.
func TestShortTextsAreDeflatedData(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n, letters int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(letters))
		}
		return string(b)
	}
	texts := []string{"", "a", "abc", logWords[:shortText], strings.Repeat("x", shortText), strings.Repeat("abcd", 400), random(shortText, 256)}
	for range 2000 {
		text := random(r.IntN(300), 1+r.IntN(256))
		for range r.IntN(6) {
			from := r.IntN(len(logWords))
			text += logWords[from:min(from+r.IntN(300), len(logWords))] + random(r.IntN(20), 256)
		}
		texts = append(texts, text[:min(len(text), shortText)])
	}
	for _, text := range texts {
		packed := logDict.deflateShort(nil, []byte(text))
		got, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(packed), []byte(logWords)))
		if err != nil || string(got) != text {
			t.Fatalf("%q became %q, %v", text, got, err)
		}
	}
}
