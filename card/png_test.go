package card_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"nodest/card"
	"nodest/internal/fault"
)

// packed is a compressed text chunk.
func packed(keyword, text string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return chunk("zTXt", keyword+"\x00\x00"+b.String())
}

// A few bytes can be unpacked to very many that mean nothing. All of them count.
func TestWhatTextChunksAreUnpackedToIsBounded(t *testing.T) {
	blanks := strings.Repeat(" ", 3<<20)
	parts := [][]byte{text("chara", `{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Ada"}}`)}
	for i := range 20 {
		parts = append(parts, packed(fmt.Sprintf("chara-ext-asset_:%d", i), blanks))
	}
	file := picture(t, parts...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ch, err := card.Import(file, "x.png", card.Limits{TotalBytes: 8 << 20})
	runtime.ReadMemStats(&after)
	if err != nil || ch.Name != "Ada" || len(ch.Assets) != 2 || len(ch.Warnings) == 0 {
		t.Errorf("%v, %+v", err, ch)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 60 {
		t.Errorf("%d MiB for a file of %d KiB", n, len(file)>>10)
	}
}

func TestThePartsOfAPictureAreCounted(t *testing.T) {
	file := picture(t, bytes.Repeat(chunk("tEXt", "a"), 100_001))
	if _, err := card.Import(file, "x.png", card.Limits{}); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
}
