package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"

	"nodest/chat"
	"nodest/internal/audit"
	"nodest/internal/codec"
	"nodest/internal/fault"
	"nodest/internal/rights"
	"nodest/internal/stream"
	"nodest/store/sqldb"
)

var _ rights.Store = (*DB)(nil)

// bundlesAtOnce is how many ids one statement lists.
const bundlesAtOnce = 500

// BundleTables are the tables of bundles: rights.Store.
func (db *DB) BundleTables(ctx context.Context) ([]string, error) {
	all, err := ownedTables(ctx)
	var names []string
	for _, o := range all.roots() {
		names = append(names, o.name)
	}
	return names, err
}

// Bundles lists what a user has: rights.Store.
func (db *DB) Bundles(ctx context.Context, userID string, fn func(rights.Bundle) error) error {
	all, err := ownedTables(ctx)
	if err != nil {
		return err
	}
	for _, o := range all.roots() {
		for after := ""; ; {
			ids, err := db.bundleIDs(ctx, all, o, userID, after)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := fn(rights.Bundle{Table: o.name, ID: id}); err != nil {
					return err
				}
				after = id
			}
			if len(ids) < bundlesAtOnce || o.isSingle() {
				break
			}
		}
	}
	return nil
}

// bundleIDs returns the ids of bundles of a table that follow one; of a table with one row, "".
func (db *DB) bundleIDs(ctx context.Context, all owned, o *ownedTable, userID, after string) (ids []string, err error) {
	where, args := o.inside(all, userID, rights.Bundle{})
	err = db.view(ctx, userID, func(t *tx) error {
		if o.isSingle() {
			found, err := t.Has("SELECT 1 FROM "+o.name+" c WHERE "+where, args...)
			if found {
				ids = []string{""}
			}
			return err
		}
		ids, err = sqldb.All[string](t, "SELECT c.id FROM "+o.name+" c WHERE "+where+" AND c.id > ? ORDER BY c.id LIMIT ?", append(args, after, bundlesAtOnce)...)
		return err
	})
	return ids, err
}

// ReadBundle writes a bundle as it is at one moment: rights.Store.
func (db *DB) ReadBundle(ctx context.Context, userID string, b rights.Bundle, lines io.Writer, file func(name string) io.Writer) (rights.Counts, error) {
	all, err := ownedTables(ctx)
	if err != nil {
		return nil, err
	}
	counts := rights.Counts{}
	err = db.view(ctx, userID, func(t *tx) error {
		if err := t.noneWrites(b); err != nil {
			return err
		}
		for _, o := range all.inBundle(b.Table) {
			n, err := t.writeLines(all, o, b, lines)
			if err != nil {
				return err
			}
			if n == 0 && o.up == nil {
				return fault.New(fault.NotFound, "it was deleted meanwhile")
			}
			if n > 0 {
				counts[o.name] = n
			}
		}
		return t.writeFile(b, file)
	})
	return counts, err
}

// noneWrites returns Busy while a reply is being written in a conversation.
func (t *tx) noneWrites(b rights.Bundle) error {
	if b.Table != "conversations" {
		return nil
	}
	running, err := t.forChats().Running(b.ID)
	if err == nil && len(running) > 0 {
		err = chat.Busy(running[0])
	}
	return err
}

// writeLines writes the rows of a table that are in a bundle, one JSON object each, and returns their number.
func (t *tx) writeLines(all owned, o *ownedTable, b rights.Bundle, lines io.Writer) (n int64, err error) {
	where, args := o.inside(all, t.userID, b)
	var columns []*ownedColumn
	query := ""
	for _, c := range o.columns {
		if !c.isLeft {
			columns, query = append(columns, c), query+", c."+c.Name
		}
	}
	var line bytes.Buffer
	err = sqldb.EachValues(t, func(values []any) error {
		line.Reset()
		fmt.Fprintf(&line, "{%q:{", o.name)
		sep := ""
		for i, c := range columns {
			if values[i] == nil {
				continue
			}
			value, err := c.encode(values[i])
			if err != nil {
				return fmt.Errorf("%s.%s: %w", o.name, c.Name, err)
			}
			fmt.Fprintf(&line, "%s%q:%s", sep, c.Name, value)
			sep = ","
		}
		line.WriteString("}}\n")
		n++
		_, err := lines.Write(line.Bytes())
		return err
	}, "SELECT "+query[2:]+" FROM "+o.name+" c WHERE "+where+o.order(), args...)
	return n, err
}

