package picture

import (
	"bytes"
	"encoding/binary"
	"image"
)

// orientation says how a JPEG file is to be turned and mirrored before it is shown, as
// cameras note it (EXIF tag 0x0112): 1 to 8, 1 = as it is.
func orientation(jpeg []byte) int {
	for at := 2; at+4 <= len(jpeg) && jpeg[at] == 0xff && jpeg[at+1] != 0xda; {
		end := at + 2 + int(binary.BigEndian.Uint16(jpeg[at+2:]))
		if end < at+4 || end > len(jpeg) {
			break
		}
		if exif, found := bytes.CutPrefix(jpeg[at+4:end], []byte("Exif\x00\x00")); found && jpeg[at+1] == 0xe1 {
			return tiffOrientation(exif)
		}
		at = end
	}
	return 1
}

func tiffOrientation(tiff []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(tiff, []byte("MM")) {
		order = binary.BigEndian
	}
	if len(tiff) < 8 {
		return 1
	}
	at := int(order.Uint32(tiff[4:]))
	if at < 8 || at+2 > len(tiff) {
		return 1
	}
	count := int(order.Uint16(tiff[at:]))
	for at += 2; count > 0 && at+12 <= len(tiff); at, count = at+12, count-1 {
		if order.Uint16(tiff[at:]) != 0x0112 {
			continue
		}
		if v := int(order.Uint16(tiff[at+8:])); v >= 1 && v <= 8 {
			return v
		}
		break
	}
	return 1
}

// turned returns a picture as it is to be shown.
func turned(from *image.NRGBA, orientation int) *image.NRGBA {
	if orientation == 1 {
		return from
	}
	w, h := from.Rect.Dx(), from.Rect.Dy()
	to := image.NewNRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		to = image.NewNRGBA(image.Rect(0, 0, h, w))
	}
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			p := [...]image.Point{{}, {}, {w - 1 - x, y}, {w - 1 - x, h - 1 - y}, {x, h - 1 - y}, {y, x}, {y, h - 1 - x}, {w - 1 - y, h - 1 - x}, {w - 1 - y, x}}[orientation]
			to.SetNRGBA(x, y, from.NRGBAAt(p.X, p.Y))
		}
	}
	return to
}
