package card

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"path"
	"strings"

	"nodest/card/picture"
	"nodest/internal/fault"
)

// Asset is a file that belongs to a card: pictures of emotions, backgrounds and
// whatever else came in a CHARX archive. Assets are kept and exported, not used.
type Asset struct {
	Path string // in the archive, clean and relative
	Data []byte
}

const (
	cardFile   = "card.json"
	risuModule = "module.risum" // scripts, triggers and lore in a form that only Risu reads
)

// Bounds against archives that unpack to much more than they weigh: what an
// archive may unpack to beyond maxRatio times its size.
const (
	maxRatio   = 100
	ratioSlack = 4 << 20
)

// The end of a zip archive: 22 bytes and a comment.
const (
	archiveEnd     = "PK\x05\x06"
	archiveEndSize = 22
	maxComment     = 1<<16 - 1
)

// IsArchive reports whether a file of so many bytes is a zip archive, by the directory at its
// end: the archive may follow other data, as in a self-extracting file or a picture. One that
// begins the file counts without its end too.
func IsArchive(r io.ReaderAt, size int64) bool {
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); string(head[:n]) == "PK\x03\x04" {
		return true
	}
	from := max(0, size-archiveEndSize-maxComment)
	tail := make([]byte, size-from)
	n, _ := r.ReadAt(tail, from)
	tail = tail[:n]
	for len(tail) >= archiveEndSize {
		at := bytes.LastIndex(tail, []byte(archiveEnd))
		if at < 0 {
			return false
		}
		if end := at + archiveEndSize; end <= len(tail) {
			files, comment := binary.LittleEndian.Uint16(tail[at+10:]), int(binary.LittleEndian.Uint16(tail[end-2:]))
			if files > 0 && end+comment <= n {
				return true
			}
		}
		tail = tail[:at]
	}
	return false
}

func isArchive(data []byte) bool { return IsArchive(bytes.NewReader(data), int64(len(data))) }

// importCHARX reads card.json and the assets of an archive. A picture that the archive
// follows is the avatar of a character without another one.
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
			if strings.EqualFold(name, risuModule) {
				im.warn(name, "not_imported", "scripts, triggers and lore in Risu's own format cannot be read; they are kept for export")
			}
			im.assets = append(im.assets, Asset{Path: name, Data: data})
		}
	}
	if doc == nil {
		return nil, fault.New(fault.UnsupportedCard, "this zip is not a character (CHARX): the archive has no %s. Unzip it and import the files inside", cardFile)
	}
	ch, err := im.importJSON(doc)
	if err == nil && ch.Avatar == nil {
		im.cover = coverOf(file)
	}
	return ch, err
}

// coverOf is the picture that an archive follows; nil if it follows none.
func coverOf(file []byte) []byte {
	cover, _, _ := bytes.Cut(file, []byte("PK\x03\x04"))
	if pictureType(cover) == "" {
		return nil
	}
	if _, err := picture.Check(cover); err != nil {
		return nil
	}
	return cover
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
