package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"nodest/card/picture"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/jsonlimit"
	"nodest/internal/op/id"
	"nodest/internal/rights"
	"nodest/knowledge"
	"nodest/store/sqldb"
)

// Bounds of a file that nobody trusts.
const (
	maxRightsLine = 64 << 20 // bytes of a row
	rowsBefore    = 200      // rows that are stored together
)

var rightsJSON = jsonlimit.Limits{Depth: 200, Deep: fault.InvalidImport, Values: 10_000_000}

func badRow(format string, args ...any) error {
	return fault.New(fault.InvalidImport, "the file of an account: %s", fmt.Sprintf(format, args...))
}

// ownedRow is a row of a file.
type ownedRow struct {
	of     *ownedTable
	values []any // by column; of the user nil
}

// readRows calls fn with the rows of a bundle.
func readRows(all owned, c *rights.Content, fn func(*ownedRow) error) error {
	tables := all.inBundle(c.Table)
	if len(tables) == 0 || tables[0].up != nil || tables[0].isSingle() != (c.ID == "") {
		return badRow("nothing can be stored as %q", c.Table)
	}
	lines, err := c.Lines()
	if err != nil {
		return err
	}
	defer lines.Close() //nolint:errcheck // it is only read
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(make([]byte, 64<<10), maxRightsLine)
	n := 0
	for scanner.Scan() {
		n++
		row, err := tables.decode(c.Bundle, scanner.Bytes())
		if err == nil && (n == 1) != (row.of.up == nil) {
			err = badRow("the first row of %s must be the only one of its table", c.Table)
		}
		if err == nil {
			err = fn(row)
		}
		if err != nil {
			return atRow(c.Bundle, n, err)
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fault.New(fault.TooLarge, "row %d of %s %s has more than %s", n+1, c.Table, c.ID, fault.Size(maxRightsLine)).With("limit", maxRightsLine)
	}
	if err := scanner.Err(); err != nil {
		return badRow("%s %s is damaged: %v", c.Table, c.ID, err)
	}
	if n == 0 {
		return badRow("%s %s is empty", c.Table, c.ID)
	}
	return nil
}

// atRow names the row that an error is about.
func atRow(b rights.Bundle, n int, err error) error {
	if fault.Is(err, fault.InvalidImport) {
		err = fault.Wrap(err, fault.InvalidImport, "%s (row %d of %s %s)", fault.Public(err).Message, n, b.Table, b.ID)
	}
	return err
}

// decode reads a line of a bundle.
func (all owned) decode(b rights.Bundle, line []byte) (*ownedRow, error) {
	if err := jsonlimit.Check(line, rightsJSON); err != nil {
		return nil, err
	}
	var named map[string]map[string]json.RawMessage
	if err := json.Unmarshal(line, &named); err != nil || len(named) != 1 {
		return nil, badRow("a line must be an object with one member")
	}
	for name, members := range named {
		o := all.table(name)
		if o == nil {
			return nil, badRow("a row of %q does not belong here", name)
		}
		return o.decode(b, members)
	}
	return nil, nil
}

// decode reads the members of a row. Columns that the file does not have are 0, "" or NULL.
func (o *ownedTable) decode(b rights.Bundle, members map[string]json.RawMessage) (*ownedRow, error) {
	row := &ownedRow{o, make([]any, len(o.columns))}
	known := 0
	for i, c := range o.columns {
		raw, ok := members[c.Name]
		if ok && !c.isLeft {
			known++
		}
		if !ok || c.isLeft || string(raw) == "null" {
			row.values[i] = c.absent()
			continue
		}
		v, err := c.decode(raw)
		if err == nil {
			err = c.within(v)
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidImport, "%s.%s: %v", o.name, c.Name, err)
		}
		if row.values[i] = v; c.Name == "status" && slices.Contains(openStates[o.name], fmt.Sprint(v)) {
			row.values[i] = chat.StatusInterrupted
		}
	}
	if known < len(members) {
		return nil, badRow("%s has an unknown column", o.name)
	}
	return row, o.checkPlace(b, row)
}

