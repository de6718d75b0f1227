package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"nodest/internal/fault"
	"nodest/migrations"
	"nodest/store/sqldb"
)

// column is a column as a backup has it. Its kind is what both databases agree
// on. In JSON it is "name kind".
type column struct {
	Name string
	Kind columnKind
}

// MarshalText implements encoding.TextMarshaler.
func (c column) MarshalText() ([]byte, error) { return []byte(c.Name + " " + string(c.Kind)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *column) UnmarshalText(text []byte) error {
	name, kind, _ := strings.Cut(string(text), " ")
	c.Name, c.Kind = name, columnKind(kind)
	return nil
}

type columnKind string

const (
	kindText columnKind = "text"
	kindInt  columnKind = "integer"
	kindReal columnKind = "real"
	kindBool columnKind = "boolean"
	kindBlob columnKind = "blob"
	kindID   columnKind = "id"
)

// kindOf names the kinds by the types that the migrations declare.
var kindOf = map[string]columnKind{
	"TEXT": kindText, "INTEGER": kindInt, "BIGINT": kindInt, "DOUBLE PRECISION": kindReal, "BOOLEAN": kindBool, "BLOB": kindBlob, "BLOB(16)": kindID,
}

// table is a table with what it refers to.
type table struct {
	name    string
	columns []column
	key     []string // names of columns
	parents []string // tables that its foreign keys name

	nullable map[string]bool // columns that may be NULL
	refs     []reference     // its foreign keys, in the order of their declarations
}

// reference is a foreign key: columns, and those of the parent that they equal.
type reference struct {
	parent        string
	columns, keys []string
}

func (t *table) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.Name
	}
	return names
}

// tablesAt returns the tables that a database of a version has, each after those
// that it refers to. They are read from a database that is made for it in memory:
// so there is no list to keep, and both databases have the same tables. Nobody changes
// what it returns.
func tablesAt(ctx context.Context, version int64) ([]*table, error) {
	if known, ok := knownTables.Load(version); ok {
		return known.([]*table), nil
	}
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was in memory
	db.SetMaxOpenConns(1)
	if err := migrateTo(ctx, db, sqliteSchema, version, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	tables, err := readTables(ctx, db)
	if err == nil {
		tables = slices.Clip(tables) // they are shared: who appends to them gets a copy
		knownTables.Store(version, tables)
	}
	return tables, err
}

// knownTables are the results of tablesAt, by version: a backup that is checked or restored asks
// for them several times, and making the database takes longer than a small backup.
var knownTables sync.Map

func readTables(ctx context.Context, db *sql.DB) ([]*table, error) {
	rows, err := db.QueryContext(ctx, `SELECT t.name, c.name, c.type, c.pk > 0, c."notnull" FROM sqlite_master t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND t.name <> ? ORDER BY t.name, c.cid`, versionTable)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // read to the end
	var all []*table
	for rows.Next() {
		var name, declared string
		var c column
		var isKey, isNotNull bool
		if err := rows.Scan(&name, &c.Name, &declared, &isKey, &isNotNull); err != nil {
			return nil, err
		}
		if c.Kind = kindOf[declared]; c.Kind == "" {
			return nil, fmt.Errorf("backups do not support the type %s of %s.%s", declared, name, c.Name)
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &table{name: name, nullable: map[string]bool{}})
		}
		t := all[len(all)-1]
		if t.columns = append(t.columns, c); isKey {
			t.key = append(t.key, c.Name)
		}
		t.nullable[c.Name] = !isNotNull
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, t := range all {
		if err := t.readReferences(ctx, db); err != nil {
			return nil, err
		}
	}
	return parentsFirst(all)
}

// readReferences reads the foreign keys of t. SQLite lists the one that was declared last first.
func (t *table) readReferences(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT seq, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq`, t.name)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // read to the end
	for rows.Next() {
		var seq int
		var parent, from, to string
		if err := rows.Scan(&seq, &parent, &from, &to); err != nil {
			return err
		}
		if seq == 0 {
			t.refs = append(t.refs, reference{parent: parent})
		}
		r := &t.refs[len(t.refs)-1]
		r.columns, r.keys = append(r.columns, from), append(r.keys, to)
		if !slices.Contains(t.parents, parent) {
			t.parents = append(t.parents, parent)
		}
	}
	return rows.Err()
}

// parentsFirst puts each table behind those that it refers to.
func parentsFirst(all []*table) ([]*table, error) {
	var ordered []*table
	placed := map[string]bool{}
	for len(ordered) < len(all) {
		before := len(ordered)
		for _, t := range all {
			waits := slices.ContainsFunc(t.parents, func(p string) bool { return !placed[p] })
			if !placed[t.name] && !waits {
				placed[t.name] = true
				ordered = append(ordered, t)
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("the foreign keys of the tables form a circle")
		}
	}
	return ordered, nil
}

// queryTexts reads a column of texts.
func queryTexts(ctx context.Context, db sqldb.Queryer, query string, args ...any) (values []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // read to the end
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// newestVersion is the newest schema that this program knows: the number with which the
// name of the last migration begins.
func newestVersion() int64 {
	files, _ := fs.Glob(migrations.Files(), sqliteSchema.folder+"/*.sql") // sorted; the pattern is a good one
	number, _, _ := strings.Cut(path.Base(files[len(files)-1]), "_")
	newest, _ := strconv.ParseInt(number, 10, 64)
	return newest
}

// knownVersion refuses a schema of a newer program.
func knownVersion(what string, version int64) error {
	if newest := newestVersion(); version > newest {
		return fault.New(fault.NewerVersion,
			"the %s has schema version %d; this nodest supports up to %d. Use a newer nodest", what, version, newest)
	}
	return nil
}

// cells are the values of a row, of the type that its column's kind has in Go, or
// nil. They can be bound on both databases.
type cells []any

// nameIDs gives ids that a database returned their texts.
func (c cells) nameIDs(columns []column) error {
	for i, v := range c {
		if columns[i].Kind != kindID || v == nil {
			continue
		}
		var id sqldb.Text
		if err := id.Scan(v); err != nil {
			return fmt.Errorf("%s: %w", columns[i].Name, err)
		}
		c[i] = string(id)
	}
	return nil
}

// placeIDs makes the texts of ids what a database takes; "" is no id.
func (c cells) placeIDs(columns []column, postgres bool) error {
	for i, v := range c {
		if columns[i].Kind != kindID || v == nil {
			continue
		}
		text, _ := v.(string)
		id, err := uuid.Parse(text)
		switch {
		case text == "":
			c[i] = nil
		case err != nil:
			return damaged("%s: %q is no id", columns[i].Name, text)
		case postgres:
			c[i] = [16]byte(id)
		default:
			c[i] = id[:]
		}
	}
	return nil
}

// nameOdd gives real numbers that JSON cannot hold their names.
func (c cells) nameOdd() {
	for i, v := range c {
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			c[i] = strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
}
