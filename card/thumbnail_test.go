package card_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"nodest/card"
	"nodest/fault"
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
		require.NoError(t, png.Encode(&b, p))
		return b.Bytes()
	}
	var asJPEG, asGIF bytes.Buffer
	require.NoError(t, jpeg.Encode(&asJPEG, plain(300, 600, blue), nil))
	require.NoError(t, gif.Encode(&asGIF, plain(500, 100, blue), nil))
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
			got, kind, err := card.Thumbnail(c.data, 128)
			require.NoError(t, err)
			require.Equal(t, c.kind, kind)
			config, _, err := image.DecodeConfig(bytes.NewReader(got))
			require.NoError(t, err)
			require.Equal(t, []int{c.width, c.height}, []int{config.Width, config.Height})
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
			_, _, err := card.Thumbnail(c.data, 128)
			require.True(t, fault.Is(err, c.code), "%v", err)
		})
	}
}
