package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"nodest/migrations"
	"nodest/store/sqldb"
)

// versionTable is where goose notes what has run.
const versionTable = "schema_versions"

// migrationFolder is one of the two folders of migrations.
type migrationFolder struct {
	folder  string
	dialect database.Dialect
}

var (
	sqliteSchema   = migrationFolder{"sqlite", database.DialectSQLite3}
	postgresSchema = migrationFolder{"postgres", database.DialectPostgres}
)

// oldestVersion is the schema of the first migration. A database before it is not migrated but comes
// over through a backup, see package store/first.
const oldestVersion = 2

// supported refuses a database of a newer program, and one whose data comes over through a backup.
func supported(version int64) error {
	if version >= oldestVersion {
		return knownVersion("database", version)
	}
	return fmt.Errorf("the data was written by an older nodest (schema version %d), which stored it differently: make a backup with that program (nodest backup FILE), then run nodest restore --force FILE with this one", version)
}

// migrate brings the database to the newest version that this program knows. It
// returns fault.NewerVersion, and changes nothing, when the database is ahead.
func migrate(ctx context.Context, db *sql.DB, from migrationFolder, log *slog.Logger) error {
	return migrateTo(ctx, db, from, newestVersion(), log)
}

// migrateTo is migrate up to a version.
func migrateTo(ctx context.Context, db *sql.DB, from migrationFolder, version int64, log *slog.Logger) error {
	folder, err := fs.Sub(migrations.Files(), from.folder)
	if err != nil {
		return err
	}
	notes, err := database.NewStore(from.dialect, versionTable)
	if err != nil {
		return err
	}
	// The dialect is in the store.
	p, err := goose.NewProvider("", db, folder, goose.WithStore(notes), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("cannot read the migrations: %w", err)
	}
	at, newest, err := p.GetVersions(ctx) // makes the table of versions if there is none
	switch {
	case err != nil:
		return fmt.Errorf("cannot read the version of the database: %w", err)
	case at == min(version, newest):
		return nil
	case at > newest || at > 0 && at < oldestVersion:
		return supported(at)
	}
	started := time.Now()
	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("cannot upgrade the database: %w", sqldb.Translate(err))
	}
	what := "database migrated"
	if at == 0 {
		what = "database created"
	}
	log.InfoContext(ctx, what, "from", at, "version", version, "took", time.Since(started).Round(time.Millisecond))
	return nil
}
