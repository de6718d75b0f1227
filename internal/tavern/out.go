package tavern

import (
	"archive/zip"
	"compress/flate"
	"context"
	"encoding/json"
	"io"
	"path"
	"strings"
	"time"

	"nodest/internal/fault"
	"nodest/internal/spool"
	"nodest/internal/tavern/folder"
)

// Beside is a file of the folder NodeST, which has what SillyTavern has no place for.
type Beside struct {
	Name  string // from the folder on
	Write func(ctx context.Context, userID string, out io.Writer) error
}

// outside is the folder of what SillyTavern has no place for.
const outside = "NodeST"

// Export writes a zip archive laid out as the folder of a SillyTavern user. What was imported and not changed since is,
// byte for byte, the file that it came in. The folder NodeST has what SillyTavern has no place for, and report.json, which
// is the last file: it lists every file, and what was left out and why. It holds one document, or the files of one
// conversation, at a time; what is deleted meanwhile is not in it.
func (s *Service) Export(ctx context.Context, userID string, w io.Writer) error {
	o := &outgoing{
		Service: s, userID: userID, zip: zip.NewWriter(w), moved: map[string]string{}, books: map[string]string{}, presets: map[string]string{},
		files: &spool.Spool{Dir: s.opts.TempDir}, left: &spool.Spool{Dir: s.opts.TempDir},
	}
	o.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	defer o.files.Drop()
	defer o.left.Drop()
	for _, step := range []func(context.Context) error{o.asTheyCame, o.documents, o.personas, o.settingsFile, o.characters, o.beside, o.report} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return o.zip.Close()
}

// outgoing is a folder that is written.
type outgoing struct {
	*Service
	userID string
	zip    *zip.Writer
	names  folder.Names
	moved  map[string]string // paths of files that came from a path that another one has, by their ids

	books   map[string]string // names of files by the ids of books
	presets map[string]string // likewise
	scripts []json.RawMessage // for all characters
	people  people

	files, left *spool.Spool // lists of the report
}

// Written is a file of an export in its report.
type Written struct {
	Path       string `json:"path"`
	Size       int64  `json:"size"`
	Original   bool   `json:"original,omitempty"` // byte for byte as it was imported
	ObjectKind string `json:"objectKind,omitempty"`
	ObjectID   string `json:"objectId,omitempty"`
}

