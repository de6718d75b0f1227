package picture_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"reflect"
	"testing"

	"nodest/card/picture"
	"nodest/internal/fault"
)

func plain(width, height int, fill color.Color) image.Image {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		p.Set(i%width, i/width, fill)
	}
	return p
}

func TestThumbnail(t *testing.T) {
	blue, glass := color.NRGBA{B: 200, A: 255}, color.NRGBA{B: 200, A: 100}
	asPNG := func(p image.Image) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var asJPEG, asGIF bytes.Buffer
	if err := jpeg.Encode(&asJPEG, plain(300, 600, blue), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, plain(500, 100, blue), nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data          []byte
		width, height int
		kind          string
	}{
		"a tall picture":            {asPNG(plain(400, 800, blue)), 64, 128, "image/jpeg"},
		"a transparent picture":     {asPNG(plain(800, 400, glass)), 128, 64, "image/png"},
		"a small picture":           {asPNG(plain(40, 30, blue)), 40, 30, "image/jpeg"},
		"a very narrow picture":     {asPNG(plain(2000, 1, blue)), 128, 1, "image/jpeg"},
		"a JPEG":                    {asJPEG.Bytes(), 64, 128, "image/jpeg"},
		"the frame of an animation": {asGIF.Bytes(), 128, 25, "image/jpeg"},
	} {
		t.Run(name, func(t *testing.T) {
			got, kind, err := picture.Thumbnail(c.data, 128)
			if err != nil {
				t.Fatal(err)
			}
			if kind != c.kind {
				t.Fatalf("kind is %q, want %q", kind, c.kind)
			}
			config, _, err := image.DecodeConfig(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := ([]int{config.Width, config.Height}), ([]int{c.width, c.height}); !reflect.DeepEqual(got, want) {
				t.Fatalf("[]int{config.Width, config.Height} is %+v, want %+v", got, want)
			}
		})
	}
	for name, c := range map[string]struct {
		data []byte
		code fault.Code
	}{
		"no picture":        {[]byte("hello"), fault.UnsupportedMedia},
		"a cut off picture": {asPNG(plain(400, 800, blue))[:200], fault.UnsupportedMedia},
		"too many pixels":   {asPNG(image.NewGray(image.Rect(0, 0, 5000, 5000))), fault.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := picture.Thumbnail(c.data, 128)
			if !fault.Is(err, c.code) {
				t.Fatal(err)
			}
		})
	}
}

// A JPEG of a few kilobytes with thousands of scans is refused, because each scan is a
// pass over the whole image.
func TestThumbnailOfAJPEGOfManyScans(t *testing.T) {
	for scans, want := range map[int]fault.Code{12: "", 5000: fault.TooLarge} {
		_, _, err := picture.Thumbnail(progressiveJPEG(1024, 1024, scans), 64)
		if want == "" {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !fault.Is(err, want) {
			t.Fatal(err)
		}
	}
}

// progressiveJPEG returns a grey image with one scan of averages and empty scans.
func progressiveJPEG(width, height, scans int) []byte {
	b := []byte{0xff, 0xd8, 0xff, 0xdb, 0, 67, 0}
	b = append(b, bytes.Repeat([]byte{1}, 64)...)
	b = append(b, 0xff, 0xc2, 0, 11, 8, byte(height>>8), byte(height), byte(width>>8), byte(width), 1, 1, 0x11, 0)
	b = append(b, 0xff, 0xc4, 0, 20, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)    // code 0: no difference
	b = append(b, 0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0) // code 0: 16,384 blocks and more are empty
	b = append(b, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0)
	blocks := width / 8 * (height / 8)
	b = append(b, make([]byte, blocks/8)...)
	for range scans - 1 {
		b = append(b, 0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0)
		b = append(b, make([]byte, (blocks/16384*15+15+7)/8)...)
	}
	return append(b, 0xff, 0xd9)
}
