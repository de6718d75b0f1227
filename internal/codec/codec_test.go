package codec

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestATextIsReadAsItWasStored(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "short": `{"a":1}`, "long": strings.Repeat("so it goes ", 1000),
		"begins like a frame": string(magic) + "x", "is a frame": string(Pack([]byte(strings.Repeat("a", 5000)))),
	} {
		stored := Pack([]byte(text))
		got, err := Unpack(stored)
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestAShortTextIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	if got := Pack([]byte(`{"a":1}`)); string(got) != `{"a":1}` {
		t.Errorf("stored %q", got)
	}
}

// The numbers of a vector repeat nothing, and yet few of them are common.
func TestNumbersThatRepeatNothingAreShorter(t *testing.T) {
	t.Parallel()
	numbers, x := make([]byte, 512), uint32(1)
	for i := range numbers {
		x = x*1664525 + 1013904223
		numbers[i] = byte(int8(x>>29) - 4)
	}
	stored := PackNumbers(numbers)
	if got, err := Unpack(stored); err != nil || !bytes.Equal(got, numbers) {
		t.Errorf("%x, %v", got, err)
	}
	if len(stored) > len(numbers)/2 {
		t.Errorf("%d numbers of 3 bits take %d bytes", len(numbers), len(stored))
	}
}

func TestOtherProgramsReadAFrame(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("so it goes ", 1000))
	known, err := os.ReadFile("dictionary")
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(Pack(text)), zstd.WithDecoderDicts(known))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(r); err != nil || !bytes.Equal(got.Bytes(), text) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

func TestADamagedFrameIsAnError(t *testing.T) {
	t.Parallel()
	stored := Pack([]byte(strings.Repeat("so it goes ", 1000)))
	for cut := 4; cut < len(stored); cut += 7 {
		if _, err := Unpack(stored[:cut]); err == nil {
			t.Fatalf("a frame cut to %d bytes was read", cut)
		}
	}
}