// LeftOut is something that an export leaves out.
type LeftOut struct {
	Kind   string `json:"kind"`
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

// packed are the extensions of files that are compressed already.
var packed = []string{".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".mp4", ".webm", ".mp3", ".ogg", ".zip", ".charx"}

// add writes a file, of which write writes the content.
func (o *outgoing) add(f Written, write func(io.Writer) error) error {
	method := zip.Deflate
	for _, ext := range packed {
		if strings.HasSuffix(strings.ToLower(f.Path), ext) {
			method = zip.Store
		}
	}
	entry, err := o.zip.CreateHeader(&zip.FileHeader{Name: f.Path, Method: method, Modified: time.Unix(315532800, 0).UTC()})
	if err != nil {
		return err
	}
	count := &counter{Writer: entry}
	if err := write(count); err != nil {
		return err
	}
	f.Size = count.n
	return note(o.files, f)
}

func (o *outgoing) addBytes(f Written, data []byte) error {
	return o.add(f, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// leave notes that something is not written.
func (o *outgoing) leave(l LeftOut) error { return note(o.left, l) }

// note adds a value to a list of the report.
func note(list *spool.Spool, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	begin := ",\n  "
	if list.Size == 0 {
		begin = "\n  "
	}
	_, err = io.WriteString(list, begin+string(text))
	return err
}

type counter struct {
	io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// came is the newest file of a kind that became an object; nil = none did.
func (o *outgoing) came(ctx context.Context, kind folder.Kind, objectID string) (*Known, error) {
	var found *Known
	err := o.store.View(ctx, o.userID, func(tx Tx) error {
		files, _, err := tx.KnownFiles(kind, objectID, false, "", 1)
		if len(files) > 0 {
			found = files[0]
		}
		return err
	})
	return found, err
}

// pathOf is the path at which a file goes out that came in; "" = it has none that it can have.
func (o *outgoing) pathOf(k *Known) string {
	if k == nil {
		return ""
	}
	if moved, ok := o.moved[k.ID]; ok {
		return moved
	}
	return k.Path
}

// kept is the content of a file that came in.
func (o *outgoing) kept(ctx context.Context, k *Known, w io.Writer) error {
	for n := range k.Parts {
		var part []byte
		err := o.store.View(ctx, o.userID, func(tx Tx) (err error) {
			part, err = tx.KnownPart(k.ID, n)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// asTheyCame keeps the paths of what came in, and writes the files that are no documents here.
func (o *outgoing) asTheyCame(ctx context.Context) error {
	for cursor, more := "", true; more; more = cursor != "" {
		var files []*Known
		err := o.store.View(ctx, o.userID, func(tx Tx) (err error) {
			var page []*Known
			if page, cursor, err = tx.KnownFiles("", "", false, cursor, 100); err != nil {
				return err
			}
			for _, k := range page {
				alive, err := k.alive(tx)
				if err != nil {
					return err
				}
				if alive {
					files = append(files, k)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range files {
			if err := o.asItCame(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *outgoing) asItCame(ctx context.Context, k *Known) error {
	switch {
	case !folder.Safe(k.Path) || folder.Classify(k.Path) != k.Kind:
		o.moved[k.ID] = "" // it stands for something that was made
		return nil
	case !o.names.Reserve(k.Path):
		ext := path.Ext(k.Path)
		o.moved[k.ID] = o.names.Take(path.Dir(k.Path), folder.Base(k.Path), ext)
	}
	switch k.Kind {
	case folder.Persona, folder.Sprite, folder.Background, folder.Image, folder.File:
	default:
		return nil // it may have changed
	}
	if k.Parts == 0 {
		return nil
	}
	return o.add(Written{Path: o.pathOf(k), Original: true, ObjectKind: k.ObjectKind, ObjectID: k.ObjectID}, func(w io.Writer) error { return o.kept(ctx, k, w) })
}

// beside writes what SillyTavern has no place for.
func (o *outgoing) beside(ctx context.Context) error {
	for _, b := range o.opts.Beside {
		name := path.Join(outside, b.Name)
		o.names.Reserve(name)
		if err := o.spooled(ctx, Written{Path: name}, func(w io.Writer) error { return b.Write(ctx, o.userID, w) }); err != nil {
			return err
		}
	}
	return nil
}

// spooled writes a file that is read whole first. One that is empty, or of something that was deleted meanwhile, is none.
func (o *outgoing) spooled(_ context.Context, f Written, write func(io.Writer) error) error {
	s := &spool.Spool{Dir: o.opts.TempDir}
	defer s.Drop()
	err := write(s)
	if fault.Is(err, fault.NotFound) || err == nil && s.Size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return o.add(f, s.CopyTo)
}

// always are the things that no export has.
var always = []LeftOut{
	{Kind: "knowledge", Reason: "SillyTavern keeps no documents with a chat: their names are in NodeST/knowledge.json, and nodest export --all has them whole"},
	{Kind: "settings", Reason: "settings of characters and of the account that SillyTavern does not have are in nodest export --all"},
	{Kind: "attachment", Reason: "images in messages and posts that were uploaded here are in nodest export --all"},
	{Kind: "secrets", Reason: "keys and passwords are never exported"},
}

// report writes the report.
func (o *outgoing) report(context.Context) error {
	for _, l := range always {
		if err := o.leave(l); err != nil {
			return err
		}
	}
	entry, err := o.zip.CreateHeader(&zip.FileHeader{Name: path.Join(outside, "report.json"), Method: zip.Deflate, Modified: time.Unix(315532800, 0).UTC()})
	if err != nil {
		return err
	}
	head, err := json.Marshal(map[string]any{"format": "nodest.sillytavern", "formatVersion": 1, "createdAt": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	_, err = io.WriteString(entry, strings.TrimSuffix(string(head), "}")+",\n \"files\": [")
	if err == nil {
		err = o.files.CopyTo(entry)
	}
	if err == nil {
		_, err = io.WriteString(entry, "],\n \"leftOut\": [")
	}
	if err == nil {
		err = o.left.CopyTo(entry)
	}
	if err == nil {
		_, err = io.WriteString(entry, "]\n}\n")
	}
	return err
}
