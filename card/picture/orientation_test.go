package picture_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"nodest/card/picture"
)

// photo is a JPEG of 64 x 32 pixels whose left half is white, with an orientation.
func photo(t *testing.T, order binary.AppendByteOrder, orientation uint16) []byte {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 64, 32))
	for y := range 32 {
		for x := range 32 {
			picture.SetGray(x, y, color.Gray{255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture, nil); err != nil {
		t.Fatal(err)
	}
	tiff := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		tiff = []byte("MM\x00*")
	}
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(order.AppendUint16(tiff, 0x0112), 3)
	tiff = order.AppendUint16(order.AppendUint32(tiff, 1), orientation)
	segment := append([]byte("Exif\x00\x00"), append(tiff, 0, 0, 0, 0, 0, 0)...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(segment)+2))
	return append(append(head, segment...), b.Bytes()[2:]...)
}

func TestAThumbnailIsTurnedAsTheCameraNotes(t *testing.T) {
	for orientation, want := range map[uint16]struct {
		width, height int
		white         image.Point // a pixel in the half that is white
	}{
		0: {32, 16, image.Pt(4, 8)}, 1: {32, 16, image.Pt(4, 8)}, 2: {32, 16, image.Pt(28, 8)}, 3: {32, 16, image.Pt(28, 8)}, 4: {32, 16, image.Pt(4, 8)},
		5: {16, 32, image.Pt(8, 4)}, 6: {16, 32, image.Pt(8, 4)}, 7: {16, 32, image.Pt(8, 28)}, 8: {16, 32, image.Pt(8, 28)}, 9: {32, 16, image.Pt(4, 8)},
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			data, _, err := picture.Thumbnail(photo(t, order, orientation), 32)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := image.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if size := got.Bounds().Size(); size != image.Pt(want.width, want.height) {
				t.Errorf("%d: %v", orientation, size)
				continue
			}
			gray := func(x, y int) uint8 { return color.GrayModel.Convert(got.At(x, y)).(color.Gray).Y }
			if gray(want.white.X, want.white.Y) < 200 || gray(want.width-1-want.white.X, want.height-1-want.white.Y) > 50 {
				t.Errorf("%d: the wrong half is white", orientation)
			}
		}
	}
}

func TestADamagedNoteOfTheCameraDoesNoHarm(t *testing.T) {
	whole := photo(t, binary.BigEndian, 6)
	for i := range 60 {
		for _, b := range []byte{0, 1, 0x7f, 0xff} {
			damaged := bytes.Clone(whole)
			damaged[i] = b
			_, _, _ = picture.Thumbnail(damaged, 32)
			_, _, _ = picture.Thumbnail(damaged[:max(i, 20)], 32)
		}
	}
}

func FuzzThumbnailOfAPhoto(f *testing.F) {
	f.Add([]byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00"))
	f.Add([]byte("II*\x00\xff\xff\xff\xff"))
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 2)), nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tiff []byte) {
		if len(tiff) > 1000 {
			t.Skip()
		}
		exif := append([]byte("\xff\xd8\xff\xe1"), binary.BigEndian.AppendUint16(nil, uint16(len(tiff)+8))...)
		exif = append(append(exif, "Exif\x00\x00"...), tiff...)
		if _, _, err := picture.Thumbnail(append(exif, b.Bytes()[2:]...), 16); err != nil {
			t.Error(err)
		}
	})
}
