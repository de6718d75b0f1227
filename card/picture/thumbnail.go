package picture

import (
	"bytes"
	"image"
	_ "image/gif" // avatars may be of this kind
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // avatars may be of this kind

	"nodest/internal/fault"
)

// maxPixels bounds pictures that are decoded.
const maxPixels = 16 << 20

// maxScans is how many scans a JPEG may have. Encoders write about ten; each one
// costs the decoder a pass over the whole picture, however short it is.
const maxScans = 200

// Thumbnail scales a picture (PNG, JPEG, WebP or GIF) down so that neither side
// has more than size pixels, and returns it with its media type: PNG where it is
// transparent, else JPEG. A picture that is small enough keeps its size; of an
// animation the first frame remains. A photo is turned as its camera notes.
//
// Errors: UnsupportedMedia for what is no picture, TooLarge above 16 million pixels
// and for a JPEG of too many scans.
func Thumbnail(data []byte, size int) (thumbnail []byte, contentType string, err error) {
	picture, format, err := Decode(data)
	if err != nil {
		return nil, "", err
	}
	width, height := fit(picture.Bounds().Dx(), picture.Bounds().Dy(), size)
	small := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(small, small.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	if format == "jpeg" {
		small = turned(small, orientation(data))
	}
	var b bytes.Buffer
	if !small.Opaque() {
		err = png.Encode(&b, small)
		return b.Bytes(), "image/png", err
	}
	err = jpeg.Encode(&b, small, &jpeg.Options{Quality: 85})
	return b.Bytes(), "image/jpeg", err
}

// Decode decodes a picture whose size is bounded before. Its errors are those of
// Thumbnail.
func Decode(data []byte) (picture image.Image, format string, err error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, "", fault.Wrap(err, fault.UnsupportedMedia, "the image cannot be decoded")
	}
	if config.Width < 1 || config.Height < 1 || config.Width*config.Height > maxPixels {
		return nil, "", fault.New(fault.TooLarge, "the image has more than %d million pixels", maxPixels>>20)
	}
	if format == "jpeg" && bytes.Count(data, []byte{0xff, 0xda}) > maxScans { // marker of a scan
		return nil, "", fault.New(fault.TooLarge, "the picture has more than %d scans", maxScans)
	}
	if picture, _, err = image.Decode(bytes.NewReader(data)); err != nil {
		return nil, "", fault.Wrap(err, fault.UnsupportedMedia, "the image cannot be decoded")
	}
	return picture, format, nil
}

// fit scales width and height down, in proportion, to at most size.
func fit(width, height, size int) (int, int) {
	longest := max(width, height)
	if longest <= size {
		return width, height
	}
	return max(1, width*size/longest), max(1, height*size/longest)
}
