package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"runtime"
	"testing"
)

// However often a thumbnail is asked for, the picture is decoded once.
func TestAPictureIsConvertedOnce(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 1000, 1000))); err != nil {
		t.Fatal(err)
	}
	made := NewThumbnails()
	allocated := func(id string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		data, kind, err := made.Of(t.Context(), id, file.Bytes(), 16)
		runtime.ReadMemStats(&after)
		if err != nil || kind != "image/jpeg" || len(data) == 0 {
			t.Fatalf("%s of %d bytes, %v", kind, len(data), err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if first := allocated("a"); first < 1_000_000 {
		t.Errorf("%d bytes for a picture of 1,000,000", first)
	}
	if again := allocated("a"); again > 100_000 {
		t.Errorf("%d bytes for the second time", again)
	}
	if other := allocated("b"); other < 1_000_000 {
		t.Errorf("%d bytes for another picture", other)
	}
}

func TestAThumbnailWaitsForAPlace(t *testing.T) {
	made := NewThumbnails()
	for range picturesAtOnce {
		made.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := made.Of(ctx, "a", []byte("waits"), 16); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