// checkPlace refuses a row of another bundle.
func (o *ownedTable) checkPlace(b rights.Bundle, row *ownedRow) error {
	column := "id"
	switch {
	case b.ID == "" || o.up != nil && o.up.parent != o.root:
		return nil
	case o.up != nil:
		column = o.up.columns[len(o.up.columns)-1]
	}
	if row.value(column) != b.ID {
		return badRow("%s.%s must be %s", o.name, column, b.ID)
	}
	return nil
}

// value is that of a column.
func (r *ownedRow) value(column string) any {
	for i, c := range r.of.columns {
		if c.Name == column {
			return r.values[i]
		}
	}
	return nil
}

// absent is the value of a column that a row does not name.
func (c *ownedColumn) absent() any {
	switch {
	case c.isNull || c.Kind == kindID:
		return nil
	case c.isDocument && c.Kind == kindText:
		return "{}"
	}
	switch c.Kind {
	case kindInt:
		return int64(0)
	case kindReal:
		return 0.0
	case kindBool:
		return false
	case kindBlob:
		return []byte{}
	case kindText, kindID:
	}
	return ""
}

func (c *ownedColumn) decode(raw json.RawMessage) (any, error) {
	switch c.Kind {
	case kindInt:
		return strconv.ParseInt(string(raw), 10, 64)
	case kindReal:
		return strconv.ParseFloat(string(raw), 64)
	case kindBool:
		return strconv.ParseBool(string(raw))
	case kindText, kindBlob, kindID:
	}
	if c.isDocument && isContainer(raw) {
		return c.document(bytes.Clone(raw)), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, errors.New("must be a text")
	}
	switch {
	case c.Kind == kindID:
		if _, ok := id.Parse(text); !ok {
			return nil, fmt.Errorf("%.40q is no id", text)
		}
	case c.isDocument:
		if err := jsonlimit.Check([]byte(text), rightsJSON); err != nil || !json.Valid([]byte(text)) {
			return nil, errors.New("must be JSON")
		}
		return c.document([]byte(text)), nil
	case c.Kind == kindBlob:
		return base64.StdEncoding.DecodeString(text)
	}
	return text, nil
}

// document is JSON as the column has it.
func (c *ownedColumn) document(text []byte) any {
	if c.Kind == kindBlob {
		return sqldb.Zstd(text)
	}
	return string(text)
}

// CheckBundle reads a bundle: rights.Store.
func (db *DB) CheckBundle(ctx context.Context, c *rights.Content) (rights.Counts, error) {
	all, err := ownedTables(ctx)
	if err != nil {
		return nil, err
	}
	counts := rights.Counts{}
	var of *ownedRow // that the file of the bundle belongs to
	check := newBundleCheck()
	err = readRows(all, c, func(row *ownedRow) error {
		if slices.Contains([]string{"files", "attachments", "avatars"}, row.of.name) {
			of = row
		}
		counts[row.of.name]++
		return cmp.Or(ctx.Err(), check.row(row))
	})
	if err == nil {
		err = check.end()
	}
	switch {
	case err != nil:
		return nil, err
	case (of == nil) != (c.File == nil):
		return nil, badRow("%s %s has a file beside it and no row of that, or the other way round", c.Table, c.ID)
	case of != nil && c.Table == "files":
		err = checkDocument(c, of)
	case of != nil:
		err = checkPicture(c, of)
	}
	return counts, err
}

// checkDocument refuses a document that is not what its row says.
func checkDocument(c *rights.Content, row *ownedRow) error {
	file, err := c.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	h := sha256.New()
	n, err := io.Copy(h, file)
	if err != nil || n != c.Size || row.value("size") != n || row.value("sha256") != hex.EncodeToString(h.Sum(nil)) {
		return badRow("the document of %s %s is damaged", c.Table, c.ID)
	}
	return nil
}

// checkPicture does it with a picture. Its type and tag are made of its bytes, because others rely on both.
func checkPicture(c *rights.Content, row *ownedRow) error {
	data, err := readPicture(c)
	if err != nil {
		return err
	}
	info, err := picture.Check(data)
	if err != nil {
		return err
	}
	if row.value("content_type") != info.ContentType || row.value("etag") != info.ETag {
		return badRow("the picture of %s %s is damaged", c.Table, c.ID)
	}
	return nil
}

