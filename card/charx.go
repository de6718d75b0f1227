package card

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"path"
	"strings"

	"nodest/fault"
)

// Asset is a file that belongs to a card: pictures of emotions, backgrounds and
// whatever else came in a CHARX archive. Assets are kept and exported, not used.
type Asset struct {
	Path string // in the archive, clean and relative
	Data []byte
}

const cardFile = "card.json"

// Bounds against archives that unpack to much more than they weigh: what an
// archive may unpack to beyond maxRatio times its size.
const (
	maxRatio   = 100
	ratioSlack = 4 << 20
)

// importCHARX reads card.json and the assets of an archive. The archive may
// follow other data, as in a self-extracting file or a picture.
func (im *importer) importCHARX(file []byte) (*Character, error) {
	// The reader keeps a record per member before it tells their number.
	if n := bytes.Count(file, []byte("PK\x01\x02")); n > im.limits.Files {
		return nil, fault.New(fault.TooLarge, "the archive has %d files, limit %d", n, im.limits.Files)
	}
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "the CHARX archive is truncated or damaged")
	}
	im.packed, im.room = true, min(im.room, len(file)*maxRatio+ratioSlack)
	var doc json.RawMessage
	for _, member := range archive.File {
		if strings.HasSuffix(member.Name, "/") {
			continue
		}
		data, err := im.unpack(member)
		if err != nil {
			return nil, err
		}
		switch name := cleanPath(member.Name); {
		case name == "":
			im.warn("", "unsafe_path", "a file with a path outside the archive was left out")
		case strings.EqualFold(name, cardFile) && doc == nil:
			if doc, err = im.document(data, fault.UnsupportedCard); err != nil {
				return nil, err
			}
		default:
			im.assets = append(im.assets, Asset{Path: name, Data: data})
		}
	}
	if doc == nil {
		return nil, fault.New(fault.UnsupportedCard, "the archive has no %s", cardFile)
	}
	return im.importJSON(doc)
}

// unpack reads one member, while there is room.
func (im *importer) unpack(member *zip.File) ([]byte, error) {
	if member.Flags&1 != 0 {
		return nil, fault.New(fault.UnsupportedCard, "the archive is encrypted")
	}
	tooLarge := fault.New(fault.TooLarge, "the unpacked archive exceeds the size limit")
	if member.UncompressedSize64 > uint64(im.room) {
		return nil, tooLarge
	}
	var data []byte
	r, err := member.Open()
	if err == nil {
		defer r.Close()
		data, err = io.ReadAll(io.LimitReader(r, int64(im.room)+1))
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.UnsupportedCard, "the CHARX archive is damaged")
	}
	if im.room -= len(data); im.room < 0 {
		return nil, tooLarge
	}
	return data, im.ask(len(data), 0)
}

// cleanPath returns a relative path without detours, "" for one that leads out
// of the archive.
func cleanPath(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	clean := path.Clean(name)
	if path.IsAbs(name) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") ||
		strings.ContainsAny(clean, ":\x00") {
		return ""
	}
	return clean
}

// writeCHARX packs a card and its assets. The same input gives the same bytes.
func writeCHARX(doc json.RawMessage, assets []Asset) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, file := range append([]Asset{{Path: cardFile, Data: doc}}, assets...) {
		w, err := archive.Create(file.Path)
		if err == nil {
			_, err = w.Write(file.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
