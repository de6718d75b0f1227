package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"nodest/store/first"
	"nodest/store/sqldb"
)

// postgres restores into the schema that the URL selects. The tables are made in
// a schema of their own and moved in one transaction.
func (r *restoring) postgres(ctx context.Context) (_ *Restored, err error) {
	config, err := sqldb.PostgresConfig(r.options.URL)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := sqldb.LockSchema(ctx, db, false)
	if err != nil {
		return nil, err
	}
	defer sqldb.UnlockSchema(conn)
	schema, tables, err := r.target(ctx, conn)
	if err != nil {
		return nil, err
	}
	staged := clip("nodest_restore_" + schema)
	makeSchema := "DROP SCHEMA IF EXISTS " + ident(staged) + " CASCADE; CREATE SCHEMA " + ident(staged)
	if _, err := conn.ExecContext(ctx, makeSchema, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("cannot create a schema for the restore: %w", err)
	}
	defer func() {
		drop := "DROP SCHEMA IF EXISTS " + ident(staged) + " CASCADE"
		_, failed := conn.ExecContext(context.WithoutCancel(ctx), drop)
		err = errors.Join(err, failed)
	}()
	if err := r.stagePostgres(ctx, config, staged); err != nil {
		return nil, err
	}
	return r.swap(ctx, conn, schema, staged, tables)
}

// target is the schema to restore into, and those of its tables that are ours.
// Tables of other programs stay where they are.
func (r *restoring) target(ctx context.Context, conn *sql.Conn) (schema string, tables []string, err error) {
	if err := conn.QueryRowContext(ctx, "SELECT COALESCE(current_schema(), '')").Scan(&schema); err != nil {
		return "", nil, err
	}
	if schema == "" {
		return "", nil, errors.New("no schema in the search_path of the database URL exists")
	}
	there, err := queryTexts(ctx, conn, "SELECT tablename::text FROM pg_tables WHERE schemaname = $1", schema)
	if err != nil {
		return "", nil, err
	}
	ours, err := ourTables(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, name := range there {
		if slices.Contains(ours, name) {
			tables = append(tables, name)
		}
	}
	if r.Force || !slices.Contains(tables, "users") {
		return schema, tables, nil
	}
	var users int
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+ident(schema)+".users").Scan(&users); err != nil {
		return "", nil, err
	}
	if users > 0 {
		return "", nil, r.refuse("the database")
	}
	return schema, tables, nil
}

// ourTables are all that a database of this program or an older one may have.
func ourTables(ctx context.Context) ([]string, error) {
	names := append(first.Tables(), versionTable)
	for version := newestVersion(); version >= oldestVersion; version-- {
		tables, err := tablesAt(ctx, version)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			names = append(names, t.name)
		}
	}
	return names, nil
}

// stagePostgres fills a schema.
func (r *restoring) stagePostgres(ctx context.Context, config *pgx.ConnConfig, schema string) (err error) {
	inside := config.Copy()
	inside.RuntimeParams["search_path"] = ident(schema)
	db := stdlib.OpenDB(*inside)
	defer func() { err = errors.Join(err, db.Close()) }()
	return r.load(ctx, db, postgresSchema, func(ctx context.Context, rows rowSource) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // gives it back to the pool
		return conn.Raw(func(driver any) error {
			source := &copySource{rowSource: rows, progress: r.Progress}
			n, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{rows.into().name}, rows.into().columnNames(), source)
			if err == nil && n != source.rows {
				err = fmt.Errorf("%d of %d rows were stored", n, source.rows)
			}
			return err
		})
	})
}

// copySource lets pgx read rows.
type copySource struct {
	rowSource
	rows     int64 // so far
	progress func(string, int64)
}

func (c *copySource) Next() bool {
	more := c.next()
	if more {
		c.rows++
		tell(c.progress, c.into().name, c.rows)
	}
	return more
}

func (c *copySource) Values() ([]any, error) {
	row := c.values()
	return row, row.placeIDs(c.into().columns, true)
}

func (c *copySource) Err() error { return c.failure() }

// swap moves the old tables away and the new ones to their place, and the files
// with them.
func (r *restoring) swap(ctx context.Context, conn *sql.Conn, schema, staged string, tables []string) (*Restored, error) {
	folder, err := r.stageFolder(r.options.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after a commit
	aside := ""
	if len(tables) > 0 {
		// The name of the schema keeps restores of several installations in one database apart.
		aside = clip("nodest_replaced_" + strings.ToLower(strings.Replace(r.stamp, ".", "_", 1)) + "_" + schema)
		if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+ident(aside)); err != nil {
			return nil, err
		}
	}
	made, err := queryTexts(ctx, tx, "SELECT tablename::text FROM pg_tables WHERE schemaname = $1", staged)
	if err != nil {
		return nil, err
	}
	for _, name := range tables {
		if _, err := tx.ExecContext(ctx, "ALTER TABLE "+ident(schema)+"."+ident(name)+" SET SCHEMA "+ident(aside)); err != nil {
			return nil, err
		}
	}
	for _, name := range made {
		if _, err := tx.ExecContext(ctx, "ALTER TABLE "+ident(staged)+"."+ident(name)+" SET SCHEMA "+ident(schema)); err != nil {
			return nil, err
		}
	}
	// A secret that is moved and a commit that then fails leave the old secret in
	// the folder beside; the other way round the database would have keys that
	// nothing opens.
	done := &Restored{MovedTo: aside}
	files := filepath.Join(r.options.Dir, replacedPrefix+r.stamp)
	moved, err := replaceFiles(r.options.Dir, folder, files)
	if err != nil {
		return nil, err
	}
	if moved {
		done.Files = files
	}
	return done, tx.Commit()
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// clip keeps a name within the length that PostgreSQL would cut it to.
func clip(name string) string { return name[:min(len(name), 63)] }