// maxPicture is one byte more than a picture may have.
const maxPicture = 10<<20 + 1

func readPicture(c *rights.Content) ([]byte, error) {
	file, err := c.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(io.LimitReader(file, maxPicture))
	if err != nil {
		return nil, badRow("the picture of %s %s is damaged", c.Table, c.ID)
	}
	return data, nil
}

// Presence says what a user has: rights.Store.
func (db *DB) Presence(ctx context.Context, userID, table string, ids []string) (map[string]rights.Presence, error) {
	all, err := ownedTables(ctx)
	if err != nil {
		return nil, err
	}
	o := all.table(table)
	if o == nil || o.up != nil {
		return nil, badRow("nothing can be stored as %q", table)
	}
	found := map[string]rights.Presence{}
	err = db.view(ctx, userID, func(t *tx) error {
		if o.isSingle() {
			has, err := t.Has("SELECT 1 FROM "+table+" WHERE user_id = ?", userID)
			if has {
				found[""] = rights.Present
			}
			return err
		}
		deleted := "FALSE"
		if slices.Contains(o.columnNames(), "deleted_at") {
			deleted = "deleted_at IS NOT NULL"
		}
		return sqldb.Each(t, func(r *struct {
			ID   string
			Gone bool
		}) error {
			found[r.ID] = rights.Present
			if r.Gone {
				found[r.ID] = rights.Deleted
			}
			return nil
		}, "SELECT id, "+deleted+" AS gone FROM "+table+" WHERE user_id = ? AND id IN (?)", userID, ids)
	})
	return found, err
}

// WriteBundle stores a bundle: rights.Store.
func (db *DB) WriteBundle(ctx context.Context, userID string, c *rights.Content) (counts rights.Counts, err error) {
	all, err := ownedTables(ctx)
	if err != nil {
		return nil, err
	}
	err = db.update(ctx, userID, func(t *tx) error {
		w := &bundleWriter{tx: t, content: c, counts: rights.Counts{}}
		if err := w.write(all); err != nil {
			return err
		}
		counts = w.counts
		return nil
	})
	switch {
	case errors.Is(err, errThere):
		return nil, nil
	case err == nil:
		return counts, nil
	case ctx.Err() != nil:
		return nil, err
	}
	switch fault.Public(err).Code {
	case fault.Conflict, fault.NotFound, fault.Internal:
		return nil, fault.Wrap(err, fault.InvalidImport, "%s %s of the file cannot be stored: it does not fit to what it refers to", c.Table, c.ID)
	}
	return nil, err
}

// errThere rolls the transaction of a bundle back that the user has already.
var errThere = errors.New("store: the user has this already")

// bundleWriter stores a bundle.
type bundleWriter struct {
	*tx
	content *rights.Content
	counts  rights.Counts
	waiting []*ownedRow // all in one table
}

func (w *bundleWriter) write(all owned) error {
	err := readRows(all, w.content, func(row *ownedRow) error {
		if len(w.waiting) == rowsBefore || len(w.waiting) > 0 && w.waiting[0].of != row.of {
			if err := w.flush(); err != nil {
				return err
			}
		}
		w.waiting = append(w.waiting, row)
		if row.of.up != nil {
			return nil
		}
		if w.content.Table == "files" {
			if err := w.writeDocument(row); err != nil {
				return err
			}
		}
		return w.flush()
	})
	for _, step := range []func() error{w.flush, func() error { return w.refuseOdd(all) }, w.settle} {
		if err == nil {
			err = step()
		}
	}
	return err
}