// encode returns a value as JSON. A document that fits on a line stands there as it is.
func (c *ownedColumn) encode(v any) (value []byte, err error) {
	switch v := v.(type) {
	case string:
		value = []byte(v)
	case []byte:
		if !c.isDocument {
			return json.Marshal(base64.StdEncoding.EncodeToString(v))
		}
		if value, err = codec.Unpack(v); err != nil {
			return nil, err
		}
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
	default:
		return json.Marshal(v)
	}
	if c.isDocument && isContainer(value) && !bytes.ContainsAny(value, "\n\r") && json.Valid(value) {
		return value, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(string(value))
	return bytes.TrimSpace(b.Bytes()), err
}

// isContainer reports whether JSON is an object or an array.
func isContainer(raw []byte) bool { return len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') }

// writeFile writes the file of a bundle.
func (t *tx) writeFile(b rights.Bundle, file func(name string) io.Writer) error {
	switch b.Table {
	case "characters":
		return t.writePicture(file, "avatar", "SELECT content_type, data FROM avatars WHERE user_id = ? AND character_id = ?", t.userID, b.ID)
	case "attachments":
		return t.writePicture(file, "image", "SELECT content_type, data FROM attachments WHERE user_id = ? AND id = ?", t.userID, b.ID)
	case "files":
		return t.writeDocument(b.ID, file)
	}
	return nil
}

// pictureExt are the ends of names of pictures; those that a system knows differ.
var pictureExt = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}

func (t *tx) writePicture(file func(name string) io.Writer, name, query string, args ...any) error {
	p, err := sqldb.One[struct {
		ContentType string
		Data        []byte
	}](t, query, args...)
	if p == nil || err != nil {
		return err
	}
	_, err = file(name + pictureExt[p.ContentType]).Write(p.Data)
	return err
}

func (t *tx) writeDocument(id string, file func(name string) io.Writer) error {
	f, err := t.knowledge.OwnFile(id)
	if err != nil {
		return err
	}
	w := file(path.Base(f.Name))
	for part, written := 0, int64(0); written < f.Size; part++ {
		data, err := t.knowledge.FilePart(f, part)
		if err != nil {
			return err
		}
		n, err := w.Write(data)
		if written += int64(n); err != nil {
			return err
		}
	}
	return nil
}

// Tell adds an entry to the audit log and an event to the log of a user: rights.Store.
func (db *DB) Tell(ctx context.Context, userID string, note audit.Entry, event *stream.Event) error {
	return db.update(ctx, userID, func(t *tx) error { return cmp.Or(t.Audit(note), t.Emit(event)) })
}

// PurgeDeleted removes what a user has deleted for good: rights.Store.
func (db *DB) PurgeDeleted(ctx context.Context, userID string) error {
	for _, remove := range []func(*session) (int64, error){
		func(s *session) (int64, error) { return s.purgeChat(userID) },
		func(s *session) (int64, error) {
			return s.removeWhole(&characterParts, "c.user_id = ? AND c.deleted_at IS NOT NULL", userID)
		},
		func(s *session) (int64, error) {
			return s.removeWhole(&resourceParts, "c.user_id = ? AND c.deleted_at IS NOT NULL", userID)
		},
	} {
		if err := db.repeat(ctx, remove); err != nil {
			return err
		}
	}
	return nil
}