// refuseOdd refuses rows that no file has, such as work that is under way.
func (w *bundleWriter) refuseOdd(all owned) error {
	for _, o := range all.inBundle(w.content.Table) {
		if rightsFilters[o.name] == "" || w.counts[o.name] == 0 {
			continue
		}
		where, args := o.within(all, w.userID, w.content.Bundle)
		odd, err := w.Has("SELECT 1 FROM "+o.name+" c WHERE "+where+" AND NOT ("+rightsFilters[o.name]+")", args...)
		if err == nil && odd {
			err = badRow("%s %s has a row of %s that was deleted or is under way", w.content.Table, w.content.ID, o.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush stores the rows that wait.
func (w *bundleWriter) flush() error {
	if len(w.waiting) == 0 {
		return nil
	}
	o := w.waiting[0].of
	rows := make([][]any, len(w.waiting))
	for i, r := range w.waiting {
		for j, c := range o.columns {
			if c.isUser {
				r.values[j] = w.userID
			}
		}
		rows[i] = r.values
	}
	w.waiting = w.waiting[:0]
	if err := w.addPicture(o, rows); err != nil {
		return err
	}
	n, err := w.InsertValues(o.name, o.columnNames(), rows, "ON CONFLICT DO NOTHING")
	if err == nil && n == 0 && o.up == nil {
		return errThere
	}
	w.counts[o.name] += n
	return err
}

// addPicture gives rows of pictures their bytes.
func (w *bundleWriter) addPicture(o *ownedTable, rows [][]any) error {
	if o.name != "attachments" && o.name != "avatars" || w.content.File == nil {
		return nil
	}
	data, err := readPicture(w.content)
	if err != nil {
		return err
	}
	at := slices.Index(o.columnNames(), "data")
	for _, r := range rows {
		r[at] = data
	}
	return nil
}

// partBytes is how long the parts of a document are, but for the last one.
const partBytes = 1 << 20

// writeDocument stores the content of a document, whose row follows.
func (w *bundleWriter) writeDocument(row *ownedRow) error {
	contentID, _ := row.value("content_id").(string)
	file, err := w.content.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	data := make([]byte, partBytes)
	for part := 0; ; part++ {
		n, err := io.ReadFull(file, data)
		if n > 0 {
			if err := w.knowledge.PutPart(contentID, part, data[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// settle has made what is made of rows.
func (w *bundleWriter) settle() error {
	b := w.content.Bundle
	switch b.Table {
	case "conversations":
		w.words.indexWords(b.ID, w.Now())
		return w.settleMemory("SELECT character_id, MAX(change) AS change FROM"+
			" (SELECT character_id, change FROM memory_texts WHERE user_id = ? AND conversation_id = ?) AS texts GROUP BY character_id ORDER BY character_id", w.userID, b.ID)
	case "characters":
		return w.settleMemory("SELECT character_id, MAX(change) AS change FROM"+
			" (SELECT character_id, change FROM memories WHERE user_id = ? AND character_id = ?) AS facts GROUP BY character_id", w.userID, b.ID)
	case "files":
		return w.jobs.Enqueue(jobs.Spec{Kind: knowledge.EmbedKind, Subject: b.ID})
	}
	return nil
}

// settleMemory has the memories of characters loaded again that a query finds with their newest changes.
func (w *bundleWriter) settleMemory(query string, args ...any) error {
	type scope struct {
		CharacterID string
		Change      int64
	}
	scopes, err := sqldb.All[scope](w, query, args...)
	if err != nil {
		return err
	}
	for _, s := range scopes {
		err := w.Run(`INSERT INTO memory_scopes (user_id, character_id, version, whole_version, embedded_model, embedded_change, models)
			SELECT c.user_id, c.id, ?, ?, '', 0, NULL FROM characters c WHERE c.user_id = ? AND c.id = ?
			ON CONFLICT (user_id, character_id) DO UPDATE SET embedded_change = 0,
				version = CASE WHEN memory_scopes.version > EXCLUDED.version THEN memory_scopes.version ELSE EXCLUDED.version END + 1,
				whole_version = CASE WHEN memory_scopes.version > EXCLUDED.version THEN memory_scopes.version ELSE EXCLUDED.version END + 1`,
			s.Change, s.Change, w.userID, s.CharacterID)
		err = cmp.Or(err, w.each([]string{"DELETE FROM memory_segments WHERE " + ofScope, "DELETE FROM memory_segment_parts WHERE " + ofScope}, w.userID, s.CharacterID))
		if err != nil {
			return err
		}
	}
	return nil
}
